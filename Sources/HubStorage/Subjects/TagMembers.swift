import HubCore
import SQLDatabase

/// The changes of tag members that are not in `tag_part` yet: rows of `tag_log`, one for each
/// transaction, in order.
///
/// Members of a tag are far apart in the file, and written one by one, each would rewrite a page.
/// So they gather in the log until a part can take many at a time.
struct TagLog {
  /// The changes of a part of a tag.
  struct Part {
    let tag: Int64
    let number: UInt32
    /// In the order of their arrival.
    fileprivate(set) var changes: [TagChange]
    /// The place of another part of the tag; 0 when there is none.
    fileprivate let other: Int64
  }

  private(set) var parts: [Part] = []
  private(set) var count = 0
  /// Places in ``parts``, counted from 1, by tag and part.
  private var places = NumberTable()
  /// The place of a part of each tag.
  private var tags = NumberTable()

  var isEmpty: Bool { count == 0 }

  /// Whether it is time to merge the changes into the parts. Each part takes 5 µs, with many
  /// scattered members up to 80 µs.
  /// - Parameter limit: The maximum number of changes, and sixteen times that of parts.
  func isDue(limit: Int) -> Bool { count >= limit || parts.count >= max(limit / 16, 1) }

  mutating func append(_ change: TagChange) {
    count += 1
    let number = change.registration >> 16
    let key = Self.key(change.tag, number)
    if let place = places[key] {
      parts[Int(place) - 1].changes.append(change)
      return
    }
    parts.append(
      Part(tag: change.tag, number: number, changes: [change], other: tags[change.tag] ?? 0))
    places.set(key, to: Int64(parts.count))
    tags.set(change.tag, to: Int64(parts.count))
  }

  /// Tags have smaller numbers than this, so that a part fits into a number with its tag.
  private static let tagEnd: Int64 = 1 << 47

  private static func key(_ tag: Int64, _ part: UInt32) -> Int64 { tag << 16 | Int64(part) }

  func hasChanges(of tag: Int64) -> Bool { tags[tag] != nil }

  func changes(of tag: Int64, part: UInt32) -> [TagChange] {
    places[Self.key(tag, part)].map { parts[Int($0) - 1].changes } ?? []
  }

  func parts(of tag: Int64) -> [Part] {
    var found: [Part] = []
    var place = tags[tag] ?? 0
    while place != 0 {
      found.append(parts[Int(place) - 1])
      place = parts[Int(place) - 1].other
    }
    return found
  }

  static func read(from connection: any SQLConnection) throws -> TagLog {
    var log = TagLog()
    let row = try connection.statement("SELECT changes FROM tag_log ORDER BY id")
    while try row.step() { try decode(row.bytes(0)) { log.append($0) } }
    return log
  }

  /// Encodes the changes of a transaction for a row, the last one for each tag and registration.
  static func encode(_ changes: some Sequence<TagChange>) -> [UInt8] {
    // Sorting keeps the order of equal ones, so that the last is the last one still.
    var sorted = changes.sorted { ($0.tag, $0.registration) < ($1.tag, $1.registration) }
    var count = 0
    for change in sorted {
      let isRepeated =
        count > 0 && sorted[count - 1].tag == change.tag
        && sorted[count - 1].registration == change.registration
      if !isRepeated { count += 1 }
      sorted[count - 1] = change
    }
    var writer = ByteWriter(capacity: 4 * count)
    var start = 0
    while start < count {
      let tag = sorted[start].tag
      let end = sorted[start..<count].firstIndex { $0.tag != tag } ?? count
      writer.write(tag)
      writer.write(UInt64(end - start))
      var last: UInt64 = 0
      for change in sorted[start..<end] {
        writer.write((UInt64(change.registration) - last) << 1 | (change.isMember ? 1 : 0))
        last = UInt64(change.registration)
      }
      start = end
    }
    return writer.bytes
  }

  static func decode(_ bytes: [UInt8], _ body: (TagChange) -> Void) throws(StoreError) {
    var reader = ByteReader(bytes)
    while !reader.isAtEnd {
      let tag = try reader.signedNumber()
      guard 0..<tagEnd ~= tag else {
        throw StoreError.corrupt("the changes of a tag cannot be read")
      }
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
  /// Number of parts that are merged with each transaction, beside one for each new change.
  let pace: Int

  /// - Parameter isAgain: Whether the merge was probably interrupted. It must end before it is once
  ///   more.
  init(_ log: TagLog, row: Int64, isAgain: Bool) {
    self.log = log
    self.row = row
    pace = isAgain ? max(64, log.parts.count / 64) : 64
    rest = log.parts.map { ($0.tag, $0.number) }
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
    var log = try tagLog()
    // The only reference, so that it is changed in place.
    session.knownLog = nil
    let new = session.changes[session.writtenChanges...]
    for change in new {
      log.append(change)
      if !change.isMember { session.leftTags.insert(change.tag) }
    }
    session.knownLog = log
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
    guard let merge = session.tagMerge else { return }
    try mergeTags(session.changes.count + session.changes.count / 4 + merge.pace)
  }

  /// Merges all changes if the log has any of the tag.
  func mergeTags(of tag: Int64) throws {
    guard try tagLog().hasChanges(of: tag) || session.tagMerge?.log.hasChanges(of: tag) == true
    else { return }
    try mergeTags(.max)
    try beginTagMerge()
    try mergeTags(.max)
  }

  private func beginTagMerge() throws {
    let log = try tagLog()
    guard !log.isEmpty else { return }
    session.tagMerge = TagMerge(
      log, row: try first("SELECT MAX(id) FROM tag_log") ?? 0,
      isAgain: session.hasInterruptedTagMerge)
    session.hasInterruptedTagMerge = false
    session.knownLog = TagLog()
  }

  /// - Parameter limit: The maximum number of parts.
  private func mergeTags(_ limit: Int) throws {
    for _ in 0..<limit {
      guard let (tag, number) = session.tagMerge?.rest.popLast() else { break }
      var part = try part(number, of: tag) ?? TagPart()
      for change in session.tagMerge?.log.changes(of: tag, part: number) ?? [] {
        part.apply(change)
      }
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
      for part in log?.parts(of: tag) ?? [] {
        for change in part.changes.reversed() where !gone.contains(change.registration) {
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
    session.hasInterruptedTagMerge = log.isDue(limit: session.tagLogLimit)
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
