import HubCore
import NotificationHubs
import SQLDatabase
import Wire

/// Finds the targets of an audience.
struct PostgresTargets: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// A limit on memory, larger than any caller's page.
  static let pageLimit = 100_000

  /// Looks up everything that a query needs; `nil` when nobody can match.
  func audience(_ query: AudienceQuery) throws -> PostgresAudience? {
    var installations: [Tag: [Int64]] = [:]
    var only: [Int64]?
    if let expression = query.expression {
      for tag in expression.allTags where installations[tag] == nil {
        guard let implicit = ImplicitTag(folded: tag.folded) else { continue }
        installations[tag] = try self.installations(carrying: implicit, hub: query.hub)
      }
      only = Self.members(of: expression, installations)
      if only?.isEmpty == true { return nil }
    }
    return PostgresAudience(query: query, installations: installations, only: only)
  }

  /// The installations to which an expression is limited; `nil` when it can reach others.
  private static func members(
    of expression: TagExpression, _ installations: [Tag: [Int64]]
  ) -> [Int64]? {
    switch expression {
    case .tag(let tag): return installations[tag]
    case .not: return nil
    case .and(let left, let right):
      return members(of: left, installations) ?? members(of: right, installations)
    case .or(let left, let right):
      guard let left = members(of: left, installations),
        let right = members(of: right, installations)
      else { return nil }
      return Array(Set(left + right)).sorted()
    }
  }

  /// The numbers of the installations with this id, or of this user.
  func installations(carrying tag: ImplicitTag, hub: Hub.ID) throws -> [Int64] {
    switch tag {
    case .installation(let id):
      try PostgresInstallations(session).installationRow(id, hub: hub).map { [$0.number] } ?? []
    case .user(let id): try installations(ofUser: id, hub: hub).map(\.number)
    case .unknown: []
    }
  }

  /// Compares the user's id without regard to letter case.
  /// - Parameter numbers: Restricts the search to these.
  func installations(
    ofUser user: String, hub: Hub.ID, among numbers: [Int64]? = nil
  ) throws -> [(number: Int64, id: String)] {
    let folded = user.foldingCapitals
    var sql = SQLBuilder()
    // Documents may be large, and many, so only their beginning is read.
    sql += "SELECT i.id, i.public_id, substr(i.document, 1, \(InstallationDocument.userIDLimit))"
    sql += " FROM installation i"
    if let numbers {
      sql += " JOIN unnest("
      sql += sql.bind(PostgresArray.int2(numbers.map { slots.slot(ofNumber: $0) }))
      sql += "::int2[], \(sql.bind(PostgresArray.int8(numbers)))::int8[]) AS w (slot, id)"
      sql += " ON i.slot = w.slot AND i.id = w.id"
    }
    sql += " WHERE i.hub = \(sql.bind(hub))"
    if numbers == nil { sql += " AND i.user_hash = \(sql.bind(PreparedInstallation.hash(folded)))" }
    let row = try sql.statement(on: connection, "", "ORDER BY i.id")
    var found: [(number: Int64, id: String)] = []
    while try row.step() {
      // Another user may have the same hash.
      guard try InstallationDocument.userID(in: row.bytes(2))?.foldingCapitals == folded else {
        continue
      }
      found.append((row.integer(0), row.text(1)))
    }
    return found
  }

  // MARK: Samples

  /// Draws from the registrations that follow a random number in each slot, and where those are too
  /// few from the first ones: registrations made at about the same time are drawn together, but no
  /// whole audience is read.
  func sampleStatement(_ audience: PostgresAudience, limit: Int) throws -> SQLBuilder {
    let hub = audience.query.hub
    let last = slots.sequential(try PostgresNotifications(session).lastRegistration(of: hub) ?? 0)
    var sql = SQLBuilder()
    let start = sql.bind(slots.number(.random(in: 0...last), slot: 0))
    let (hubPlace, count) = (sql.bind(hub), sql.bind(Int64(limit)))
    sql += "SELECT * FROM (SELECT found.* FROM generate_series(0, \(slots.count - 1)) AS s (slot),"
    sql += " LATERAL ("
    for (lap, comparison) in [">=", "<"].enumerated() {
      sql += lap == 0 ? "(SELECT " : " UNION ALL (SELECT "
      sql += "\(PostgresPageBuilder.columns), \(lap) AS lap FROM registration r"
      sql += " WHERE r.hub = \(hubPlace)"
      sql += " AND r.slot = s.slot::int2 AND r.id \(comparison) \(start)"
      audience.writeRest(to: &sql)
      sql += " ORDER BY r.id LIMIT \(count))"
    }
    sql += ") AS found ORDER BY lap, random() LIMIT \(count)) AS drawn ORDER BY id"
    return sql
  }

  // MARK: Pages

  func targets(
    _ query: AudienceQuery, after: RegistrationID, limit: Int
  ) throws -> TargetPage {
    // Read before the rows: a row that is written meanwhile is later in any case.
    let state = try connection.statement(
      """
      SELECT pg_current_snapshot()::text, EXISTS (SELECT 1 FROM hub WHERE id = ?1),
        (SELECT audience_snapshot FROM notification WHERE hub = ?1 AND public_id = ?2)
      """, query.hub, query.notification?.rawValue)
    guard try state.step(), state.integer(1) != 0, limit > 0,
      let part = AudiencePart(number: query.part, slots: slots),
      let audience = try audience(query)
    else { return TargetPage() }
    let limit = min(limit, Self.pageLimit)
    var builder = PostgresPageBuilder(
      templates: shared.templates,
      revision: StoreVersion(snapshot: state.text(0)))
    let scope = Scope(part: part, acceptance: state.optionalText(2))
    do {
      let sql = pageStatement(audience, scope, after: after, limit: limit)
      let row = try sql.statement(on: connection)
      var seen = 0
      while try row.step() {
        if seen == limit {
          builder.page.next = builder.last
          break
        }
        seen += 1
        try builder.append(row)
      }
    }
    if case .native = query.kind, !builder.suspects.isEmpty {
      try markDuplicates(in: &builder, audience: audience, scope: scope, after: after)
    }
    return builder.page
  }

  /// The part of an audience that is read, and the snapshot from which it counts.
  struct Scope {
    let part: AudiencePart
    /// The snapshot of the transaction that accepted the notification; `nil` where there is none.
    let acceptance: String?
  }

  private func pageStatement(
    _ audience: PostgresAudience, _ scope: Scope, after: RegistrationID, limit: Int
  ) -> SQLBuilder {
    var sql = SQLBuilder()
    let columns = PostgresPageBuilder.columns
    let hub = sql.bind(audience.query.hub)
    let first = sql.bind(after)
    let count = sql.bind(Int64(limit + 1))
    if case .slot(let slot) = scope.part {
      sql += "SELECT \(columns) FROM registration r WHERE r.hub = \(hub)"
      sql += " AND r.slot = \(sql.bind(slot))::int2 AND r.id > \(first)"
      if case .native = audience.query.kind, let acceptance = scope.acceptance {
        // Those that were known to share a handle by then are read by one reader.
        sql += " AND (r.shared_at IS NULL OR NOT "
        sql += "pg_visible_in_snapshot(r.shared_at, \(sql.bind(acceptance))::text::pg_snapshot))"
      }
      audience.writeRest(to: &sql)
      sql += " ORDER BY r.id LIMIT \(count)"
      return sql
    }
    if let only = audience.only {
      // Few rows, in the slots of their installations.
      let slots = Set(only.map { self.slots.slot(ofNumber: $0) }).sorted()
      sql += "SELECT \(columns) FROM registration r WHERE r.hub = \(hub)"
      sql += " AND r.slot = ANY(\(sql.bind(PostgresArray.int2(slots)))::int2[])"
      sql += " AND r.installation <> 0"
      sql += " AND r.installation = ANY(\(sql.bind(PostgresArray.int8(only)))::int8[])"
      sql += " AND r.id > \(first)"
      writeShared(scope, to: &sql)
      audience.writeRest(to: &sql)
      sql += " ORDER BY r.id LIMIT \(count)"
      return sql
    }
    // Takes the next rows of each slot, and of these the next.
    sql +=
      "SELECT r.* FROM generate_series(0, \(sql.bind(Int64(slots.count)))::int8 - 1) AS s (slot),"
    sql += " LATERAL (SELECT \(columns) FROM registration r WHERE r.hub = \(hub)"
    sql += " AND r.slot = s.slot::int2 AND r.id > \(first)"
    writeShared(scope, to: &sql)
    audience.writeRest(to: &sql)
    sql += " ORDER BY r.id LIMIT \(count)) AS r ORDER BY r.id LIMIT \(count)"
    return sql
  }

  private func writeShared(_ scope: Scope, to sql: inout SQLBuilder) {
    guard scope.part == .sharedHandles else { return }
    sql += " AND r.shared_at IS NOT NULL"
    guard let acceptance = scope.acceptance else { return }
    sql += " AND pg_visible_in_snapshot(r.shared_at, \(sql.bind(acceptance))::text::pg_snapshot)"
  }

  /// Finds the targets of a page whose handle a smaller number of the same audience was sent to;
  /// see ``TargetReader/markDuplicates(in:suspects:audience:query:after:)`` for who counts.
  private func markDuplicates(
    in builder: inout PostgresPageBuilder, audience: PostgresAudience, scope: Scope,
    after: RegistrationID
  ) throws {
    // Rows of a slot came to share a handle after the acceptance: others that have it may have been
    // skipped.
    if case .slot = scope.part { return }
    /// The targets of this page that are an installation of FCM, by its id.
    var installations: [String: (hash: Int64, indexes: [Int])] = [:]
    /// Handles that an earlier registration had, and the first target of this page with each.
    var sent: [String: Int] = [:]
    var firsts: [(index: Int, hash: Int64, handle: String)] = []
    for (index, hash) in builder.suspects {
      let handle = builder.page.handles[builder.page.targets[index].handle].withUnsafeBytes {
        String(decoding: handleIdentity($0), as: UTF8.self)
      }
      if builder.page.targets[index].platform == .fcmv1, handle.utf8.firebaseInstallationID != nil {
        installations[handle, default: (hash, [])].indexes.append(index)
        continue
      }
      guard sent[handle] == nil else {
        builder.page.targets[index].isDuplicate = true
        continue
      }
      sent[handle] = index
      firsts.append((index, hash, handle))
    }
    if !installations.isEmpty {
      try mark(installations, in: &builder.page, audience: audience, scope: scope)
    }
    guard !firsts.isEmpty else { return }
    var sql = SQLBuilder()
    let hashes = sql.bind(PostgresArray.int8(firsts.map(\.hash)))
    let handles = sql.bind(PostgresArray.text(firsts.map(\.handle)))
    let hub = sql.bind(audience.query.hub)
    sql += "SELECT DISTINCT w.n FROM unnest(\(hashes)::int8[], \(handles)::text[])"
    sql +=
      " WITH ORDINALITY AS w (hash, handle, n) JOIN (\(PostgresHandles(session).joinedHandles)) ON h.hub = \(hub)"
    sql += " AND h.slot = \(slots.sqlSlot(ofNumber: "w.hash")) AND h.hash = w.hash"
    sql += " AND split_part(r.handle, E'\\n', 1) = w.handle WHERE h.id <= \(sql.bind(after)) AND "
    audience.write(to: &sql)
    if let acceptance = scope.acceptance {
      sql += " AND pg_visible_in_snapshot(r.written, \(sql.bind(acceptance))::text::pg_snapshot)"
    }
    let row = try sql.statement(on: connection)
    while try row.step() {
      builder.page.targets[firsts[Int(row.integer(0)) - 1].index].isDuplicate = true
    }
  }

  /// Finds for each installation of FCM the registration that receives the push; see
  /// ``FCMInstallation``.
  /// - Parameter installations: The hash of the handles, and the indexes of targets, by the id.
  private func mark(
    _ installations: [String: (hash: Int64, indexes: [Int])], in page: inout TargetPage,
    audience: PostgresAudience, scope: Scope
  ) throws {
    let ids = Array(installations.keys)
    var sql = SQLBuilder()
    let hashes = sql.bind(PostgresArray.int8(ids.map { installations[$0]?.hash ?? 0 }))
    let names = sql.bind(PostgresArray.text(ids))
    let hub = sql.bind(audience.query.hub)
    sql += "SELECT w.n, r.id, r.handle FROM unnest(\(hashes)::int8[], \(names)::text[])"
    sql +=
      " WITH ORDINALITY AS w (hash, handle, n) JOIN (\(PostgresHandles(session).joinedHandles)) ON h.hub = \(hub)"
    sql += " AND h.slot = \(slots.sqlSlot(ofNumber: "w.hash")) AND h.hash = w.hash"
    sql += " AND split_part(r.handle, ':', 1) = w.handle WHERE "
    audience.write(to: &sql)
    if let acceptance = scope.acceptance {
      sql += " AND pg_visible_in_snapshot(r.written, \(sql.bind(acceptance))::text::pg_snapshot)"
    }
    sql += " ORDER BY w.n, r.written DESC, r.id DESC"
    var members: [Int: [(RegistrationID, String)]] = [:]
    do {
      let row = try sql.statement(on: connection)
      while try row.step() {
        members[Int(row.integer(0)) - 1, default: []].append((row.integer(1), row.text(2)))
      }
    }
    for (n, members) in members {
      let installation = FCMInstallation(members: members)
      for index in installations[ids[n]]?.indexes ?? [] { installation.mark(index, in: &page) }
    }
  }

  /// The live rows of registrations, in rising order of their numbers; missing ones are left out.
  func page(of numbers: [RegistrationID], hub: Hub.ID) throws -> TargetPage {
    var builder = PostgresPageBuilder(
      templates: shared.templates,
      revision: StoreVersion(snapshot: try snapshot()))
    guard !numbers.isEmpty else { return builder.page }
    let row = try connection.statement(
      """
      SELECT \(PostgresPageBuilder.columns)
      FROM unnest(?2::int2[], ?3::int8[]) AS w (slot, id)
      JOIN registration r ON r.hub = ?1 AND r.slot = w.slot AND r.id = w.id ORDER BY r.id
      """, hub, PostgresArray.int2(numbers.map { slots.slot(ofNumber: $0) }),
      PostgresArray.int8(numbers))
    while try row.step() { try builder.append(row) }
    return builder.page
  }
}

