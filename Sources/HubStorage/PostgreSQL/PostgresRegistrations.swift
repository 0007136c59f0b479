import Foundation
import HubCore
import NotificationHubs
import SQLDatabase
import Wire

/// A registration that a client writes, with everything that can be computed beforehand.
struct ClientContent: Sendable {
  let hub: Hub.ID
  let draft: RegistrationDraft
  let content: RegistrationContent
  let at: Date

  init(_ draft: RegistrationDraft, hub: Hub.ID, at: Date) {
    self.hub = hub
    self.draft = draft
    self.at = at
    content = RegistrationContent(draft, hub: hub)
  }

  /// The label under which it queues.
  var label: JobLabel {
    .asked(
      .devices, rows: 2 + draft.tags.count,
      bytes: 256 + content.handle.utf8.count + (content.template?.count ?? 0)
        + content.tags.utf8.count)
  }

  func context(installation: Int64, tags: [Tag]) -> RegistrationContext {
    RegistrationContext(
      hub: hub, installation: installation, at: at.milliseconds,
      tagText: tags.map(\.rawValue).joined(separator: ","))
  }

  func locks(id: String) -> [Int64] {
    [
      PostgresDevices.DeviceLock.device(hub: hub, hash: PreparedInstallation.hash(id)),
      PostgresDevices.DeviceLock.handle(hash: content.handleHash),
    ]
  }

  var handle: RegistrationChanges.DeviceHandle { .init(hub: hub, hash: content.handleHash) }
}

/// Registrations that clients write themselves.
struct PostgresRegistrations: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  func newRegistrationNumber() throws -> RegistrationID {
    let sequential = try shared.numbers.next(.registration, session)
    return slots.number(sequential, slot: slots.slot(forNew: sequential))
  }

  func put(
    _ id: String, _ new: ClientContent, condition: ETagCondition
  ) throws -> RegistrationWrite {
    try PostgresDevices(session).lock([
      PostgresDevices.DeviceLock.device(hub: new.hub, hash: PreparedInstallation.hash(id))
    ])
    let found = try live(id, hub: new.hub, at: new.at)
    try PostgresDevices(session).lock([
      PostgresDevices.DeviceLock.handle(hash: new.content.handleHash)
    ])
    guard let found else {
      guard condition == .none else { return .missing }
      return .done(try insert(id, new))
    }
    guard condition.holds(for: String(found.stored.etag)) else { return .stale }
    try forgetRemoved([found.row.number], hub: new.hub)
    var stored = found.stored
    let implicit = stored.isDerived ? stored.draft.tags.filter(\.isImplicit) : []
    stored.draft = new.draft
    stored.draft.tags = implicit + new.draft.tags
    stored.etag += 1
    var changes = RegistrationChanges()
    changes.forgottenHandles = [new.handle]
    changes.changed = [
      .init(
        row: found.row,
        context: new.context(installation: found.row.installation, tags: stored.draft.tags),
        content: new.content)
    ]
    try PostgresDevices(session).apply(changes)
    try forgetFingerprint(of: found.row.installation, hub: new.hub)
    return .done(stored)
  }

  func deleteRegistration(
    _ id: String, hub: Hub.ID, condition: ETagCondition, at: Date
  ) throws -> RegistrationWrite {
    try PostgresDevices(session).lock([
      PostgresDevices.DeviceLock.device(hub: hub, hash: PreparedInstallation.hash(id))
    ])
    guard let found = try live(id, hub: hub, at: at) else {
      if let number = coding.number(in: id, hub: hub) {
        try forgetRemoved([number], hub: hub)
      } else {
        // In any slot: a registration of an installation that was moved here is in the
        // installation's.
        try execute(
          "DELETE FROM removed_registration WHERE hub = ?1 AND public_id = ?2", hub, id)
      }
      return .missing
    }
    guard condition.holds(for: String(found.stored.etag)) else { return .stale }
    try remove(found)
    return .done(found.stored)
  }

  /// The registration with an id that clients use, locked with its installation. An expired one is
  /// removed.
  private func live(
    _ id: String, hub: Hub.ID, at: Date
  ) throws -> PostgresRegistrationReader.Found? {
    guard var found = try reader().registration(id, hub: hub) else { return nil }
    if found.row.installation != 0 {
      guard
        let device = try PostgresInstallations(session).installation(
          found.row.installation, hub: hub)?.installationID
      else {
        return nil
      }
      let hash = PreparedInstallation.hash(device.foldingCapitals)
      try PostgresDevices(session).lock([PostgresDevices.DeviceLock.device(hub: hub, hash: hash)])
      guard let again = try reader().registration(id, hub: hub) else { return nil }
      found = again
    }
    guard found.isOver(at: at) else { return found }
    try remove(found)
    return nil
  }

  private func remove(_ found: PostgresRegistrationReader.Found) throws {
    try forgetRemoved([found.row.number], hub: found.row.hub)
    var changes = RegistrationChanges()
    changes.removed = [found.row]
    try PostgresDevices(session).apply(changes)
    try forgetFingerprint(of: found.row.installation, hub: found.row.hub)
  }

  private func insert(_ id: String, _ new: ClientContent) throws -> StoredRegistration {
    guard let number = coding.number(in: id, hub: new.hub) else {
      let sequential = try shared.numbers.next(.registration, session)
      let number = slots.number(sequential, slot: slots.slot(of: id))
      return try insert(new, as: number, id: id, publicID: id)
    }
    try shared.numbers.skip(.registration, to: slots.sequential(number), session)
    return try insert(new, as: number, id: id, publicID: nil)
  }

  func insert(
    _ new: ClientContent, as number: RegistrationID, id: String, publicID: String?
  ) throws -> StoredRegistration {
    var changes = RegistrationChanges()
    changes.forgottenHandles = [new.handle]
    changes.new = [
      .init(
        number: number, slot: slots.slot(ofNumber: number), publicID: publicID,
        context: new.context(installation: 0, tags: new.draft.tags), content: new.content)
    ]
    try PostgresDevices(session).apply(changes)
    return StoredRegistration(
      number: number, id: id, draft: new.draft, etag: 1, isDerived: false)
  }

  /// Makes the installation's next write a complete one, so that its registrations match its
  /// document again.
  func forgetFingerprint(of installation: Int64, hub: Hub.ID) throws {
    guard installation != 0 else { return }
    try execute(
      "UPDATE installation SET fingerprint = 0 WHERE hub = ?1 AND slot = ?2 AND id = ?3", hub,
      slots.slot(ofNumber: installation), installation)
  }

  func forgetRemoved(_ numbers: [RegistrationID], hub: Hub.ID) throws {
    try execute(
      """
      DELETE FROM removed_registration r USING unnest(?2::int2[], ?3::int8[]) AS w (slot, id)
      WHERE r.hub = ?1 AND r.slot = w.slot AND r.id = w.id
      """, hub, PostgresArray.int2(numbers.map { slots.slot(ofNumber: $0) }),
      PostgresArray.int8(numbers))
  }

  func reader() -> PostgresRegistrationReader { PostgresRegistrationReader(session: session) }
}

