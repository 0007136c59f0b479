import HubCore
import NotificationHubs
import SQLDatabase

extension WriteSession {
  /// Removes a registration whose handle the push service has reported dead. With it go the others
  /// of its installation that have the same handle, and the installation is marked; or, when a
  /// client wrote it, the others that clients wrote for the same handle (spec `rest-api.md` 5.9).
  ///
  /// - Parameter limit: Nothing happens when the handle was confirmed after this time, in
  ///   milliseconds since 1970: the report is about an older state.
  func removeDead(
    _ number: RegistrationID, confirmedBy limit: Int64, hub: Hub.ID
  ) throws {
    guard let dead = try connection.registrationRow(number), dead.confirmedAt <= limit else {
      return
    }
    guard dead.installation != 0 else {
      let hash = dead.handleHash
      for row in try connection.clientRegistrations(withHandle: hash)
      where row.handle == dead.handle && row.confirmedAt <= limit {
        try remove(row, hub: hub)
      }
      return
    }
    for row in try connection.registrationRows(of: dead.installation)
    where row.handleHash == dead.handleHash && row.handle == dead.handle {
      try remove(row, hub: hub)
    }
    try markExpired(dead)
  }

  private func markExpired(_ dead: RegistrationRow) throws {
    try rewriteInstallation(of: dead) { installation in
      if installation.pushChannel.stored == dead.handle { installation.pushChannelExpired = true }
      for (id, tile) in installation.secondaryTiles where tile.pushChannel == dead.handle {
        installation.secondaryTiles[id]?.pushChannelExpired = true
      }
    }
  }

  /// Changes the document of a registration's installation, outside its own writes.
  func rewriteInstallation(
    of registration: RegistrationRow, _ change: (inout Installation) -> Void
  ) throws {
    var installation: Installation
    let hub: Hub.ID
    do {
      let row = try connection.statement(
        "SELECT public_id, document, hub FROM installation WHERE id = ?1")
      try row.bind(registration.installation, at: 1)
      guard try row.step() else { return }
      hub = row.integer(2)
      installation = try InstallationDocument.decode(row.bytes(1), id: row.text(0)) {
        try templates.template($0)
      }
    }
    change(&installation)
    let document = try InstallationDocument.encode(installation) {
      try templateNumber($0, hub: hub)
    }
    // No write has this fingerprint, so the next one brings the registrations back.
    let row = try connection.statement(
      "UPDATE installation SET document = ?1, fingerprint = 0 WHERE id = ?2")
    try row.bind(document, at: 1)
    try row.bind(registration.installation, at: 2)
    try row.run()
  }
}

extension SQLConnection {
  /// What clients have written themselves for a device, as its hash tells.
  func clientRegistrations(withHandle hash: Int64) throws -> [RegistrationRow] {
    var rows: [RegistrationRow] = []
    for condition in ["handle_hash = ?1 AND template IS NULL", "template_handle = ?1"] {
      let row = try statement(
        "SELECT \(RegistrationRow.columns) FROM registration WHERE \(condition)")
      try row.bind(hash, at: 1)
      while try row.step() {
        if row.integer(1) == 0 { rows.append(try RegistrationRow(row)) }
      }
    }
    return rows
  }
}
