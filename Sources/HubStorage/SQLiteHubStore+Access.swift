import Foundation
package import HubCore
package import NotificationHubs
import SQLDatabase

/// Access policies and push credentials. Their secrets are sealed, each in the context of its
/// place, so that a value copied to another row does not open there.
extension SQLiteHubStore {
  package func accessPolicies(hub: Hub.ID?) async throws -> [AccessPolicy] {
    try await read { session in
      let row = try session.connection.statement(
        """
        SELECT name, rights, primary_key, secondary_key, created_at, modified_at
        FROM access_policy WHERE hub = ?1 ORDER BY position
        """)
      try row.bind(hub ?? 0, at: 1)
      var policies: [AccessPolicy] = []
      while try row.step() {
        let name = row.text(0)
        let context = AccessPolicy.context(name, hub: hub)
        policies.append(
          AccessPolicy(
            name: name, rights: AccessRights(rawValue: UInt8(clamping: row.integer(1))),
            primaryKey: try session.sealing.text(row.bytes(2), context: context + "/primary"),
            secondaryKey: try session.sealing.text(row.bytes(3), context: context + "/secondary"),
            createdAt: Date(milliseconds: row.integer(4)),
            modifiedAt: Date(milliseconds: row.integer(5))))
      }
      return policies
    }
  }

  package func putAccessPolicy(_ policy: AccessPolicy, hub: Hub.ID?) async throws {
    try await write { session in
      if let hub { try session.requireHub(hub) }
      try session.put(policy, hub: hub)
      session.changeDirectory()
    }
  }

  package func deleteAccessPolicy(named name: String, hub: Hub.ID?) async throws -> Bool {
    try await write { session in
      let before = session.connection.totalChanges
      let row = try session.connection.statement(
        "DELETE FROM access_policy WHERE hub = ?1 AND name = ?2")
      try row.bind(hub ?? 0, at: 1)
      try row.bind(name, at: 2)
      try row.run()
      guard session.connection.totalChanges != before else { return false }
      session.changeDirectory()
      return true
    }
  }

  package func credentials(hub: Hub.ID) async throws -> [PushCredential] {
    try await read { session in
      let row = try session.connection.statement(
        """
        SELECT platform, properties, modified_at FROM push_credential
        WHERE hub = ?1 ORDER BY platform
        """)
      try row.bind(hub, at: 1)
      var credentials: [PushCredential] = []
      while try row.step() {
        let platform = try PushPlatform(code: row.integer(0))
        var reader = ByteReader(
          try session.sealing.opened(
            row.bytes(1), context: PushCredential.context(platform, hub: hub)))
        credentials.append(
          PushCredential(
            platform: platform, properties: try reader.words(),
            modifiedAt: Date(milliseconds: row.integer(2))))
      }
      return credentials
    }
  }

  package func putCredential(_ credential: PushCredential, hub: Hub.ID) async throws {
    try await write { session in
      try session.requireHub(hub)
      try session.put(credential, hub: hub)
      session.changeDirectory()
    }
  }

  package func deleteCredential(_ platform: PushPlatform, hub: Hub.ID) async throws -> Bool {
    try await write { session in
      let before = session.connection.totalChanges
      let row = try session.connection.statement(
        "DELETE FROM push_credential WHERE hub = ?1 AND platform = ?2")
      try row.bind(hub, at: 1)
      try row.bind(platform.code, at: 2)
      try row.run()
      guard session.connection.totalChanges != before else { return false }
      session.changeDirectory()
      return true
    }
  }
}

extension WriteSession {
  /// Creates, or replaces the credential of that platform.
  func put(_ credential: PushCredential, hub: Hub.ID) throws {
    let row = try connection.statement(
      """
      INSERT INTO push_credential (hub, platform, properties, modified_at)
      VALUES (?1, ?2, ?3, ?4) ON CONFLICT (hub, platform)
      DO UPDATE SET properties = excluded.properties, modified_at = excluded.modified_at
      """)
    var writer = ByteWriter()
    writer.write(credential.properties)
    try row.bind(hub, at: 1)
    try row.bind(credential.platform.code, at: 2)
    try row.bind(
      try sealing.seal(
        writer.bytes, context: PushCredential.context(credential.platform, hub: hub)),
      at: 3)
    try row.bind(credential.modifiedAt.milliseconds, at: 4)
    try row.run()
  }

  /// Creates, or replaces the policy of that name; its place in the order stays.
  func put(_ policy: AccessPolicy, hub: Hub.ID?) throws {
    let context = AccessPolicy.context(policy.name, hub: hub)
    let row = try connection.statement(
      """
      INSERT INTO access_policy
        (hub, name, position, rights, primary_key, secondary_key, created_at, modified_at)
      VALUES (?1, ?2, (SELECT COALESCE(MAX(position), 0) + 1 FROM access_policy WHERE hub = ?1),
        ?3, ?4, ?5, ?6, ?7)
      ON CONFLICT (hub, name) DO UPDATE SET rights = excluded.rights,
        primary_key = excluded.primary_key, secondary_key = excluded.secondary_key,
        created_at = excluded.created_at, modified_at = excluded.modified_at
      """)
    try row.bind(hub ?? 0, at: 1)
    try row.bind(policy.name, at: 2)
    try row.bind(Int64(policy.rights.rawValue), at: 3)
    try row.bind(
      try sealing.seal(Array(policy.primaryKey.utf8), context: context + "/primary"), at: 4)
    try row.bind(
      try sealing.seal(Array(policy.secondaryKey.utf8), context: context + "/secondary"), at: 5)
    try row.bind(policy.createdAt.milliseconds, at: 6)
    try row.bind(policy.modifiedAt.milliseconds, at: 7)
    try row.run()
  }
}

extension AccessPolicy {
  fileprivate static func context(_ name: String, hub: Hub.ID?) -> String {
    "access_policy/\(hub ?? 0)/\(name)"
  }
}

extension PushCredential {
  fileprivate static func context(_ platform: PushPlatform, hub: Hub.ID) -> String {
    "push_credential/\(hub)/\(platform.rawValue)"
  }
}

extension SecretSealing {
  fileprivate func text(_ sealed: [UInt8], context: String) throws -> String {
    String(decoding: try opened(sealed, context: context), as: UTF8.self)
  }
}
