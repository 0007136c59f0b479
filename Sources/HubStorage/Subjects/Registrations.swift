package import Foundation
package import HubCore
package import NotificationHubs
import SQLDatabase

extension SQLiteHubStore {
  package func reserveRegistrationID(hub: Hub.ID) async throws -> String {
    let coding = coding
    return try await write(as: .asked(.devices)) { session in
      try session.requireHub(hub)
      let number = try RegistrationRowWriter(session).nextRegistration()
      // The number counts as allocated once the row that says so is written.
      try session.state.write(to: session.connection)
      return coding.id(of: number, hub: hub)
    }
  }

  package func createRegistration(
    _ draft: RegistrationDraft, hub: Hub.ID, at: Date
  ) async throws -> StoredRegistration {
    let coding = coding
    let new = RegistrationWriter.ClientRegistration(draft, hub: hub, at: at)
    return try await write(as: [new.prepared].label) {
      try RegistrationWriter($0).create(new, coding: coding)
    }
  }

  package func putRegistration(
    _ id: String, _ draft: RegistrationDraft, hub: Hub.ID, condition: ETagCondition, at: Date
  ) async throws -> RegistrationWrite {
    let coding = coding
    let new = RegistrationWriter.ClientRegistration(draft, hub: hub, at: at)
    return try await write(as: [new.prepared].label) {
      try RegistrationWriter($0).put(id, new, condition: condition, coding: coding)
    }
  }

  package func deleteRegistration(
    _ id: String, hub: Hub.ID, condition: ETagCondition, at: Date
  ) async throws -> RegistrationWrite {
    let coding = coding
    return try await write(as: .asked(.devices, rows: JobLabel.unknownRows)) { session in
      guard try session.hasHub(hub) else { return .missing }
      return try RegistrationWriter(session).deleteRegistration(
        id, hub: hub, condition: condition, at: at, coding: coding)
    }
  }

  package func registration(
    _ id: String, hub: Hub.ID, asOf: Date
  ) async throws -> StoredRegistration? {
    let coding = coding
    return try await readRows { session in
      let reader = RegistrationReader(
        connection: session.connection, templates: session.templates, coding: coding)
      guard try session.hasHub(hub), let found = try reader.registration(id, hub: hub),
        !found.isOver(at: asOf)
      else {
        return nil
      }
      return found.stored
    }
  }

  package func registrationNames(
    _ numbers: [RegistrationID], hub: Hub.ID
  ) async throws -> [RegistrationID: String] {
    let coding = coding
    return try await read { session in
      let row = try session.connection.statement(
        "SELECT public_id FROM registration WHERE id = ?1 AND hub = ?2")
      var names: [RegistrationID: String] = [:]
      for number in numbers {
        try row.bind(number, at: 1)
        try row.bind(hub, at: 2)
        if try row.step() { names[number] = row.optionalText(0) ?? coding.id(of: number, hub: hub) }
        row.reset()
      }
      return names
    }
  }

  package func registrations(
    _ query: RegistrationQuery, hub: Hub.ID, asOf: Date, after: RegistrationID, limit: Int
  ) async throws -> RegistrationPage {
    let coding = coding
    return try await read { session in
      guard try session.hasHub(hub) else { return RegistrationPage() }
      return try RegistrationListReader(session).registrations(
        query, hub: hub, asOf: asOf, after: after, limit: limit, coding: coding)
    }
  }
}

