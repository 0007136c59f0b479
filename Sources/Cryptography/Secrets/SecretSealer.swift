import COpenSSL

/// Seals secrets for storage: AES-256-GCM under the master key.
///
/// A sealed value is a version byte (1), a random nonce of 12 bytes, the ciphertext, and a tag of 16
/// bytes. The version and the context are authenticated with it, so that a value copied to another
/// place in the store does not open there.
package struct SecretSealer: Sendable {
  private static let version: UInt8 = 1
  private static let nonceCount = 12
  private static let tagCount = 16

  /// How many bytes a sealed value has more than its plaintext: 29.
  package static let overhead = 1 + nonceCount + tagCount

  private let key: MasterKey

  package init(key: MasterKey) { self.key = key }

  /// - Parameters:
  ///   - plaintext: The secret; may be empty.
  ///   - context: What the secret belongs to, for example `credential/7/apns`; needed to open it.
  package func seal(_ plaintext: [UInt8], context: String) throws(CryptographyError) -> [UInt8] {
    let nonce = try SecureRandom.bytes(Self.nonceCount)
    guard let cipher = EVP_CIPHER_CTX_new() else { throw .engine("seal a secret") }
    defer { EVP_CIPHER_CTX_free(cipher) }
    let associated = [Self.version] + Array(context.utf8)
    var ciphertext = [UInt8](repeating: 0, count: plaintext.count)
    var tag = [UInt8](repeating: 0, count: Self.tagCount)
    var count: Int32 = 0
    guard EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), nil, key.bytes, nonce) == 1,
      EVP_EncryptUpdate(cipher, nil, &count, associated, Int32(associated.count)) == 1,
      EVP_EncryptUpdate(cipher, &ciphertext, &count, plaintext, Int32(plaintext.count)) == 1,
      EVP_EncryptFinal_ex(cipher, nil, &count) == 1,
      EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagCount), &tag) == 1
    else { throw .engine("seal a secret") }
    return [Self.version] + nonce + ciphertext + tag
  }

  /// - Parameter context: The one given to ``seal(_:context:)``.
  /// - Throws: ``CryptographyError`` (sealBroken) when it does not open; the text says what to do.
  package func open(_ sealed: [UInt8], context: String) throws(CryptographyError) -> [UInt8] {
    guard sealed.count >= Self.overhead, sealed[0] == Self.version else {
      throw CryptographyError(
        .sealBroken,
        """
        The sealed value of '\(context)' has an unknown form: the store is damaged, or a newer \
        version of this program wrote it.
        """)
    }
    guard let cipher = EVP_CIPHER_CTX_new() else { throw .engine("open a sealed secret") }
    defer {
      EVP_CIPHER_CTX_free(cipher)
      OpenSSLErrors.drain()
    }
    let nonce = Array(sealed[1...Self.nonceCount])
    let ciphertext = Array(sealed[(1 + Self.nonceCount)...].dropLast(Self.tagCount))
    var tag = Array(sealed.suffix(Self.tagCount))
    let associated = [Self.version] + Array(context.utf8)
    var plaintext = [UInt8](repeating: 0, count: ciphertext.count)
    var count: Int32 = 0
    guard EVP_DecryptInit_ex(cipher, EVP_aes_256_gcm(), nil, key.bytes, nonce) == 1,
      EVP_DecryptUpdate(cipher, nil, &count, associated, Int32(associated.count)) == 1,
      EVP_DecryptUpdate(cipher, &plaintext, &count, ciphertext, Int32(ciphertext.count)) == 1,
      EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagCount), &tag) == 1,
      EVP_DecryptFinal_ex(cipher, nil, &count) == 1
    else {
      throw CryptographyError(
        .sealBroken,
        """
        The sealed value of '\(context)' does not open: the master key is not the one it was sealed \
        with, or the data was changed. Start again with the master key that belongs to this store, \
        or set the secret anew.
        """)
    }
    return plaintext
  }
}
