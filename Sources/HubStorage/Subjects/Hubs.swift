package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

extension SubjectStore {
  package func hubs() async throws -> [Hub] {
    try await reading(#function) { session in
      try session.sql.rows("SELECT \(Hub.columns) FROM hub ORDER BY id") { Hub($0) }
    }
  }

  package func hub(named name: String) async throws -> Hub? {
    try await reading(#function) { try HubTable($0.sql).hub(named: name) }
  }

  package func createHub(
    named name: String, _ contents: HubContents, at: Date
  ) async throws -> Hub {
    try await writing(#function) { session in
      guard try HubTable(session.sql).hub(named: name) == nil else {
        throw StoreError.hubExists(name)
      }
      let now = Date(milliseconds: at.milliseconds)
      let hub = Hub(
        id: try session.nextHub(), name: name, registrationTTL: contents.registrationTTL,
        isDisabled: contents.isDisabled, userMetadata: contents.userMetadata, createdAt: now)
      try HubTable(session.sql).insert(hub)
      try session.put(contents, hub: hub.id)
      try session.changeDirectory()
      return hub
    }
  }

  package func updateHub(
    _ id: Hub.ID, _ contents: HubContents, at: Date
  ) async throws -> Hub {
    try await writing(#function) { session in
      try session.sql.change(
        """
        UPDATE hub SET registration_ttl = ?2, is_disabled = ?3, user_metadata = ?4, updated_at = ?5
        WHERE id = ?1
        """, id, contents.registrationTTL, contents.isDisabled, contents.userMetadata,
        at.milliseconds)
      guard let hub = try HubTable(session.sql).hub(id) else { throw StoreError.noHub }
      try session.put(contents, hub: id)
      try session.changeDirectory()
      return hub
    }
  }

  package func deleteHub(named name: String) async throws -> Bool {
    try await writing(#function) { session in
      guard let hub = try HubTable(session.sql).hub(named: name) else { return false }
      try session.delete(hub)
      try session.changeDirectory()
      return true
    }
  }
}

extension Hub {
  fileprivate static let columns =
    "id, name, registration_ttl, is_disabled, created_at, user_metadata, updated_at"

  fileprivate init(_ row: borrowing Statement) {
    self.init(
      id: row.integer(0), name: row.text(1),
      registrationTTL: row.isNull(2) ? nil : row.double(2), isDisabled: row.integer(3) != 0,
      userMetadata: row.isNull(5) ? nil : row.text(5),
      createdAt: Date(milliseconds: row.integer(4)),
      updatedAt: row.isNull(6) ? nil : Date(milliseconds: row.integer(6)))
  }
}

/// Hubs.
struct HubTable {
  let connection: any SQLConnection

  init(_ connection: any SQLConnection) { self.connection = connection }

  fileprivate func hub(named name: String) throws -> Hub? {
    let row = try connection.statement(
      "SELECT \(Hub.columns) FROM hub WHERE folded_name = ?1", name.lowercased())
    return try row.step() ? Hub(row) : nil
  }

  fileprivate func hub(_ id: Hub.ID) throws -> Hub? {
    let row = try connection.statement("SELECT \(Hub.columns) FROM hub WHERE id = ?1", id)
    return try row.step() ? Hub(row) : nil
  }

  fileprivate func insert(_ hub: Hub) throws {
    try connection.change(
      """
      INSERT INTO hub (id, name, folded_name, registration_ttl, is_disabled, created_at,
        user_metadata)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
      """, hub.id, hub.name, hub.name.lowercased(), hub.registrationTTL, hub.isDisabled,
      hub.createdAt.milliseconds, hub.userMetadata)
  }

}

extension SubjectWriting {
  /// Replaces a hub's policies and credentials with those given.
  fileprivate func put(_ contents: HubContents, hub: Hub.ID) throws {
    if let policies = contents.policies {
      try sql.change("DELETE FROM access_policy WHERE hub = ?1", hub)
      for policy in policies { try put(policy, hub: hub) }
    }
    if let credentials = contents.credentials {
      try sql.change("DELETE FROM push_credential WHERE hub = ?1", hub)
      for credential in credentials { try put(credential, hub: hub) }
    }
  }
}

extension SQLConnection {
  /// A hub that is being deleted does not exist, whatever rows it still has.
  func hasHub(_ hub: Hub.ID) throws -> Bool {
    let row = try statement("SELECT 1 FROM hub WHERE id = ?1")
    try row.bind(hub, at: 1)
    return try row.step()
  }
}

extension SubjectWriting {
  /// Deletes the hub's own rows, and makes sure that nothing more of it is delivered.
  fileprivate func delete(_ hub: Hub) throws {
    // Pending rows of the transaction must not be written after the deletion.
    try willDelete(hub.id)
    for text in [
      "DELETE FROM hub WHERE id = ?1",
      "DELETE FROM access_policy WHERE hub = ?1",
      "DELETE FROM push_credential WHERE hub = ?1",
      "DELETE FROM job WHERE hub = ?1",
      """
      UPDATE notification SET state = 'Cancelled', ended_at = 0
      WHERE ended_at IS NULL AND hub = ?1
      """,
      "INSERT INTO deleted_hub (id) VALUES (?1)",
    ] { try sql.change(text, hub.id) }
  }
}

/// Deleted hubs: one disappears at once, and its rows are deleted slice by slice, however many there
/// are.
struct DeletedHubWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// Maximum number of rows of a table that a slice deletes: about ten milliseconds of work.
  private static let sliceLimit: Int64 = 2_000

