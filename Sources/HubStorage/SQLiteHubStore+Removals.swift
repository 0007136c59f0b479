package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

extension SQLiteHubStore {
  package func removals(_ wave: RemovalWave, hub: Hub.ID) async throws -> [RemovalCount] {
    try await read { session in
      guard try session.hasHub(hub) else { throw StoreError.noHub }
      let row = try session.connection.statement(
        """
        SELECT removed_at / 3600000 AS hour, platform, outcome, COUNT(*) FROM removed_registration
        WHERE hub = ?1 AND removed_at >= ?2 AND (?3 IS NULL OR platform = ?3)
        GROUP BY hour, platform, outcome ORDER BY hour, platform, outcome
        """)
      try row.bind(hub, at: 1)
      try row.bind(wave.since.milliseconds, at: 2)
      try row.bind(wave.platform?.code, at: 3)
      var counts: [RemovalCount] = []
      while try row.step() {
        counts.append(
          RemovalCount(
            hour: row.integer(0), platform: try PushPlatform(code: row.integer(1)),
            outcome: NotificationOutcome(code: row.integer(2)), count: Int(row.integer(3))))
      }
      return counts
    }
  }

  package func restoreRemoved(
    _ wave: RemovalWave, hub: Hub.ID, asOf now: Date, limit: Int
  ) async throws -> Restoration {
    try await write { try $0.restore(wave, hub: hub, asOf: now, limit: limit) }
  }
}
