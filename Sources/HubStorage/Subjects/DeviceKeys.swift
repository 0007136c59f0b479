import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

/// A key by which a device is looked up: the id of an installation, its user, or a handle. Equal
/// for equal values, regardless of letter case of ids; matches must be compared in full.
struct DeviceKey: Hashable, Sendable {
  let hash: Int64

  static func installation(idHash: Int64, hub: Hub.ID) -> DeviceKey {
    DeviceKey(hash: idHash ^ (hub << 2 | 1))
  }

  static func user(hash: Int64, hub: Hub.ID) -> DeviceKey {
    DeviceKey(hash: hash ^ (hub << 2 | 2))
  }

  /// - Parameter hash: See ``PreparedRegistration/hash(of:platform:hub:)``, which knows the hub.
  static func handle(hash: Int64) -> DeviceKey { DeviceKey(hash: hash) }

  /// The SQL equivalent of ``installation(idHash:hub:)`` and ``user(hash:hub:)`` for a column; SQL
  /// has no exclusive or.
  static func sql(_ column: String, kind: Int) -> String {
    "((\(column) | (hub << 2 | \(kind))) - (\(column) & (hub << 2 | \(kind))))"
  }
}

/// A key that a device has gained or lost. Its number is that of an installation, or for a handle
/// that of a native registration.
struct DeviceKeyChange: Hashable, Sendable {
  let key: DeviceKey
  let number: Int64
  var isAdded = true
}

/// Finds devices by their keys, for a thread and its connection.
///
/// Neighbours in an index on such keys arrive at different times, so that each new device would
/// rewrite a page for each of its keys. Therefore keys are appended to a log, `key_log`, one row a
/// transaction, are kept in memory (``RecentKeys``), and go into the index, the table `device_key`,
/// many at a time and in its order.
final class DeviceKeys {
  let connection: any SQLConnection
  let recent: RecentKeys
  /// Changes of the current transaction; used by the writer only.
  var changes: [DeviceKeyChange] = []
  /// Number of ``changes`` that are in the log.
  var writtenChanges = 0
  /// Whether the recent keys match the log; used by the writer only.
  var isKnown = false
  /// Whether the log was so full when it was read that merges have been interrupted, by restarts or
  /// other processes' commits: their progress is only in memory.
  var isMergeOverdue = false
  var merge: Merge?

  init(connection: any SQLConnection, recent: RecentKeys) {
    self.connection = connection
    self.recent = recent
  }

  /// Keys that are being written to the index, in its order.
  struct Merge {
    /// The keys of the current slice.
    var keys: [DeviceKeyChange] = []
    var position = 0
    /// Number of slices that have been begun; see ``RecentKeys/Generation``.
    var slice = 0
    /// Number of keys that become due with each transaction, beside the new ones.
    let pace: Int
    /// Number of keys that may be written by now; they are once they make up a portion. Beginning a
    /// slice counts as one.
    var due = 0
    /// The last row of the log that contains any of them.
    let row: Int64
  }

  /// Calls `body` with the numbers that have a key until it returns `false`. A number may occur
  /// twice, or have lost the key.
  func visit(_ key: DeviceKey, _ body: (Int64) throws -> Bool) throws {
    for number in recent.numbers(of: key) where try !body(number) { return }
    let row = try connection.statement("SELECT number FROM device_key WHERE hash = ?1")
    try row.bind(key.hash, at: 1)
    while try row.step() { guard try body(row.integer(0)) else { return } }
  }

  /// The numbers that have a key, or had it, in rising order.
  func numbers(of key: DeviceKey) throws -> [Int64] {
    var found: Set<Int64> = []
    try visit(key) {
      found.insert($0)
      return true
    }
    return found.sorted()
  }

  /// Reads the changes that other processes have written since.
  /// - Parameter state: The state as the connection sees it.
  func follow(_ state: StoreState) throws {
    guard recent.isBehind(state) else { return }
    recent.setForeign(try readLog(), commit: state.commitNumber)
  }

  func readLog() throws -> RecentKeys.Generation {
    var keys = RecentKeys.Generation()
    let row = try connection.statement("SELECT changes FROM key_log ORDER BY id")
    while try row.step() {
      var reader = ByteReader(row.bytes(0))
      while !reader.isAtEnd {
        let key = DeviceKey(hash: try reader.signedNumber())
        let number = try reader.number()
        guard let device = Int64(exactly: number >> 1) else {
          throw StoreError.corrupt("the keys of devices cannot be read")
        }
        keys.apply(DeviceKeyChange(key: key, number: device, isAdded: number & 1 == 1))
      }
    }
    return keys
  }
}

extension DeviceKeys {
  /// Number of changes that the transaction has made so far.
  var changeCount: Int { changes.count }

  /// Discards the changes of a part of the transaction that has failed.
  func dropChanges(from count: Int) { changes.removeSubrange(count...) }

  /// Forgets what is known of the log.
  func forget() {
    isKnown = false
    merge = nil
    recent.doubt()
  }

  func rolledBack() {
    changes.removeAll(keepingCapacity: true)
    writtenChanges = 0
    forget()
  }

  func applyRemovals() {
    if changes.contains(where: { !$0.isAdded }) { recent.apply(changes) }
  }
}
