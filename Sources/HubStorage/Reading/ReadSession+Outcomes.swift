import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

extension ReadSession {
  /// How many rows are looked at for one page at most.
  private static let outcomeStretch: Int64 = 20_000

  /// See ``OutcomeStore/outcomes(of:hub:_:after:limit:)``.
  func outcomes(
    of id: NotificationID, hub: Hub.ID, _ filter: OutcomeFilter, after: RegistrationID, limit: Int,
    coding: RegistrationIDCoding
  ) throws -> OutcomePage {
    guard limit > 0, let notification = try connection.notificationNumber(id, hub: hub) else {
      return OutcomePage()
    }
    var page = OutcomePage()
    // A few: they are found by the device and not among all.
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
      """)
    try row.bind(notification, at: 1)
    try row.bind(after, at: 2)
    try row.bind(Self.outcomeStretch + 1, at: 3)
    var last = after
    var seen: Int64 = 0
    while try row.step() {
      if page.outcomes.count == limit || seen == Self.outcomeStretch {
        page.next = last
        break
      }
      seen += 1
      let kept = try keptOutcome(row, hub: hub, coding: coding)
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
      "\(Self.outcomeColumns) WHERE f.notification = ?1 AND f.registration = ?2")
    try row.bind(notification, at: 1)
    try row.bind(registration, at: 2)
    return try row.step() ? keptOutcome(row, hub: hub, coding: coding) : nil
  }

  /// The registrations of an installation, those that have gone with their failure included.
  private func outcomeNumbers(
    of installation: String, in notification: Int64, hub: Hub.ID
  ) throws -> [RegistrationID] {
    var numbers: Set<RegistrationID> = []
    do {
      let row = try connection.statement(
        """
        SELECT registration FROM notification_failure
        WHERE installation = ?1 AND notification = ?2
        """)
      try row.bind(installation, at: 1)
      try row.bind(notification, at: 2)
      while try row.step() { numbers.insert(row.integer(0)) }
    }
    let row = try connection.statement(
      """
      SELECT r.id FROM installation AS i JOIN registration AS r ON r.installation = i.id
      WHERE i.hub = ?1 AND i.id_hash = ?2 AND i.public_id = ?3
      """)
    try row.bind(hub, at: 1)
    try row.bind(PreparedInstallation.hash(installation.lowercased()), at: 2)
    try row.bind(installation, at: 3)
    while try row.step() { numbers.insert(row.integer(0)) }
    return numbers.sorted()
  }

  private func outcomeNumbers(
    ofRegistration id: String, in notification: Int64, hub: Hub.ID, coding: RegistrationIDCoding
  ) throws -> [RegistrationID] {
    if let number = coding.number(in: id, hub: hub) { return [number] }
    var numbers: Set<RegistrationID> = []
    do {
      let row = try connection.statement(
        "SELECT registration FROM notification_failure WHERE notification = ?1 AND public_id = ?2")
      try row.bind(notification, at: 1)
      try row.bind(id, at: 2)
      while try row.step() { numbers.insert(row.integer(0)) }
    }
    let row = try connection.statement(
      "SELECT id FROM registration WHERE hub = ?1 AND public_hash = ?2 AND public_id = ?3")
    try row.bind(hub, at: 1)
    try row.bind(PreparedInstallation.hash(id), at: 2)
    try row.bind(id, at: 3)
    while try row.step() { numbers.insert(row.integer(0)) }
    return numbers.sorted()
  }

  /// Numbers of registrations are never used twice, so what is found by one is the same device.
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

  private func keptOutcome(
    _ row: borrowing Statement, hub: Hub.ID, coding: RegistrationIDCoding
  ) throws -> KeptOutcome {
    let failure = Checkpoint.Failure(
      registration: row.integer(0), outcome: NotificationOutcome(code: row.integer(1)),
      status: UInt16(clamping: row.integer(2)), reason: row.optionalText(3),
      attempts: Int(clamping: row.integer(4)))
    let format = row.optionalInteger(6) ?? row.integer(9)
    return KeptOutcome(
      failure: failure, at: row.optionalInteger(5).map(Date.init(milliseconds:)),
      // A template send to a device that has gone since does not tell any more.
      platform: format == 0 ? nil : try PushPlatform(code: format), handle: row.optionalText(7),
      registrationID: row.integer(10) != 0
        ? nil : row.optionalText(11) ?? coding.id(of: failure.registration, hub: hub),
      installationID: row.optionalText(8))
  }

  /// See ``OutcomeStore/retry(of:hub:registration:)``.
  func retry(
    of id: NotificationID, hub: Hub.ID, registration: RegistrationID
  ) throws -> Checkpoint.Retry? {
    guard let notification = try connection.notificationNumber(id, hub: hub) else { return nil }
    let row = try connection.statement(
      """
      SELECT attempts, due, outcome, status, reason, platform FROM retry
      WHERE notification = ?1 AND registration = ?2
      """)
    try row.bind(notification, at: 1)
    try row.bind(registration, at: 2)
    guard try row.step() else { return nil }
    return Checkpoint.Retry(
      registration: registration, platform: try PushPlatform(code: row.integer(5)),
      attempts: Int(clamping: row.integer(0)), due: Date(milliseconds: row.integer(1)),
      answer: row.optionalInteger(2).map { code in
        Checkpoint.Answer(
          outcome: NotificationOutcome(code: code), status: UInt16(clamping: row.integer(3)),
          reason: row.optionalText(4))
      })
  }
}