/// Registrations that clients write themselves.
struct RegistrationWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// A registration that a client writes, with everything that can be computed beforehand.
  struct ClientRegistration: Sendable {
    let hub: Hub.ID
    let draft: RegistrationDraft
    let prepared: PreparedRegistration
    let at: Date

    init(_ draft: RegistrationDraft, hub: Hub.ID, at: Date) {
      self.hub = hub
      self.draft = draft
      self.at = at
      prepared = PreparedRegistration(draft, hub: hub)
    }

    func context(installation: Int64, tags: [Tag]) -> RegistrationContext {
      RegistrationContext(
        hub: hub, installation: installation, at: at.milliseconds,
        tagText: tags.map(\.rawValue).joined(separator: ","))
    }
  }

  func create(
    _ new: ClientRegistration, coding: RegistrationIDCoding
  ) throws -> StoredRegistration {
    try session.requireHub(new.hub)
    try VocabularyWriter(session).requireRoom(for: new.prepared, hub: new.hub)
    try RemovalWriter(session).forgetRemoved(handle: new.prepared.handleHash)
    let number = try RegistrationRowWriter(session).nextRegistration()
    return try insert(new, as: number, id: coding.id(of: number, hub: new.hub), publicID: nil)
  }

  func put(
    _ id: String, _ new: ClientRegistration, condition: ETagCondition, coding: RegistrationIDCoding
  ) throws -> RegistrationWrite {
    try session.requireHub(new.hub)
    guard let found = try live(id, hub: new.hub, at: new.at, coding: coding) else {
      guard condition == .none else { return .missing }
      try VocabularyWriter(session).requireRoom(for: new.prepared, hub: new.hub)
      try RemovalWriter(session).forgetRemoved(handle: new.prepared.handleHash)
      return .done(try insert(id, new, coding: coding))
    }
    guard condition.holds(for: String(found.stored.etag)) else { return .stale }
    try VocabularyWriter(session).requireRoom(for: new.prepared, hub: new.hub)
    try RemovalWriter(session).forgetRemoved(handle: new.prepared.handleHash)
    try RemovalWriter(session).forgetRemoved(registration: found.row.number)
    var stored = found.stored
    let implicit = stored.isDerived ? stored.draft.tags.filter(\.isImplicit) : []
    stored.draft = new.draft
    stored.draft.tags = implicit + new.draft.tags
    stored.etag += 1
    try RegistrationRowWriter(session).change(
      found.row, to: new.prepared,
      in: new.context(installation: found.row.installation, tags: stored.draft.tags))
    try leave(found.row)
    return .done(stored)
  }

  func deleteRegistration(
    _ id: String, hub: Hub.ID, condition: ETagCondition, at: Date, coding: RegistrationIDCoding
  ) throws -> RegistrationWrite {
    guard let found = try live(id, hub: hub, at: at, coding: coding) else {
      if let number = coding.number(in: id, hub: hub) {
        try RemovalWriter(session).forgetRemoved(registration: number)
      } else {
        try RemovalWriter(session).forgetRemoved(publicID: id, hub: hub)
      }
      return .missing
    }
    guard condition.holds(for: String(found.stored.etag)) else { return .stale }
    try remove(found, hub: hub)
    return .done(found.stored)
  }

  /// The registration with an id that clients use. An expired one is removed.
  private func live(
    _ id: String, hub: Hub.ID, at: Date, coding: RegistrationIDCoding
  ) throws -> RegistrationReader.Found? {
    let reader = RegistrationReader(connection: connection, templates: templates, coding: coding)
    guard let found = try reader.registration(id, hub: hub) else { return nil }
    guard found.isOver(at: at) else { return found }
    try remove(found, hub: hub)
    return nil
  }

  private func remove(_ found: RegistrationReader.Found, hub: Hub.ID) throws {
    try RemovalWriter(session).forgetRemoved(registration: found.row.number)
    try RegistrationRowWriter(session).remove(found.row, hub: hub)
    try leave(found.row)
  }

  /// Handles a registration that no longer matches its installation's document.
  func leave(_ row: RegistrationRow) throws {
    guard row.installation != 0 else { return }
    try forgetFingerprint(of: row.installation)
    guard row.key.isNative else { return }
    // Without the native one, its templates must be found by their handle in another way.
    try execute(
      """
      UPDATE registration SET template_handle = handle_hash
      WHERE installation = ?1 AND template IS NOT NULL
      """, row.installation)
  }

  private func insert(
    _ id: String, _ new: ClientRegistration, coding: RegistrationIDCoding
  ) throws -> StoredRegistration {
    guard let number = coding.number(in: id, hub: new.hub) else {
      return try insert(
        new, as: try RegistrationRowWriter(session).nextRegistration(), id: id, publicID: id)
    }
    // An id made by the hub stands for its number. A number beyond the last was assigned by a
    // database of which this one is an older copy.
    guard number <= Int64(UInt32.max) else {
      throw StoreError.registrationNumbersUsed
    }
    session.state.lastRegistration = max(session.state.lastRegistration, number)
    return try insert(new, as: number, id: id, publicID: nil)
  }

  private func insert(
    _ new: ClientRegistration, as number: RegistrationID, id: String, publicID: String?
  ) throws -> StoredRegistration {
    try RegistrationRowWriter(session).insert(
      new.prepared, as: number, publicID: publicID,
      in: new.context(installation: 0, tags: new.draft.tags))
    return StoredRegistration(
      number: number, id: id, draft: new.draft, etag: 1, isDerived: false)
  }

  /// Makes the installation's next write a complete one, so that its registrations match its
  /// document again.
  func forgetFingerprint(of installation: Int64) throws {
    guard installation != 0 else { return }
    try execute("UPDATE installation SET fingerprint = 0 WHERE id = ?1", installation)
  }
}

/// Lists of registrations, in the order of their numbers: rows of the hub's own pseudo-tags or of a
/// tag, which are in that order, or the few registrations of one device or installation.
struct RegistrationListReader: ReadingSubject {
  let session: ReadSession

  init(_ session: ReadSession) { self.session = session }

  /// A limit on memory, larger than any caller's page.
  private static let pageLimit = 10_000

