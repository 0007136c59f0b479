import COpenSSL

/// Owns one `EVP_PKEY`.
///
/// `@unchecked Sendable`: the key is never changed after `init`, and OpenSSL lets threads read one
/// key at the same time (each operation has a context of its own).
final class KeyHandle: @unchecked Sendable {
  let pointer: OpaquePointer

  init(owning pointer: OpaquePointer) { self.pointer = pointer }

  deinit { EVP_PKEY_free(pointer) }

  /// Parses a private key of any kind from PKCS#8 or a kind's own DER form.
  convenience init?(privateDER der: [UInt8]) {
    let pointer = der.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      // A parser for one kind takes a third of the time of one that tries all.
      if let kind = Self.kind(ofPKCS8: bytes) {
        return d2i_PrivateKey(kind, nil, &cursor, bytes.count)
      }
      return d2i_AutoPrivateKey(nil, &cursor, bytes.count)
    }
    // Even on success, the failed guesses at the form are left in the queue.
    OpenSSLErrors.drain()
    guard let pointer else { return nil }
    self.init(owning: pointer)
  }

  /// The kind of key that PKCS#8 names (`EVP_PKEY_…`); `nil` for another form, or an unknown kind.
  private static func kind(ofPKCS8 der: UnsafeBufferPointer<UInt8>) -> Int32? {
    var cursor = der.baseAddress
    guard let info = d2i_PKCS8_PRIV_KEY_INFO(nil, &cursor, der.count) else { return nil }
    defer { PKCS8_PRIV_KEY_INFO_free(info) }
    var name: OpaquePointer?
    guard PKCS8_pkey_get0(&name, nil, nil, nil, info) == 1 else { return nil }
    return switch OBJ_obj2nid(name) {
    case NID_X9_62_id_ecPublicKey: NID_X9_62_id_ecPublicKey
    case NID_rsaEncryption: NID_rsaEncryption
    default: nil
    }
  }

  /// Parses a public key from its SubjectPublicKeyInfo.
  convenience init?(publicDER der: [UInt8]) {
    let pointer = der.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      return d2i_PUBKEY(nil, &cursor, bytes.count)
    }
    OpenSSLErrors.drain()
    guard let pointer else { return nil }
    self.init(owning: pointer)
  }

  var isP256: Bool {
    guard EVP_PKEY_is_a(pointer, "EC") == 1 else { return false }
    var name = [CChar](repeating: 0, count: 64)
    guard EVP_PKEY_get_group_name(pointer, &name, name.count, nil) == 1 else {
      OpenSSLErrors.drain()
      return false
    }
    return name.withUnsafeBufferPointer { buffer in
      buffer.baseAddress.map { String(cString: $0) == "prime256v1" } ?? false
    }
  }

  /// Signs the SHA-256 of `message`, in the form of the key's kind: DER (ECDSA), or PKCS#1 v1.5.
  func signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    guard let context = EVP_MD_CTX_new() else { throw .engine("sign") }
    defer { EVP_MD_CTX_free(context) }
    var signature = [UInt8](repeating: 0, count: Int(EVP_PKEY_get_size(pointer)))
    var count = signature.count
    guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, pointer) == 1,
      EVP_DigestSign(context, &signature, &count, message, message.count) == 1
    else { throw .engine("sign") }
    return Array(signature.prefix(count))
  }

  /// Verifies a signature in the form of ``signature(for:)``.
  func verifies(_ signature: [UInt8], for message: [UInt8]) -> Bool {
    guard let context = EVP_MD_CTX_new() else { return false }
    defer {
      EVP_MD_CTX_free(context)
      OpenSSLErrors.drain()
    }
    return EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, pointer) == 1
      && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
  }

  /// PKCS#8, not encrypted.
  func privateDER() throws(CryptographyError) -> [UInt8] {
    guard let info = EVP_PKEY2PKCS8(pointer) else { throw .engine("export the private key") }
    defer { PKCS8_PRIV_KEY_INFO_free(info) }
    return try DEROutput.bytes("export the private key") { i2d_PKCS8_PRIV_KEY_INFO(info, $0) }
  }

  /// A number of the key, the most significant byte first.
  /// - Parameters:
  ///   - name: As OpenSSL calls it (EVP_PKEY-EC(7), EVP_PKEY-RSA(7)).
  ///   - count: Its length; `nil` for as few bytes as it takes.
  func number(_ name: String, count: Int? = nil) throws(CryptographyError) -> [UInt8] {
    var number: OpaquePointer?
    guard EVP_PKEY_get_bn_param(pointer, name, &number) == 1, let number else {
      throw .engine("read the key")
    }
    defer { BN_clear_free(number) }
    let count = count ?? Int(BN_num_bits(number) + 7) / 8
    var bytes = [UInt8](repeating: 0, count: count)
    guard BN_bn2binpad(number, &bytes, Int32(count)) == count else { throw .engine("read the key") }
    return bytes
  }

  /// SHA-256 of the private number, by which keys are told apart. Their public halves would not do:
  /// OpenSSL reads a key whose public half was copied from another one.
  func identity() throws(CryptographyError) -> [UInt8] {
    Digest.sha256(try number(EVP_PKEY_is_a(pointer, "RSA") == 1 ? "d" : "priv"))
  }

  /// SubjectPublicKeyInfo.
  func publicDER() throws(CryptographyError) -> [UInt8] {
    let pointer = self.pointer
    return try DEROutput.bytes("export the public key") { i2d_PUBKEY(pointer, $0) }
  }
}

/// Calls OpenSSL's `i2d_…` functions, which need two steps: first the size, then the bytes.
enum DEROutput {
  static func bytes(
    _ action: String,
    _ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
  ) throws(CryptographyError) -> [UInt8] {
    let size = encode(nil)
    guard size > 0 else { throw .engine(action) }
    var bytes = [UInt8](repeating: 0, count: Int(size))
    let written = bytes.withUnsafeMutableBufferPointer { buffer in
      var cursor = buffer.baseAddress
      return encode(&cursor)
    }
    guard written == size else { throw .engine(action) }
    return bytes
  }
}
