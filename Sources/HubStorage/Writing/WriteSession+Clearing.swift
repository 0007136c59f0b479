import HubCore
import SQLDatabase

/// Deleting what has expired.
extension WriteSession {
  /// How many devices or registrations a call deletes at most; some ten milliseconds' work.
  private static let clearingLimit: Int64 = 250

  /// - Parameter limit: Milliseconds since 1970.
  /// - Returns: `true` when there may be more.
  func clearExpired(by limit: Int64) throws -> Bool {
    let installations = try expiredInstallations(by: limit)
    for (number, hub) in installations {
      try deleteInstallation(number, hub: hub)
    }
    if !installations.isEmpty { return true }
    for hub in try hubNumbers() {
      let rows = try expiredRegistrations(by: limit, hub: hub)
      for row in rows {
        try remove(row, hub: hub)
        // The installation that made it makes it again with its next write.
        try leave(row)
      }
      if !rows.isEmpty { return true }
      let removed = limit - Int64(RemovalCount.lifetime * 1000)
      if try clearRemoved(by: removed, hub: hub) { return true }
    }
    return false
  }

  private func expiredInstallations(by limit: Int64) throws -> [(Int64, Hub.ID)] {
    let row = try connection.statement(
      "SELECT id, hub FROM installation WHERE expires_at <= ?1 LIMIT ?2")
    try row.bind(limit, at: 1)
    try row.bind(Self.clearingLimit, at: 2)
    var found: [(Int64, Hub.ID)] = []
    while try row.step() { found.append((row.integer(0), row.integer(1))) }
    return found
  }

  private func expiredRegistrations(by limit: Int64, hub: Hub.ID) throws -> [RegistrationRow] {
    let row = try connection.statement(
      """
      SELECT \(RegistrationRow.columns) FROM registration
      WHERE hub = ?1 AND expires_at <= ?2 LIMIT ?3
      """)
    try row.bind(hub, at: 1)
    try row.bind(limit, at: 2)
    try row.bind(Self.clearingLimit, at: 3)
    var found: [RegistrationRow] = []
    while try row.step() { found.append(try RegistrationRow(row)) }
    return found
  }

  private func hubNumbers() throws -> [Hub.ID] {
    let row = try connection.statement("SELECT id FROM hub")
    var hubs: [Hub.ID] = []
    while try row.step() { hubs.append(row.integer(0)) }
    return hubs
  }
}
