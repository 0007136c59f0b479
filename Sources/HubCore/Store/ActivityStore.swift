package import Foundation
package import NotificationHubs

/// A stored entry of the activity log.
package struct ActivityEntry: Hashable, Sendable {
  /// 0 for entries about the namespace. A hub created later under the same name is a different one.
  package var hub: Hub.ID
  package var line: HubActivity

  package init(hub: Hub.ID, _ line: HubActivity) {
    self.hub = hub
    self.line = line
  }
}

/// The retention of the activity log.
package struct ActivityRetention: Hashable, Sendable {
  /// In seconds; `nil` forever.
  package var lifetime: Double?
  /// Maximum number of entries of all hubs together; the hub with the most makes room.
  package var limit: Int

  package init(lifetime: Double? = 90 * 86_400, limit: Int = 500_000) {
    self.lifetime = lifetime
    self.limit = limit
  }
}

/// A part of the activity log.
package struct ActivityPage: Sendable {
  package var lines: [HubActivity]
  /// The position of the next page; `nil` at the log's end. A page may be short, or even empty,
  /// without being the last: rare entries are searched for in slices.
  package var next: ListPosition?

  package init(lines: [HubActivity] = [], next: ListPosition? = nil) {
    self.lines = lines
    self.next = next
  }
}

/// The log of changes and sends with their authors. Entries of a deleted hub stay in the log of the
/// namespace.
package protocol ActivityStore: Sendable {
  func record(_ entries: [ActivityEntry]) async throws
  /// The next entries, the newest first; at most `limit`.
  /// - Parameter hub: `nil` for all.
  func activity(
    _ query: ActivityQuery, hub: Hub.ID?, after: ListPosition?, limit: Int
  ) async throws -> ActivityPage
  /// Deletes some entries: those before a time and, when there are more than `maximum`, the oldest
  /// of the hub that has the most. A call does little, in a transaction of its own.
  /// - Returns: `true` when there may be more.
  func clearActivity(before limit: Date?, keeping maximum: Int) async throws -> Bool
}
