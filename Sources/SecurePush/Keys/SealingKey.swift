import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A device's private key, which opens payloads sealed for its public key. It never leaves the
/// device; store it in the keychain (``SealingKeyRing`` manages several).
public struct SealingKey: Sendable {
  let agreement: AgreementKey
  /// The public half, for senders.
  public let publicKey: SealingPublicKey

  /// Generates a new key.
  public init() throws { try self.init(AgreementKey()) }

  /// - Parameter bytes: 32 bytes from ``rawRepresentation()``.
  /// - Throws: ``SecurePushError/malformed`` for any other length.
  public init(rawRepresentation bytes: Data) throws {
    guard bytes.count == AgreementKey.count else { throw SecurePushError.malformed }
    try self.init(AgreementKey(rawRepresentation: Array(bytes)))
  }

  private init(_ agreement: AgreementKey) throws {
    self.agreement = agreement
    publicKey = SealingPublicKey(point: agreement.publicKey)
  }

  /// The key as 32 bytes. Secret: store them where other apps cannot read them, and never log them.
  public func rawRepresentation() throws -> Data { Data(try agreement.rawRepresentation()) }
}

/// The public half of a device's ``SealingKey``. As text it is `x25519.` and 43 characters of
/// base64url, the form in which an installation contains it.
public struct SealingPublicKey: Hashable, Sendable, LosslessStringConvertible {
  /// The number of bytes of a key's digest that identify it in a sealed payload: enough to select
  /// one of a device's few keys, too few to be of use to anyone else.
  static let idCount = 8
  private static let prefix = "x25519."

  let point: [UInt8]

  init(point: [UInt8]) { self.point = point }

  /// Parses ``description``; `nil` for any other text.
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
