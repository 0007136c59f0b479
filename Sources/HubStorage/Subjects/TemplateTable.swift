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
  /// The one whose number was asked for last; most apps have one, and comparing is less than hashing.
  private var last: (key: Key, number: Int64)?

  private struct Key: Hashable {
    let hub: Hub.ID
    let template: PushTemplate

    init(_ template: PushTemplate, hub: Hub.ID) {
      self.template = template.withoutTags
      self.hub = hub
    }
  }

  /// Maximum number of remembered templates; apps have few.
  private static let limit = 1_000

  init(connection: any SQLConnection) { self.connection = connection }

  func forget() {
    byNumber = [:]
    numbers = [:]
    last = nil
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
    let key = Key(template, hub: hub)
    if let last, last.key == key { return last.number }
    let number = try numbers[key] ?? find(key) ?? self.insert(key, as: insert())
    if numbers.count >= Self.limit { numbers = [:] }
    numbers[key] = number
    last = (key, number)
    return number
  }

  func hasRow(_ template: PushTemplate, hub: Hub.ID) throws -> Bool {
    let key = Key(template, hub: hub)
    if let last, last.key == key { return true }
    return try numbers[key] ?? find(key) != nil
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

extension PushTemplate {
  /// The part of a template that its row holds.
  var withoutTags: PushTemplate {
    var bare = self
    bare.tags = []
    return bare
  }
}