/// Builds a ``TargetPage`` from rows.
struct PostgresPageBuilder {
  var page = TargetPage()
  /// The indexes of targets whose handle others also have, with the hashes of the handles.
  private(set) var suspects: [(index: Int, hash: Int64)] = []
  /// The number of the last row.
  private(set) var last: RegistrationID = 0
  private let templates: TemplateNumbers
  /// The index of a template in the page.
  private var indexes: [[UInt8]: Int32] = [:]
  private var lastTemplate: (bytes: [UInt8], index: Int32) = ([], -1)

  static let columns = """
    r.id, r.platform, r.handle, r.template, r.variables, r.confirmed_at, r.environment,
    CASE WHEN r.shared_at IS NOT NULL THEN r.handle_hash END AS shared_hash
    """

  init(templates: TemplateNumbers, revision: StoreVersion) {
    self.templates = templates
    page.revision = revision
  }

  /// Appends a row. A malformed row costs its own target only; errors of the database are thrown.
  mutating func append(_ row: borrowing Statement) throws {
    last = row.integer(0)
    do {
      try appendTarget(row)
    } catch StoreError.corrupt(let reason) {
      page.unreadable.append(
        UnreadableTarget(
          registration: last, platform: try? PushPlatform(code: row.integer(1)), reason: reason))
    }
  }

