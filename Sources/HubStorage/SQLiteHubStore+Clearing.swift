package import Foundation
import HubCore

extension SQLiteHubStore {
  package func clear(expiredBy limit: Date) async throws -> Bool {
    // Most looks find nothing; those do not need the writing thread.
    guard try await read({ try $0.hasSomethingToClear(expiredBy: limit.milliseconds) }) else {
      return false
    }
    return try await write { session in
      if try session.clearExpired(by: limit.milliseconds) { return true }
      return try session.clearDeletedHubs()
    }
  }

  package func clearNotifications(endedBefore limit: Date) async throws -> Bool {
    guard try await read({ try $0.hasNotifications(endedBefore: limit.milliseconds) }) else {
      return false
    }
    return try await write { try $0.clearNotifications(endedBefore: limit) }
  }
}
