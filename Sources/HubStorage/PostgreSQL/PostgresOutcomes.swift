import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

/// Outcomes of a notification for single devices.
struct PostgresOutcomes: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// Maximum number of rows deleted at a time: about ten milliseconds of work.
  private static let sliceLimit: Int64 = 2_000
  /// Maximum number of rows read for one page.
  private static let stretch: Int64 = 20_000

  func keepOutcomes(
    of checkpoint: Checkpoint, in notification: Int64, part: Int64, day: Int64
  ) throws {
    guard checkpoint.keptCount > 0 else { return }
    var all = checkpoint.failures
    if checkpoint.keeping == .all {
      all += checkpoint.successes.map {
        .init(
          registration: $0.registration, outcome: .success, status: 200, reason: nil,
          attempts: $0.attempts)
      }
    }
    // The last outcome of a target counts.
    let rows = Dictionary(all.map { ($0.registration, $0) }) { $1 }.values
    try execute(
      """
      INSERT INTO notification_failure AS f
        (day, notification, registration, outcome, status, reason, at, attempts)
      SELECT ?8, ?1, registration, outcome, status, reason, ?2, attempts
      FROM unnest(?3::int8[], ?4::int2[], ?5::int8[], ?6::text[], ?7::int8[])
        AS new (registration, outcome, status, reason, attempts)
      ON CONFLICT (day, notification, registration)
      DO UPDATE SET outcome = excluded.outcome, status = excluded.status,
        reason = excluded.reason, at = excluded.at, attempts = excluded.attempts
      """, notification, checkpoint.at.milliseconds, PostgresArray.int8(rows.map(\.registration)),
      PostgresArray.int2(rows.map { Int64($0.outcome.rawValue) }),
      PostgresArray.int8(rows.map { Int64($0.status) }),
      PostgresArray.text(rows.map { $0.reason?.storable }),
      PostgresArray.int8(rows.map { Int64($0.attempts) }), day)
    try execute(
      """
      INSERT INTO kept_outcome (notification, part, hub, total, at) VALUES (?1, ?2, ?3, ?4, ?5)
      ON CONFLICT (notification, part)
      DO UPDATE SET total = kept_outcome.total + excluded.total, at = excluded.at
      """, notification, part, checkpoint.hub, Int64(rows.count), checkpoint.at.milliseconds)
  }

  /// Records in failures which devices they were, before their registrations are deleted.
  func keepDevices(
    of registrations: [RegistrationID], hub: Hub.ID, inFailuresOf notification: Int64, day: Int64
  ) throws {
    guard !registrations.isEmpty else { return }
    try execute(
      """
      UPDATE notification_failure f SET platform = r.platform, handle = r.handle,
        public_id = r.public_id, installation = (SELECT i.public_id FROM installation i
          WHERE i.hub = r.hub AND i.slot = r.slot AND i.id = r.installation)
      FROM unnest(?3::int2[], ?4::int8[]) AS dead (slot, id), registration r
      WHERE f.day = ?5 AND f.notification = ?2 AND f.registration = dead.id
        AND r.hub = ?1 AND r.slot = dead.slot AND r.id = dead.id
      """, hub, notification, PostgresArray.int2(registrations.map { slots.slot(ofNumber: $0) }),
      PostgresArray.int8(registrations), day)
  }

  // MARK: Clearing

  /// A notification with stored outcomes.
  private struct Holder {
    let hub: Hub.ID
    let number: Int64
    let day: Int64
    let total: Int64
    /// The time of the last one, in milliseconds since 1970.
    let at: Int64
  }

  /// See ``OutcomeStore/clearOutcomes(before:keeping:)``. Outcomes in the partition of a day are
  /// dropped together, once the last of them is old.
  func clearOutcomes(before limit: Date, keeping maximum: Int) throws -> Bool {
    let limit = limit.milliseconds
    let holders = try connection.rows(
      """
      SELECT k.hub, k.notification, n.day, CAST(SUM(k.total) AS BIGINT), MAX(k.at)
      FROM kept_outcome k JOIN notification n ON n.id = k.notification GROUP BY 1, 2, 3
      """
    ) {
      Holder(
        hub: $0.integer(0), number: $0.integer(1), day: $0.integer(2), total: $0.integer(3),
        at: $0.integer(4))
    }
    let days = Set(try DayPartitions(session).days(of: .failures))
    let young = Set(holders.lazy.filter { $0.at >= limit }.map(\.day))
    let over = days.filter { ($0 + 1) * DayTable.milliseconds <= limit && !young.contains($0) }
    if let day = over.min(), try PostgresClearing(session).takeClearingLock() {
      return try drop(day, before: limit)
    }
    let single = holders.filter { !days.contains($0.day) }
    if let oldest = single.min(by: { $0.at < $1.at }), oldest.at < limit {
      try clear(oldest)
      return true
    }
    // The hub that stores the most makes room, so that none loses its own because of another.
    var hubs: [Hub.ID: Int64] = [:]
    for holder in holders { hubs[holder.hub, default: 0] += holder.total }
    guard hubs.values.reduce(0, +) > Int64(maximum),
      let largest = hubs.max(by: { $0.value < $1.value })?.key,
      let oldest = holders.lazy.filter({ $0.hub == largest }).min(by: { $0.at < $1.at })
    else { return false }
    try clear(oldest)
    return true
  }

  /// Drops the partition of a day after its notifications have recorded that, a slice at a time.
  private func drop(_ day: Int64, before limit: Int64) throws -> Bool {
    let noted = try connection.numbers(
      """
      DELETE FROM kept_outcome WHERE (notification, part) IN (
        SELECT k.notification, k.part FROM kept_outcome k JOIN notification n
          ON n.id = k.notification WHERE n.day = ?1 AND k.at < ?2 LIMIT \(Self.sliceLimit))
      RETURNING notification
      """, day, limit)
    guard noted.isEmpty else {
      try execute(
        "UPDATE notification SET kept_cleared = 1 WHERE id = ANY(?1::int8[]) AND kept_cleared = 0",
        PostgresArray.int8(noted))
      return true
    }
    // Waits for a page that adds to it, which then keeps the day.
    try DayPartitions(session).waitBriefly()
    try connection.execute(
      "LOCK TABLE ONLY \(DayTable.failures.name) IN ACCESS EXCLUSIVE MODE")
    let kept = try first(
      """
      SELECT 1 FROM kept_outcome k JOIN notification n ON n.id = k.notification
      WHERE n.day = ?1 LIMIT 1
      """, day)
    guard kept == nil else { return false }
    try connection.execute("DROP TABLE IF EXISTS \(DayTable.failures.part(day))")
    return true
  }

  private func clear(_ holder: Holder) throws {
    let deleted = Int64(
      try execute(
        """
        DELETE FROM notification_failure
        WHERE day = ?3 AND notification = ?1 AND registration IN (
          SELECT registration FROM notification_failure WHERE day = ?3 AND notification = ?1
          ORDER BY registration LIMIT ?2)
        """, holder.number, Self.sliceLimit, holder.day))
    try execute(
      "UPDATE notification SET kept_cleared = 1 WHERE id = ?1 AND kept_cleared = 0", holder.number)
    // With no rows left the total becomes 0, whatever it says: rows repeated after a crash are
    // counted twice.
    if deleted < Self.sliceLimit {
      try execute("DELETE FROM kept_outcome WHERE notification = ?1", holder.number)
    } else {
      try execute(
        """
        UPDATE kept_outcome SET total = GREATEST(0, total - ?2) WHERE notification = ?1
          AND part = (SELECT part FROM kept_outcome WHERE notification = ?1
            ORDER BY total DESC LIMIT 1)
        """, holder.number, deleted)
    }
  }

  // MARK: Reading

  /// See ``OutcomeStore/outcomes(of:hub:_:after:limit:)``.
  func outcomes(
    of id: NotificationID, hub: Hub.ID, _ filter: OutcomeFilter, after: RegistrationID, limit: Int
  ) throws -> OutcomePage {
    guard limit > 0,
      let notification = try NotificationTable(connection).notificationNumber(id, hub: hub),
      let day = try first("SELECT day FROM notification WHERE id = ?1", notification)
    else { return OutcomePage() }
    // A few rows, which are found by their device.
    let numbers = try numbers(filter, in: notification, day: day, hub: hub)
    let row = try connection.statement(
      """
      SELECT f.registration, f.outcome, f.status, f.reason, f.attempts, f.at,
        CASE WHEN n.is_direct = 1 THEN n.format ELSE COALESCE(f.platform, r.platform) END,
        CASE WHEN n.is_direct = 1 THEN t.handle ELSE COALESCE(f.handle, r.handle) END,
        CASE WHEN n.is_direct = 1 THEN NULL ELSE COALESCE(f.installation, i.public_id) END,
        n.format, n.is_direct, COALESCE(f.public_id, r.public_id)
      FROM notification_failure AS f JOIN notification AS n ON n.id = f.notification
        LEFT JOIN notification_target AS t
          ON t.notification = f.notification AND t.number = f.registration
        LEFT JOIN registration AS r ON r.hub = n.hub
          AND r.slot = f.registration & \(slots.count - 1) AND r.id = f.registration
        LEFT JOIN installation AS i
          ON i.hub = r.hub AND i.slot = r.slot AND i.id = r.installation
      WHERE f.day = ?5 AND f.notification = ?1 AND f.registration > ?2
        AND (?4::int8[] IS NULL OR f.registration = ANY(?4::int8[]))
      ORDER BY f.registration LIMIT ?3
      """, notification, after, Self.stretch + 1, numbers.map { PostgresArray.int8($0) }, day)
    var page = OutcomePage()
    var last = after
    var seen: Int64 = 0
    while try row.step() {
      if page.outcomes.count == limit || seen == Self.stretch {
        page.next = last
        break
      }
      seen += 1
      let kept = try KeptOutcome(row, hub: hub, coding: coding)
      last = kept.failure.registration
      if filter.matches(kept) { page.outcomes.append(kept) }
    }
    return page
  }

  /// The registrations that a filter names, including deleted ones that have a failure; `nil` when
  /// it names none.
  private func numbers(
    _ filter: OutcomeFilter, in notification: Int64, day: Int64, hub: Hub.ID
  ) throws -> [RegistrationID]? {
    if let installation = filter.installation {
      return try connection.numbers(
        """
        SELECT registration FROM notification_failure
        WHERE installation = ?1 AND notification = ?2 AND day = ?5
        UNION SELECT r.id FROM installation i JOIN registration r
          ON r.hub = i.hub AND r.slot = i.slot AND r.installation = i.id
        WHERE i.hub = ?3 AND i.slot = ?4 AND i.public_id = ?1
        """, installation, notification, hub, slots.slot(of: installation), day)
    }
    guard let id = filter.registrationID else { return nil }
    if let number = coding.number(in: id, hub: hub) { return [number] }
    let gone = try connection.numbers(
      """
      SELECT registration FROM notification_failure
      WHERE public_id = ?1 AND notification = ?2 AND day = ?3
      """, id, notification, day)
    return gone
      + (try PostgresRegistrations(session).reader().registration(id, hub: hub).map {
        [$0.row.number]
      } ?? [])
  }
}
