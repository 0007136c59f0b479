import Foundation
package import NotificationHubs

extension HubService {
  /// The activity log, the newest entries first.
  ///
  /// - Parameter hub: `nil` for the whole namespace.
  /// - Throws: ``HubFailure``: 503 when the store cannot answer.
  package func activity(
    _ query: ActivityQuery, hub: Hub?, after: ListPosition?, limit: Int
  ) async throws(HubFailure) -> ActivityPage {
    try await answering {
      try await store.activity(query, hub: hub?.id, after: after, limit: limit)
    }
  }

  /// Stores a note as a log entry, unless it is settled.
  ///
  /// - Parameter status: The HTTP status of the action.
  /// - Throws: ``HubFailure``; the action itself remains done.
  package func keep(_ note: ActivityNote, status: Int) async throws(HubFailure) {
    guard !note.isSettled else { return }
    var hub = note.hub
    try await answering {
      // The hub may have been created meanwhile.
      if hub == 0, let name = note.hubName, (200...299).contains(status) {
        hub = try await store.hub(named: name)?.id ?? 0
      }
      try await store.record([note.entry(status: status, hub: hub)])
    }
    note.settle()
  }
}