/// Lists of registrations, in the order of their numbers.
extension PostgresRegistrations {
  /// A limit on memory, larger than any caller's page.
  private static let listLimit = 10_000

  func registrations(
    _ query: RegistrationQuery, hub: Hub.ID, asOf: Date, after: RegistrationID, limit: Int
  ) throws -> RegistrationPage {
    guard limit > 0 else { return RegistrationPage() }
    let limit = min(limit, Self.listLimit)
    var isMeant: (RegistrationDraft) -> Bool = { _ in true }
    var isByHandle = false
    var condition = SQLBuilder()
    switch query {
    case .all: break
    case .tag(let tag):
      if let implicit = ImplicitTag(folded: tag.folded) {
        let numbers = try PostgresTargets(session).installations(carrying: implicit, hub: hub)
        condition += " AND r.installation <> 0 AND r.installation = ANY("
        condition += "\(condition.bind(PostgresArray.int8(numbers)))::int8[])"
      } else {
        condition += " AND r.tags @> "
        condition += "\(condition.bind(PostgresArray.text([tag.folded])))::text[]"
      }
    case .device(let filter):
      isByHandle = true
      let hashes = filter.hashes(hub: hub)
      condition += " AND h.slot = ANY("
      condition += condition.bind(PostgresArray.int2(hashes.map { slots.slot(ofNumber: $0) }))
      condition += "::int2[]) AND h.hash = ANY("
      condition += "\(condition.bind(PostgresArray.int8(hashes)))::int8[])"
      isMeant = { filter.matches(platform: $0.platform, channel: $0.channel) }
    }
    let reader = reader()
    var page = RegistrationPage()
    var cursor = after
    while true {
      var sql = condition
      let (hubPlace, first, count) = (
        sql.bind(hub), sql.bind(cursor), sql.bind(Int64(limit + 1))
      )
      let columns = PostgresRegistrationReader.columns
      let rows =
        isByHandle
        ? try sql.statement(
          on: connection,
          "SELECT \(columns) FROM \(PostgresHandles(session).joinedHandles) WHERE h.hub = \(hubPlace) AND h.id > \(first)",
          "ORDER BY r.id LIMIT \(count)")
        : try sql.statement(
          on: connection,
          """
          SELECT r.* FROM generate_series(0, \(slots.count - 1)) AS s (slot), LATERAL (
            SELECT \(columns) FROM registration r
            WHERE r.hub = \(hubPlace) AND r.slot = s.slot::int2 AND r.id > \(first)
          """, "ORDER BY r.id LIMIT \(count)) AS r ORDER BY r.id LIMIT \(count)")
      var seen = 0
      while try rows.step() {
        seen += 1
        cursor = rows.integer(2)
        let found: PostgresRegistrationReader.Found
        do { found = try reader.found(rows) } catch StoreError.corrupt(let reason) {
          // A malformed row must not hide the others.
          page.unreadable.append(
            UnreadableTarget(registration: cursor, platform: nil, reason: reason))
          continue
        }
        guard !found.isOver(at: asOf), isMeant(found.stored.draft) else { continue }
        guard !page.isFull(limit) else {
          page.hasMore = true
          return page
        }
        page.append(found.stored)
      }
      if seen <= limit { return page }
    }
  }

