import Foundation
import PushDevice
import SecurePush

extension StoredItem {
  /// The device's ``SealingKeyRing``.
  static let sealingKeys = StoredItem("sealing-keys", isSecret: true)
}

/// The keys that open payloads sealed for this device and its user.
struct DeviceKeys: Sendable {
  /// The age in seconds at which a key is replaced: 90 days.
  static let life: TimeInterval = 90 * 86_400

  let storage: any DeviceStorage
  let now: @Sendable () -> Date

  /// The public half of the present key; generates the key on first use, and rotates it in time.
  func publicKey() throws -> SealingPublicKey {
    if let ring = try ring(), ring.age(at: now()) <= Self.life { return ring.current.publicKey }
    var result: Result<SealingPublicKey, any Error> = .failure(SecurePushError.damagedKeyRing)
    // Another process may have been faster.
    try storage.update(.sealingKeys) { data in
      result = Result {
        var ring: SealingKeyRing
        if let known = data.flatMap({ try? SealingKeyRing(storage: $0) }) {
          ring = known
          guard ring.age(at: now()) > Self.life else { return ring.current.publicKey }
          try ring.rotate(at: now())
        } else {
          // New or damaged. Payloads sealed for a lost key are fetched by their id.
          ring = try SealingKeyRing(at: now())
        }
        data = try ring.storage()
        return ring.current.publicKey
      }
    }
    return try result.get()
  }

  /// - Returns: `nil` if there is none, or it is damaged.
  func ring() throws(StorageError) -> SealingKeyRing? {
    try storage.load(.sealingKeys).flatMap { try? SealingKeyRing(storage: $0) }
  }

  func delete() throws(StorageError) { try storage.save(nil, as: .sealingKeys) }
}
