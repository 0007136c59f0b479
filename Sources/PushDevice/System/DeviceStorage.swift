#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Something that the SDK stores on the device.
public struct StoredItem: Hashable, Sendable {
  /// The name of the file, or of the keychain's item.
  public let name: String
  /// Whether it belongs in the keychain instead of a file.
  public let isSecret: Bool

  /// Names an item.
  public init(_ name: String, isSecret: Bool) {
    self.name = name
    self.isSecret = isSecret
  }

  /// The installation's id. In the keychain, where it is not part of a backup: a device restored
  /// from another's backup must not take over the other's id.
  public static let installationID = StoredItem("installation-id", isSecret: true)
  /// The app's wishes and the hub's last answer, as JSON.
  public static let record = StoredItem("installation.json", isSecret: false)
  /// The last record that could not be read, kept for a bug report.
  public static let damagedRecord = StoredItem("installation.damaged.json", isSecret: false)
  /// The ids of the latest notifications, to recognize a duplicate.
  public static let seenNotifications = StoredItem("notifications.json", isSecret: false)
}

/// The place where a device's state survives the process: `AppGroupStorage` on Apple's systems,
/// ``FileStorage`` elsewhere.
///
/// An app and its extensions share it, so each change reads and writes in one step.
public protocol DeviceStorage: Sendable {
  /// - Returns: `nil` if there is nothing. That the item cannot be read is an error.
  func load(_ item: StoredItem) throws(StorageError) -> Data?

  /// Changes an item; no other process comes between reading and writing.
  ///
  /// - Parameter change: Gets what is stored and replaces it; `nil` is nothing. It may run twice.
  func update(_ item: StoredItem, _ change: (inout Data?) -> Void) throws(StorageError)
}

extension DeviceStorage {
  /// - Parameter data: `nil` deletes the item.
  public func save(_ data: Data?, as item: StoredItem) throws(StorageError) {
    try update(item) { $0 = data }
  }
}

/// The reason why the storage did not do what it was asked.
public enum StorageError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The device has not been unlocked since it started. Nothing is known about the item, least of
  /// all that there is none.
  case locked
  /// The system refused; the disk is full, for example.
  case failed(String)

  public var description: String {
    switch self {
    case .locked: "the device has not been unlocked since it started"
    case .failed(let reason): "the device's storage failed: \(reason)"
    }
  }
}