  /// Finds devices through handles: the registrations that have one, and the installations that
  /// they belong to or belonged to.
  func devices(
    _ filter: RegistrationFilter, hub: Hub.ID, asOf: Date, limit: Int
  ) throws -> FoundDevices {
    let reader = reader()
    var found = FoundDevices()
    let hashes = filter.hashes(hub: hub)
    var numbers: Set<RegistrationID> = []
    var installations: Set<Int64> = []
    for isLive in [true, false] {
      let row = try connection.statement(
        isLive
          ? """
          SELECT r.id, r.installation FROM \(PostgresHandles(session).joinedHandles)
          WHERE h.hub = ?1 AND h.slot = ANY(?4::int2[]) AND h.hash = ANY(?2::int8[])
          ORDER BY h.id LIMIT ?3
          """
          : """
          SELECT id, installation FROM removed_registration
          WHERE hub = ?1 AND handle_hash = ANY(?2::int8[]) AND ?4::int2[] IS NOT NULL
          ORDER BY id LIMIT ?3
          """, hub, PostgresArray.int8(hashes), Int64(limit + 1),
        PostgresArray.int2(hashes.map { slots.slot(ofNumber: $0) }))
      while try row.step() {
        if row.integer(1) != 0 { installations.insert(row.integer(1)) }
        // When a handle is dead, only the installation is left of the device.
        if isLive { numbers.insert(row.integer(0)) }
      }
    }
    if installations.count > limit { found.hasMore = true }
    let kept = installations.sorted().prefix(limit)
    let others = try PostgresDevices(session).registrationRows(
      ofInstallations: kept.map { (hub, $0) })
    numbers.formUnion(others.map(\.number))
    if numbers.count > limit { found.hasMore = true }
    var names: [Int64: String] = [:]
    for number in kept {
      // Its registrations may now belong to others, or to a tile that had the handle.
      guard let installation = try PostgresInstallations(session).installation(number, hub: hub),
        filter.matches(installation)
      else { continue }
      names[number] = installation.installationID
      if installation.expirationTime.map({ $0 > asOf }) ?? true {
        found.append(installation)
      }
    }
    found.sortInstallations()
    for number in numbers.sorted().prefix(limit) {
      guard let one = try reader.registration(number, hub: hub), !one.isOver(at: asOf),
        filter.matches(platform: one.stored.draft.platform, channel: one.stored.draft.channel)
      else { continue }
      found.append(
        .init(
          stored: one.stored, installationID: names[one.row.installation],
          environment: PushEnvironment(stored: one.environment), confirmedAt: one.confirmedAt))
    }
    return found
  }
}

extension RegistrationFilter {
  /// Possible values of `handle_hash`.
  func hashes(hub: Hub.ID) -> [Int64] {
    let platforms = platform.map { [$0] } ?? PushPlatform.allCases
    return platforms.flatMap { platform in
      handles.map { PreparedRegistration.hash(of: $0, platform: platform.code, hub: hub) }
    }
  }
}
