import HubCore
import SQLDatabase

struct PostgresWorkClearing: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// Deletes the next slice of a deleted hub's notifications.
  /// - Returns: `true` when there may be more.
  func clearWork(ofDeletedHub hub: Hub.ID) throws -> Bool {
    guard let number = try first("SELECT id FROM notification WHERE hub = ?1 LIMIT 1", hub) else {
      return false
    }
    var budget = deletionBudget
    _ = try connection.deleteNotification(number, budget: &budget)
    return true
  }
}
