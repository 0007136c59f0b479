import COpenSSL

/// Bounds the key derivation that opening an archive takes. The archive itself says how many rounds
/// that is, in each of its encrypted parts, and OpenSSL does as it is told.
extension PKCS12 {
  /// Rounds left, and parts left, for one archive.
  private struct Budget {
    var rounds = PKCS12.mostRounds
    var parts = 64

    /// - Returns: `false` when the algorithm asks for more than is left, or cannot be read.
    mutating func take(_ algorithm: UnsafePointer<X509_ALGOR>?) -> Bool {
      parts -= 1
      guard parts >= 0, let algorithm, let asked = PKCS12.rounds(of: algorithm), asked <= rounds
      else { return false }
      rounds -= asked
      return true
    }
  }

  /// - Throws: ``CryptographyError``: unsupported when the archive asks for too much work, or in a
  ///   way whose cost cannot be told. Parts that do not decrypt are passed over: OpenSSL stops there.
  static func checkWork(
    _ archive: OpaquePointer, _ password: String
  ) throws(CryptographyError) {
    var budget = Budget()
    guard let parts = PKCS12_unpack_authsafes(archive) else { return }
    defer { OPENSSL_sk_pop_free(parts) { PKCS7_free($0?.assumingMemoryBound(to: PKCS7.self)) } }
    for index in 0..<max(OPENSSL_sk_num(parts), 0) {
      guard
        let part = OPENSSL_sk_value(parts, index)?.assumingMemoryBound(to: PKCS7.self)
      else { continue }
      let bags: OpaquePointer?
      switch OBJ_obj2nid(part.pointee.type) {
      case NID_pkcs7_data: bags = PKCS12_unpack_p7data(part)
      case NID_pkcs7_encrypted:
        let algorithm = part.pointee.d.encrypted?.pointee.enc_data?.pointee.algorithm
        guard budget.take(algorithm.map { UnsafePointer($0) }) else { throw tooMuchWork }
        bags =
          PKCS12_unpack_p7encdata(part, password, -1)
          ?? (password.isEmpty ? PKCS12_unpack_p7encdata(part, nil, 0) : nil)
      default: bags = nil
      }
      guard let bags else { continue }
      defer { OPENSSL_sk_pop_free(bags) { PKCS12_SAFEBAG_free(OpaquePointer($0)) } }
      guard check(bags, &budget, depth: 0) else { throw tooMuchWork }
    }
  }

  private static var tooMuchWork: CryptographyError {
    CryptographyError(
      .unsupported,
      "The PKCS#12 archive asks for more than \(mostRounds) rounds of hashing, or for a kind of "
        + "key derivation that is not taken (PBKDF2 is).")
  }

  private static func check(
    _ bags: OpaquePointer, _ budget: inout Budget, depth: Int
  ) -> Bool {
    guard depth < 4 else { return false }
    for index in 0..<max(OPENSSL_sk_num(bags), 0) {
      guard let bag = OPENSSL_sk_value(bags, index).map({ OpaquePointer($0) }) else { continue }
      switch PKCS12_SAFEBAG_get_nid(bag) {
      case NID_pkcs8ShroudedKeyBag:
        var algorithm: UnsafePointer<X509_ALGOR>?
        X509_SIG_get0(PKCS12_SAFEBAG_get0_pkcs8(bag), &algorithm, nil)
        guard budget.take(algorithm) else { return false }
      case NID_safeContentsBag:
        guard let inner = PKCS12_SAFEBAG_get0_safes(bag),
          check(inner, &budget, depth: depth + 1)
        else { return false }
      default: break
      }
    }
    return true
  }

  /// The rounds that a password-based algorithm asks for; `nil` when that cannot be told.
  private static func rounds(of algorithm: UnsafePointer<X509_ALGOR>) -> Int? {
    guard let parameter = parameter(of: algorithm) else { return nil }
    var bytes: UnsafePointer<UInt8>? = parameter.baseAddress
    guard OBJ_obj2nid(algorithm.pointee.algorithm) == NID_pbes2 else {
      // The older kinds, of PKCS#12 itself and PBES1, share one form.
      guard let old = d2i_PBEPARAM(nil, &bytes, parameter.count) else { return nil }
      defer { PBEPARAM_free(old) }
      return number(old.pointee.iter)
    }
    guard let outer = d2i_PBE2PARAM(nil, &bytes, parameter.count) else { return nil }
    defer { PBE2PARAM_free(outer) }
    guard let function = outer.pointee.keyfunc,
      OBJ_obj2nid(function.pointee.algorithm) == NID_id_pbkdf2,
      let inner = Self.parameter(of: UnsafePointer(function))
    else { return nil }
    bytes = inner.baseAddress
    guard let derivation = d2i_PBKDF2PARAM(nil, &bytes, inner.count) else { return nil }
    defer { PBKDF2PARAM_free(derivation) }
    return number(derivation.pointee.iter)
  }

  /// The DER form of the algorithm's parameter; it lives as long as the algorithm.
  private static func parameter(
    of algorithm: UnsafePointer<X509_ALGOR>
  ) -> UnsafeBufferPointer<UInt8>? {
    var kind: Int32 = 0
    var value: UnsafeRawPointer?
    X509_ALGOR_get0(nil, &kind, &value, algorithm)
    guard kind == V_ASN1_SEQUENCE, let value else { return nil }
    let text = value.assumingMemoryBound(to: ASN1_STRING.self)
    return UnsafeBufferPointer(
      start: ASN1_STRING_get0_data(text), count: Int(ASN1_STRING_length(text)))
  }

  private static func number(_ integer: UnsafeMutablePointer<ASN1_INTEGER>?) -> Int? {
    guard let integer else { return nil }
    let number = ASN1_INTEGER_get(integer)
    // Negative also stands for a number that does not fit.
    return number >= 0 ? number : nil
  }
}
