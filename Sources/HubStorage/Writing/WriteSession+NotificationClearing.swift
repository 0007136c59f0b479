import Foundation
import HubCore
import SQLDatabase

/// Deleting notifications with all that is kept of them, a slice at a time.
extension WriteSession {
  /// How many notifications a call deletes at most.
  private static let clearingLimit = 100

  /// See ``StoreClearing/clearNotifications(endedBefore:)``.
  func clearNotifications(endedBefore limit: Date) throws -> Bool {
    let numbers = try all(
      """
      SELECT id FROM notification WHERE ended_at < ?1 ORDER BY ended_at
      LIMIT \(Self.clearingLimit)
      """, limit.milliseconds)
    var budget = Self.rowBudget
    for number in numbers where try !deleteNotification(number, budget: &budget) { return true }
    return numbers.count == Self.clearingLimit
  }

  /// How many rows of devices a slice deletes at most; some ten milliseconds' work.
  static let rowBudget = 2_000

  /// - Parameter budget: How many rows of devices may go.
  /// - Returns: `false` when some are left, and the notification with them.
  func deleteNotification(_ number: Int64, budget: inout Int) throws -> Bool {
    for (table, key) in [
      ("retry", "registration"), ("notification_failure", "registration"),
      ("notification_target", "number"),
    ] {
      let count = try execute(
        """
        DELETE FROM \(table) WHERE notification = ?1 AND \(key) IN
          (SELECT \(key) FROM \(table) WHERE notification = ?1 LIMIT \(max(0, budget)))
        """, number)
      budget -= count
      if budget <= 0 { return false }
    }
    try execute("DELETE FROM notification_count WHERE notification = ?1", number)
    try execute("DELETE FROM notification WHERE id = ?1", number)
    return true
  }
}
