import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A device's private key: opens what was sealed for its public key. It never leaves the device;
/// keep it in the keychain (``SealingKeyRing`` does the keeping of several).
public struct SealingKey: Sendable {
  let agreement: AgreementKey
  /// What senders get.
  public let publicKey: SealingPublicKey

  /// Makes a new key.
  public init() throws { try self.init(AgreementKey()) }

  /// - Parameter bytes: 32 bytes, as ``rawRepresentation()`` gave them.
  /// - Throws: ``SecurePushError/malformed`` for another length.
  public init(rawRepresentation bytes: Data) throws {
    guard bytes.count == AgreementKey.count else { throw SecurePushError.malformed }
    try self.init(AgreementKey(rawRepresentation: Array(bytes)))
  }

  private init(_ agreement: AgreementKey) throws {
    self.agreement = agreement
    publicKey = SealingPublicKey(point: agreement.publicKey)
  }

  /// 32 bytes. Secret: store them where other apps cannot read them, and never log them.
  public func rawRepresentation() throws -> Data { Data(try agreement.rawRepresentation()) }
}

/// The public half of a device's ``SealingKey``. As text it is `x25519.` and 43 characters of
/// base64url: the form in which an installation carries it.
public struct SealingPublicKey: Hashable, Sendable, LosslessStringConvertible {
  /// How many bytes of its digest name a key inside a sealed payload: enough to pick one of a
  /// device's few keys, too few to matter to anybody else.
  static let idCount = 8
  private static let prefix = "x25519."

  let point: [UInt8]

  init(point: [UInt8]) { self.point = point }

  /// Reads ``description``; `nil` for any other text.
  public init?(_ text: String) {
    guard text.hasPrefix(Self.prefix),
      let point = Base64URL.decode(text.dropFirst(Self.prefix.count)),
      point.count == AgreementKey.count
    else { return nil }
    self.point = point
  }

  public var description: String { Self.prefix + Base64URL.encode(point) }

  var id: [UInt8] { Array(Primitives.digest(of: point).prefix(Self.idCount)) }
}
