import HubCore
import NotificationHubs
import SQLDatabase

/// Pages of an audience's targets.
struct TargetReader: ReadingSubject {
  let session: ReadSession
  /// Taken before the rows are read: times that are written meanwhile are in one of them.
  private let times: [Confirmations.Times]

  init(_ session: ReadSession) {
    self.session = session
    times = session.confirmations.times
  }

  /// A limit on memory, larger than any caller's page.
  private static let pageLimit = 100_000
  /// Maximum number of pages without a target that one call skips.
  private static let emptyPageLimit = 50

  func count(_ query: AudienceQuery) throws -> Int {
    guard let audience = try AudienceReader(session).audience(query, withExpired: true) else {
      return 0
    }
    return try AudienceReader(session).withBitmaps(of: audience.tags) { audience.count($0) }
  }

  func targets(
    _ query: AudienceQuery, after: RegistrationID, limit: Int
  ) throws -> TargetPage {
    guard limit > 0, after < Int64(UInt32.max),
      let audience = try AudienceReader(session).audience(query, withExpired: false)
    else { return TargetPage() }
    let limit = min(limit, Self.pageLimit)
    var page = try nextPage(query, audience, after: after, limit: limit)
    // Skips runs of expired registrations that have not been cleared yet.
    for _ in 0..<Self.emptyPageLimit where page.targets.isEmpty {
      guard let next = page.next else { break }
      page = try nextPage(query, audience, after: next, limit: limit)
    }
    return page
  }

  private func nextPage(
    _ query: AudienceQuery, _ audience: Audience, after: RegistrationID, limit: Int
  ) throws -> TargetPage {
    let first = UInt32(max(0, after + 1))
    var (found, suspects) = try members(of: audience, from: first, limit: limit + 1)
    let hasMore = found.count > limit
    if hasMore { found.removeLast() }
    let isNative = query.kind != .template
    var page = try connection.reading {
      try self.page(
        of: found.map { Int64($0) }, isNative: isNative, asOf: query.asOf.milliseconds)
    }
    if hasMore { page.next = found.last.map { Int64($0) } }
    if !suspects.isEmpty {
      try markDuplicates(
        in: &page, suspects: suspects, audience: audience, query: query, after: after)
    }
    return page
  }

  func sample(_ query: AudienceQuery, limit: Int) throws -> TargetPage {
    guard limit > 0, let audience = try AudienceReader(session).audience(query, withExpired: true)
    else {
      return TargetPage()
    }
    let limit = min(limit, Self.pageLimit)
    let drawn = try AudienceReader(session).withBitmaps(of: audience.tags) {
      audience.sample(limit, $0)
    }
    return try connection.reading {
      try page(of: drawn.map { Int64($0) }, isNative: query.kind != .template)
    }
  }

  /// - Returns: The next members, and those of them whose handle another registration has too.
  private func members(
    of audience: Audience, from first: UInt32, limit: Int
  ) throws -> (found: [UInt32], suspects: Set<UInt32>) {
    var tags = audience.tags
    if let shared = audience.sharedHandles { tags.insert(shared) }
    return try AudienceReader(session).withBitmaps(of: tags) {
      bitmaps -> (found: [UInt32], suspects: Set<UInt32>) in
      let found = audience.members(from: first, limit: limit, bitmaps)
      guard let holders = audience.sharedHandles.flatMap({ bitmaps[$0] }), !holders.isEmpty else {
        return (found, [])
      }
      return (found, Set(found.filter { holders.contains($0) }))
    }
  }

