import HubCore

/// Seals the secrets that a store keeps: keys of access policies, credentials of push services.
/// What seals them (a master key and AES-GCM) stands elsewhere; a store only sees bytes.
package protocol SecretSealing: Sendable {
  /// - Parameter context: What the secret belongs to; a sealed value opens there only.
  func seal(_ plaintext: [UInt8], context: String) throws -> [UInt8]
  /// - Throws: Any error when the value was sealed under another key or context.
  func open(_ sealed: [UInt8], context: String) throws -> [UInt8]
}

extension SecretSealing {
  /// As ``open(_:context:)``; whatever goes wrong becomes ``StoreError/sealedSecret``.
  func opened(_ sealed: [UInt8], context: String) throws(StoreError) -> [UInt8] {
    do {
      return try open(sealed, context: context)
    } catch {
      throw .sealedSecret
    }
  }
}
