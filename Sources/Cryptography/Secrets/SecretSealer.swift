import Wire

/// Seals secrets for storage: AES-256-GCM under a master key.
///
/// A sealed value is a version byte (2), the key's id of 4 bytes, a random nonce of 12 bytes, the
/// ciphertext, and a tag of 16 bytes. Version, id and context are authenticated with it, so that a
/// value copied to another place in the store does not open there. Values of version 1 have no id;
/// any key may open them.
package struct SecretSealer: Sendable {
  private static let version: UInt8 = 2
  private static let versionWithoutID: UInt8 = 1
  private static let nonceCount = AuthenticatedCipher.nonceCount

  /// Number of bytes that a sealed value has in addition to its plaintext: 33.
  package static let overhead =
    1 + MasterKey.idByteCount + nonceCount + AuthenticatedCipher.tagCount

  private let ring: MasterKeyRing

  package init(key: MasterKey) { ring = MasterKeyRing(key) }

  /// - Parameter ring: Its file is read again when a value names a key that it does not have.
  package init(ring: MasterKeyRing) { self.ring = ring }

  /// - Parameters:
  ///   - plaintext: The secret; may be empty.
  ///   - context: The row that the secret belongs to, for example `credential/7/apns`; needed to
  ///     open it.
  ///   - id: The id of the key; `nil` for the newest.
  /// - Throws: ``CryptographyError`` (sealBroken) when there is no such key.
  package func seal(
    _ plaintext: [UInt8], context: String, under id: String? = nil
  ) throws(CryptographyError) -> [UInt8] {
    let key =
      try id.map { id throws(CryptographyError) in try self.key(id, for: context) }
      ?? ring.all[0]
    let nonce = try SecureRandom.bytes(Self.nonceCount)
    let head = Self.head(of: key.id)
    let sealed = try AuthenticatedCipher.aes256GCM.seal(
      plaintext, key: key.bytes, nonce: nonce, associated: head + Array(context.utf8))
    return head + nonce + sealed
  }

  /// The prefix of all values sealed under a key, and of no others.
  package static func head(of id: String) -> [UInt8] { [version] + (Hex.decode(id) ?? []) }

  /// - Parameter context: The one given to ``seal(_:context:under:)``.
  /// - Throws: ``CryptographyError`` (sealBroken) when it does not open; the text says what to do.
  package func open(_ sealed: [UInt8], context: String) throws(CryptographyError) -> [UInt8] {
    try opened(sealed, context: context).plaintext
  }

  /// The id of the key that opens a value.
  /// - Throws: As ``open(_:context:)``.
  package func key(of sealed: [UInt8], context: String) throws(CryptographyError) -> String {
    try opened(sealed, context: context).key.id
  }

  private func opened(
    _ sealed: [UInt8], context: String
  ) throws(CryptographyError) -> (plaintext: [UInt8], key: MasterKey) {
    let hasID = sealed.first == Self.version
    let count = hasID ? 1 + MasterKey.idByteCount : 1
    guard hasID || sealed.first == Self.versionWithoutID,
      sealed.count >= count + Self.nonceCount + AuthenticatedCipher.tagCount
    else {
      throw CryptographyError(
        .sealBroken,
        """
        The sealed value of '\(context)' has an unknown form: the store is damaged, or a newer \
        version of this program wrote it.
        """)
    }
    let head = Array(sealed[..<count])
    let rest = sealed[count...]
    let keys = hasID ? [try key(Hex.encode(Array(head[1...])), for: context)] : ring.all
    for key in keys {
      do {
        let plaintext = try AuthenticatedCipher.aes256GCM.open(
          Array(rest.dropFirst(Self.nonceCount)), key: key.bytes,
          nonce: Array(rest.prefix(Self.nonceCount)), associated: head + Array(context.utf8))
        return (plaintext, key)
      } catch  where error.kind == .sealBroken {
        continue
      } catch {
        throw error
      }
    }
    throw CryptographyError(
      .sealBroken,
      """
      The sealed value of '\(context)' does not open: the master key is not the one it was sealed \
      with, or the data was changed. Start again with the master key that belongs to this store, \
      or set the secret again.
      """)
  }

  private func key(_ id: String, for context: String) throws(CryptographyError) -> MasterKey {
    if let key = ring[id] { return key }
    // Another process may have replaced the key since the file was read; if the file cannot be read
    // now, there is no further key.
    if (try? ring.readAgain()) == true, let key = ring[id] { return key }
    throw CryptographyError(
      .sealBroken,
      """
      The value of '\(context)' is sealed with the master key \(id), which is not here: there is \
      \(ring.ids.joined(separator: ", ")). Put the key it was sealed with beside them, or set the \
      secret again.
      """)
  }
}
