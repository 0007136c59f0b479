#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A device's keys: the current one, whose public half is registered, and earlier ones for messages
/// that were sealed before a rotation and are still in transit.
///
/// ```swift
/// var ring = try stored.map { try SealingKeyRing(storage: $0) } ?? SealingKeyRing()
/// if ring.age(at: Date()) > 90 * 86_400 { try ring.rotate() }
/// installation.sealingKey = ring.current.publicKey  // then register again
/// try save(ring.storage())
/// ```
public struct SealingKeyRing: Sendable {
  /// The number of keys kept besides the current one.
  public static let previousLimit = 3
  private static let version: UInt8 = 1

  public private(set) var current: SealingKey
  /// The earlier keys, newest first.
  public private(set) var previous: [SealingKey] = []
  /// The time at which the current key was generated.
  public private(set) var rotatedAt: Date

  /// Creates a ring with a new key.
  public init(at now: Date = Date()) throws {
    current = try SealingKey()
    rotatedAt = now
  }

  /// Generates a new key and makes it current. Register its public half at once: until then senders
  /// use the previous key, which remains usable.
  public mutating func rotate(at now: Date = Date()) throws {
    let new = try SealingKey()
    previous = Array(([current] + previous).prefix(Self.previousLimit))
    current = new
    rotatedAt = now
  }

  /// The age of the current key in seconds; 0 if the clock was set back.
  public func age(at now: Date) -> TimeInterval { max(0, now.timeIntervalSince(rotatedAt)) }

  func key(id: [UInt8]) -> SealingKey? {
    ([current] + previous).first { $0.publicKey.id == id }
  }

  // MARK: Storage

  /// The ring as bytes for the keychain, which are secret.
  ///
  /// A version byte (1), eight bytes of seconds since 1970, then 32 bytes for each key.
  public func storage() throws -> Data {
    let seconds = UInt64(min(max(rotatedAt.timeIntervalSince1970, 0), 1e12))
    var bytes = [Self.version]
    for shift in stride(from: UInt64(56), through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: seconds >> shift))
    }
    for key in [current] + previous { bytes += try key.rawRepresentation() }
    return Data(bytes)
  }

  /// - Throws: ``SecurePushError/damagedKeyRing``.
  public init(storage: Data) throws {
    let bytes = Array(storage)
    let head = 1 + 8
    guard bytes.count > head, bytes[0] == Self.version,
      (bytes.count - head).isMultiple(of: AgreementKey.count),
      (bytes.count - head) / AgreementKey.count <= 1 + Self.previousLimit
    else { throw SecurePushError.damagedKeyRing }
    let seconds = bytes[1..<head].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    rotatedAt = Date(timeIntervalSince1970: Double(min(seconds, 1_000_000_000_000)))
    let keys = try stride(from: head, to: bytes.count, by: AgreementKey.count).map {
      try SealingKey(rawRepresentation: Data(bytes[$0..<($0 + AgreementKey.count)]))
    }
    current = keys[0]
    previous = Array(keys.dropFirst())
  }
}
