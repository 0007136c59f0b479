import Wire

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A payload that only one device can open. It may pass through the hub and the push service.
///
/// Its bytes are a version (1), the suite (``HPKESuite``), 8 bytes that identify the key, 32 bytes
/// of encapsulated key, the ciphertext and 16 bytes of tag; its text is their base64url.
public struct SealedPayload: Hashable, Sendable, LosslessStringConvertible {
  private static let version: UInt8 = 1
  private static let headCount = 2 + SealingPublicKey.idCount + AgreementKey.count

  /// The number of bytes that sealing adds, before base64url turns three bytes into four.
  public static let overhead = headCount + HPKESuite.tagCount

  let suite: HPKESuite
  let keyID: [UInt8]
  let encapsulated: [UInt8]
  let ciphertext: [UInt8]

  init(suite: HPKESuite, keyID: [UInt8], encapsulated: [UInt8], ciphertext: [UInt8]) {
    self.suite = suite
    self.keyID = keyID
    self.encapsulated = encapsulated
    self.ciphertext = ciphertext
  }

  /// Parses ``description``; `nil` for any other text.
  public init?(_ text: String) {
    guard let bytes = Base64URL.decode(text), bytes.count >= Self.overhead,
      bytes[0] == Self.version, let suite = HPKESuite(rawValue: bytes[1])
    else { return nil }
    let keyEnd = 2 + SealingPublicKey.idCount
    self.suite = suite
    keyID = Array(bytes[2..<keyEnd])
    encapsulated = Array(bytes[keyEnd..<Self.headCount])
    ciphertext = Array(bytes[Self.headCount...])
  }

  public var description: String {
    Base64URL.encode([Self.version, suite.rawValue] + keyID + encapsulated + ciphertext)
  }

  /// Returns the number of characters in ``description`` for a payload of that many bytes.
  public static func textCount(payload count: Int) -> Int {
    let bytes = overhead + max(0, count)
    return bytes / 3 * 4 + (bytes % 3 == 0 ? 0 : bytes % 3 + 1)
  }
}

/// The context that binds a sealed payload to its use (RFC 9180, section 8.1).
enum SealingContext {
  /// The application: a payload sealed for another purpose with the same key does not open here.
  static let info = Array("belfry secure push 1".utf8)

  /// The message and the device, so that nobody in transit can present one device's payload as
  /// another's, or an old one under a new id.
  static func associated(message id: String, installation: String) -> [UInt8] {
    let id = Array(id.utf8)
    return HPKESuite.bytes(of: UInt16(truncatingIfNeeded: id.count)) + id
      + Array(installation.utf8)
  }
}
