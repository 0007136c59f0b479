import COpenSSL

/// PKCS#12 archives (`.p12`, RFC 7292): a certificate with its private key under a password.
package enum PKCS12 {
  /// More rounds of key derivation than any tool writes; an archive with more would only waste
  /// time.
  static let mostRounds = 5_000_000
  private static let largestSize = 1 << 20

  /// Opens an archive.
  ///
  /// Old exports encrypt their certificates with RC2-40, which OpenSSL 3 has in its `legacy`
  /// provider; it is loaded for such an archive alone, in a temporary library context.
  /// - Throws: ``CryptographyError``: malformed when this is not an archive, or one without
  ///   certificate or key; wrongPassword; unsupported when the cipher is not available.
  package static func open(
    _ archive: [UInt8], password: String
  ) throws(CryptographyError) -> CertificateIdentity {
    defer { OpenSSLErrors.drain() }
    guard archive.count <= largestSize, let handle = ArchiveHandle(der: archive, context: nil)
    else {
      throw CryptographyError(
        .malformed, "The data is not a PKCS#12 archive (.p12); export certificate and key again.")
    }
    try checkPassword(handle, password)
    if let identity = try parse(handle, password) { return identity }
    OpenSSLErrors.drain()
    return try openWithLegacyCiphers(archive, password: password)
  }

  /// Creates an archive with OpenSSL's current ciphers (PBES2, AES-256).
  package static func make(
    _ identity: CertificateIdentity, password: String, name: String
  ) throws(CryptographyError) -> [UInt8] {
    defer { OpenSSLErrors.drain() }
    let chain = OPENSSL_sk_new_null()
    defer { OPENSSL_sk_free(chain) }
    for certificate in identity.chain {
      // Borrowed: the stack's items are not freed with it.
      OPENSSL_sk_push(chain, UnsafeRawPointer(certificate.pointer))
    }
    guard
      let archive = PKCS12_create(
        password, name, identity.privateKey.handle.pointer, identity.certificate.pointer, chain,
        0, 0, 0, 0, 0)
    else { throw .engine("make a PKCS#12 archive") }
    defer { PKCS12_free(archive) }
    return try DEROutput.bytes("export a PKCS#12 archive") { i2d_PKCS12(archive, $0) }
  }

  private static func checkPassword(
    _ archive: ArchiveHandle, _ password: String
  ) throws(CryptographyError) {
    guard PKCS12_mac_present(archive.pointer) == 1 else { return }
    var rounds: UnsafePointer<ASN1_INTEGER>?
    PKCS12_get0_mac(nil, nil, nil, &rounds, archive.pointer)
    guard rounds.map({ (0...mostRounds).contains(ASN1_INTEGER_get($0)) }) ?? true else {
      throw CryptographyError(
        .unsupported, "The PKCS#12 archive asks for more than \(mostRounds) rounds of hashing.")
    }
    // An absent password and an empty one are different for PKCS#12.
    guard
      PKCS12_verify_mac(archive.pointer, password, -1) == 1
        || (password.isEmpty && PKCS12_verify_mac(archive.pointer, nil, 0) == 1)
    else {
      throw CryptographyError(
        .wrongPassword, "The PKCS#12 archive does not open with this password.")
    }
  }

  /// - Returns: `nil` when OpenSSL cannot decrypt the contents.
  private static func parse(
    _ archive: ArchiveHandle, _ password: String
  ) throws(CryptographyError) -> CertificateIdentity? {
    try checkWork(archive.pointer, password)
    OpenSSLErrors.drain()
    var key: OpaquePointer?
    var leaf: OpaquePointer?
    var others: OpaquePointer?
    guard PKCS12_parse(archive.pointer, password, &key, &leaf, &others) == 1 else { return nil }
    defer {
      EVP_PKEY_free(key)
      X509_free(leaf)
      for index in 0..<max(OPENSSL_sk_num(others), 0) {
        X509_free(OPENSSL_sk_value(others, index).map { OpaquePointer($0) })
      }
      OPENSSL_sk_free(others)
    }
    guard let key, let leaf else {
      let missing = key == nil ? "a private key" : "the certificate of its private key"
      throw CryptographyError(
        .malformed, "The PKCS#12 archive lacks \(missing); export both together.")
    }
    // Copied through their DER forms, so that nothing depends on the archive's library context.
    EVP_PKEY_up_ref(key)
    guard let ownKey = KeyHandle(privateDER: try KeyHandle(owning: key).privateDER()) else {
      throw .engine("read the archive's private key")
    }
    var chain: [Certificate] = []
    for index in 0..<max(OPENSSL_sk_num(others), 0) {
      guard let item = OPENSSL_sk_value(others, index) else { continue }
      chain.append(try copy(OpaquePointer(item)))
    }
    return try CertificateIdentity(
      certificate: try copy(leaf), chain: chain, privateKey: PrivateKey(handle: ownKey))
  }

  private static func copy(_ certificate: OpaquePointer) throws(CryptographyError) -> Certificate {
    try Certificate(
      der: try DEROutput.bytes("export a certificate") { i2d_X509(certificate, $0) })
  }

  private static func openWithLegacyCiphers(
    _ archive: [UInt8], password: String
  ) throws(CryptographyError) -> CertificateIdentity {
    guard let context = OSSL_LIB_CTX_new() else { throw .engine("open a PKCS#12 archive") }
    defer { OSSL_LIB_CTX_free(context) }
    let legacy = OSSL_PROVIDER_load(context, "legacy")
    let standard = OSSL_PROVIDER_load(context, "default")
    defer {
      if let legacy { OSSL_PROVIDER_unload(legacy) }
      if let standard { OSSL_PROVIDER_unload(standard) }
    }
    if legacy != nil, standard != nil,
      let handle = ArchiveHandle(der: archive, context: context),
      let identity = try parse(handle, password)
    {
      return identity
    }
    let hint =
      legacy == nil
      ? "this system lacks OpenSSL's legacy provider (Debian: openssl-provider-legacy)"
      : OpenSSLErrors.drain()
    throw CryptographyError(
      .unsupported,
      """
      The PKCS#12 archive uses a cipher that is not to be had: \(hint). Export it again with a \
      present-day tool, for example: openssl pkcs12 -legacy -in old.p12 | openssl pkcs12 -export
      """)
  }
}

