/// Seals secrets for storage: AES-256-GCM under the master key.
///
/// A sealed value is a version byte (1), a random nonce of 12 bytes, the ciphertext, and a tag of 16
/// bytes. The version and the context are authenticated with it, so that a value copied to another
/// place in the store does not open there.
package struct SecretSealer: Sendable {
  private static let version: UInt8 = 1
  private static let nonceCount = AuthenticatedCipher.nonceCount

  /// How many bytes a sealed value has more than its plaintext: 29.
  package static let overhead = 1 + nonceCount + AuthenticatedCipher.tagCount

  private let key: MasterKey

  package init(key: MasterKey) { self.key = key }

  /// - Parameters:
  ///   - plaintext: The secret; may be empty.
  ///   - context: What the secret belongs to, for example `credential/7/apns`; needed to open it.
  package func seal(_ plaintext: [UInt8], context: String) throws(CryptographyError) -> [UInt8] {
    let nonce = try SecureRandom.bytes(Self.nonceCount)
    let sealed = try AuthenticatedCipher.aes256GCM.seal(
      plaintext, key: key.bytes, nonce: nonce, associated: [Self.version] + Array(context.utf8))
    return [Self.version] + nonce + sealed
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
    let nonce = Array(sealed[1...Self.nonceCount])
    do {
      return try AuthenticatedCipher.aes256GCM.open(
        Array(sealed[(1 + Self.nonceCount)...]), key: key.bytes, nonce: nonce,
        associated: [Self.version] + Array(context.utf8))
    } catch  where error.kind == .sealBroken {
      throw CryptographyError(
        .sealBroken,
        """
        The sealed value of '\(context)' does not open: the master key is not the one it was sealed \
        with, or the data was changed. Start again with the master key that belongs to this store, \
        or set the secret again.
        """)
    } catch {
      throw error
    }
  }
}
