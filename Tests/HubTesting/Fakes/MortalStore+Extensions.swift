package import Foundation
package import HubCore
package import NotificationHubs

extension MortalStore {
  package func installations(
    _ filter: InstallationFilter, hub: Hub.ID, after: String?, limit: Int
  ) async throws -> InstallationPage {
    try await ask {
      try await $0.installations(filter, hub: hub, after: after, limit: limit)
    }
  }
  package func notifications(
    _ filter: NotificationFilter, in order: NotificationOrder, hub: Hub.ID,
    after: NotificationPosition?, limit: Int
  ) async throws -> NotificationPage {
    try await ask {
      try await $0.notifications(filter, in: order, hub: hub, after: after, limit: limit)
    }
  }
  package func templateCounts(_ query: AudienceQuery) async throws -> [TemplateKey: Int] {
    try await ask { try await $0.templateCounts(query) }
  }
  package func eraseUser(_ userID: String, hub: Hub.ID) async throws -> UserErasure {
    try await ask { try await $0.eraseUser(userID, hub: hub) }
  }
  package func removals(_ wave: RemovalWave, hub: Hub.ID) async throws -> [RemovalCount] {
    try await ask { try await $0.removals(wave, hub: hub) }
  }
  package func restoreRemoved(
    _ wave: RemovalWave, hub: Hub.ID, asOf now: Date, limit: Int
  ) async throws -> Restoration {
    try await ask { try await $0.restoreRemoved(wave, hub: hub, asOf: now, limit: limit) }
  }
}
