package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase
import Wire

extension SQLiteHubStore {
  package func outcomes(
    of id: NotificationID, hub: Hub.ID, _ filter: OutcomeFilter, after: RegistrationID, limit: Int
  ) async throws -> OutcomePage {
    let coding = coding
    return try await read {
      try OutcomeReader($0).outcomes(
        of: id, hub: hub, filter, after: after, limit: limit, coding: coding)
    }
  }

  package func clearOutcomes(before: Date, keeping maximum: Int) async throws -> Bool {
    try await write { try OutcomeWriter($0).clearOutcomes(before: before, keeping: maximum) }
  }
}

extension Checkpoint {
  /// Number of rows that it adds to notification_failure.
  var keptCount: Int {
    switch keeping {
    case .none: 0
    case .failures: failures.count
    case .all: failures.count + successes.count
    }
  }
}

/// Outcomes of single devices.
struct OutcomeWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// Maximum number of rows deleted at a time: about ten milliseconds of work.
  private static let sliceLimit: Int64 = 2_000

  func keepOutcomes(of checkpoint: Checkpoint, in notification: Int64) throws {
    guard checkpoint.keptCount > 0 else { return }
    let row = try connection.statement(
      """
      INSERT INTO notification_failure
        (notification, registration, outcome, status, reason, at, attempts)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (notification, registration)
      DO UPDATE SET outcome = excluded.outcome, status = excluded.status,
        reason = excluded.reason, at = excluded.at, attempts = excluded.attempts
      """)
    let now = checkpoint.at.milliseconds
    for failure in checkpoint.failures {
      try row.run(
        notification, failure.registration, Int64(failure.outcome.rawValue),
        Int64(failure.status), failure.reason, now, Int64(failure.attempts))
    }
    guard checkpoint.keeping == .all else { return }
    for success in checkpoint.successes {
      try row.run(
        notification, success.registration, Int64(NotificationOutcome.success.rawValue),
        Int64(200), String?.none, now, Int64(success.attempts))
    }
  }

  /// See ``OutcomeStore/clearOutcomes(before:keeping:)``.
  func clearOutcomes(before limit: Date, keeping maximum: Int) throws -> Bool {
    guard let number = try nextToClear(before: limit, keeping: maximum) else { return false }
    let deleted = Int64(
      try execute(
        """
        DELETE FROM notification_failure WHERE notification = ?1 AND registration IN (
          SELECT registration FROM notification_failure WHERE notification = ?1
          ORDER BY registration LIMIT ?2)
        """, number, Self.sliceLimit))
    // With no rows left the total becomes 0, whatever it says: rows repeated after a crash are
    // counted twice.
    let isLast = deleted < Self.sliceLimit
    try execute(
      """
      UPDATE notification SET kept_cleared = 1,
        kept_rows = CASE WHEN ?3 = 1 OR kept_rows < ?2 THEN 0 ELSE kept_rows - ?2 END,
        kept_at = CASE WHEN ?3 = 1 THEN NULL ELSE kept_at END
      WHERE id = ?1
      """, number, deleted, isLast)
    return true
  }

  private func nextToClear(before limit: Date, keeping maximum: Int) throws -> Int64? {
    let oldest: (number: Int64, at: Int64)
    do {
      let row = try connection.statement(
        """
        SELECT id, kept_at FROM notification WHERE kept_at IS NOT NULL ORDER BY kept_at LIMIT 1
        """)
      guard try row.step() else { return nil }
      oldest = (row.integer(0), row.integer(1))
    }
    if oldest.at < limit.milliseconds { return oldest.number }
    // The hub that stores the most makes room, so that none loses its own because of another.
    var total: Int64 = 0
    var largest: (hub: Hub.ID, rows: Int64)?
    do {
      let row = try connection.statement(
        "SELECT hub, SUM(kept_rows) FROM notification WHERE kept_at IS NOT NULL GROUP BY hub")
      while try row.step() {
        total += row.integer(1)
        if row.integer(1) > largest?.rows ?? 0 { largest = (row.integer(0), row.integer(1)) }
      }
    }
    guard total > Int64(maximum), let largest else { return nil }
    let row = try connection.statement(
      """
      SELECT id FROM notification WHERE hub = ?1 AND kept_at IS NOT NULL ORDER BY kept_at LIMIT 1
      """, largest.hub)
    return try row.step() ? row.integer(0) : nil
  }

  /// Records in a failure which device it was, before its registration is deleted.
  func keepDevice(of registration: RegistrationID, inFailuresOf notification: Int64) throws {
    try execute(
      """
      UPDATE notification_failure SET (platform, handle, public_id, installation) = (
        SELECT platform, handle, public_id,
          (SELECT public_id FROM installation WHERE installation.id = registration.installation)
        FROM registration WHERE registration.id = ?2)
      WHERE notification = ?1 AND registration = ?2
      """, notification, registration)
  }
}

/// Kept outcomes of a notification.
struct OutcomeReader: ReadingSubject {
  let session: ReadSession

  init(_ session: ReadSession) { self.session = session }

  /// Maximum number of rows read for one page.
  private static let outcomeStretch: Int64 = 20_000

