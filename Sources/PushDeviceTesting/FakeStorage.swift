public import Foundation
import NotificationHubs
public import PushDevice

/// A storage in memory, which can be locked, fail, be damaged or lose a part.
public final class FakeStorage: DeviceStorage {
  private struct Contents {
    var items: [StoredItem: Data] = [:]
    var error: StorageError?
    var failingItem: StoredItem?
    var writes = 0
  }

  private let contents = Locked(Contents())

  /// Creates an empty storage.
  public init() {}

  /// The error of each call; `nil` for a storage that works.
  public var error: StorageError? {
    get { contents.withLock { $0.error } }
    set { contents.withLock { $0.error = newValue } }
  }

  /// An item that cannot be written, as on a full disk; `nil` for none.
  public var failingItem: StoredItem? {
    get { contents.withLock { $0.failingItem } }
    set { contents.withLock { $0.failingItem = newValue } }
  }

  /// The number of writes so far.
  public var writes: Int { contents.withLock { $0.writes } }

  /// An item's contents, also of a storage that is locked.
  public subscript(_ item: StoredItem) -> Data? {
    get { contents.withLock { $0.items[item] } }
    set { contents.withLock { $0.items[item] = newValue } }
  }

  /// The app is deleted: the keychain stays.
  public func deleteApp() {
    contents.withLock { $0.items = $0.items.filter { $0.key.isSecret } }
  }

  /// The backup is restored on another device: the files come, the keychain does not.
  public func restoreElsewhere() {
    contents.withLock { $0.items = $0.items.filter { !$0.key.isSecret } }
  }

  public func load(_ item: StoredItem) throws(StorageError) -> Data? {
    if let error { throw error }
    return self[item]
  }

  public func update(
    _ item: StoredItem, _ change: (inout Data?) -> Void
  ) throws(StorageError) {
    if let error { throw error }
    if item == failingItem { throw .failed("the disk is full") }
    contents.withLock { contents in
      let old = contents.items[item]
      var data = old
      change(&data)
      guard data != old else { return }
      contents.items[item] = data
      contents.writes += 1
    }
  }
}
