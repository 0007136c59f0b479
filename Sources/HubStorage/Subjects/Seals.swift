package import HubCore
import NotificationHubs
import SQLDatabase

/// Seals the secrets that a store keeps: keys of access policies, credentials of push services. The
/// implementation (master keys and AES-GCM) is elsewhere; a store only handles bytes.
package protocol SecretSealing: Sendable {
  /// The ids of the keys that it currently has, the newest first.
  func keys() -> [String]
  /// - Parameters:
  ///   - context: The row that the secret belongs to; a sealed value opens there only.
  ///   - key: The id of the key.
  /// - Throws: Any error when it does not have that key.
  func seal(_ plaintext: [UInt8], context: String, under key: String) throws -> [UInt8]
  /// - Throws: Any error when the value was sealed under another key or context.
  func open(_ sealed: [UInt8], context: String) throws -> [UInt8]
  /// The id of the key that opens a value.
  /// - Throws: As ``open(_:context:)``.
  func key(of sealed: [UInt8], context: String) throws -> String
  /// The prefix of all values sealed under a key, and of no others.
  func head(of key: String) -> [UInt8]
}

extension SecretSealing {
  /// As ``open(_:context:)``; every error becomes ``StoreError/sealedSecret``.
  func opened(_ sealed: [UInt8], context: String) throws(StoreError) -> [UInt8] {
    do {
      return try open(sealed, context: context)
    } catch {
      throw .sealedSecret
    }
  }
}

/// The sealed word in `store_state`. It shows whether a process has the store's key; the key that
/// it is sealed under is the one in force.
enum Canary {
  static let context = "store_state/canary"

  /// Seals the word under the newest key, for a new database.
  static func make(_ sealing: any SecretSealing) throws -> [UInt8] {
    try sealing.seal(word, context: context, under: sealing.keys()[0])
  }

  static let word = Array("belfry".utf8)

  static func key(_ canary: [UInt8], _ sealing: any SecretSealing) throws(StoreError) -> String {
    do { return try sealing.key(of: canary, context: context) } catch { throw .sealedSecret }
  }
}

/// A column of sealed values.
private struct SealedColumn: Sendable {
  let table: String
  /// The column that identifies a row together with its hub.
  let key: String
  let column: String
  let context: @Sendable (Hub.ID, _ key: String) throws -> String

  static let all = [
    SealedColumn(table: "access_policy", key: "name", column: "primary_key") {
      AccessPolicy.context($1, hub: $0) + "/primary"
    },
    SealedColumn(table: "access_policy", key: "name", column: "secondary_key") {
      AccessPolicy.context($1, hub: $0) + "/secondary"
    },
    SealedColumn(table: "push_credential", key: "platform", column: "properties") {
      PushCredential.context(try PushPlatform(code: Int64($1) ?? -1), hub: $0)
    },
    SealedColumn(table: "job", key: "public_id", column: "uris") { HubJob.context($1, hub: $0) },
  ]

  struct Value {
    let hub: Hub.ID
    let key: String
    let sealed: [UInt8]
    let context: String
  }

  func values(
    _ sql: any SQLConnection, _ condition: String = "", _ bound: any SQLValue...
  ) throws -> [Value] {
    let row = try sql.statement(
      "SELECT hub, CAST(\(key) AS TEXT), \(column) FROM \(table) \(condition)", values: bound)
    var values: [Value] = []
    while try row.step() {
      let (hub, key) = (row.integer(0), row.text(1))
      values.append(
        Value(hub: hub, key: key, sealed: row.bytes(2), context: try context(hub, key)))
    }
    return values
  }
}

extension SubjectStore {
  package func sealingKey() async throws -> String {
    try await reading(#function) { try $0.sealingKey() }
  }

  package func changeSealingKey(to key: String) async throws -> [String] {
    try await writing(#function) { session in
      if try session.sealingKey(session.sql.dialect.lockingRows) == key { return [] }
      let lacking = try session.nodes(lacking: key)
      guard lacking.isEmpty else { return lacking }
      try session.sql.change(
        "UPDATE store_state SET canary = ?1",
        session.sealing.seal(Canary.word, context: Canary.context, under: key))
      return []
    }
  }

  package func resealSome(limit: Int) async throws -> Int {
    try await writing(#function) { session in
      let key = try session.sealingKey(session.sql.dialect.sharingRows)
      let head = session.sealing.head(of: key)
      var found = 0
      for column in SealedColumn.all where found < limit {
        let others = "WHERE substr(\(column.column), 1, \(head.count)) <> ?1 LIMIT \(limit - found)"
        let values = try column.values(session.sql, others, head)
        for value in values {
          let secret = try session.sealing.opened(value.sealed, context: value.context)
          // A value that was replaced meanwhile is already under the key in force.
          try session.sql.change(
            """
            UPDATE \(column.table) SET \(column.column) = ?4
            WHERE hub = ?1 AND CAST(\(column.key) AS TEXT) = ?2 AND \(column.column) = ?3
            """, value.hub, value.key, value.sealed,
            session.sealing.seal(secret, context: value.context, under: key))
        }
        found += values.count
      }
      return found
    }
  }

  package func sealedValues() async throws -> SealedValues {
    try await reading(#function) { try $0.sealedValues() }
  }
}

extension SubjectReading {
  func sealedValues() throws -> SealedValues {
    var found = SealedValues()
    for column in SealedColumn.all {
      for value in try column.values(sql) {
        if let key = try? sealing.key(of: value.sealed, context: value.context) {
          found.counts[key, default: 0] += 1
        } else {
          found.unopened.append(value.context)
        }
      }
    }
    return found
  }

  /// The id of the key in force.
  /// - Parameter locking: The clause that locks the row with the key until the transaction ends.
  func sealingKey(_ locking: String = "") throws -> String {
    let row = try sql.statement("SELECT canary FROM store_state \(locking)")
    guard try row.step() else { throw StoreError.corrupt("store_state is empty") }
    return try Canary.key(row.bytes(0), sealing)
  }
}

extension SubjectWriting {
  /// Seals under the key in force, which stays in force until the transaction ends.
  func seal(_ plaintext: [UInt8], context: String) throws -> [UInt8] {
    try sealing.seal(
      plaintext, context: context, under: sealingKey(sql.dialect.sharingRows))
  }
}