  /// Reads the rows of registrations in rising order of their numbers; missing ones are left out.
  ///
  /// - Parameters:
  ///   - isNative: Restricts the rows to this kind; `nil` takes both.
  ///   - now: Excludes rows that have expired then, in milliseconds since 1970; `nil` takes all.
  func page(
    of numbers: [RegistrationID], isNative: Bool?, asOf now: Int64? = nil
  ) throws -> TargetPage {
    guard let first = numbers.first, let last = numbers.last else { return TargetPage() }
    // Read before the rows: a row that is written meanwhile has a higher revision in any case.
    let revision = StoreVersion(rawValue: try StoreState.read(from: connection).commitNumber)
    var builder = TargetPageBuilder(
      templates: templates, times: times, capacity: numbers.count,
      revision: revision)
    // Rows close together are read by range; reading a row in vain costs a quarter of a search.
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
        if row.isWanted(isNative: isNative, asOf: now) { try builder.append(row) }
      }
    } else {
      let row = try connection.statement(
        "SELECT \(Self.rowColumns) FROM registration WHERE id = ?1")
      for number in numbers {
        try row.bind(number, at: 1)
        if try row.step(), row.isWanted(isNative: isNative, asOf: now) { try builder.append(row) }
        row.reset()
      }
    }
    return builder.page
  }

  fileprivate static let rowColumns =
    "id, platform, handle, template, variables, confirmed_at, expires_at, environment, installation"
}

extension Statement {
  /// Whether a row belongs to a page; see ``page(of:isNative:asOf:)``.
  fileprivate borrowing func isWanted(isNative: Bool?, asOf now: Int64?) -> Bool {
    if let isNative, isNative != isNull(3) { return false }
    guard let now, !isNull(6) else { return true }
    return integer(6) > now
  }
}

/// Builds a ``TargetPage`` from rows.
private struct TargetPageBuilder {
  private(set) var page = TargetPage()
  private let templates: TemplateTable
  /// Times of confirmation that are later than those in the rows.
  private let times: [Confirmations.Times]
  /// The index of a template in the page, by its number.
  private var indexes: [Int64: Int32] = [:]
  private var lastTemplate: (number: Int64, index: Int32) = (-1, -1)

  init(
    templates: TemplateTable, times: [Confirmations.Times], capacity: Int, revision: StoreVersion
  ) {
    self.templates = templates
    self.times = times
    page.revision = revision
    page.targets.reserveCapacity(capacity)
    page.handles.reserveCapacity(capacity * 64)
  }

  /// Appends a row. A malformed row costs its own target only; errors of the file are thrown.
  mutating func append(_ row: borrowing Statement) throws {
    do {
      try appendTarget(row)
    } catch StoreError.corrupt(let reason) {
      page.unreadable.append(
        UnreadableTarget(
          registration: row.integer(0), platform: try? PushPlatform(code: row.integer(1)),
          reason: reason))
    }
  }

