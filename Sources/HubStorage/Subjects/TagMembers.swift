import HubCore
import SQLDatabase

/// The changes of tag members that are not in `tag_part` yet: rows of `tag_log`, one for each
/// transaction, in order.
///
/// Members of a tag are far apart in the file, and written one by one, each would rewrite a page.
/// So they gather in the log until a part can take many at a time.
struct TagLog {
  /// Changes by tag and part, in the order of their arrival.
  private(set) var changes: [Int64: [UInt32: [TagChange]]] = [:]
  private(set) var count = 0
  /// Number of tag parts that the pending changes touch.
  private var parts = 0

  var isEmpty: Bool { count == 0 }

  /// Whether it is time to merge the changes into the parts. Each part takes 5 µs, with many
  /// scattered members up to 80 µs.
  /// - Parameter limit: The maximum number of changes, and sixteen times that of parts.
  func isDue(limit: Int) -> Bool { count >= limit || parts >= max(limit / 16, 1) }

  mutating func append(_ change: TagChange) {
    let part = change.registration >> 16
    if changes[change.tag]?[part] == nil { parts += 1 }
    changes[change.tag, default: [:]][part, default: []].append(change)
    count += 1
  }

  static func read(from connection: any SQLConnection) throws -> TagLog {
    var log = TagLog()
    let row = try connection.statement("SELECT changes FROM tag_log ORDER BY id")
    while try row.step() { try decode(row.bytes(0)) { log.append($0) } }
    return log
  }

  /// Encodes the changes of a transaction for a row, the last one for each tag and registration.
  static func encode(_ changes: some Sequence<TagChange>) -> [UInt8] {
    var sorted = changes.enumerated().map { (order: $0, change: $1) }
    sorted.sort {
      ($0.change.tag, $0.change.registration, $0.order)
        < ($1.change.tag, $1.change.registration, $1.order)
    }
    var writer = ByteWriter()
    var index = 0
    while index < sorted.count {
      let tag = sorted[index].change.tag
      var group: [TagChange] = []
      while index < sorted.count, case let change = sorted[index].change, change.tag == tag {
        if group.last?.registration == change.registration { group.removeLast() }
        group.append(change)
        index += 1
      }
      writer.write(tag)
      writer.write(UInt64(group.count))
      var last: UInt64 = 0
      for change in group {
        writer.write((UInt64(change.registration) - last) << 1 | (change.isMember ? 1 : 0))
        last = UInt64(change.registration)
      }
    }
    return writer.bytes
  }

  static func decode(_ bytes: [UInt8], _ body: (TagChange) -> Void) throws(StoreError) {
    var reader = ByteReader(bytes)
    while !reader.isAtEnd {
      let tag = try reader.signedNumber()
      var registration: UInt64 = 0
      for _ in 0..<(try reader.count()) {
        let step = try reader.number()
        registration += step >> 1
        guard let number = UInt32(exactly: registration) else {
          throw StoreError.corrupt("the changes of a tag cannot be read")
        }
        body(TagChange(tag: tag, registration: number, isMember: step & 1 == 1))
      }
    }
  }
}

/// Changes that are being merged from the log into the parts, some with each transaction, so that
/// no write waits for all of them. Applying a change twice is harmless: the rows of the log are
/// kept until the last is applied.
struct TagMerge {
  let log: TagLog
  /// The remaining parts, the next one last; in the order of the table, so that neighbours share
  /// pages.
  var rest: [(tag: Int64, part: UInt32)]
  /// The last row of the log that contains any of them.
  let row: Int64

  init(_ log: TagLog, row: Int64) {
    self.log = log
    self.row = row
    rest = log.changes.flatMap { tag, parts in parts.keys.map { (tag, $0) } }
    rest.sort { ($0.tag, $0.part) > ($1.tag, $1.part) }
  }
}