  /// Deletes the next slice of what deleted hubs have left.
  /// - Returns: `true` when there may be more.
  func clearDeletedHubs() throws -> Bool {
    guard let hub = try first("SELECT id FROM deleted_hub LIMIT 1") else { return false }
    for slice in [clearNotifications, clearInstallations, clearTags, clearRest]
    where try slice(hub) { return true }
    try execute("DELETE FROM deleted_hub WHERE id = ?1", hub)
    return true
  }

  /// Deletes one notification, or a part of one.
  private func clearNotifications(of hub: Hub.ID) throws -> Bool {
    guard let number = try first("SELECT id FROM notification WHERE hub = ?1 LIMIT 1", hub) else {
      return false
    }
    var budget = deletionBudget
    _ = try NotificationTable(connection).deleteNotification(number, budget: &budget)
    return true
  }

  /// Deletes some installations with their registrations.
  private func clearInstallations(of hub: Hub.ID) throws -> Bool {
    let numbers = try connection.numbers(
      "SELECT id FROM installation WHERE hub = ?1 LIMIT \(Self.sliceLimit / 8)", hub)
    for number in numbers {
      try deleteRegistrations("installation = ?1", number, hub: hub)
      try InstallationWriter(session).deleteInstallation(number)
    }
    return !numbers.isEmpty
  }

  /// Deletes some rows of one tag. The pseudo-tags of all registrations come first: they lead to
  /// the registrations that clients have written.
  private func clearTags(of hub: Hub.ID) throws -> Bool {
    guard
      let tag = try first(
        """
        SELECT id FROM tag WHERE hub = ?1 ORDER BY kind IN (\(TagKey.Kind.native.rawValue),
          \(TagKey.Kind.template.rawValue)) DESC LIMIT 1
        """, hub)
    else { return false }
    try TagMemberWriter(session).mergeTags(of: tag)
    let members = try TagMemberWriter(session).takeMembers(of: tag, limit: Int(Self.sliceLimit))
    for number in members { try deleteRegistrations("id = ?1", Int64(number), hub: hub) }
    if members.isEmpty { try execute("DELETE FROM tag WHERE id = ?1", tag) }
    return true
  }

  /// Deletes registrations of a hub whose tags are deleted with it.
  private func deleteRegistrations(_ condition: String, _ number: Int64, hub: Hub.ID) throws {
    let handles = try connection.rows(
      """
      SELECT id, handle_hash FROM registration
      WHERE \(condition) AND hub = ?2 AND template IS NULL
      """, number, hub
    ) { (number: $0.integer(0), hash: $0.integer(1)) }
    for handle in handles {
      try DeviceKeyWriter(session).removeKey(.handle(hash: handle.hash), of: handle.number)
    }
    try execute("DELETE FROM registration WHERE \(condition) AND hub = ?2", number, hub)
  }

  private func clearRest(of hub: Hub.ID) throws -> Bool {
    for (table, key) in [
      ("feedback", "id"), ("removed_registration", "id"), ("template", "id"),
      ("idempotency_key", "name"), ("statistic_count", "at"), ("statistic_gauge", "at"),
      ("registration_total", "platform"),
    ] {
      let count = try execute(
        """
        DELETE FROM \(table) WHERE hub = ?1 AND \(key) IN
          (SELECT \(key) FROM \(table) WHERE hub = ?1 LIMIT \(Self.sliceLimit))
        """, hub)
      if count > 0 { return true }
    }
    return false
  }
}
