package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

/// Checks of a file for diagnosis. They only read, each from one state of the database; the
/// log cannot restart meanwhile.
extension StoreFile {
  /// Whether ``audienceFaults()`` and the other checks can be used: the tables are those of this
  /// build.
  package var isCurrent: Bool { schema == Self.newestSchema }

  /// Number of tags whose members differ from the registrations', and number of all tags.
  ///
  /// For each tag the number of its members and the sum of a hash of each are compared, so that the
  /// memory used does not depend on the number of devices.
  package func audienceFaults() throws -> (wrong: Int, of: Int) {
    try connection.reading {
      var tags = try sumsOfRegistrations()
      for (tag, sum) in try sumsOfParts() { tags[tag, default: MemberSum()].subtract(sum) }
      // Shared handles are not tags of registrations; those of a hub that is being deleted go slice
      // by slice.
      let known = try connection.numbers(
        """
        SELECT id FROM tag WHERE kind <> \(TagKey.Kind.sharedHandle.rawValue)
          AND hub NOT IN (SELECT id FROM deleted_hub)
        """)
      return (known.count { tags[$0].map { !$0.isNothing } ?? false }, known.count)
    }
  }

  /// Number of stored sums that differ from the registrations, by hub and platform.
  package func totalFaults() throws -> Int {
    try connection.numbers(
      """
      SELECT hub FROM (
        SELECT hub, platform, COUNT(*) AS total FROM registration GROUP BY hub, platform
        UNION ALL SELECT hub, platform, -total FROM registration_total)
      WHERE hub IN (SELECT id FROM hub) GROUP BY hub, platform HAVING SUM(total) <> 0
      """
    ).count
  }

  /// Rows that refer to something missing, by kind.
  package func orphans() throws -> [(rows: String, count: Int)] {
    // The rows of a hub that is being deleted go slice by slice.
    let alive = "hub NOT IN (SELECT id FROM deleted_hub)"
    let hub = "hub NOT IN (SELECT id FROM hub) AND \(alive)"
    let notification = "notification NOT IN (SELECT id FROM notification)"
    let searches = [
      ("registrations without a hub", "registration WHERE \(hub)"),
      (
        "registrations without their installation",
        "registration WHERE installation <> 0 AND \(alive) AND NOT EXISTS "
          + "(SELECT 1 FROM installation WHERE installation.id = registration.installation)"
      ),
      (
        "registrations without their template",
        "registration WHERE template IS NOT NULL AND \(alive) AND NOT EXISTS "
          + "(SELECT 1 FROM template WHERE template.id = registration.template)"
      ),
      ("installations without a hub", "installation WHERE \(hub)"),
      ("notifications without a hub", "notification WHERE \(hub)"),
      ("tags without a hub", "tag WHERE \(hub)"),
      ("policies without a hub", "access_policy WHERE hub <> 0 AND \(hub)"),
      ("credentials without a hub", "push_credential WHERE \(hub)"),
      ("retries without their notification", "retry WHERE \(notification)"),
      ("counts without their notification", "notification_count WHERE \(notification)"),
      ("outcomes without their notification", "notification_failure WHERE \(notification)"),
      ("targets without their notification", "notification_target WHERE \(notification)"),
    ]
    return try searches.compactMap { rows, source in
      let count = try connection.numbers("SELECT COUNT(*) FROM " + source).first ?? 0
      return count > 0 ? (rows, Int(count)) : nil
    }
  }

  /// Opens all sealed values.
  package func sealedValues(_ sealing: any SecretSealing) throws -> SealedValues {
    try FileReading(sql: connection, sealing: sealing).sealedValues()
  }

  /// The credentials of all hubs, with their hubs' names.
  /// - Throws: ``StoreError/sealedSecret`` when one does not open.
  package func credentials(
    _ sealing: any SecretSealing
  ) throws -> [(hub: String, credential: PushCredential)] {
    let reading = FileReading(sql: connection, sealing: sealing)
    return try connection.rows("SELECT id, name FROM hub ORDER BY id") {
      ($0.integer(0), $0.text(1))
    }.flatMap { id, name in try reading.credentials(hub: id).map { (name, $0) } }
  }

