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
}
