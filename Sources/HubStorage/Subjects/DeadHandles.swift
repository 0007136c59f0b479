import HubCore
import NotificationHubs
import SQLDatabase

extension RegistrationRow {
  /// Whether a push service's report about a handle applies to this row as it is now.
  func isMeant(by word: Checkpoint.Condemned) -> Bool {
    handle == word.handle && revision <= word.revision.rawValue
  }
}

/// Registrations whose push service has reported their handle as dead or replaced.
struct DeadHandleWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// Removes a registration whose handle the push service has reported dead, if it still has it.
  /// The others of its installation with the same handle are also removed, and the installation is
  /// marked; for a registration that a client wrote, the others that clients wrote for the same
  /// handle are removed (docs/protocol/rest.md, section 5.9).
  ///
  /// - Parameter at: Milliseconds since 1970.
  func removeDead(_ dead: Checkpoint.Condemned, hub: Hub.ID, at: Int64) throws {
    guard let row = try connection.registrationRow(dead.registration), isMeant(row, by: dead) else {
      return
    }
    for other in try sameDevice(as: row) where other.isMeant(by: dead) {
      try RemovalWriter(session).keepRemoved(other, dead, at: at)
      try RegistrationRowWriter(session).remove(other, hub: hub)
    }
    guard row.installation != 0 else { return }
    try rewriteInstallation(row.installation) { $0.setExpired(true, handle: row.handle) }
  }

  /// Whether a report applies to a device, which may have registered again since: that is written
  /// later.
  private func isMeant(_ row: RegistrationRow, by word: Checkpoint.Condemned) -> Bool {
    row.isMeant(by: word) && !session.confirmations.isWaiting(row.installation)
  }

  /// Gives the registrations of a device, and its installation, the handle with which its push
  /// service has replaced theirs, if they still have the old one.
  func replace(_ replacement: Checkpoint.Condemned, hub: Hub.ID, at: Int64) throws {
    guard let row = try connection.registrationRow(replacement.registration),
      isMeant(row, by: replacement), let handle = replacement.newHandle, row.handle != handle
    else { return }
    for other in try sameDevice(as: row) where other.isMeant(by: replacement) {
      try RemovalWriter(session).keepRemoved(other, replacement, at: at)
      try setHandle(of: other, to: handle, hub: hub)
    }
    guard row.installation != 0 else { return }
    try rewriteInstallation(row.installation) { $0.replaceHandle(row.handle, with: handle) }
  }

  /// The rows of the same installation, or those that clients wrote, with a row's handle.
  func sameDevice(as row: RegistrationRow) throws -> [RegistrationRow] {
    let rows =
      row.installation == 0
      ? try session.deviceKeys().clientRegistrations(withHandle: row.handleHash)
      : try connection.registrationRows(of: row.installation)
    return rows.filter { $0.handleHash == row.handleHash && $0.handle == row.handle }
  }

  func setHandle(of old: RegistrationRow, to handle: String, hub: Hub.ID) throws {
    if old.key.isNative { try HandleWriter(session).forgetHandle(of: old, hub: hub) }
    let hash = PreparedRegistration.hash(of: handle, platform: old.platform, hub: hub)
    do {
      let row = try connection.statement(
        """
        UPDATE registration SET handle = ?2, handle_hash = ?3,
          template_handle = CASE WHEN template_handle IS NULL THEN NULL ELSE ?3 END,
          etag = etag + 1, written = ?4
        WHERE id = ?1
        """)
      try row.bind(old.number, at: 1)
      try row.bind(handle, at: 2)
      try row.bind(hash, at: 3)
      try row.bind(revision, at: 4)
      try row.run()
    }
    if old.key.isNative {
      try HandleWriter(session).noteHandle(of: old.number, handle, hash, hub: hub)
    }
  }

  /// Changes the document of an installation, outside its own writes.
  func rewriteInstallation(_ number: Int64, _ change: (inout Installation) -> Void) throws {
    var installation: Installation
    let hub: Hub.ID
    do {
      let row = try connection.statement(
        "SELECT public_id, document, hub FROM installation WHERE id = ?1", number)
      guard try row.step() else { return }
      hub = row.integer(2)
      installation = try InstallationDocument.decode(row.bytes(1), id: row.text(0)) {
        try templates.template($0)
      }
    }
    change(&installation)
    let document = try InstallationDocument.encode(installation) {
      try VocabularyWriter(session).templateNumber($0, hub: hub)
    }
    // No write has this fingerprint, so the next one restores the registrations.
    try execute(
      "UPDATE installation SET document = ?1, fingerprint = 0 WHERE id = ?2", document, number)
  }
}

extension DeviceKeys {
  /// Registrations that clients have written for a device, found by the hash of its handle.
  func clientRegistrations(withHandle hash: Int64) throws -> [RegistrationRow] {
    try registrations(withHandle: hash).filter { $0.installation == 0 }
  }

  /// Native registrations of a handle, and templates that cannot be found through one, by the hash.
  func registrations(withHandle hash: Int64) throws -> [RegistrationRow] {
    let native = try numbers(of: .handle(hash: hash)).compactMap { number in
      try connection.registrationRow(number)
    }
    return native.filter { $0.key.isNative && $0.handleHash == hash }
      + (try connection.rows(
        "SELECT \(RegistrationRow.columns) FROM registration WHERE template_handle = ?1", hash
      ) { try RegistrationRow($0) })
  }
}