/// The members of tags in the file: parts of 65 536 numbers, and the log of changes that are not in
/// them yet.
struct TagMemberWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// Writes the changes of the transaction that are not written yet.
  func writeTags() throws {
    guard session.writtenChanges < session.changes.count else { return }
    _ = try tagLog()
    let new = session.changes[session.writtenChanges...]
    for change in new {
      session.knownLog?.append(change)
      if !change.isMember { session.leftTags.insert(change.tag) }
    }
    session.writtenChanges = session.changes.count
    let row = try connection.statement("INSERT INTO tag_log (changes) VALUES (?1)")
    try row.bind(TagLog.encode(new), at: 1)
    try row.run()
  }

  /// Merges some changes into the parts when enough have gathered.
  func mergeTagsIfDue() throws {
    if session.tagMerge == nil, try tagLog().isDue(limit: session.tagLogLimit) {
      try beginTagMerge()
    }
    // A little faster than new changes arrive, so that the work is spread evenly.
    try mergeTags(session.changes.count + session.changes.count / 4 + 64)
  }

  /// Merges all changes if the log has any of the tag.
  func mergeTags(of tag: Int64) throws {
    guard try tagLog().changes[tag] != nil || session.tagMerge?.log.changes[tag] != nil else {
      return
    }
    try mergeTags(.max)
    try beginTagMerge()
    try mergeTags(.max)
  }

  private func beginTagMerge() throws {
    let log = try tagLog()
    guard !log.isEmpty else { return }
    session.tagMerge = TagMerge(log, row: try first("SELECT MAX(id) FROM tag_log") ?? 0)
    session.knownLog = TagLog()
  }

  /// - Parameter limit: The maximum number of parts.
  private func mergeTags(_ limit: Int) throws {
    for _ in 0..<limit {
      guard let (tag, number) = session.tagMerge?.rest.popLast() else { break }
      var part = try part(number, of: tag) ?? TagPart()
      for change in session.tagMerge?.log.changes[tag]?[number] ?? [] { part.apply(change) }
      try write(part, number, of: tag)
    }
    guard let merge = session.tagMerge, merge.rest.isEmpty else { return }
    try execute("DELETE FROM tag_log WHERE id <= ?1", merge.row)
    session.tagMerge = nil
  }

  /// Whether any registration has a tag.
  func isUsed(_ tag: Int64) throws -> Bool {
    let gone = Bitmap()
    // The last change of a registration counts, and one that has the tag is enough.
    for log in [try tagLog(), session.tagMerge?.log] {
      for changes in (log?.changes[tag] ?? [:]).values {
        for change in changes.reversed() where !gone.contains(change.registration) {
          if change.isMember { return true }
          gone.insert(change.registration)
        }
      }
    }
    var left = gone.count
    do {
      let row = try connection.statement("SELECT total FROM tag_part WHERE tag = ?1")
      try row.bind(tag, at: 1)
      var hasParts = false
      while try row.step() {
        hasParts = true
        left -= Int(row.integer(0))
        // More members than were removed since.
        if left < 0 { return true }
      }
      guard hasParts else { return false }
    }
    return try !connection.tagMembers(of: tag).subtracting(gone).isEmpty
  }

  /// Removes and returns the first members of a tag that has no changes in the log, at most
  /// `limit`.
  func takeMembers(of tag: Int64, limit: Int) throws -> [UInt32] {
    let number: UInt32
    do {
      let row = try connection.statement(
        "SELECT part FROM tag_part WHERE tag = ?1 ORDER BY part LIMIT 1")
      try row.bind(tag, at: 1)
      guard try row.step() else { return [] }
      number = UInt32(truncatingIfNeeded: row.integer(0))
    }
    guard var part = try part(number, of: tag) else { return [] }
    let taken = Array(part.members(of: number).prefix(limit))
    for member in taken { part.remove(UInt16(truncatingIfNeeded: member)) }
    try write(part, number, of: tag)
    return taken
  }

  private func tagLog() throws -> TagLog {
    if let known = session.knownLog { return known }
    let log = try TagLog.read(from: connection)
    session.knownLog = log
    return log
  }

  private func part(_ number: UInt32, of tag: Int64) throws -> TagPart? {
    let row = try connection.statement(
      "SELECT members FROM tag_part WHERE tag = ?1 AND part = ?2")
    try row.bind(tag, at: 1)
    try row.bind(Int64(number), at: 2)
    return try row.step() ? TagPart(row.bytes(0)) : nil
  }

  private func write(_ part: TagPart, _ number: UInt32, of tag: Int64) throws {
    guard let bytes = part.bytes else {
      let row = try connection.statement("DELETE FROM tag_part WHERE tag = ?1 AND part = ?2")
      try row.bind(tag, at: 1)
      try row.bind(Int64(number), at: 2)
      return try row.run()
    }
    try connection.insert(bytes, total: part.count, part: number, of: tag)
  }
}

extension SQLConnection {
  /// Writes a row of `tag_part`.
  func insert(_ members: [UInt8], total: Int, part: UInt32, of tag: Int64) throws {
    let row = try statement(
      """
      INSERT INTO tag_part (tag, part, total, members) VALUES (?1, ?2, ?3, ?4)
      ON CONFLICT (tag, part) DO UPDATE SET total = excluded.total, members = excluded.members
      """)
    try row.run(tag, Int64(part), Int64(total), members)
  }

  /// The members of a tag without the changes in the log.
  func tagMembers(of tag: Int64) throws -> Bitmap {
    let row = try statement("SELECT part, members FROM tag_part WHERE tag = ?1")
    try row.bind(tag, at: 1)
    let members = Bitmap()
    while try row.step() {
      members.insert(try TagPart.members(in: row.bytes(1), of: row.integer(0)))
    }
    return members
  }
}