/// Owns one `PKCS12`.
private final class ArchiveHandle {
  let pointer: OpaquePointer

  /// - Parameter context: The library context whose ciphers open the archive; `nil` is OpenSSL's
  ///   own.
  init?(der: [UInt8], context: OpaquePointer?) {
    guard let empty = PKCS12_init_ex(NID_pkcs7_data, context, nil) else { return nil }
    var target: OpaquePointer? = empty
    let read = der.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      return d2i_PKCS12(&target, &cursor, bytes.count)
    }
    guard let read else {
      // A failed read frees its argument and clears the pointer.
      if let target { PKCS12_free(target) }
      return nil
    }
    pointer = read
  }

  deinit { PKCS12_free(pointer) }
}

/// Limits the key derivation for opening an archive. Each encrypted part of the archive specifies
/// its number of rounds, which OpenSSL follows without a limit.
extension PKCS12 {
  /// Remaining rounds, and remaining parts, for one archive.
  private struct Budget {
    var rounds = PKCS12.mostRounds
    var parts = 64

    /// - Returns: `false` when the algorithm requires more than is left, or cannot be parsed.
    mutating func take(_ algorithm: UnsafePointer<X509_ALGOR>?) -> Bool {
      parts -= 1
      guard parts >= 0, let algorithm, let asked = PKCS12.rounds(of: algorithm), asked <= rounds
      else { return false }
      rounds -= asked
      return true
    }
  }

  /// - Throws: ``CryptographyError``: unsupported when the archive requires too much work, or work
  ///   of unknown cost. Parts that do not decrypt are skipped: OpenSSL stops there.
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

  /// The number of rounds of a password-based algorithm; `nil` when it is unknown.
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

  /// The DER form of the algorithm's parameter; it is valid as long as the algorithm.
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
    // A negative result also means a number that does not fit.
    return number >= 0 ? number : nil
  }
}
