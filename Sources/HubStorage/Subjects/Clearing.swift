package import Foundation
import HubCore
import SQLDatabase
import Synchronization

extension SQLiteHubStore {
  package func clear(expiredBy limit: Date) async throws -> Bool {
    // Most checks find nothing; those do not need the writing thread.
    let hasWork = try await read { session in
      let row = try session.connection.statement(
        """
        SELECT 1 WHERE EXISTS (SELECT 1 FROM deleted_hub)
          OR EXISTS (SELECT 1 FROM installation WHERE expires_at <= ?1)
          OR EXISTS (SELECT 1 FROM hub JOIN registration ON registration.hub = hub.id
            WHERE registration.expires_at <= ?1)
          OR EXISTS (SELECT 1 FROM hub JOIN removed_registration AS removed ON removed.hub = hub.id
            WHERE removed.removed_at <= ?2)
        """, limit.milliseconds, limit.milliseconds - Int64(RemovalWave.lifetime * 1000))
      return try row.step()
    }
    guard hasWork else { return try await sweepUnused() }
    return try await write { session in
      if try ExpiryWriter(session).clearExpired(by: limit.milliseconds) { return true }
      return try DeletedHubWriter(session).clearDeletedHubs()
    }
  }

  /// Pause between two sweeps.
  private static let sweepPause = Duration.seconds(3600)

  /// - Returns: `true` when there is more to check.
  private func sweepUnused() async throws -> Bool {
    let place = engine.sweep.withLock { sweep -> SweepProgress? in
      if sweep.place == nil, sweep.due <= .now { sweep.place = .tags(after: 0) }
      return sweep.place
    }
    guard let place else { return false }
    let next = try await write { try VocabularyWriter($0).sweepUnused(after: place) }
    engine.sweep.withLock { $0 = (next, .now + Self.sweepPause) }
    return next != nil
  }
}

/// Expired devices and registrations.
struct ExpiryWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// Maximum number of devices or registrations that a call deletes: about ten milliseconds of
  /// work.
  private static let clearingLimit: Int64 = 250

  /// - Parameter limit: Milliseconds since 1970.
  /// - Returns: `true` when there may be more.
  func clearExpired(by limit: Int64) throws -> Bool {
    let installations = try expiredInstallations(by: limit)
    for (number, hub) in installations {
      try InstallationWriter(session).deleteInstallation(number, hub: hub)
    }
    if !installations.isEmpty { return true }
    for hub in try connection.numbers("SELECT id FROM hub") {
      let rows = try expiredRegistrations(by: limit, hub: hub)
      for row in rows {
        try RegistrationRowWriter(session).remove(row, hub: hub)
        // The installation that derived it derives it again with its next write.
        try RegistrationWriter(session).leave(row)
      }
      if !rows.isEmpty { return true }
      let removed = limit - Int64(RemovalWave.lifetime * 1000)
      if try RemovalWriter(session).clearRemoved(by: removed, hub: hub) { return true }
    }
    return false
  }

  private func expiredInstallations(by limit: Int64) throws -> [(Int64, Hub.ID)] {
    try connection.rows(
      "SELECT id, hub FROM installation WHERE expires_at <= ?1 LIMIT ?2", limit, Self.clearingLimit
    ) { ($0.integer(0), $0.integer(1)) }
  }

  private func expiredRegistrations(by limit: Int64, hub: Hub.ID) throws -> [RegistrationRow] {
    try connection.rows(
      """
      SELECT \(RegistrationRow.columns) FROM registration
      WHERE hub = ?1 AND expires_at <= ?2 LIMIT ?3
      """, hub, limit, Self.clearingLimit
    ) { try RegistrationRow($0) }
  }
}
