import Foundation
import NotificationHubs
import PushDevice
import SecurePush

extension StoredItem {
  /// The device's keys, of the user who is named there.
  static let sealingKeys = StoredItem("sealing-keys", isSecret: true)
}

/// The keys that open payloads sealed for this device and its user, and the one that marks texts
/// which this device has opened.
///
/// They belong to one user: another user's first registration replaces them, and what is left of a
/// user who has signed out opens nothing.
struct DeviceKeys: Sendable {
  /// The age in seconds at which a key is replaced: 90 days.
  static let life: TimeInterval = 90 * 86_400

  private struct Contents: Codable {
    let user: String
    /// A ``SealingKeyRing``.
    var ring: Data
    /// 32 random bytes.
    let marking: Data

    init(user: String, at now: Date) throws {
      self.user = user
      ring = try SealingKeyRing(at: now).storage()
      marking = Data((0..<32).map { _ in UInt8.random(in: .min ... .max) })
    }
  }

  let storage: any DeviceStorage
  let now: @Sendable () -> Date

  /// The public half of the user's present key; generates the key on first use, and rotates it in
  /// time.
  func publicKey(of user: String) throws -> SealingPublicKey {
    if let ring = try ring(of: user), ring.age(at: now()) <= Self.life {
      return ring.current.publicKey
    }
    var result: Result<SealingPublicKey, any Error> = .failure(SecurePushError.damagedKeyRing)
    // Another process may have been faster.
    try storage.update(.sealingKeys) { data in
      result = Result {
        // New or damaged. Payloads sealed for a lost key are fetched by their id.
        var contents = try Self.decode(data, of: user) ?? Contents(user: user, at: now())
        var ring = try SealingKeyRing(storage: contents.ring)
        if ring.age(at: now()) > Self.life {
          try ring.rotate(at: now())
          contents.ring = try ring.storage()
        }
        data = try JSONEncoder().encode(contents)
        return ring.current.publicKey
      }
    }
    return try result.get()
  }

  /// - Returns: `nil` if the user has none, or they are damaged.
  func ring(of user: String) throws(StorageError) -> SealingKeyRing? {
    try contents(of: user).flatMap { try? SealingKeyRing(storage: $0.ring) }
  }

  /// A code that only this device can compute, while the user is signed in.
  /// - Returns: `nil` if the user has no keys.
  func mark(of text: String, for user: String) throws(StorageError) -> String? {
    guard let contents = try contents(of: user) else { return nil }
    let code = SigningKey(contents.marking).code(of: Array(text.utf8)[...])
    return Data(code.bytes).base64EncodedString()
  }

  func delete() throws(StorageError) { try storage.save(nil, as: .sealingKeys) }

  private func contents(of user: String) throws(StorageError) -> Contents? {
    let data = try storage.load(.sealingKeys)
    return Self.decode(data, of: user)
  }

  /// - Returns: `nil` if there is nothing of the user's, or it is damaged.
  private static func decode(_ data: Data?, of user: String) -> Contents? {
    guard let data, let contents = try? JSONDecoder().decode(Contents.self, from: data),
      contents.user == user, (try? SealingKeyRing(storage: contents.ring)) != nil
    else { return nil }
    return contents
  }
}
