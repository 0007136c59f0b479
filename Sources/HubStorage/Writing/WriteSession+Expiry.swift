import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

extension WriteSession {
  /// How many are removed for each that is written.
  private static let expiredAtOnce: Int64 = 4

  /// Removes a few of a hub's registrations and installations whose time is over, on the occasion of
  /// a write with an end: more go than come, so what is over never heaps up and nobody has to look
  /// for it.
  ///
  /// - Parameter at: Milliseconds since 1970.
  func removeExpired(hub: Hub.ID, at: Int64) throws {
    var expired: [RegistrationRow] = []
    do {
      let row = try connection.statement(
        """
        SELECT \(RegistrationRow.columns) FROM registration
        WHERE hub = ?1 AND expires_at <= ?2 LIMIT ?3
        """)
      try row.bind(hub, at: 1)
      try row.bind(at, at: 2)
      try row.bind(Self.expiredAtOnce, at: 3)
      while try row.step() { expired.append(try RegistrationRow(row)) }
    }
    var gone: Set<Int64> = []
    for row in expired where !gone.contains(row.installation) {
      if try isInstallationOver(row.installation, at: at) {
        try deleteInstallation(row.installation, hub: hub)
        gone.insert(row.installation)
      } else {
        try remove(row, hub: hub)
        try forgetFingerprint(of: row.installation)
      }
    }
  }

  private func isInstallationOver(_ number: Int64, at: Int64) throws -> Bool {
    guard number != 0,
      let found = try connection.installation(number, templates: templates),
      let end = found.expirationTime
    else { return false }
    return end.milliseconds <= at
  }
}
