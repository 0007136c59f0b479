import HubCore
import SQLDatabase

/// Handles that native registrations gain and lose.
///
/// It keeps the tag ``TagKey/Kind/sharedHandle`` exact: that is on every native registration whose
/// handle another one of its hub and platform has too, or, at FCM, whose installation id. Sends
/// search for duplicates among those only.
struct HandleWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// Updates the tag after a native registration has gained a handle.
  func noteHandle(of number: RegistrationID, _ handle: String, _ hash: Int64, hub: Hub.ID) throws {
    let others = try others(with: handle, hash, than: number)
    try DeviceKeyWriter(session).addKey(.handle(hash: hash), of: number)
    guard let first = others.first else { return }
    let tag = try TagWriter(session).tagNumber(.sharedHandle(hub: hub))
    TagWriter(session).setTag(tag, of: number, isMember: true)
    // With two others, both already had the tag.
    if others.count == 1 { TagWriter(session).setTag(tag, of: first, isMember: true) }
  }

  /// Updates the tag before a native registration loses its handle.
  func forgetHandle(of row: RegistrationRow, hub: Hub.ID) throws {
    try DeviceKeyWriter(session).removeKey(.handle(hash: row.handleHash), of: row.number)
    let others = try others(with: row.handle, row.handleHash, than: row.number)
    guard let first = others.first else { return }
    let tag = try TagWriter(session).tagNumber(.sharedHandle(hub: hub))
    TagWriter(session).setTag(tag, of: row.number, isMember: false)
    if others.count == 1 { TagWriter(session).setTag(tag, of: first, isMember: false) }
  }

  /// Other native registrations of the same device; at most two, because more make no difference.
  private func others(
    with handle: String, _ hash: Int64, than number: RegistrationID
  ) throws -> [RegistrationID] {
    var found: [RegistrationID] = []
    try session.deviceKeys().visit(.handle(hash: hash)) { other in
      guard other != number, !found.contains(other) else { return true }
      let row = try connection.statement(
        "SELECT handle FROM registration WHERE id = ?1 AND handle_hash = ?2 AND template IS NULL")
      try row.bind(other, at: 1)
      try row.bind(hash, at: 2)
      if try row.step(), row.hasHandle(handle, column: 0) { found.append(other) }
      return found.count < 2
    }
    return found
  }
}

extension Statement {
  /// Whether a column's stored handle reaches the same device as `handle`.
  borrowing func hasHandle(_ handle: String, column: Int32) -> Bool {
    var handle = handle
    return handle.withUTF8 { wanted in
      withBytes(column) { stored in
        handleIdentity(stored).elementsEqual(handleIdentity(UnsafeRawBufferPointer(wanted)))
      }
    }
  }
}
