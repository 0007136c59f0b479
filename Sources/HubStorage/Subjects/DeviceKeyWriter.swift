import HubCore
import SQLDatabase

/// Keys that devices gain and lose; see ``DeviceKeys``.
struct DeviceKeyWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  private var keys: DeviceKeys { session.keys }

  func addKey(_ key: DeviceKey, of number: Int64) throws {
    let keys = try session.deviceKeys()
    keys.changes.append(DeviceKeyChange(key: key, number: number))
    // Added at once, so that the transaction finds it. Others may find it too, but no row.
    keys.recent.add(key, of: number)
  }

  func removeKey(_ key: DeviceKey, of number: Int64) throws {
    let keys = try session.deviceKeys()
    if keys.recent.contains(key, number) {
      keys.changes.append(DeviceKeyChange(key: key, number: number, isAdded: false))
    }
    let row = try connection.statement("DELETE FROM device_key WHERE hash = ?1 AND number = ?2")
    try row.bind(key.hash, at: 1)
    try row.bind(number, at: 2)
    try row.run()
  }

  /// Writes the changes of the transaction to the log and, once enough keys are due, a portion of a
  /// merge to the index.
  func writeKeys() throws {
    let new = keys.changes.count - keys.writtenChanges
    if new > 0 {
      var writer = ByteWriter()
      for change in keys.changes[keys.writtenChanges...] {
        writer.write(change.key.hash)
        writer.write(UInt64(change.number) << 1 | (change.isAdded ? 1 : 0))
      }
      let row = try connection.statement("INSERT INTO key_log (changes) VALUES (?1)")
      try row.bind(writer.bytes, at: 1)
      try row.run()
      keys.writtenChanges = keys.changes.count
    }
    guard keys.isKnown else { return }
    if keys.merge == nil, keys.recent.changes >= session.keyLogLimit {
      let row = try first("SELECT MAX(id) FROM key_log") ?? 0
      // An overdue one must end before it is interrupted once more.
      let pace = keys.isMergeOverdue ? keys.recent.changes / 64 : session.keyPortion / 32
      keys.isMergeOverdue = false
      keys.applyRemovals()
      keys.recent.freeze()
      keys.merge = DeviceKeys.Merge(pace: max(8, pace), row: row)
    }
    guard let merge = keys.merge else { return }
    // More than have arrived, so that a merge ends before the next one is due.
    keys.merge?.due = merge.due + new + new / 4 + merge.pace
    try mergeDueKeys()
  }

  /// Whether a transaction may write fewer keys than a portion. Where SQLite reorders pages of an
  /// index in a file below 1 GiB, the commit goes through its whole page cache
  /// (`sqlite3PcacheTruncate`), which takes 0.5 ms with 64 MiB: few transactions should. In a larger
  /// file a portion would touch many pages, and hold the others up.
  private func mayWriteFew() throws -> Bool { try first("PRAGMA page_count") ?? 0 > 1 << 18 }

  private func mergeDueKeys() throws {
    guard var merge = keys.merge else { return }
    guard try merge.due >= session.keyPortion || mayWriteFew() else { return }
    // Keys that the transaction removes must not go into the index.
    keys.applyRemovals()
    while merge.due > 0 {
      guard merge.position < merge.keys.count else {
        guard merge.slice < RecentKeys.Generation.sliceCount else {
          try execute("DELETE FROM key_log WHERE id <= ?1", merge.row)
          keys.merge = nil
          return
        }
        merge.keys = keys.recent.frozenKeys(slice: merge.slice)
        merge.position = 0
        merge.slice += 1
        // Checking an empty slice is work, too.
        merge.due -= 1
        continue
      }
      let end = min(merge.position + merge.due, merge.keys.count)
      try mergeKeys(merge.keys[merge.position..<end])
      merge.due -= end - merge.position
      merge.position = end
    }
    keys.merge = merge
  }

  private static let insertion = RowInsertion(
    into: "device_key", ["hash", "number"], conflict: "ON CONFLICT DO NOTHING", rowsPerStatement: 32
  )

  private func mergeKeys(_ slice: ArraySlice<DeviceKeyChange>) throws {
    let frozen = slice.filter { keys.recent.isFrozen($0.key, $0.number) }
    try Self.insertion.insert(frozen, on: connection) { change, row, first in
      try row.bind(change.key.hash, at: first)
      try row.bind(change.number, at: first + 1)
    }
  }

  /// Updates the keys after the commit of the transaction.
  func keysCommitted() {
    keys.applyRemovals()
    keys.recent.follow(commit: session.state.commitNumber)
    keys.changes.removeAll(keepingCapacity: true)
    keys.writtenChanges = 0
  }
}
