package import Foundation
package import HubCore
package import NotificationHubs
import SQLDatabase

extension SubjectStore {
  package func removals(_ wave: RemovalWave, hub: Hub.ID) async throws -> [RemovedDevices.Item] {
    try await reading(#function) { session in
      guard try session.hasHub(hub) else { throw StoreError.noHub }
      var values: [any SQLValue] = [hub, wave.since.milliseconds]
      if let platform = wave.platform { values.append(platform.code) }
      let row = try session.sql.statement(
        """
        SELECT removed_at / 3600000, platform, outcome, COUNT(*) FROM removed_registration
        WHERE hub = ?1 AND removed_at >= ?2\(values.count == 2 ? "" : " AND platform = ?3")
        GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        """, values: values)
      var items: [RemovedDevices.Item] = []
      while try row.step() {
        items.append(
          RemovedDevices.Item(
            hour: Date(milliseconds: row.integer(0) * 3_600_000),
            platform: try PushPlatform(code: row.integer(1)),
            outcome: NotificationOutcome(code: row.integer(2)).name,
            registrations: Int(row.integer(3))))
      }
      return items
    }
  }
}

extension SQLiteHubStore {
  package func restoreRemoved(
    _ wave: RemovalWave, hub: Hub.ID, asOf now: Date, limit: Int
  ) async throws -> DeviceRestoration {
    try await write { try RemovalWriter($0).restore(wave, hub: hub, asOf: now, limit: limit) }
  }
}

/// A registration that was removed, or given another handle, because of a push service's report.
private struct RemovedRow {
  let row: RegistrationRow
  /// `nil` when the registration was deleted.
  let newHandle: String?
  let isOver: Bool
  /// The tags as a client has written them; `nil` when they are derived from the installation.
  let tagText: String?

  static let columns = """
    id, installation, template, name, tile, platform, handle, handle_hash, tags, confirmed_at,
    0, new_handle, expires_at, tag_text
    """

  init(_ columns: borrowing Statement, asOf now: Int64) throws {
    row = try RegistrationRow(columns)
    newHandle = columns.optionalText(11)
    isOver = columns.optionalInteger(12).map { $0 <= now } ?? false
    tagText = columns.optionalText(13)
  }
}

