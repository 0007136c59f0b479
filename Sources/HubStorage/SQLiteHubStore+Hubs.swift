package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

extension SQLiteHubStore {
  package func hubs() async throws -> [Hub] {
    try await read { session in
      let row = try session.connection.statement("SELECT \(Hub.columns) FROM hub ORDER BY id")
      var hubs: [Hub] = []
      while try row.step() { hubs.append(Hub(row)) }
      return hubs
    }
  }

  package func hub(named name: String) async throws -> Hub? {
    try await read { try $0.connection.hub(named: name) }
  }

  package func createHub(
    named name: String, _ contents: HubContents, at: Date
  ) async throws -> Hub {
    try await write { session in
      guard try session.connection.hub(named: name) == nil else {
        throw StoreError.hubExists(name)
      }
      session.state.lastHub += 1
      let now = Date(milliseconds: at.milliseconds)
      let hub = Hub(
        id: session.state.lastHub, name: name, registrationTTL: contents.registrationTTL,
        isDisabled: contents.isDisabled, userMetadata: contents.userMetadata, createdAt: now)
      try session.insert(hub)
      try session.put(contents, hub: hub.id)
      session.changeDirectory()
      return hub
    }
  }

  package func updateHub(
    _ id: Hub.ID, _ contents: HubContents, at: Date
  ) async throws -> Hub {
    try await write { session in
      let row = try session.connection.statement(
        """
        UPDATE hub SET registration_ttl = ?2, is_disabled = ?3, user_metadata = ?4, updated_at = ?5
        WHERE id = ?1
        """)
      try row.bind(id, at: 1)
      if let ttl = contents.registrationTTL { try row.bind(ttl, at: 2) }
      try row.bind(contents.isDisabled, at: 3)
      try row.bind(contents.userMetadata, at: 4)
      try row.bind(at.milliseconds, at: 5)
      try row.run()
      guard let hub = try session.connection.hub(id) else { throw StoreError.noHub }
      try session.put(contents, hub: id)
      session.changeDirectory()
      return hub
    }
  }

  package func deleteHub(named name: String) async throws -> Bool {
    try await write { session in
      guard let hub = try session.connection.hub(named: name) else { return false }
      try session.delete(hub)
      session.changeDirectory()
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

extension SQLConnection {
  fileprivate func hub(named name: String) throws -> Hub? {
    let row = try statement("SELECT \(Hub.columns) FROM hub WHERE folded_name = ?1")
    try row.bind(name.lowercased(), at: 1)
    return try row.step() ? Hub(row) : nil
  }

  fileprivate func hub(_ id: Hub.ID) throws -> Hub? {
    let row = try statement("SELECT \(Hub.columns) FROM hub WHERE id = ?1")
    try row.bind(id, at: 1)
    return try row.step() ? Hub(row) : nil
  }
}

extension WriteSession {
  fileprivate func insert(_ hub: Hub) throws {
    let row = try connection.statement(
      """
      INSERT INTO hub (id, name, folded_name, registration_ttl, is_disabled, created_at,
        user_metadata)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
      """)
    try row.bind(hub.id, at: 1)
    try row.bind(hub.name, at: 2)
    try row.bind(hub.name.lowercased(), at: 3)
    if let ttl = hub.registrationTTL { try row.bind(ttl, at: 4) }
    try row.bind(hub.isDisabled, at: 5)
    try row.bind(hub.createdAt.milliseconds, at: 6)
    try row.bind(hub.userMetadata, at: 7)
    try row.run()
  }

  /// Replaces a hub's policies and credentials by those given.
  fileprivate func put(_ contents: HubContents, hub: Hub.ID) throws {
    if let policies = contents.policies {
      try run("DELETE FROM access_policy WHERE hub = ?1", hub)
      for policy in policies { try put(policy, hub: hub) }
    }
    if let credentials = contents.credentials {
      try run("DELETE FROM push_credential WHERE hub = ?1", hub)
      for credential in credentials { try put(credential, hub: hub) }
    }
  }

  private func run(_ sql: String, _ hub: Hub.ID) throws {
    let row = try connection.statement(sql)
    try row.bind(hub, at: 1)
    try row.run()
  }
}