  private mutating func appendTarget(_ row: borrowing Statement) throws {
    let platform = try PushPlatform(code: row.integer(1))
    let template = row.isNull(3) ? -1 : try index(of: row.bytes(3))
    var variables: Int32 = -1
    if !row.isNull(4) {
      var reader = ByteReader(row.bytes(4))
      variables = Int32(page.pushVariables.count)
      page.pushVariables.append(try reader.words())
    }
    let start = page.handles.count
    row.withBytes(2) { page.handles.append(contentsOf: $0) }
    if let hash = row.optionalInteger(7) { suspects.append((page.targets.count, hash)) }
    page.targets.append(
      Target(
        registration: last, handle: start..<page.handles.count, platform: platform,
        template: template, variables: variables, confirmedAt: row.integer(5), isDuplicate: false,
        environment: PushEnvironment(stored: row.integer(6))))
  }

  private mutating func index(of bytes: [UInt8]) throws -> Int32 {
    if lastTemplate.bytes == bytes { return lastTemplate.index }
    let index: Int32
    if let known = indexes[bytes] {
      index = known
    } else {
      index = Int32(page.templates.count)
      page.templates.append(try templates.template(bytes))
      indexes[bytes] = index
    }
    lastTemplate = (bytes, index)
    return index
  }
}
