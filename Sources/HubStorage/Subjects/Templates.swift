import HubCore
import NotificationHubs
import SQLDatabase

/// Templates by number and numbers by template, for one connection and its thread.
///
/// Rows never change and numbers are never used twice, so cached values stay valid.
final class TemplateTable {
  private let connection: any SQLConnection
  private var byNumber: [Int64: PushTemplate] = [:]
  private var numbers: [Key: Int64] = [:]

  private struct Key: Hashable {
    let hub: Hub.ID
    /// Without its tags.
    let template: PushTemplate
  }

  /// Maximum number of remembered templates; apps have few.
  private static let limit = 1_000

  init(connection: any SQLConnection) { self.connection = connection }

  func forget() {
    byNumber = [:]
    numbers = [:]
  }

  /// The template with a number, without tags.
  func template(_ number: Int64) throws -> PushTemplate {
    if let known = byNumber[number] { return known }
    let row = try connection.statement("SELECT body, headers, expiry FROM template WHERE id = ?1")
    try row.bind(number, at: 1)
    guard try row.step() else { throw StoreError.corrupt("template \(number) is missing") }
    var headers = ByteReader(row.bytes(1))
    let template = PushTemplate(
      body: row.text(0), headers: try headers.words(), expiry: row.optionalText(2))
    if byNumber.count >= Self.limit { byNumber = [:] }
    byNumber[number] = template
    return template
  }

  /// The number of a template that has a row.
  ///
  /// - Parameter insert: Inserts a new row with the number that it is given.
  func number(
    of template: PushTemplate, hub: Hub.ID, insert: () throws -> Int64
  ) throws -> Int64 {
    var bare = template
    bare.tags = []
    let key = Key(hub: hub, template: bare)
    if let known = numbers[key] { return known }
    let number = try find(key) ?? self.insert(key, as: insert())
    if numbers.count >= Self.limit { numbers = [:] }
    numbers[key] = number
    return number
  }

  private func find(_ key: Key) throws -> Int64? {
    var candidates: [Int64] = []
    do {
      let row = try connection.statement(
        "SELECT id FROM template WHERE hub = ?1 AND hash = ?2 ORDER BY id")
      try row.bind(key.hub, at: 1)
      try row.bind(Self.hash(key.template), at: 2)
      while try row.step() { candidates.append(row.integer(0)) }
    }
    return try candidates.first { try template($0) == key.template }
  }

  private func insert(_ key: Key, as number: Int64) throws -> Int64 {
    var headers = ByteWriter()
    headers.write(key.template.headers)
    try connection.change(
      """
      INSERT INTO template (id, hub, hash, body, headers, expiry)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6)
      """, number, key.hub, Self.hash(key.template), key.template.body, headers.bytes,
      key.template.expiry)
    return number
  }

  private static func hash(_ template: PushTemplate) -> Int64 {
    var writer = ByteWriter()
    writer.write(template.body)
    writer.write(template.headers)
    writer.write(template.expiry)
    var hash = StableHash()
    hash.combine(writer.bytes)
    return hash.value
  }
}

/// Maximum number of different tags and templates of a hub.
struct VocabularyLimits: Hashable, Sendable {
  let tags: Int
  let templates: Int
}

/// Names of tags and texts of templates are deleted with the last device that has them, because
/// they may reveal who somebody was.
extension WriteSession {
  /// Maximum number of installations apart from their registrations that are read for one template;
  /// with more, the template is kept until a sweep or an erasure checks it.
  private static let apartLimit = 100
  /// Maximum number of rows that a sweep checks in one transaction.
  private static let sweepLimit = 1_000

