import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

/// Registrations that clients write themselves.
extension WriteSession {
  /// What a client wants written, with all that can be computed beforehand.
  struct ClientRegistration: Sendable {
    let hub: Hub.ID
    let draft: RegistrationDraft
    let prepared: PreparedRegistration
    let at: Date

    init(_ draft: RegistrationDraft, hub: Hub.ID, at: Date) {
      self.hub = hub
      self.draft = draft
      self.at = at
      prepared = PreparedRegistration(draft, hub: hub)
    }

    func place(installation: Int64, tags: [Tag]) -> RegistrationPlace {
      RegistrationPlace(
        hub: hub, installation: installation, at: at.milliseconds,
        tagText: tags.map(\.rawValue).joined(separator: ","))
    }
  }

  func create(
    _ new: ClientRegistration, coding: RegistrationIDCoding
  ) throws -> StoredRegistration {
    try requireHub(new.hub)
    try forgetRemoved(handle: new.prepared.handleHash)
    let number = try nextRegistration()
    return try insert(new, as: number, id: coding.id(of: number, hub: new.hub), publicID: nil)
  }

  func put(
    _ id: String, _ new: ClientRegistration, condition: ETagCondition, coding: RegistrationIDCoding
  ) throws -> RegistrationWrite {
    try requireHub(new.hub)
    guard let found = try live(id, hub: new.hub, at: new.at, coding: coding) else {
      guard condition == .none else { return .missing }
      try forgetRemoved(handle: new.prepared.handleHash)
      return .done(try insert(id, new, coding: coding))
    }
    guard condition.holds(for: String(found.stored.etag)) else { return .stale }
    try forgetRemoved(handle: new.prepared.handleHash)
    try forgetRemoved(registration: found.row.number)
    var stored = found.stored
    let implicit = stored.isDerived ? stored.draft.tags.filter(\.isImplicit) : []
    stored.draft = new.draft
    stored.draft.tags = implicit + new.draft.tags
    stored.etag += 1
    try change(
      found.row, to: new.prepared,
      in: new.place(installation: found.row.installation, tags: stored.draft.tags))
    try leave(found.row)
    return .done(stored)
  }

  func deleteRegistration(
    _ id: String, hub: Hub.ID, condition: ETagCondition, at: Date, coding: RegistrationIDCoding
  ) throws -> RegistrationWrite {
    guard let found = try live(id, hub: hub, at: at, coding: coding) else {
      if let number = coding.number(in: id, hub: hub) {
        try forgetRemoved(registration: number)
      } else {
        try forgetRemoved(publicID: id, hub: hub)
      }
      return .missing
    }
    guard condition.holds(for: String(found.stored.etag)) else { return .stale }
    try remove(found, hub: hub)
    return .done(found.stored)
  }

  /// The registration that clients call so. One whose time is over is removed.
  private func live(
    _ id: String, hub: Hub.ID, at: Date, coding: RegistrationIDCoding
  ) throws -> RegistrationReader.Found? {
    let reader = RegistrationReader(connection: connection, templates: templates, coding: coding)
    guard let found = try reader.registration(id, hub: hub) else { return nil }
    guard found.isOver(at: at) else { return found }
    try remove(found, hub: hub)
    return nil
  }

  private func remove(_ found: RegistrationReader.Found, hub: Hub.ID) throws {
    try forgetRemoved(registration: found.row.number)
    try remove(found.row, hub: hub)
    try leave(found.row)
  }

  /// Follows a registration of an installation that is not any more what that says.
  func leave(_ row: RegistrationRow) throws {
    guard row.installation != 0 else { return }
    try forgetFingerprint(of: row.installation)
    guard row.key.isNative else { return }
    // Without the native one, its templates must be found by their handle in another way.
    let templates = try connection.statement(
      """
      UPDATE registration SET template_handle = handle_hash
      WHERE installation = ?1 AND template IS NOT NULL
      """)
    try templates.bind(row.installation, at: 1)
    try templates.run()
  }

  private func insert(
    _ id: String, _ new: ClientRegistration, coding: RegistrationIDCoding
  ) throws -> StoredRegistration {
    guard let number = coding.number(in: id, hub: new.hub) else {
      return try insert(new, as: try nextRegistration(), id: id, publicID: id)
    }
    // An id of ours stands for its number. A number beyond the last was given out by a database of
    // which this one is an older copy.
    guard number <= Int64(UInt32.max) else {
      throw StoreError.registrationNumbersUsed
    }
    state.lastRegistration = max(state.lastRegistration, number)
    return try insert(new, as: number, id: id, publicID: nil)
  }

  private func insert(
    _ new: ClientRegistration, as number: RegistrationID, id: String, publicID: String?
  ) throws -> StoredRegistration {
    try insert(
      new.prepared, as: number, publicID: publicID,
      in: new.place(installation: 0, tags: new.draft.tags))
    return StoredRegistration(
      number: number, id: id, draft: new.draft, etag: 1, isDerived: false)
  }

  /// Makes the installation's next write one that writes everything, so that its registrations are
  /// again what it says.
  func forgetFingerprint(of installation: Int64) throws {
    guard installation != 0 else { return }
    let row = try connection.statement("UPDATE installation SET fingerprint = 0 WHERE id = ?1")
    try row.bind(installation, at: 1)
    try row.run()
  }
}