  /// The time when the newest commit was acknowledged, as far as the mark beside the file tells.
  package var lastCommit: Date? { mark.map { Date(milliseconds: $0.at) } }

  /// Acknowledged commits that are missing from the file; usually `nil`.
  package func discardedCommits() throws -> DiscardedCommits? {
    // The mark is read first: it never runs ahead of the file.
    guard let mark else { return nil }
    return DiscardedCommits(mark, found: try StoreState.read(from: connection).commitNumber)
  }

  private var mark: CommitMark? { CommitMarkFile(database: path, isReadOnly: true).read() }

  // MARK: Sums

  /// A set of registration numbers, as its count and a sum that is unlikely to match another set's.
  private struct MemberSum {
    private var count = 0
    private var sum: UInt64 = 0

    var isNothing: Bool { count == 0 && sum == 0 }

    mutating func add(_ registration: Int64) {
      var hash = StableHash()
      hash.combine(registration)
      count += 1
      sum &+= UInt64(bitPattern: hash.value)
    }

    mutating func add(_ part: TagPart, _ number: UInt32) {
      for member in part.members(of: number) { add(Int64(member)) }
    }

    mutating func subtract(_ other: MemberSum) {
      count -= other.count
      sum &-= other.sum
    }
  }

  private func sumsOfRegistrations() throws -> [Int64: MemberSum] {
    var sums: [Int64: MemberSum] = [:]
    var names: [TagKey: Int64?] = [:]
    let row = try connection.statement(
      """
      SELECT id, tags, hub, platform, COALESCE(name, ''), template IS NULL FROM registration
      """)
    while try row.step() {
      let number = row.integer(0)
      var reader = ByteReader(row.bytes(1))
      for _ in 0..<(try reader.count()) {
        sums[try reader.signedNumber(), default: MemberSum()].add(number)
      }
      // Matches ``TagWriter/nameTag(_:platform:hub:)``.
      guard row.integer(5) == 0, let platform = try? PushPlatform(code: row.integer(3)) else {
        continue
      }
      let key = TagKey.named(
        TemplateKey(platform: platform, name: row.text(4)), hub: row.integer(2))
      let tag = try names[key] ?? connection.tagNumber(key)
      names[key] = .some(tag)
      if let tag { sums[tag, default: MemberSum()].add(number) }
    }
    return sums
  }

  private func sumsOfParts() throws -> [Int64: MemberSum] {
    var sums: [Int64: MemberSum] = [:]
    var log: [Int64: [UInt32: [TagChange]]] = [:]
    for part in try TagLog.read(from: connection).parts {
      log[part.tag, default: [:]][part.number] = part.changes
    }
    let row = try connection.statement("SELECT tag, part, members FROM tag_part")
    while try row.step() {
      guard let number = UInt32(exactly: row.integer(1)) else {
        throw StoreError.corrupt("the members of a tag cannot be read")
      }
      var part = try TagPart(row.bytes(2))
      for change in log[row.integer(0)]?.removeValue(forKey: number) ?? [] { part.apply(change) }
      sums[row.integer(0), default: MemberSum()].add(part, number)
    }
    for (tag, parts) in log {
      for (number, changes) in parts {
        var part = TagPart()
        for change in changes { part.apply(change) }
        sums[tag, default: MemberSum()].add(part, number)
      }
    }
    return sums
  }
}

/// A file as subjects read it.
private final class FileReading: SubjectReading {
  let sql: any SQLConnection
  let sealing: any SecretSealing

  init(sql: any SQLConnection, sealing: any SecretSealing) {
    self.sql = sql
    self.sealing = sealing
  }

  func hasHub(_ hub: Hub.ID) throws -> Bool {
    try !sql.numbers("SELECT 1 FROM hub WHERE id = ?1", hub).isEmpty
  }
}