  /// Deletes tags and templates that the transaction has left unused.
  ///
  /// - Parameter isExact: Reads every document that may still name a template.
  /// - Returns: Number of deleted tags and templates.
  @discardableResult
  func clearUnused(isExact: Bool = false) throws -> (tags: Int, templates: Int) {
    try writeTags()
    var cleared = (tags: 0, templates: 0)
    for tag in leftTags where try clearTag(tag) == .plain { cleared.tags += 1 }
    for template in leftTemplates
    where try clearTemplate(template, limit: isExact ? .max : Self.apartLimit) {
      cleared.templates += 1
    }
    leftTags = []
    leftTemplates = []
    return cleared
  }

  /// Checks the next tags and templates of all hubs.
  /// - Returns: The position at which to continue; `nil` at the end.
  func sweepUnused(after place: SweepPlace) throws -> SweepPlace? {
    // A tag from another unit of work in this transaction has no row there yet.
    try writeTags()
    let numbers = try connection.numbers(
      "SELECT id FROM \(place.table) WHERE id > ?1 ORDER BY id LIMIT \(Self.sweepLimit)",
      place.number)
    for number in numbers {
      switch place {
      case .tags: _ = try clearTag(number)
      case .templates: _ = try clearTemplate(number, limit: Self.apartLimit)
      }
    }
    guard let last = numbers.last else { return place.next }
    return place.moved(to: last)
  }

  /// - Returns: The kind of the deleted tag; `nil` when it is kept.
  private func clearTag(_ number: Int64) throws -> TagKey.Kind? {
    guard try !isUsed(number) else { return nil }
    let key: TagKey
    do {
      let row = try connection.statement("SELECT hub, kind, name FROM tag WHERE id = ?1")
      try row.bind(number, at: 1)
      // Tags of other kinds occur once in a hub, and reveal nothing about anybody.
      guard try row.step(), let kind = TagKey.Kind(rawValue: row.integer(1)),
        kind == .plain || kind == .namedTemplate
      else { return nil }
      key = TagKey(hub: row.integer(0), kind: kind, name: row.text(2))
    }
    try execute("DELETE FROM tag WHERE id = ?1", number)
    forgetTag(key)
    return key.kind
  }

  private func clearTemplate(_ number: Int64, limit: Int) throws -> Bool {
    let hub: Hub.ID
    do {
      let row = try connection.statement(
        """
        SELECT hub FROM template WHERE id = ?1
          AND NOT EXISTS (SELECT 1 FROM registration WHERE template = ?1)
          AND NOT EXISTS (SELECT 1 FROM removed_registration WHERE template = ?1)
        """)
      try row.bind(number, at: 1)
      guard try row.step() else { return false }
      hub = row.integer(0)
    }
    // The document of an installation keeps templates whose registrations were deleted.
    let row = try connection.statement(
      "SELECT document FROM installation WHERE hub = ?1 AND fingerprint = 0")
    try row.bind(hub, at: 1)
    var looked = 0
    while try row.step() {
      looked += 1
      guard looked <= limit else { return false }
      var isNamed = false
      do {
        _ = try InstallationDocument.decode(row.bytes(0), id: "") { used in
          if used == number { isNamed = true }
          return PushTemplate(body: "")
        }
      } catch {
        // A damaged document may name it, and must not keep others from being written.
        return false
      }
      if isNamed { return false }
    }
    row.reset()
    try execute("DELETE FROM template WHERE id = ?1", number)
    forgetTemplate(of: hub)
    return true
  }
}

/// The progress of a sweep for unused tags and templates.
enum SweepPlace: Hashable, Sendable {
  case tags(after: Int64)
  case templates(after: Int64)

  fileprivate var table: String {
    switch self {
    case .tags: "tag"
    case .templates: "template"
    }
  }

  fileprivate var number: Int64 {
    switch self {
    case .tags(let number), .templates(let number): number
    }
  }

  fileprivate var next: SweepPlace? {
    switch self {
    case .tags: .templates(after: 0)
    case .templates: nil
    }
  }

  fileprivate func moved(to number: Int64) -> SweepPlace {
    switch self {
    case .tags: .tags(after: number)
    case .templates: .templates(after: number)
    }
  }
}
