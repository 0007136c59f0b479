import COpenSSL

/// Encryption that also proves who encrypted (AEAD): the ciphers of RFC 5116 and RFC 8439 that
/// stored secrets, Web Push (RFC 8188) and HPKE (RFC 9180) use. All have nonces of 12 bytes and
/// tags of 16.
package enum AuthenticatedCipher: Sendable, CaseIterable {
  case aes128GCM
  case aes256GCM
  case chaCha20Poly1305

  package static let nonceCount = 12
  package static let tagCount = 16

  /// In bytes.
  package var keyCount: Int { self == .aes128GCM ? 16 : 32 }

  private var method: OpaquePointer? {
    switch self {
    case .aes128GCM: EVP_aes_128_gcm()
    case .aes256GCM: EVP_aes_256_gcm()
    case .chaCha20Poly1305: EVP_chacha20_poly1305()
    }
  }

  /// - Parameters:
  ///   - key: ``keyCount`` bytes.
  ///   - nonce: 12 bytes, never used twice with the same key.
  ///   - associated: Authenticated with the plaintext, and not part of the result.
  /// - Returns: The ciphertext and, after it, the tag.
  package func seal(
    _ plaintext: [UInt8], key: [UInt8], nonce: [UInt8], associated: [UInt8] = []
  ) throws(CryptographyError) -> [UInt8] {
    try check(key, nonce)
    guard let context = EVP_CIPHER_CTX_new() else { throw .engine("encrypt") }
    defer { EVP_CIPHER_CTX_free(context) }
    let size = plaintext.count
    var sealed = [UInt8](repeating: 0, count: size + Self.tagCount)
    var count: Int32 = 0
    let isDone = sealed.withUnsafeMutableBufferPointer { out -> Bool in
      guard let start = out.baseAddress else { return false }
      return EVP_EncryptInit_ex(context, method, nil, key, nonce) == 1
        && EVP_EncryptUpdate(context, nil, &count, associated, Int32(associated.count)) == 1
        && EVP_EncryptUpdate(context, start, &count, plaintext, Int32(size)) == 1
        && EVP_EncryptFinal_ex(context, nil, &count) == 1
        && EVP_CIPHER_CTX_ctrl(
          context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagCount), start + size) == 1
    }
    guard isDone else { throw .engine("encrypt") }
    return sealed
  }

  /// - Parameter sealed: As ``seal(_:key:nonce:associated:)`` returns it.
  /// - Throws: ``CryptographyError`` (sealBroken) when key, nonce, associated data and `sealed` do
  ///   not belong together.
  package func open(
    _ sealed: [UInt8], key: [UInt8], nonce: [UInt8], associated: [UInt8] = []
  ) throws(CryptographyError) -> [UInt8] {
    try check(key, nonce)
    guard sealed.count >= Self.tagCount else { throw Self.broken }
    guard let context = EVP_CIPHER_CTX_new() else { throw .engine("decrypt") }
    defer {
      EVP_CIPHER_CTX_free(context)
      OpenSSLErrors.drain()
    }
    let size = sealed.count - Self.tagCount
    var plaintext = [UInt8](repeating: 0, count: size)
    var tag = Array(sealed.suffix(Self.tagCount))
    var count: Int32 = 0
    guard EVP_DecryptInit_ex(context, method, nil, key, nonce) == 1,
      EVP_DecryptUpdate(context, nil, &count, associated, Int32(associated.count)) == 1,
      EVP_DecryptUpdate(context, &plaintext, &count, sealed, Int32(size)) == 1,
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagCount), &tag) == 1,
      EVP_DecryptFinal_ex(context, nil, &count) == 1
    else { throw Self.broken }
    return plaintext
  }

  private func check(_ key: [UInt8], _ nonce: [UInt8]) throws(CryptographyError) {
    guard key.count == keyCount, nonce.count == Self.nonceCount else {
      throw CryptographyError(
        .malformed,
        "The cipher takes a key of \(keyCount) bytes and a nonce of \(Self.nonceCount), not "
          + "\(key.count) and \(nonce.count).")
    }
  }

  private static let broken = CryptographyError(
    .sealBroken, "The sealed bytes do not open: another key, another context, or changed bytes.")
}
