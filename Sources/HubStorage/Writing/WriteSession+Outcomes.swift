import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

extension Checkpoint {
  /// How many rows of notification_failure it adds.
  var keptCount: Int {
    switch keeping {
    case .none: 0
    case .failures: failures.count
    case .all: failures.count + successes.count
    }
  }
}

/// Outcomes of single devices.
extension WriteSession {
  /// How many are deleted at a time; some ten milliseconds' work.
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
    try row.bind(notification, at: 1)
    try row.bind(checkpoint.at.milliseconds, at: 6)
    for failure in checkpoint.failures {
      try row.bind(failure.registration, at: 2)
      try row.bind(Int64(failure.outcome.rawValue), at: 3)
      try row.bind(Int64(failure.status), at: 4)
      try row.bind(failure.reason, at: 5)
      try row.bind(Int64(failure.attempts), at: 7)
      try row.run()
      row.reset()
    }
    guard checkpoint.keeping == .all else { return }
    for success in checkpoint.successes {
      try row.bind(success.registration, at: 2)
      try row.bind(Int64(NotificationOutcome.success.rawValue), at: 3)
      try row.bind(Int64(200), at: 4)
      try row.bind(String?.none, at: 5)
      try row.bind(Int64(success.attempts), at: 7)
      try row.run()
      row.reset()
    }
  }

  /// See ``OutcomeStore/clearOutcomes(before:keeping:)``.
  func clearOutcomes(before limit: Date, keeping maximum: Int) throws -> Bool {
    guard let number = try nextToClear(before: limit, keeping: maximum) else { return false }
    let before = connection.totalChanges
    do {
      let row = try connection.statement(
        """
        DELETE FROM notification_failure WHERE notification = ?1 AND registration IN (
          SELECT registration FROM notification_failure WHERE notification = ?1
          ORDER BY registration LIMIT ?2)
        """)
      try row.bind(number, at: 1)
      try row.bind(Self.sliceLimit, at: 2)
      try row.run()
    }
    let deleted = Int64(connection.totalChanges - before)
    let isLast = deleted < Self.sliceLimit
    let row = try connection.statement(
      """
      UPDATE notification SET kept_cleared = 1,
        kept_rows = CASE WHEN ?3 = 1 OR kept_rows < ?2 THEN 0 ELSE kept_rows - ?2 END,
        kept_at = CASE WHEN ?3 = 1 THEN NULL ELSE kept_at END
      WHERE id = ?1
      """)
    try row.bind(number, at: 1)
    try row.bind(deleted, at: 2)
    // With none left the count is 0, whatever it says: what a crash has repeated it counts twice.
    try row.bind(isLast, at: 3)
    try row.run()
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
    // The hub that keeps the most makes room, so that none loses its own for another's.
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
      """)
    try row.bind(largest.hub, at: 1)
    return try row.step() ? row.integer(0) : nil
  }
}
