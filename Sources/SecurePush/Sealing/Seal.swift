public import NotificationHubs

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A device that a payload can be sealed for.
public struct SealingRecipient: Hashable, Sendable {
  public let installationID: String
  public let publicKey: SealingPublicKey

  public init(installationID: String, publicKey: SealingPublicKey) {
    self.installationID = installationID
    self.publicKey = publicKey
  }

  /// - Returns: `nil` if the installation has no key.
  public init?(_ installation: Installation) {
    guard let key = installation.sealingKey else { return nil }
    self.init(installationID: installation.installationID, publicKey: key)
  }
}

/// Encrypts a payload so that only one device can read it: HPKE in base mode (RFC 9180, section
/// 6.1) with X25519 and HKDF-SHA256, a fresh ephemeral key for each call.
///
/// ```swift
/// let sealed = try SecurePush.seal(Data(text.utf8), id: messageID, for: recipient)
/// ```
/// Base mode does not authenticate the sender: anyone who knows the public key can seal for it. The
/// push service and the hub cannot read the payload; the assurance that it comes from the backend
/// rests on the hub's credentials, as with any push.
///
/// - Parameters:
///   - payload: Any bytes.
///   - id: The id of the message; the device must receive the same id along with the payload.
/// - Throws: ``SecurePushError/malformed`` for an invalid public key.
public func seal(
  _ payload: Data, id: String, for recipient: SealingRecipient,
  suite: HPKESuite = .x25519AES128GCM
) throws -> SealedPayload {
  try seal(payload, id: id, for: recipient, suite: suite, ephemeral: AgreementKey())
}

/// - Parameter ephemeral: A key for this message only; tests pass the one of a test vector.
func seal(
  _ payload: Data, id: String, for recipient: SealingRecipient, suite: HPKESuite,
  ephemeral: AgreementKey
) throws -> SealedPayload {
  let key = recipient.publicKey
  guard
    let (secret, encapsulated) = try? KeyEncapsulation.encapsulate(
      to: key.point, ephemeral: ephemeral)
  else { throw SecurePushError.malformed }
  let context = try HPKEContext(suite: suite, sharedSecret: secret, info: SealingContext.info)
  return SealedPayload(
    suite: suite, keyID: key.id, encapsulated: encapsulated,
    ciphertext: try context.seal(
      Array(payload),
      associated: SealingContext.associated(
        message: id, installation: recipient.installationID)))
}

extension SealingKeyRing {
  /// Opens a payload that ``seal(_:id:for:suite:)`` sealed for one of the ring's keys.
  ///
  /// - Parameters:
  ///   - id: The id of the message, as received with the payload.
  ///   - installationID: The id of this device.
  /// - Throws: ``SecurePushError``: `unknownKey` if the app should fetch the payload by its id,
  ///   `doesNotOpen` if it was tampered with.
  public func open(
    _ sealed: SealedPayload, id: String, installationID: String
  ) throws -> Data {
    guard let key = key(id: sealed.keyID) else { throw SecurePushError.unknownKey }
    let associated = SealingContext.associated(message: id, installation: installationID)
    do {
      let secret = try KeyEncapsulation.decapsulate(sealed.encapsulated, with: key.agreement)
      let context = try HPKEContext(
        suite: sealed.suite, sharedSecret: secret, info: SealingContext.info)
      return Data(try context.open(sealed.ciphertext, associated: associated))
    } catch {
      throw SecurePushError.doesNotOpen
    }
  }
}
