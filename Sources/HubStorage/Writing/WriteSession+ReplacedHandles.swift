import HubCore
import NotificationHubs
import SQLDatabase

extension WriteSession {
  /// Gives the registrations of a device, and its installation, the handle that its push service
  /// has put in the place of theirs; one confirmed since then stays.
  func replace(_ replacement: Checkpoint.Replacement, hub: Hub.ID) throws {
    guard let old = try connection.registrationRow(replacement.registration),
      old.confirmedAt <= replacement.confirmedAt, old.handle != replacement.handle
    else { return }
    let isClients = old.installation == 0
    let rows =
      isClients
      ? try connection.clientRegistrations(withHandle: old.handleHash)
      : try connection.registrationRows(of: old.installation)
    for row in rows
    where row.handleHash == old.handleHash && row.handle == old.handle
      && row.confirmedAt <= replacement.confirmedAt
    {
      try setHandle(of: row, to: replacement.handle, hub: hub)
    }
    guard !isClients else { return }
    try rewriteInstallation(of: old) { installation in
      if installation.pushChannel.stored == old.handle {
        installation.pushChannel = .handle(replacement.handle)
      }
      for (id, tile) in installation.secondaryTiles where tile.pushChannel == old.handle {
        installation.secondaryTiles[id]?.pushChannel = replacement.handle
      }
    }
  }

  private func setHandle(of old: RegistrationRow, to handle: String, hub: Hub.ID) throws {
    if old.key.isNative { try forgetHandle(of: old, hub: hub) }
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
      try row.bind(state.commitNumber + 1, at: 4)
      try row.run()
    }
    if old.key.isNative { try noteHandle(of: old.number, handle, hash, hub: hub) }
  }
}
