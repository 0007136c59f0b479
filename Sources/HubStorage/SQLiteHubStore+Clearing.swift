package import Foundation
import HubCore
import Synchronization

extension SQLiteHubStore {
  package func clear(expiredBy limit: Date) async throws -> Bool {
    // Most looks find nothing; those do not need the writing thread.
    guard try await read({ try $0.hasSomethingToClear(expiredBy: limit.milliseconds) }) else {
      return try await sweepUnused()
    }
    return try await write { session in
      if try session.clearExpired(by: limit.milliseconds) { return true }
      return try session.clearDeletedHubs()
    }
  }

  /// Between two sweeps.
  private static let sweepPause = Duration.seconds(3600)

  /// - Returns: `true` when there is more to look at.
  private func sweepUnused() async throws -> Bool {
    let place = sweep.withLock { sweep -> SweepPlace? in
      if sweep.place == nil, sweep.due <= .now { sweep.place = .tags(after: 0) }
      return sweep.place
    }
    guard let place else { return false }
    let next = try await write { try $0.sweepUnused(after: place) }
    sweep.withLock { $0 = (next, .now + Self.sweepPause) }
    return next != nil
  }

  package func clearNotifications(endedBefore limit: Date) async throws -> Bool {
    guard try await read({ try $0.hasNotifications(endedBefore: limit.milliseconds) }) else {
      return false
    }
    return try await write { try $0.clearNotifications(endedBefore: limit) }
  }
}