/// Copies of registrations that were removed because of push services' reports: kept, and restored.
struct RemovalWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// The columns that `removed_registration` takes from `registration`.
  private static let kept = """
    id, hub, installation, public_id, public_hash, name, tile, tag_text, template_handle, platform,
    template, handle, handle_hash, variables, tags, expires_at, confirmed_at, environment
    """

  /// Keeps a copy of a row before it is removed or gets another handle.
  func keepRemoved(_ row: RegistrationRow, _ word: Checkpoint.Condemned, at: Int64) throws {
    if let handle = word.newHandle {
      // Replaced again: the first handle is the one from the app.
      let before = connection.totalChanges
      try execute(
        "UPDATE removed_registration SET new_handle = ?2, removed_at = ?3 WHERE id = ?1",
        row.number, handle, at)
      if connection.totalChanges != before { return }
    } else {
      try execute("DELETE FROM removed_registration WHERE id = ?1", row.number)
    }
    try execute(
      """
      INSERT INTO removed_registration (\(Self.kept), etag, removed_at, outcome, new_handle)
      SELECT \(Self.kept), etag, ?2, ?3, ?4 FROM registration WHERE id = ?1
      """, row.number, at, Int64(word.outcome.rawValue), word.newHandle)
  }

  /// An app has registered a handle: nothing that was removed for it is restored any more.
  func forgetRemoved(handle hash: Int64) throws {
    try execute("DELETE FROM removed_registration WHERE handle_hash = ?1", hash)
  }

  func forgetRemoved(installation: Int64) throws {
    session.leftTemplates.formUnion(
      try connection.numbers(
        """
        SELECT template FROM removed_registration
        WHERE installation = ?1 AND installation <> 0 AND template IS NOT NULL
        """, installation))
    try execute(
      "DELETE FROM removed_registration WHERE installation = ?1 AND installation <> 0",
      installation)
  }

  func forgetRemoved(publicID: String, hub: Hub.ID) throws {
    try execute(
      "DELETE FROM removed_registration WHERE hub = ?1 AND public_hash = ?2 AND public_id = ?3",
      hub, PreparedInstallation.hash(publicID), publicID)
  }

  func forgetRemoved(registration: RegistrationID) throws {
    try execute("DELETE FROM removed_registration WHERE id = ?1", registration)
  }

  // MARK: Restoring

  /// See ``RemovalStore/restoreRemoved(_:hub:asOf:limit:)``.
  func restore(
    _ wave: RemovalWave, hub: Hub.ID, asOf now: Date, limit: Int
  ) throws -> DeviceRestoration {
    try session.requireHub(hub)
    // Restored devices keep what they had, however full the hub is.
    session.isRestoring = true
    defer { session.isRestoring = false }
    if wave.isDoubted { try withdrawFeedback(wave, hub: hub) }
    let found = try connection.rows(
      """
      SELECT \(RemovedRow.columns) FROM removed_registration
      WHERE hub = ?1 AND removed_at >= ?2 AND (?3 IS NULL OR platform = ?3)
      ORDER BY removed_at LIMIT ?4
      """, hub, wave.since.milliseconds, wave.platform?.code, Int64(max(0, limit))
    ) { try RemovedRow($0, asOf: now.milliseconds) }
    var result = DeviceRestoration(hasMore: found.count == limit && limit > 0)
    var seen: Set<Int64> = []
    for removed in found {
      if removed.row.installation == 0 {
        if try restoreWritten(removed, hub: hub) {
          result.restored += 1
        } else {
          result.superseded += 1
        }
      } else if seen.insert(removed.row.installation).inserted {
        let all = try self.removed(of: removed.row.installation, asOf: now.milliseconds)
        let restored = try restore(all, of: removed.row.installation, hub: hub)
        result.restored += restored
        result.superseded += max(0, all.count - restored)
      }
    }
    for removed in found { try forgetRemoved(registration: removed.row.number) }
    return result
  }

  private func removed(of installation: Int64, asOf now: Int64) throws -> [RemovedRow] {
    try connection.rows(
      """
      SELECT \(RemovedRow.columns) FROM removed_registration
      WHERE installation = ?1 AND installation <> 0
      """, installation
    ) { try RemovedRow($0, asOf: now) }
  }

  /// Restores a registration that a client wrote.
  private func restoreWritten(_ removed: RemovedRow, hub: Hub.ID) throws -> Bool {
    guard !removed.isOver else { return false }
    if let newHandle = removed.newHandle {
      guard let row = try connection.registrationRow(removed.row.number), row.handle == newHandle
      else { return false }
      try DeadHandleWriter(session).setHandle(of: row, to: removed.row.handle, hub: hub)
      return true
    }
    return try insertRemoved(removed, hub: hub)
  }

  /// Restores registrations of an installation as its document now says: its tags may have changed
  /// meanwhile.
  /// - Returns: The number of restored registrations.
  private func restore(_ all: [RemovedRow], of number: Int64, hub: Hub.ID) throws -> Int {
    guard let before = try connection.installation(number, templates: templates) else { return 0 }
    var after = before
    for removed in all where !removed.isOver {
      if let newHandle = removed.newHandle {
        after.replaceHandle(newHandle, with: removed.row.handle)
      } else {
        after.setExpired(false, handle: removed.row.handle)
      }
    }
    let kept = Dictionary(all.map { ($0.row.key, $0) }) { first, _ in first }
    let live = try connection.registrationRows(of: number)
    var restored = 0
    for row in live {
      guard let removed = kept[row.key], !removed.isOver, removed.newHandle == row.handle else {
        continue
      }
      try DeadHandleWriter(session).setHandle(of: row, to: removed.row.handle, hub: hub)
      restored += 1
    }
    let present = Set(live.map(\.key))
    let prepared = after.registrationDrafts.map { PreparedRegistration($0, hub: hub) }
    for registration in prepared where !present.contains(registration.key) {
      let removed = kept[registration.key].flatMap {
        $0.newHandle == nil && $0.row.handle == registration.handle ? $0 : nil
      }
      if let removed, removed.tagText != nil {
        guard try insertRemoved(removed, hub: hub) else { continue }
      } else {
        let place = RegistrationContext(
          hub: hub, installation: number, at: (removed ?? all[0]).row.confirmedAt)
        let id = try removed?.row.number ?? RegistrationRowWriter(session).nextRegistration()
        try RegistrationRowWriter(session).insert(registration, as: id, in: place)
        if removed != nil { try keepVersion(of: id) }
      }
      restored += 1
    }
    for removed in all { try forgetRemoved(registration: removed.row.number) }
    guard restored > 0 else { return 0 }
    try DeadHandleWriter(session).rewriteInstallation(number) { $0 = after }
    return restored
  }

  /// Restores a row as it was, unless its id is in use.
  private func insertRemoved(_ removed: RemovedRow, hub: Hub.ID) throws -> Bool {
    let row = removed.row
    let before = connection.totalChanges
    do {
      try execute(
        """
        INSERT INTO registration (\(Self.kept), etag, revision, written)
        SELECT \(Self.kept), etag + 1, ?2, ?2 FROM removed_registration AS removed
        WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM registration WHERE id = ?1)
          AND (public_hash IS NULL OR NOT EXISTS (SELECT 1 FROM registration
            WHERE hub = removed.hub AND public_hash = removed.public_hash))
        """, row.number, revision)
    }
    guard connection.totalChanges != before else { return false }
    let tags = try tagNumbers(of: removed, hub: hub)
    if tags != row.tags {
      try execute(
        "UPDATE registration SET tags = ?2 WHERE id = ?1", row.number,
        RegistrationRow.encode(tags: tags))
    }
    session.tally.addRegistrations(1, hub: hub, platform: row.platform)
    for tag in tags { TagWriter(session).setTag(tag, of: row.number, isMember: true) }
    if let name = try TagWriter(session).nameTag(row.key, platform: row.platform, hub: hub) {
      TagWriter(session).setTag(name, of: row.number, isMember: true)
    }
    if row.key.isNative {
      try HandleWriter(session).noteHandle(of: row.number, row.handle, row.handleHash, hub: hub)
    }
    return true
  }

  /// The earlier numbers may no longer exist: a tag is deleted with the last device that has it.
  private func tagNumbers(of removed: RemovedRow, hub: Hub.ID) throws -> [Int64] {
    guard let text = removed.tagText else { return removed.row.tags }
    let kind: AudienceQuery.Kind =
      removed.row.key.isNative ? .native(try PushPlatform(code: removed.row.platform)) : .template
    return try PreparedRegistration.tags(
      text.split(separator: ",").map { Tag(rawValue: String($0)) }, kind: kind, hub: hub
    ).map { try TagWriter(session).tagNumber($0) }
  }

  /// Keeps the row's version distinct: a client that remembers the earlier etag must not match it.
  private func keepVersion(of registration: RegistrationID) throws {
    try execute(
      """
      UPDATE registration SET (etag, environment) = (SELECT etag + 1, environment
        FROM removed_registration WHERE removed_registration.id = registration.id)
      WHERE id = ?1
      """, registration)
  }

  private func withdrawFeedback(_ wave: RemovalWave, hub: Hub.ID) throws {
    try execute(
      """
      DELETE FROM feedback WHERE hub = ?1 AND hour >= ?2 AND at >= ?3
        AND registration <> 0 AND (?4 IS NULL OR platform = ?4)
      """, hub, wave.since.milliseconds / 3_600_000, wave.since.milliseconds, wave.platform?.code)
  }

  // MARK: Sweeping

  /// Deletes some of the removed registrations that can no longer be restored.
  /// - Parameter limit: Those removed by then are deleted; milliseconds since 1970.
  /// - Returns: `true` when there may be more.
  func clearRemoved(by limit: Int64, hub: Hub.ID) throws -> Bool {
    let before = connection.totalChanges
    try execute(
      """
      DELETE FROM removed_registration WHERE id IN (SELECT id FROM removed_registration
        WHERE hub = ?1 AND removed_at <= ?2 LIMIT 2000)
      """, hub, limit)
    return connection.totalChanges != before
  }
}
