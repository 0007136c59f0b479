import Foundation
import HubCore
import NotificationHubs
import SQLDatabase
import Wire

/// Handles that a push service has reported dead or replaced; for ``WorkStore/checkpoint(_:)``.
struct PostgresRemovals: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// A registration to which a report about its handle applies.
  private struct Meant {
    let row: PostgresRegistrationRow
    let word: Checkpoint.Condemned
  }

  /// Removes registrations whose handle the push service has reported dead, if they still have it,
  /// together with the others of the same device, and marks their installations
  /// (docs/protocol/rest.md, section 5.9).
  ///
  /// - Parameter at: Milliseconds since 1970.
  func removeDead(_ words: [Checkpoint.Condemned], hub: Hub.ID, at: Int64) throws {
    let all = try meant(by: words, hub: hub)
    guard !all.isEmpty else { return }
    try keepRemoved(all, at: at)
    var changes = RegistrationChanges()
    changes.removed = all.map(\.row)
    try PostgresDevices(session).apply(changes)
    try rewriteInstallations(of: all) { installation, meant in
      installation.setExpired(true, handle: meant.row.handle)
    }
  }

  /// Gives registrations of devices, and their installations, the handles with which push services
  /// have replaced theirs, if they still have the old ones.
  func replaceHandles(_ words: [Checkpoint.Condemned], hub: Hub.ID, at: Int64) throws {
    let all = try meant(
      by: words.filter { $0.newHandle != nil && $0.newHandle != $0.handle }, hub: hub)
    guard !all.isEmpty else { return }
    try keepRemoved(all, at: at)
    try setHandles(all.map { ($0.row, $0.word.newHandle ?? $0.row.handle) })
    try rewriteInstallations(of: all) { installation, meant in
      installation.replaceHandle(meant.row.handle, with: meant.word.newHandle ?? meant.row.handle)
    }
  }

  /// Locks the devices about which a page of deliveries reports something.
  func lockDevices(of checkpoint: Checkpoint, isDirect: Bool) throws {
    let words = checkpoint.deadHandles + checkpoint.replacedHandles
    let numbers =
      words.map(\.registration) + (isDirect ? [] : checkpoint.handleNews.map(\.registration))
    guard !numbers.isEmpty else { return }
    let hub = checkpoint.hub
    var locks = try deviceLocks(of: numbers, hub: hub)
    for word in words {
      guard let new = word.newHandle else { continue }
      locks.insert(
        PostgresDevices.DeviceLock.handle(
          hash: handleHash(new, platform: word.platform.code, hub: hub)))
    }
    try PostgresDevices(session).lock(locks)
  }

  /// Reads the rows to which reports apply, whose devices are locked: those that still have the
  /// handle, and that no app has written since.
  private func meant(by words: [Checkpoint.Condemned], hub: Hub.ID) throws -> [Meant] {
    guard !words.isEmpty else { return [] }
    // A report without a snapshot is before or after everything.
    let known = words.filter { $0.revision.snapshot != nil || $0.revision == .newest }
    let row = try connection.statement(
      """
      SELECT \(PostgresRegistrationRow.columns), w.n
      FROM unnest(?2::int2[], ?3::int8[], ?4::text[], ?5::text[]) WITH ORDINALITY
        AS w (slot, id, handle, snapshot, n)
      JOIN registration t ON t.hub = ?1 AND t.slot = w.slot AND t.id = w.id AND t.handle = w.handle
        AND (w.snapshot IS NULL OR pg_visible_in_snapshot(t.confirmed, w.snapshot::pg_snapshot))
      JOIN registration_handle h ON h.hub = t.hub AND h.hash = t.handle_hash
        AND h.slot = \(slots.sqlSlot(ofNumber: "t.handle_hash"))
      JOIN registration r ON r.hub = h.hub AND r.slot = \(slots.sqlSlot(ofNumber: "h.id"))
        AND r.id = h.id AND r.handle = t.handle AND r.installation = t.installation
        AND (w.snapshot IS NULL OR pg_visible_in_snapshot(r.confirmed, w.snapshot::pg_snapshot))
      ORDER BY r.id, w.n
      """, hub, PostgresArray.int2(known.map { slots.slot(ofNumber: $0.registration) }),
      PostgresArray.int8(known.map(\.registration)), PostgresArray.text(known.map(\.handle)),
      PostgresArray.text(known.map(\.revision.snapshot)))
    var all: [Meant] = []
    while try row.step() {
      let found = PostgresRegistrationRow(row)
      guard found.number != all.last?.row.number else { continue }
      all.append(Meant(row: found, word: known[Int(row.integer(10)) - 1]))
    }
    return all
  }

  /// The locks that serialize writers of registrations: those of their installations, or their own,
  /// and those of their handles.
  func deviceLocks(of numbers: [RegistrationID], hub: Hub.ID) throws -> Set<Int64> {
    let row = try connection.statement(
      """
      SELECT r.id, r.handle_hash, r.public_id, i.public_id
      FROM unnest(?2::int2[], ?3::int8[]) AS w (slot, id)
      JOIN registration r ON r.hub = ?1 AND r.slot = w.slot AND r.id = w.id
      LEFT JOIN installation i ON i.hub = r.hub AND i.slot = r.slot AND i.id = r.installation
      """, hub, PostgresArray.int2(numbers.map { slots.slot(ofNumber: $0) }),
      PostgresArray.int8(numbers))
    var locks: Set<Int64> = []
    while try row.step() {
      let hash =
        row.optionalText(3).map { PreparedInstallation.hash($0.foldingCapitals) }
        ?? PreparedInstallation.hash(
          row.optionalText(2) ?? coding.id(of: row.integer(0), hub: hub))
      locks.insert(PostgresDevices.DeviceLock.device(hub: hub, hash: hash))
      locks.insert(PostgresDevices.DeviceLock.handle(hash: row.integer(1)))
    }
    return locks
  }

  private func handleHash(_ stored: String, platform: Int64, hub: Hub.ID) -> Int64 {
    PreparedRegistration.hash(of: stored, platform: platform, hub: hub)
  }

  /// The columns that `removed_registration` takes from `registration`.
  private static let kept = """
    hub, slot, id, installation, public_id, etag, name, tile, tag_text, platform, template, handle,
    handle_hash, variables, tags, expires_at, confirmed_at, environment
    """

  /// Keeps copies of rows before they are removed or get another handle.
  private func keepRemoved(_ all: [Meant], at: Int64) throws {
    let columns = Self.kept.split(separator: ",")
      .map { "r." + String($0).trimmingBlanks }.joined(separator: ", ")
    let dead = all.filter { $0.word.newHandle == nil }
    if let hub = dead.first?.row.hub {
      try PostgresRegistrations(session).forgetRemoved(dead.map(\.row.number), hub: hub)
    }
    // Replaced again: the first handle is the one from the app.
    try execute(
      """
      INSERT INTO removed_registration (\(Self.kept), removed_at, outcome, new_handle)
      SELECT \(columns), ?4, w.outcome, w.new_handle
      FROM unnest(?1::int8[], ?2::int2[], ?3::int8[], ?5::int2[], ?6::text[])
        AS w (hub, slot, id, outcome, new_handle)
      JOIN registration r ON r.hub = w.hub AND r.slot = w.slot AND r.id = w.id
      ON CONFLICT (hub, slot, id) DO UPDATE SET new_handle = excluded.new_handle,
        removed_at = excluded.removed_at
      """, PostgresArray.int8(all.map(\.row.hub)), PostgresArray.int2(all.map(\.row.slot)),
      PostgresArray.int8(all.map(\.row.number)), at,
      PostgresArray.int2(all.map { Int64($0.word.outcome.rawValue) }),
      PostgresArray.text(all.map(\.word.newHandle)))
  }

  private func setHandles(_ all: [(row: PostgresRegistrationRow, handle: String)]) throws {
    let hashes = all.map { handleHash($0.handle, platform: $0.row.platform, hub: $0.row.hub) }
    try execute(
      """
      UPDATE registration r SET handle = w.handle, handle_hash = w.hash, etag = r.etag + 1,
        written = pg_current_xact_id()
      FROM unnest(?1::int8[], ?2::int2[], ?3::int8[], ?4::text[], ?5::int8[])
        AS w (hub, slot, id, handle, hash)
      WHERE r.hub = w.hub AND r.slot = w.slot AND r.id = w.id
      """, PostgresArray.int8(all.map(\.row.hub)), PostgresArray.int2(all.map(\.row.slot)),
      PostgresArray.int8(all.map(\.row.number)), PostgresArray.text(all.map(\.handle)),
      PostgresArray.int8(hashes))
    try PostgresHandles(session).changeHandles(
      zip(all, hashes).map { (HandleRow($0.0.row), $0.1, $0.0.row.key.isNative) })
    try PostgresHandles(session).markShared(
      zip(all, hashes).map { one, hash in
        HandleRow(
          hub: one.row.hub, hash: hash, number: one.row.number, isNative: one.row.key.isNative)
      })
  }

  /// Changes the documents of installations, outside their own writes.
  private func rewriteInstallations(
    of all: [Meant], _ change: (inout Installation, Meant) -> Void
  ) throws {
    let groups = Dictionary(grouping: all.filter { $0.row.installation != 0 }) {
      $0.row.installation
    }
    for (number, group) in groups.sorted(by: { $0.key < $1.key }) {
      guard let hub = group.first?.row.hub else { continue }
      try rewriteInstallation(number, hub: hub) { installation in
        for meant in group { change(&installation, meant) }
      }
    }
  }

  private func rewriteInstallation(
    _ number: Int64, hub: Hub.ID, _ change: (inout Installation) -> Void
  ) throws {
    guard var installation = try PostgresInstallations(session).installation(number, hub: hub)
    else { return }
    change(&installation)
    // No write has this fingerprint, so the next one restores the registrations.
    try execute(
      """
      UPDATE installation SET document = ?4, fingerprint = 0
      WHERE hub = ?1 AND slot = ?2 AND id = ?3
      """, hub, slots.slot(ofNumber: number), number, InstallationDocument.encode(installation))
  }

  // MARK: Bringing back

  /// A registration that was removed, or given another handle, because of a push service's report.
  private struct Removed {
    let row: PostgresRegistrationRow
    /// `nil` when the registration was deleted.
    let newHandle: String?
    let isOver: Bool
    let publicID: String?
    /// The tags as a client has written them; `nil` when they are derived from the installation.
    let tagText: String?
    let confirmedAt: Int64

    static let columns = """
      \(PostgresRegistrationRow.columns), r.new_handle, r.expires_at, r.public_id, r.tag_text,
      r.confirmed_at
      """

    init(_ columns: borrowing Statement, asOf now: Int64) {
      row = PostgresRegistrationRow(columns)
      newHandle = columns.optionalText(10)
      isOver = columns.optionalInteger(11).map { $0 <= now } ?? false
      publicID = columns.optionalText(12)
      tagText = columns.optionalText(13)
      confirmedAt = columns.integer(14)
    }
  }

  /// Maximum number of rows restored in a transaction: each may cost the server two locks.
  private static let restorationSlice = 200

  /// See ``RemovalStore/restoreRemoved(_:hub:asOf:limit:)``.
  func restore(
    _ wave: RemovalWave, hub: Hub.ID, asOf now: Date, limit: Int
  ) throws -> DeviceRestoration {
    let limit = min(limit, Self.restorationSlice)
    try lockHub(hub)
    try session.requireHub(hub)
    if wave.isDoubted { try withdrawFeedback(wave, hub: hub) }
    let candidates = try removed(in: wave, hub: hub, asOf: now, limit: limit)
    try PostgresDevices(session).lock(try locks(of: candidates, hub: hub))
    // Read again, now that the locks exclude other writers.
    let found = try removed(in: wave, hub: hub, asOf: now, limit: limit)
      .filter { row in candidates.contains { $0.row.number == row.row.number } }
    var result = DeviceRestoration(hasMore: candidates.count == limit && limit > 0)
    var seen: Set<Int64> = []
    for removed in found {
      if removed.row.installation == 0 {
        if try restoreWritten(removed, hub: hub) {
          result.restored += 1
        } else {
          result.superseded += 1
        }
      } else if seen.insert(removed.row.installation).inserted {
        let all = try self.removed(of: removed.row.installation, hub: hub, asOf: now)
        let restored = try restore(all, of: removed.row.installation, hub: hub)
        result.restored += restored
        result.superseded += max(0, all.count - restored)
      }
    }
    try PostgresRegistrations(session).forgetRemoved(found.map(\.row.number), hub: hub)
    return result
  }

  private func removed(
    in wave: RemovalWave, hub: Hub.ID, asOf now: Date, limit: Int
  ) throws -> [Removed] {
    try connection.rows(
      """
      SELECT \(Removed.columns) FROM removed_registration r
      WHERE hub = ?1 AND removed_at >= ?2 AND (?3::int2 IS NULL OR platform = ?3)
      ORDER BY removed_at, id LIMIT ?4
      """, hub, wave.since.milliseconds, wave.platform?.code, Int64(max(0, limit))
    ) { Removed($0, asOf: now.milliseconds) }
  }

  private func removed(
    of installation: Int64, hub: Hub.ID, asOf now: Date
  ) throws -> [Removed] {
    try connection.rows(
      """
      SELECT \(Removed.columns) FROM removed_registration r
      WHERE hub = ?1 AND slot = ?2 AND installation = ?3 AND installation <> 0 ORDER BY id
      """, hub, slots.slot(ofNumber: installation), installation
    ) { Removed($0, asOf: now.milliseconds) }
  }

  private func locks(of all: [Removed], hub: Hub.ID) throws -> Set<Int64> {
    var locks: Set<Int64> = []
    for removed in all {
      let row = removed.row
      if row.installation == 0 {
        let id = removed.publicID ?? coding.id(of: row.number, hub: hub)
        locks.insert(
          PostgresDevices.DeviceLock.device(hub: hub, hash: PreparedInstallation.hash(id)))
      } else if let id = try PostgresInstallations(session).installation(
        row.installation, hub: hub)?.installationID
      {
        let hash = PreparedInstallation.hash(id.foldingCapitals)
        locks.insert(PostgresDevices.DeviceLock.device(hub: hub, hash: hash))
      }
      locks.insert(PostgresDevices.DeviceLock.handle(hash: row.handleHash))
    }
    return locks
  }

  /// Restores a registration that a client wrote.
  private func restoreWritten(_ removed: Removed, hub: Hub.ID) throws -> Bool {
    guard !removed.isOver else { return false }
    guard let newHandle = removed.newHandle else { return try insertRemoved(removed) }
    guard let row = try PostgresDevices(session).registrationRow(removed.row.number, hub: hub),
      row.handle == newHandle
    else { return false }
    try setHandles([(row, removed.row.handle)])
    return true
  }

  /// Restores registrations of an installation as its document now says: its tags may have changed
  /// meanwhile.
  /// - Returns: The number of restored registrations.
  private func restore(_ all: [Removed], of number: Int64, hub: Hub.ID) throws -> Int {
    guard let before = try PostgresInstallations(session).installation(number, hub: hub) else {
      return 0
    }
    var after = before
    for removed in all where !removed.isOver {
      if let newHandle = removed.newHandle {
        after.replaceHandle(newHandle, with: removed.row.handle)
      } else {
        after.setExpired(false, handle: removed.row.handle)
      }
    }
    let kept = Dictionary(all.map { ($0.row.key, $0) }) { first, _ in first }
    let live = try PostgresDevices(session).registrationRows(ofInstallations: [(hub, number)])
    var restored = 0
    for row in live {
      guard let removed = kept[row.key], !removed.isOver, removed.newHandle == row.handle else {
        continue
      }
      try setHandles([(row, removed.row.handle)])
      restored += 1
    }
    let present = Set(live.map(\.key))
    for content in after.registrationDrafts.map({ RegistrationContent($0, hub: hub) })
    where !present.contains(content.key) {
      let removed = kept[content.key].flatMap {
        $0.newHandle == nil && $0.row.handle == content.handle ? $0 : nil
      }
      if let removed, removed.tagText != nil {
        guard try insertRemoved(removed) else { continue }
      } else {
        let context = RegistrationContext(
          hub: hub, installation: number, at: (removed ?? all[0]).confirmedAt)
        let slot = slots.slot(ofNumber: number)
        let id =
          try removed?.row.number
          ?? slots.number(try shared.numbers.next(.registration, session), slot: slot)
        var changes = RegistrationChanges()
        changes.new = [.init(number: id, slot: slot, context: context, content: content)]
        try PostgresDevices(session).apply(changes)
        if removed != nil { try keepVersion(of: id, hub: hub) }
      }
      restored += 1
    }
    try PostgresRegistrations(session).forgetRemoved(all.map(\.row.number), hub: hub)
    guard restored > 0 else { return 0 }
    try rewriteInstallation(number, hub: hub) { $0 = after }
    return restored
  }

  /// Restores a row as it was, unless its id is in use.
  private func insertRemoved(_ removed: Removed) throws -> Bool {
    let row = removed.row
    let columns = Self.kept.replacing("etag", with: "etag + 1")
    let count = try execute(
      """
      INSERT INTO registration (\(Self.kept))
      SELECT \(columns) FROM removed_registration AS removed
      WHERE hub = ?1 AND slot = ?2 AND id = ?3 AND (public_id IS NULL OR NOT EXISTS (
        SELECT 1 FROM registration AS other WHERE other.hub = removed.hub
          AND other.slot = removed.slot AND other.public_id = removed.public_id))
      ON CONFLICT (hub, slot, id) DO NOTHING
      """, row.hub, row.slot, row.number)
    guard count > 0 else { return false }
    session.tally.addRegistrations(1, hub: row.hub, platform: row.platform)
    try PostgresHandles(session).addHandles([HandleRow(row)])
    try PostgresHandles(session).markShared([HandleRow(row)])
    return true
  }

  /// Keeps the row's version distinct: a client that remembers the earlier etag must not match it.
  private func keepVersion(of number: RegistrationID, hub: Hub.ID) throws {
    try execute(
      """
      UPDATE registration r SET etag = o.etag + 1, environment = o.environment
      FROM removed_registration o WHERE r.hub = ?1 AND r.slot = ?2 AND r.id = ?3
        AND o.hub = r.hub AND o.slot = r.slot AND o.id = r.id
      """, hub, slots.slot(ofNumber: number), number)
  }

  private func withdrawFeedback(_ wave: RemovalWave, hub: Hub.ID) throws {
    try execute(
      """
      DELETE FROM feedback WHERE hub = ?1 AND hour >= ?2 AND at >= ?3
        AND registration <> 0 AND (?4::int2 IS NULL OR platform = ?4)
      """, hub, wave.since.milliseconds / 3_600_000, wave.since.milliseconds, wave.platform?.code)
  }
}
