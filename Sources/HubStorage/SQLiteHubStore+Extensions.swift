package import HubCore
package import NotificationHubs
import SQLDatabase

extension SQLiteHubStore {
  package func installations(
    _ filter: InstallationFilter, hub: Hub.ID, after: String?, limit: Int
  ) async throws -> InstallationPage {
    try await read { try $0.installations(filter, hub: hub, after: after, limit: limit) }
  }

  package func notifications(
    _ filter: NotificationFilter, in order: NotificationOrder, hub: Hub.ID,
    after: NotificationPosition?, limit: Int
  ) async throws -> NotificationPage {
    try await read {
      try $0.notifications(filter, in: order, hub: hub, after: after, limit: limit)
    }
  }

  package func templateCounts(_ query: AudienceQuery) async throws -> [TemplateKey: Int] {
    var counts: [TemplateKey: Int] = [:]
    var next: UInt32? = 0
    // A stretch at a time, so that others' reads get their turn.
    while let first = next {
      let stretch = try await readers.perform { try $0.templateCounts(query, from: first) }
      counts.merge(stretch.counts, uniquingKeysWith: +)
      next = stretch.next
    }
    return counts
  }

  package func eraseUser(_ userID: String, hub: Hub.ID) async throws -> UserErasure {
    let notifications = try await read { try $0.notifications(onlyFor: userID, hub: hub) }
    return try await write { session in
      try session.requireHub(hub)
      return try session.erase(user: userID, notifications: notifications, hub: hub)
    }
  }
}
