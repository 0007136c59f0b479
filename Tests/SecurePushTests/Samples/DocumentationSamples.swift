import Foundation
import NotificationHubs
import SecurePush

// The samples of the documentation catalogue, compiled; `DocumentationTests` compares them with the
// articles.

enum DocumentationSamples {
  static func send(address: URL, password: String, installation: Installation) async throws {
    let backend = SecurePushClient(
      backend: address, credentials: .password(user: "alice", password: password))
    try await backend.install(installation)
    let id = try await backend.send("Your results are in.")
    _ = id
  }

  static func receive(_ push: Data, from backend: SecurePushClient) async throws -> String? {
    guard let message = SecureMessage(payload: push) else { return nil }
    do {
      return try await backend.payload(of: message.id).payload
    } catch SecurePushClientError.notSignedIn {
      return SecureMessage.genericAlert
    }
  }

  /// The sample of `SealingKeyRing`.
  static func keepKeys(
    stored: Data?, _ registered: Installation, save: (Data) throws -> Void
  ) throws {
    var installation = registered
    var ring = try stored.map { try SealingKeyRing(storage: $0) } ?? SealingKeyRing()
    if ring.age(at: Date()) > 90 * 86_400 { try ring.rotate() }
    installation.sealingKey = ring.current.publicKey  // then register again
    try save(ring.storage())
  }

  static func makeKey(_ registered: Installation, _ backend: SecurePushClient) async throws -> Data
  {
    var installation = registered
    var ring = try SealingKeyRing()
    installation.sealingKey = ring.current.publicKey
    try await backend.install(installation)
    let stored = try ring.storage()
    try ring.rotate()
    return stored
  }

  static func seal(
    _ text: String, messageID: String, for recipient: SealingRecipient
  ) throws -> SecureMessage {
    let sealed = try SecurePush.seal(Data(text.utf8), id: messageID, for: recipient)
    let message = SecureMessage(id: messageID, sealed: sealed).fitting(.apns)
    return message
  }

  static func open(
    _ message: SecureMessage, with ring: SealingKeyRing, installationID: String
  ) throws -> Data? {
    guard let sealed = message.sealed else { return nil }
    do {
      return try ring.open(sealed, id: message.id, installationID: installationID)
    } catch SecurePushError.unknownKey {
      return nil  // fetch it by its id, and register the current key
    }
  }
}
