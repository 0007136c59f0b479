import HubCore
import NotificationHubs
import SQLDatabase

extension ReadSession {
  /// More than any caller wants at once; a bound for memory.
  private static let pageLimit = 100_000

  func count(_ query: AudienceQuery) throws -> Int {
    guard let audience = try audience(query) else { return 0 }
    return try withBitmaps(of: audience.tags) { audience.count($0) }
  }

  func targets(
    _ query: AudienceQuery, after: RegistrationID, limit: Int
  ) throws -> TargetPage {
    guard limit > 0, after < Int64(UInt32.max), let audience = try audience(query) else {
      return TargetPage()
    }
    let limit = min(limit, Self.pageLimit)
    let first = UInt32(max(0, after + 1))
    var shared: Int64?
    if case .native = query.kind {
      shared = try connection.tagNumber(.sharedHandle(hub: query.hub))
    }
    var tags = audience.tags
    if let shared { tags.insert(shared) }
    var (found, suspects) = try withBitmaps(of: tags) { bitmaps in
      let found = audience.members(from: first, limit: limit + 1, bitmaps)
      guard let holders = shared.flatMap({ bitmaps[$0] }), !holders.isEmpty else {
        return (found, Set<UInt32>())
      }
      return (found, Set(found.filter { holders.contains($0) }))
    }
    let hasMore = found.count > limit
    if hasMore { found.removeLast() }
    var holders = FirstHolders(session: self, audience: audience)
    var page = try page(of: found.map { Int64($0) }, isNative: query.kind != .template) { row in
      guard let bit = UInt32(exactly: row.integer(0)), suspects.contains(bit) else { return false }
      return try holders.first(row) < bit
    }
    if hasMore { page.next = found.last.map { Int64($0) } }
    return page
  }

  /// Reads the rows of registrations in rising order of their numbers; missing ones are left out.
  ///
  /// - Parameters:
  ///   - isNative: Only rows of this kind; `nil` takes both.
  ///   - isDuplicate: Asked for each row, with the columns of ``rowColumns``.
  func page(
    of numbers: [RegistrationID], isNative: Bool?,
    isDuplicate: (borrowing Statement) throws -> Bool = { _ in false }
  ) throws -> TargetPage {
    guard let first = numbers.first, let last = numbers.last else { return TargetPage() }
    var builder = TargetPageBuilder(templates: templates, capacity: numbers.count)
    // Rows close together are read in one go; a row read in vain costs a quarter of a search.
    if last - first < 4 * Int64(numbers.count) {
      let row = try connection.statement(
        "SELECT \(Self.rowColumns) FROM registration WHERE id BETWEEN ?1 AND ?2")
      try row.bind(first, at: 1)
      try row.bind(last, at: 2)
      var index = 0
      while index < numbers.count, try row.step() {
        let number = row.integer(0)
        while index < numbers.count, numbers[index] < number { index += 1 }
        guard index < numbers.count, numbers[index] == number else { continue }
        if let isNative, isNative != row.isNull(3) { continue }
        try builder.append(row, isDuplicate: try isDuplicate(row))
      }
    } else {
      let row = try connection.statement(
        "SELECT \(Self.rowColumns) FROM registration WHERE id = ?1")
      for number in numbers {
        try row.bind(number, at: 1)
        if try row.step(), isNative.map({ $0 == row.isNull(3) }) ?? true {
          try builder.append(row, isDuplicate: try isDuplicate(row))
        }
        row.reset()
      }
    }
    return builder.page
  }

  fileprivate static let rowColumns =
    "id, platform, handle, template, variables, confirmed_at, handle_hash"
}

/// Finds, for handles that several registrations share, the first of them in an audience.
private struct FirstHolders {
  let session: ReadSession
  let audience: Audience
  /// By the stored handle.
  private var known: [String: UInt32] = [:]

  init(session: ReadSession, audience: Audience) {
    self.session = session
    self.audience = audience
  }

  /// - Parameter row: A member of the audience, with the columns of `rowColumns`.
  mutating func first(_ row: borrowing Statement) throws -> UInt32 {
    let handle = row.withBytes(2) { String(decoding: handleIdentity($0), as: UTF8.self) }
    if let first = known[handle] { return first }
    let first = try find(handle, hash: row.integer(6)) ?? UInt32(clamping: row.integer(0))
    known[handle] = first
    return first
  }

  private func find(_ handle: String, hash: Int64) throws -> UInt32? {
    let row = try session.connection.statement(
      """
      SELECT id, handle FROM registration WHERE handle_hash = ?1 AND template IS NULL ORDER BY id
      """)
    try row.bind(hash, at: 1)
    while try row.step() {
      guard row.hasHandle(handle, column: 1), let bit = UInt32(exactly: row.integer(0)) else {
        continue
      }
      if try session.withBitmaps(of: audience.tags, { audience.contains(bit, $0) }) { return bit }
    }
    return nil
  }
}

/// Lays rows out as a ``TargetPage``.
private struct TargetPageBuilder {
  private(set) var page = TargetPage()
  private let templates: TemplateTable
  /// Where a template stands in the page, by its number.
  private var indexes: [Int64: Int32] = [:]
  private var lastTemplate: (number: Int64, index: Int32) = (-1, -1)

  init(templates: TemplateTable, capacity: Int) {
    self.templates = templates
    page.targets.reserveCapacity(capacity)
    page.handles.reserveCapacity(capacity * 64)
  }

  mutating func append(_ row: borrowing Statement, isDuplicate: Bool) throws {
    let start = page.handles.count
    row.withBytes(2) { page.handles.append(contentsOf: $0) }
    var variables: Int32 = -1
    if !row.isNull(4) {
      var reader = ByteReader(row.bytes(4))
      variables = Int32(page.pushVariables.count)
      page.pushVariables.append(try reader.words())
    }
    page.targets.append(
      Target(
        registration: row.integer(0), handle: start..<page.handles.count,
        platform: try PushPlatform(code: row.integer(1)),
        template: row.isNull(3) ? -1 : try index(of: row.integer(3)), variables: variables,
        confirmedAt: row.integer(5), isDuplicate: isDuplicate))
  }

  private mutating func index(of number: Int64) throws -> Int32 {
    if lastTemplate.number == number { return lastTemplate.index }
    let index: Int32
    if let known = indexes[number] {
      index = known
    } else {
      index = Int32(page.templates.count)
      page.templates.append(StoredTemplate(id: number, template: try templates.template(number)))
      indexes[number] = index
    }
    lastTemplate = (number, index)
    return index
  }
}