  /// See ``OutcomeStore/outcomes(of:hub:_:after:limit:)``.
  func outcomes(
    of id: NotificationID, hub: Hub.ID, _ filter: OutcomeFilter, after: RegistrationID, limit: Int,
    coding: RegistrationIDCoding
  ) throws -> OutcomePage {
    guard limit > 0,
      let notification = try NotificationTable(connection).notificationNumber(id, hub: hub)
    else {
      return OutcomePage()
    }
    var page = OutcomePage()
    // A few rows, which are found by their device.
    var numbers: [RegistrationID]?
    if let installation = filter.installation {
      numbers = try outcomeNumbers(of: installation, in: notification, hub: hub)
    } else if let id = filter.registrationID {
      numbers = try outcomeNumbers(ofRegistration: id, in: notification, hub: hub, coding: coding)
    }
    if let numbers {
      for number in numbers where number > after {
        guard let kept = try outcome(number, in: notification, hub: hub, coding: coding),
          filter.matches(kept)
        else { continue }
        if page.outcomes.count == limit {
          page.next = page.outcomes.last?.failure.registration
          break
        }
        page.outcomes.append(kept)
      }
      return page
    }
    let row = try connection.statement(
      """
      \(Self.outcomeColumns)
      WHERE f.notification = ?1 AND f.registration > ?2 ORDER BY f.registration LIMIT ?3
      """, notification, after, Self.outcomeStretch + 1)
    var last = after
    var seen: Int64 = 0
    while try row.step() {
      if page.outcomes.count == limit || seen == Self.outcomeStretch {
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

  private func outcome(
    _ registration: RegistrationID, in notification: Int64, hub: Hub.ID,
    coding: RegistrationIDCoding
  ) throws -> KeptOutcome? {
    let row = try connection.statement(
      "\(Self.outcomeColumns) WHERE f.notification = ?1 AND f.registration = ?2", notification,
      registration)
    return try row.step() ? KeptOutcome(row, hub: hub, coding: coding) : nil
  }

  /// The registrations of an installation, including deleted ones that have a failure.
  private func outcomeNumbers(
    of installation: String, in notification: Int64, hub: Hub.ID
  ) throws -> [RegistrationID] {
    let kept = try connection.numbers(
      "SELECT registration FROM notification_failure WHERE installation = ?1 AND notification = ?2",
      installation, notification)
    let hash = PreparedInstallation.hash(installation.foldingCapitals)
    let found = try session.deviceKeys().installationRow(installation, idHash: hash, hub: hub)
    let live = try found.map { try connection.registrationRows(of: $0.number).map(\.number) } ?? []
    return Set(kept + live).sorted()
  }

  private func outcomeNumbers(
    ofRegistration id: String, in notification: Int64, hub: Hub.ID, coding: RegistrationIDCoding
  ) throws -> [RegistrationID] {
    if let number = coding.number(in: id, hub: hub) { return [number] }
    let kept = try connection.numbers(
      "SELECT registration FROM notification_failure WHERE notification = ?1 AND public_id = ?2",
      notification, id)
    let live = try connection.numbers(
      "SELECT id FROM registration WHERE hub = ?1 AND public_hash = ?2 AND public_id = ?3", hub,
      PreparedInstallation.hash(id), id)
    return Set(kept + live).sorted()
  }

  /// Numbers of registrations are never used twice, so a match is always the same device.
  private static let outcomeColumns = """
    SELECT f.registration, f.outcome, f.status, f.reason, f.attempts, f.at,
      CASE WHEN n.is_direct = 1 THEN n.format ELSE COALESCE(f.platform, r.platform) END,
      CASE WHEN n.is_direct = 1 THEN t.handle ELSE COALESCE(f.handle, r.handle) END,
      CASE WHEN n.is_direct = 1 THEN NULL ELSE COALESCE(f.installation, i.public_id) END,
      n.format, n.is_direct, COALESCE(f.public_id, r.public_id)
    FROM notification_failure AS f
      JOIN notification AS n ON n.id = f.notification
      LEFT JOIN notification_target AS t
        ON t.notification = f.notification AND t.number = f.registration
      LEFT JOIN registration AS r ON r.id = f.registration
      LEFT JOIN installation AS i ON i.id = r.installation
    """
}

extension KeptOutcome {
  /// - Parameter row: Registration, outcome, status, reason, attempts, time; platform, handle and
  ///   installation, as far as they are known; the notification's format, whether it is direct; and
  ///   the id of the registration, if clients chose it.
  init(_ row: borrowing Statement, hub: Hub.ID, coding: RegistrationIDCoding) throws {
    let failure = Checkpoint.Failure(
      registration: row.integer(0), outcome: NotificationOutcome(code: row.integer(1)),
      status: UInt16(clamping: row.integer(2)), reason: row.optionalText(3),
      attempts: Int(clamping: row.integer(4)))
    let format = row.optionalInteger(6) ?? row.integer(9)
    self.init(
      failure: failure, at: Date(milliseconds: row.integer(5)),
      // The platform of a template send to a device that was deleted since is unknown.
      platform: format == 0 ? nil : try PushPlatform(code: format), handle: row.optionalText(7),
      registrationID: row.integer(10) != 0
        ? nil : row.optionalText(11) ?? coding.id(of: failure.registration, hub: hub),
      installationID: row.optionalText(8))
  }
}
