import HubCore
import NotificationHubs
import SQLDatabase
import Wire

/// Members of tags and of expressions.
struct AudienceReader: ReadingSubject {
  let session: ReadSession

  init(_ session: ReadSession) { self.session = session }

  /// Looks up everything that a query needs; `nil` when nobody can match.
  ///
  /// - Parameter withExpired: Whether expired registrations are returned as a set. Callers that
  ///   read rows anyway find them there, at a cost that does not depend on their number.
  func audience(_ query: AudienceQuery, withExpired: Bool) throws -> Audience? {
    try connection.reading { try lookUp(query, withExpired: withExpired) }
  }

  private func lookUp(_ query: AudienceQuery, withExpired: Bool) throws -> Audience? {
    guard try session.hasHub(query.hub) else { return nil }
    try noteCommit()
    guard let kind = try connection.tagNumber(.everyone(query.kind, hub: query.hub)) else {
      return nil
    }
    var audience = Audience(
      kind: kind, term: try query.expression.map { try term($0, hub: query.hub) },
      expired: withExpired
        ? try expired(hub: query.hub, asOf: query.asOf.milliseconds) : nil)
    if case .native = query.kind {
      audience.sharedHandles = try connection.tagNumber(.sharedHandle(hub: query.hub))
    }
    return audience
  }

  /// Drops the bitmaps in memory when another process has written since.
  func noteCommit() throws {
    let state = try StoreState.read(from: connection)
    session.index.noteCommit(state.commitNumber, by: state.writer)
  }

  func term(_ expression: TagExpression, hub: Hub.ID) throws -> AudienceTerm {
    switch expression {
    case .tag(let tag):
      let folded = tag.folded
      if let implicit = ImplicitTag(folded: folded) {
        return .these(try members(of: implicit, hub: hub))
      }
      return try connection.tagNumber(.plain(folded, hub: hub)).map(AudienceTerm.tag) ?? .nobody
    case .not(let inner): return .not(try term(inner, hub: hub))
    case .and(let left, let right):
      return .and(try term(left, hub: hub), try term(right, hub: hub))
    case .or(let left, let right):
      return .or(try term(left, hub: hub), try term(right, hub: hub))
    }
  }

  func members(of tag: ImplicitTag, hub: Hub.ID) throws -> Bitmap {
    let members = Bitmap()
    for installation in try installations(carrying: tag, hub: hub) {
      let row = try connection.statement("SELECT id FROM registration WHERE installation = ?1")
      try row.bind(installation, at: 1)
      while try row.step() {
        if let bit = UInt32(exactly: row.integer(0)) { members.insert(bit) }
      }
    }
    return members
  }

  /// The numbers of the installations with this id, or of this user.
  private func installations(carrying tag: ImplicitTag, hub: Hub.ID) throws -> [Int64] {
    switch tag {
    case .installation(let id):
      let hash = PreparedInstallation.hash(id.foldingCapitals)
      return try session.deviceKeys().installationRow(id, idHash: hash, hub: hub).map {
        [$0.number]
      } ?? []
    case .user(let id):
      return try session.deviceKeys().installations(ofUser: id, hub: hub).map(\.number)
    case .unknown:
      return []
    }
  }

  /// The expired registrations; `nil` when there are none.
  func expired(hub: Hub.ID, asOf now: Int64) throws -> Bitmap? {
    let row = try connection.statement(
      "SELECT id FROM registration WHERE hub = ?1 AND expires_at <= ?2")
    try row.bind(hub, at: 1)
    try row.bind(now, at: 2)
    guard try row.step() else { return nil }
    let expired = Bitmap()
    repeat {
      if let bit = UInt32(exactly: row.integer(0)) { expired.insert(bit) }
    } while try row.step()
    return expired
  }

  /// Lends the bitmaps of some tags, loading those that are not in memory.
  ///
  /// Must not be called inside a transaction: the load must read a snapshot newer than its
  /// announcement.
  func withBitmaps<Value>(
    of tags: Set<Int64>, _ body: ([Int64: Bitmap]) -> Value
  ) throws -> Value {
    // More than one round is needed only when another thread's evaluation or another process's
    // commit has evicted in between what was loaded here.
    for _ in 0..<100 {
      var missing: [Int64] = []
      if let value = session.index.withBitmaps(of: tags, missing: &missing, body) { return value }
      try load(missing)
    }
    throw StoreError.locked
  }

  private func load(_ tags: [Int64]) throws {
    let loads = tags.map { session.index.beginLoad(of: $0) }
    do {
      let bitmaps = try connection.reading { try members(of: tags) }
      for (tag, load) in zip(tags, loads) { session.index.finish(load, with: bitmaps[tag]) }
    } catch {
      for load in loads { session.index.finish(load, with: nil) }
      throw error
    }
  }

  /// The members of tags, all from the state that the transaction sees.
  func members(of tags: [Int64]) throws -> [Int64: Bitmap] {
    var bitmaps: [Int64: Bitmap] = Dictionary(minimumCapacity: tags.count)
    for tag in tags { bitmaps[tag] = try connection.tagMembers(of: tag) }
    try readLog { bitmaps[$0.tag]?.apply($0) }
    return bitmaps
  }

  /// The changes of tags that are still in the log.
  func changes(of tags: [Int64]) throws -> [Int64: [TagChange]] {
    var changes: [Int64: [TagChange]] = [:]
    try readLog { if tags.contains($0.tag) { changes[$0.tag, default: []].append($0) } }
    return changes
  }

  private func readLog(_ body: (TagChange) -> Void) throws {
    let row = try connection.statement("SELECT changes FROM tag_log ORDER BY id")
    while try row.step() { try TagLog.decode(row.bytes(0), body) }
  }
}
