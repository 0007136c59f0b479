import Authentication
package import Foundation
import HubCore
import SQLDatabase

extension PostgresHubStore {
  package func clear(expiredBy limit: Date) async throws -> Bool {
    // Most checks find nothing; those do not occupy a writer.
    let hasWork = try await read { session in
      let row = try session.connection.statement(
        """
        SELECT 1 WHERE EXISTS (SELECT 1 FROM deleted_hub)
          OR EXISTS (SELECT 1 FROM installation WHERE expires_at <= ?1)
          OR EXISTS (SELECT 1 FROM hub JOIN registration ON registration.hub = hub.id
            WHERE registration.expires_at <= ?1)
          OR EXISTS (SELECT 1 FROM hub JOIN removed_registration AS removed ON removed.hub = hub.id
            WHERE removed.removed_at <= ?2)
          OR EXISTS (SELECT 1 FROM \(PostgresSchema.attempts) WHERE known_at = 0
            AND expires_at <= \(PostgresConnection.databaseTime))
          OR EXISTS (SELECT 1 FROM \(PostgresSchema.attempts) WHERE known_at > 0
            AND expires_at <= \(PostgresConnection.databaseTime))
          OR EXISTS (SELECT 1 FROM \(PostgresSchema.attempts) OFFSET \(SharedAttempts.capacity))
        """, limit.milliseconds, limit.milliseconds - Int64(RemovalWave.lifetime * 1000))
      return try row.step() || DayPartitions(session).nextDayStep(at: limit.milliseconds) != nil
    }
    guard hasWork else { return false }
    return try await clearing { session in
      // One node clears at a time; the others return without waiting.
      guard try PostgresClearing(session).takeClearingLock() else { return false }
      if try PostgresClearing(session).clearExpired(by: limit.milliseconds) { return true }
      if try SharedAttempts.clear(PostgresSchema.attempts, session.connection) { return true }
      if try PostgresClearing(session).clearDeletedHubs() { return true }
      guard let step = try DayPartitions(session).nextDayStep(at: limit.milliseconds) else {
        return false
      }
      try DayPartitions(session).waitBriefly()
      try session.connection.execute(step)
      return true
    }
  }

  /// As ``write(_:ifUnclear:_:)``; rows that others have locked are left for the next round.
  func clearing(
    _ call: String = #function, _ body: @escaping @Sendable (PostgresSession) throws -> Bool
  ) async throws -> Bool {
    do {
      return try await write(call, ifUnclear: .again, body)
    } catch StoreError.locked {
      return false
    }
  }
}