  func registrations(
    _ query: RegistrationQuery, hub: Hub.ID, asOf: Date, after: RegistrationID, limit: Int,
    coding: RegistrationIDCoding
  ) throws -> RegistrationPage {
    guard limit > 0 else { return RegistrationPage() }
    let limit = min(limit, Self.pageLimit)
    let reader = RegistrationReader(connection: connection, templates: templates, coding: coding)
    let source = try source(of: query, hub: hub)
    var page = RegistrationPage()
    var cursor = after
    while true {
      let numbers = try source.next(cursor, limit + 1)
      for number in numbers {
        cursor = number
        let found: RegistrationReader.Found?
        do { found = try reader.registration(number, hub: hub) } catch StoreError.corrupt(
          let reason)
        {
          // A malformed row must not hide the others.
          page.unreadable.append(
            UnreadableTarget(registration: number, platform: nil, reason: reason))
          continue
        }
        guard let found, !found.isOver(at: asOf), source.isMeant(found.stored.draft) else {
          continue
        }
        guard !page.isFull(limit) else {
          page.hasMore = true
          return page
        }
        page.append(found.stored)
      }
      if numbers.count <= limit { return page }
    }
  }

  /// The source of a list's members.
  struct Source {
    /// The next candidates after a number, in rising order, at most `limit`; fewer at the end.
    let next: (_ after: RegistrationID, _ limit: Int) throws -> [RegistrationID]
    /// Whether a candidate is a member.
    var isMeant: (RegistrationDraft) -> Bool = { _ in true }
  }

  private func source(of query: RegistrationQuery, hub: Hub.ID) throws -> Source {
    switch query {
    case .all:
      let kinds = PushPlatform.allCases.map { AudienceQuery.Kind.native($0) } + [.template]
      let tags = try kinds.compactMap { try connection.tagNumber(.everyone($0, hub: hub)) }
      return try source(of: tags)
    case .tag(let tag):
      if let implicit = ImplicitTag(folded: tag.folded) {
        let members = try AudienceReader(session).members(of: implicit, hub: hub)
        return Self.source(members.first(members.count).map { Int64($0) })
      }
      guard let number = try connection.tagNumber(.plain(tag.folded, hub: hub)) else {
        return Self.source([])
      }
      return try source(of: [number])
    case .device(let filter):
      var source = Self.source(try registrations(of: filter, hub: hub))
      source.isMeant = { filter.matches(platform: $0.platform, channel: $0.channel) }
      return source
    }
  }

  private static func source(_ numbers: [RegistrationID]) -> Source {
    let sorted = Set(numbers).sorted()
    return Source { after, limit in Array(sorted.drop { $0 <= after }.prefix(limit)) }
  }

  /// The next members of some tags after a number, in rising order.
  func source(of tags: [Int64]) throws -> Source {
    let log = try AudienceReader(session).changes(of: tags)
    return Source { after, limit in
      guard let first = UInt32(exactly: after + 1) else { return [] }
      let found = Bitmap()
      for tag in tags {
        found.formUnion(
          try self.members(of: tag, from: first, limit: limit, changes: log[tag] ?? []))
      }
      return found.first(limit).map { RegistrationID($0) }
    }
  }

  /// The next members of a tag, at least `limit` unless there are fewer, with those in the changes.
  private func members(
    of tag: Int64, from first: UInt32, limit: Int, changes: [TagChange]
  ) throws -> Bitmap {
    let found = Bitmap()
    let row = try connection.statement(
      "SELECT part, members FROM tag_part WHERE tag = ?1 AND part >= ?2 ORDER BY part")
    try row.bind(tag, at: 1)
    try row.bind(Int64(first >> 16), at: 2)
    // Each change may remove one.
    while found.count < limit + changes.count, try row.step() {
      let part = try TagPart.members(in: row.bytes(1), of: row.integer(0))
      found.insert(part.filter { $0 >= first })
    }
    for change in changes where change.registration >= first { found.apply(change) }
    return found
  }

  /// The registrations that a device may have: native ones by their handle, templates beside them
  /// by their installation, others by an index of their own.
  private func registrations(of filter: RegistrationFilter, hub: Hub.ID) throws -> [RegistrationID]
  {
    var numbers: [RegistrationID] = []
    var installations: Set<Int64> = []
    let platforms = filter.platform.map { [$0] } ?? PushPlatform.allCases
    for platform in platforms {
      for handle in filter.handles {
        let hash = PreparedRegistration.hash(of: handle, platform: platform.code, hub: hub)
        for row in try session.deviceKeys().registrations(withHandle: hash) {
          numbers.append(row.number)
          if row.installation != 0 { installations.insert(row.installation) }
        }
      }
    }
    for installation in installations {
      numbers += try connection.registrationRows(of: installation).map(\.number)
    }
    return numbers
  }
}