  private mutating func appendTarget(_ row: borrowing Statement) throws {
    let platform = try PushPlatform(code: row.integer(1))
    let template = row.isNull(3) ? -1 : try index(of: row.integer(3))
    var variables: Int32 = -1
    if !row.isNull(4) {
      var reader = ByteReader(row.bytes(4))
      variables = Int32(page.pushVariables.count)
      page.pushVariables.append(try reader.words())
    }
    let start = page.handles.count
    row.withBytes(2) { page.handles.append(contentsOf: $0) }
    page.targets.append(
      Target(
        registration: row.integer(0), handle: start..<page.handles.count, platform: platform,
        template: template, variables: variables,
        confirmedAt: times.time(of: row.integer(8), written: row.integer(5)),
        isDuplicate: false,
        environment: PushEnvironment(stored: row.integer(7))))
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

/// The registrations of an audience that are one installation of FCM: the one written last is sent
/// to, the others are `Skipped`. Only those count that nothing has written since the notification
/// was accepted, so that every page finds the same.
struct FCMInstallation {
  /// Number and handle, those written later first.
  let members: [(registration: RegistrationID, handle: String)]

  /// Marks a target of a page that is of this installation.
  func mark(_ index: Int, in page: inout TargetPage) {
    let registration = page.targets[index].registration
    guard let first = members.first else { return }
    guard first.registration == registration else {
      // One that was written meanwhile is passed over only when the device was sent to already.
      page.targets[index].isDuplicate =
        first.registration < registration
        || members.contains { $0.registration == registration }
      return
    }
    // The oldest are nearest to the end: those are kept where there are many.
    let others = members.dropFirst().filter { $0.handle != first.handle }
    guard !others.isEmpty else { return }
    page.twins[registration] = others.suffix(TargetPage.twinLimit).map { other in
      let start = page.handles.count
      page.handles += Array(other.handle.utf8)
      return HandleTwin(registration: other.registration, handle: start..<page.handles.count)
    }
  }
}

extension TargetReader {
  /// Finds the targets of a page whose handle a smaller number of the same audience was sent to, or
  /// whose ``FCMInstallation`` is sent to through another.
  ///
  /// One of an earlier page counts only when nothing has written it since the notification was
  /// accepted: then it was in the audience, with this handle, when its page was read. One that took
  /// the handle over meanwhile, or came into the audience, may have been passed over: its device
  /// gets the push through the target here, at the worst a second time.
  ///
  /// - Parameters:
  ///   - suspects: The members of the page whose handle any other registration has.
  ///   - after: The number at which the page began; smaller numbers were in earlier ones.
  func markDuplicates(
    in page: inout TargetPage, suspects: Set<UInt32>, audience: Audience, query: AudienceQuery,
    after: RegistrationID
  ) throws {
    let version = try query.notification.map { try audienceCommit(of: $0, hub: query.hub) }
    /// Handles that somebody has who was sent to.
    var sent: Set<String> = []
    var installations: [String: FCMInstallation] = [:]
    for index in page.targets.indices {
      let target = page.targets[index]
      guard let bit = UInt32(exactly: target.registration), suspects.contains(bit) else { continue }
      let handle = page.handles[target.handle].withUnsafeBytes {
        String(decoding: handleIdentity($0), as: UTF8.self)
      }
      let isInstallation =
        target.platform == .fcmv1 && handle.utf8.firebaseInstallationID != nil
      guard isInstallation || sent.insert(handle).inserted else {
        page.targets[index].isDuplicate = true
        continue
      }
      if isInstallation, let known = installations[handle] {
        known.mark(index, in: &page)
        continue
      }
      var holders = try holders(
        of: handle, like: target.registration, upTo: isInstallation ? .max : after,
        writtenBy: version ?? .max, asOf: query.asOf.milliseconds)
      guard !holders.isEmpty else { continue }
      holders = try AudienceReader(session).withBitmaps(of: audience.tags) { bitmaps in
        holders.filter { audience.contains($0.bit, bitmaps) }
      }
      guard isInstallation else {
        page.targets[index].isDuplicate = !holders.isEmpty
        continue
      }
      // In the order of writing; a number decides between rows of one transaction.
      let members = holders.sorted { ($0.written, $0.bit) > ($1.written, $1.bit) }
      let installation = FCMInstallation(
        members: members.map { (Int64($0.bit), $0.handle) })
      installations[handle] = installation
      installation.mark(index, in: &page)
    }
  }

  /// The transaction that accepted the notification, or released it; what is written later need not
  /// have been in its audience.
  private func audienceCommit(of id: NotificationID, hub: Hub.ID) throws -> Int64 {
    let row = try connection.statement(
      "SELECT audience_commit FROM notification WHERE hub = ?1 AND public_id = ?2")
    try row.bind(hub, at: 1)
    try row.bind(id.rawValue, at: 2)
    return try row.step() ? row.integer(0) : .max
  }

  /// A native registration that has a handle.
  private struct Holder {
    let bit: UInt32
    let written: Int64
    let handle: String
  }

  /// Native registrations with the handle of one of this page, in rising order.
  private func holders(
    of handle: String, like registration: RegistrationID, upTo last: RegistrationID,
    writtenBy version: Int64, asOf now: Int64
  ) throws -> [Holder] {
    let hashes = try connection.numbers(
      "SELECT handle_hash FROM registration WHERE id = ?1", registration)
    guard let hash = hashes.first else { return [] }
    let row = try connection.statement(
      """
      SELECT handle, written FROM registration WHERE id = ?1 AND template IS NULL
        AND (expires_at IS NULL OR expires_at > ?2) AND written <= ?3
      """)
    try row.bind(now, at: 2)
    try row.bind(version, at: 3)
    var holders: [Holder] = []
    for number in try session.deviceKeys().numbers(of: .handle(hash: hash)) where number <= last {
      guard let bit = UInt32(exactly: number) else { continue }
      try row.bind(number, at: 1)
      if try row.step(), row.hasHandle(handle, column: 0) {
        holders.append(Holder(bit: bit, written: row.integer(1), handle: row.text(0)))
      }
      row.reset()
    }
    return holders
  }
}
