import HubCore
import NotificationHubs
import SQLDatabase

extension ReadSession {
  /// Looks up what a query needs; `nil` when nobody can match.
  ///
  /// - Parameter withExpired: Whether those whose time is over are wanted as a set. Anyone who reads
  ///   rows anyway sees it there, and does not depend on how many there are.
  func audience(_ query: AudienceQuery, withExpired: Bool) throws -> Audience? {
    try connection.reading { try lookUp(query, withExpired: withExpired) }
  }

  private func lookUp(_ query: AudienceQuery, withExpired: Bool) throws -> Audience? {
    guard try hasHub(query.hub) else { return nil }
    let state = try StoreState.read(from: connection)
    index.noteCommit(state.commitNumber, by: state.writer)
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

  private func term(_ expression: TagExpression, hub: Hub.ID) throws -> AudienceTerm {
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

  /// The numbers of the installations of this id, or of this user.
  private func installations(carrying tag: ImplicitTag, hub: Hub.ID) throws -> [Int64] {
    let (column, value) =
      switch tag {
      case .installation(let id): ("id_hash", id)
      case .user(let id): ("user_hash", id)
      case .unknown: ("", "")
      }
    guard !column.isEmpty else { return [] }
    let row = try connection.statement(
      "SELECT id, public_id, document FROM installation WHERE hub = ?1 AND \(column) = ?2")
    try row.bind(hub, at: 1)
    try row.bind(PreparedInstallation.hash(value.lowercased()), at: 2)
    var numbers: [Int64] = []
    while try row.step() {
      let isMeant =
        if case .installation(let id) = tag {
          row.text(1) == id
        } else {
          try InstallationDocument.userID(in: row.bytes(2))?.lowercased() == value
        }
      if isMeant { numbers.append(row.integer(0)) }
    }
    return numbers
  }

  private func expired(hub: Hub.ID, asOf now: Int64) throws -> Bitmap? {
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
  /// Not inside a transaction: what is loaded must be newer than its announcement.
  func withBitmaps<Value>(
    of tags: Set<Int64>, _ body: ([Int64: Bitmap]) -> Value
  ) throws -> Value {
    // More than one round is needed only when another thread's evaluation or another process's
    // commit has thrown out in between what was loaded here.
    for _ in 0..<100 {
      var missing: [Int64] = []
      if let value = index.withBitmaps(of: tags, missing: &missing, body) { return value }
      for tag in missing { try load(tag) }
    }
    throw StoreError.locked
  }

  private func load(_ tag: Int64) throws {
    let load = index.beginLoad(of: tag)
    do {
      index.finish(load, with: try members(of: tag))
    } catch {
      index.finish(load, with: nil)
      throw error
    }
  }

  private func members(of tag: Int64) throws -> Bitmap {
    let row = try connection.statement("SELECT registration FROM registration_tag WHERE tag = ?1")
    try row.bind(tag, at: 1)
    let members = Bitmap()
    var chunk: [UInt32] = []
    chunk.reserveCapacity(4_096)
    while try row.step() {
      if let bit = UInt32(exactly: row.integer(0)) { chunk.append(bit) }
      if chunk.count == 4_096 {
        members.insert(chunk)
        chunk.removeAll(keepingCapacity: true)
      }
    }
    members.insert(chunk)
    return members
  }
}
