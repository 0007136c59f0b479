import Foundation
package import HubCore
package import NotificationHubs
import SQLDatabase

/// Access policies and push credentials. Their secrets are sealed, each in the context of its row,
/// so that a value copied to another row does not open there.
extension SubjectStore {
  package func accessPolicies(hub: Hub.ID?) async throws -> [AccessPolicy] {
    try await reading(#function) { session in
      let row = try session.sql.statement(
        """
        SELECT name, rights, primary_key, secondary_key, created_at, modified_at
        FROM access_policy WHERE hub = ?1 ORDER BY position
        """, hub ?? 0)
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
    try await writing(#function) { session in
      if let hub { try session.requireHub(hub) }
      try session.put(policy, hub: hub)
      try session.changeDirectory()
    }
  }

  package func deleteAccessPolicy(named name: String, hub: Hub.ID?) async throws -> Bool {
    try await writing(#function) { session in
      let count = try session.sql.change(
        "DELETE FROM access_policy WHERE hub = ?1 AND name = ?2", hub ?? 0, name)
      guard count > 0 else { return false }
      try session.changeDirectory()
      return true
    }
  }

  package func credentials(hub: Hub.ID) async throws -> [PushCredential] {
    try await reading(#function) { try $0.credentials(hub: hub) }
  }

  package func putCredential(_ credential: PushCredential, hub: Hub.ID) async throws {
    try await writing(#function) { session in
      try session.requireHub(hub)
      try session.put(credential, hub: hub)
      try session.changeDirectory()
    }
  }

  package func deleteCredential(_ platform: PushPlatform, hub: Hub.ID) async throws -> Bool {
    try await writing(#function) { session in
      let count = try session.sql.change(
        "DELETE FROM push_credential WHERE hub = ?1 AND platform = ?2", hub, platform.code)
      guard count > 0 else { return false }
      try session.changeDirectory()
      return true
    }
  }
}

extension SubjectReading {
  func credentials(hub: Hub.ID) throws -> [PushCredential] {
    try sql.rows(
      """
      SELECT platform, properties, modified_at FROM push_credential
      WHERE hub = ?1 ORDER BY platform
      """, hub
    ) { row in
      let platform = try PushPlatform(code: row.integer(0))
      var reader = ByteReader(
        try sealing.opened(row.bytes(1), context: PushCredential.context(platform, hub: hub)))
      return PushCredential(
        platform: platform, properties: try reader.words(),
        modifiedAt: Date(milliseconds: row.integer(2)))
    }
  }
}

extension SubjectWriting {
  /// Creates or replaces the credential of a platform.
  func put(_ credential: PushCredential, hub: Hub.ID) throws {
    var properties = ByteWriter()
    properties.write(credential.properties)
    let sealed = try seal(
      properties.bytes, context: PushCredential.context(credential.platform, hub: hub))
    try sql.change(
      """
      INSERT INTO push_credential (hub, platform, properties, modified_at)
      VALUES (?1, ?2, ?3, ?4) ON CONFLICT (hub, platform)
      DO UPDATE SET properties = excluded.properties, modified_at = excluded.modified_at
      """, hub, credential.platform.code, sealed, credential.modifiedAt.milliseconds)
  }

  /// Creates or replaces the policy with a name; its position is kept.
  func put(_ policy: AccessPolicy, hub: Hub.ID?) throws {
    let context = AccessPolicy.context(policy.name, hub: hub)
    let primary = try seal(Array(policy.primaryKey.utf8), context: context + "/primary")
    let secondary = try seal(
      Array(policy.secondaryKey.utf8), context: context + "/secondary")
    try sql.change(
      """
      INSERT INTO access_policy
        (hub, name, position, rights, primary_key, secondary_key, created_at, modified_at)
      VALUES (?1, ?2, (SELECT COALESCE(MAX(position), 0) + 1 FROM access_policy WHERE hub = ?1),
        ?3, ?4, ?5, ?6, ?7)
      ON CONFLICT (hub, name) DO UPDATE SET rights = excluded.rights,
        primary_key = excluded.primary_key, secondary_key = excluded.secondary_key,
        created_at = excluded.created_at, modified_at = excluded.modified_at
      """, hub ?? 0, policy.name, Int64(policy.rights.rawValue), primary, secondary,
      policy.createdAt.milliseconds, policy.modifiedAt.milliseconds)
  }
}

extension AccessPolicy {
  /// The sealing context of its keys, before `/primary` or `/secondary`.
  static func context(_ name: String, hub: Hub.ID?) -> String {
    "access_policy/\(hub ?? 0)/\(name)"
  }
}

extension PushCredential {
  static func context(_ platform: PushPlatform, hub: Hub.ID) -> String {
    "push_credential/\(hub)/\(platform.rawValue)"
  }
}

extension SecretSealing {
  fileprivate func text(_ sealed: [UInt8], context: String) throws -> String {
    String(decoding: try opened(sealed, context: context), as: UTF8.self)
  }
}
