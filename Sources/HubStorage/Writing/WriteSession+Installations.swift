import HubCore
import NotificationHubs
import SQLDatabase

/// A row of `installation`, without its document.
struct InstallationRow {
  let number: Int64
  let fingerprint: Int64
}

extension WriteSession {
  /// Creates or replaces; when nothing has changed, only notes that the device was seen.
  func put(_ prepared: PreparedInstallation) throws {
    try requireHub(prepared.hub)
    let row = try connection.installationRow(
      prepared.installation.installationID, idHash: prepared.idHash, hub: prepared.hub)
    if let row, row.fingerprint == prepared.fingerprint {
      try confirm(row.number, at: prepared.at)
    } else {
      // The app has registered again: nothing of before comes back.
      if let row { try forgetRemoved(installation: row.number) }
      try write(prepared, over: row)
    }
  }

  /// Writes the installation and derives its registrations.
  func write(_ prepared: PreparedInstallation, over row: InstallationRow?) throws {
    let document = try InstallationDocument.encode(prepared.installation) {
      try templateNumber($0, hub: prepared.hub)
    }
    let number: Int64
    if let row {
      number = row.number
      try update(number, prepared, document)
    } else {
      state.lastInstallation += 1
      number = state.lastInstallation
      try insert(number, prepared, document)
    }
    var old = row == nil ? [] : try connection.registrationRows(of: number)
    let place = RegistrationPlace(hub: prepared.hub, installation: number, at: prepared.at)
    for hash in Set(prepared.registrations.map(\.handleHash)) { try forgetRemoved(handle: hash) }
    for registration in prepared.registrations {
      if let index = old.firstIndex(where: { $0.key == registration.key }) {
        try change(old.remove(at: index), to: registration, in: place)
      } else {
        try insert(registration, as: try nextRegistration(), in: place)
      }
    }
    for row in old { try remove(row, hub: prepared.hub) }
  }

  func deleteInstallation(_ id: String, idHash: Int64, hub: Hub.ID) throws -> Bool {
    guard let row = try connection.installationRow(id, idHash: idHash, hub: hub) else {
      return false
    }
    try deleteInstallation(row.number, hub: hub)
    return true
  }

  /// Deletes the installation of a number with its registrations.
  func deleteInstallation(_ number: Int64, hub: Hub.ID) throws {
    for registration in try connection.registrationRows(of: number) {
      try remove(registration, hub: hub)
    }
    try deleteInstallation(number)
  }

  /// Deletes the row, and what of its registrations could be brought back.
  func deleteInstallation(_ number: Int64) throws {
    try forgetRemoved(installation: number)
    let delete = try connection.statement("DELETE FROM installation WHERE id = ?1")
    try delete.bind(number, at: 1)
    try delete.run()
  }

  func templateNumber(_ template: PushTemplate, hub: Hub.ID) throws -> Int64 {
    try templates.number(of: template, hub: hub) {
      try makeRoomForTemplate(hub: hub)
      state.lastTemplate += 1
      return state.lastTemplate
    }
  }

  private func confirm(_ installation: Int64, at: Int64) throws {
    let row = try connection.statement(
      "UPDATE registration SET confirmed_at = ?1, revision = ?3 WHERE installation = ?2")
    try row.bind(at, at: 1)
    try row.bind(installation, at: 2)
    try row.bind(revision, at: 3)
    try row.run()
  }

  private func insert(_ number: Int64, _ prepared: PreparedInstallation, _ document: [UInt8]) throws
  {
    let row = try connection.statement(
      """
      INSERT INTO installation (id, hub, id_hash, public_id, user_hash, fingerprint, document,
        expires_at)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
      """)
    try row.bind(number, at: 1)
    try row.bind(prepared.hub, at: 2)
    try row.bind(prepared.idHash, at: 3)
    try row.bind(prepared.installation.installationID, at: 4)
    try row.bind(prepared.userHash, at: 5)
    try row.bind(prepared.storedFingerprint, at: 6)
    try row.bind(document, at: 7)
    try row.bind(prepared.installation.expirationTime?.milliseconds, at: 8)
    try row.run()
  }

  private func update(_ number: Int64, _ prepared: PreparedInstallation, _ document: [UInt8]) throws
  {
    let row = try connection.statement(
      """
      UPDATE installation SET user_hash = ?1, fingerprint = ?2, document = ?3, expires_at = ?5
      WHERE id = ?4
      """)
    try row.bind(prepared.userHash, at: 1)
    try row.bind(prepared.storedFingerprint, at: 2)
    try row.bind(document, at: 3)
    try row.bind(number, at: 4)
    try row.bind(prepared.installation.expirationTime?.milliseconds, at: 5)
    try row.run()
  }
}

extension SQLConnection {
  func installationRow(_ id: String, idHash: Int64, hub: Hub.ID) throws -> InstallationRow? {
    let row = try statement(
      "SELECT id, fingerprint, public_id FROM installation WHERE hub = ?1 AND id_hash = ?2")
    try row.bind(hub, at: 1)
    try row.bind(idHash, at: 2)
    while try row.step() {
      let isSame = row.withBytes(2) { $0.elementsEqual(id.utf8) }
      if isSame { return InstallationRow(number: row.integer(0), fingerprint: row.integer(1)) }
    }
    return nil
  }
}
