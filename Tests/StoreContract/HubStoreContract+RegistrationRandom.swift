import HubCore
import NotificationHubs

extension HubStoreContract {
  static let registrationRandomClauses = (UInt64(1)...8).map { seed in
    Clause("whatever is written, lists and sends show all of it (seed \(seed))") { store in
      var run = RegistrationRun(
        store: store, hub: try await makeHub(store), random: SeededGenerator(seed: seed))
      for round in 0..<120 {
        let what = try await run.step(round)
        try await run.compare("seed \(seed), round \(round), after \(what)")
      }
    }
  }
}

/// What a hub has to show of its registrations, kept as plainly as can be. Its numbers have no
/// gaps; those of a store may, but are in the same order.
private struct RegistrationModel {
  struct Row {
    let number: RegistrationID
    var draft: RegistrationDraft
    /// `nil` for one that a client wrote.
    var installation: String?
    var etag: Int64 = 1
  }

  private var rows: [RegistrationID: Row] = [:]
  private var installations: [String: Installation] = [:]
  private var last: RegistrationID = 0
  /// Numbers by the ids that clients use. One that the hub has made leads to its number for ever.
  private var numbers: [String: RegistrationID] = [:]

  mutating func learn(_ id: String, of number: RegistrationID) { numbers[id] = number }

  mutating func create(_ draft: RegistrationDraft) -> Row {
    last += 1
    return insert(draft, as: last)
  }

  private mutating func insert(_ draft: RegistrationDraft, as number: RegistrationID) -> Row {
    let row = Row(number: number, draft: draft)
    rows[number] = row
    return row
  }

  mutating func put(_ id: String, _ draft: RegistrationDraft, isOurs: Bool) -> Row {
    guard let number = numbers[id], var row = rows[number] else {
      if isOurs, let number = numbers[id] { return insert(draft, as: number) }
      let row = create(draft)
      numbers[id] = row.number
      return row
    }
    let implicit = row.installation == nil ? [] : row.draft.tags.filter(\.isImplicit)
    row.draft = draft
    row.draft.tags = implicit + draft.tags
    row.etag += 1
    rows[number] = row
    return row
  }

  /// - Returns: `nil` when there is none, and whether the condition let it go.
  mutating func delete(_ id: String, _ condition: ETagCondition) -> (row: Row, isGone: Bool)? {
    guard let number = numbers[id], let row = rows[number] else { return nil }
    guard condition.holds(for: String(row.etag)) else { return (row, false) }
    rows[number] = nil
    return (row, true)
  }

  mutating func deleteInstallation(_ id: String) {
    installations[id] = nil
    rows = rows.filter { $0.value.installation != id }
  }

  /// A registration keeps its number as long as it is the same one of its installation.
  mutating func put(_ device: SampleDevice) {
    let id = device.installation.installationID
    var old = rows.values.filter { $0.installation == id }.sorted { $0.number < $1.number }
    let isRepeat =
      installations[id] == device.installation
      && Set(old.map(\.draft)) == Set(device.registrations)
    for draft in device.registrations {
      if let index = old.firstIndex(where: { Self.name($0.draft) == Self.name(draft) }) {
        var row = old.remove(at: index)
        row.draft = draft
        if !isRepeat { row.etag += 1 }
        rows[row.number] = row
      } else {
        let number = create(draft).number
        rows[number]?.installation = id
      }
    }
    for row in old { rows[row.number] = nil }
    installations[id] = device.installation
  }

  /// What tells a registration from the others of its device.
  private static func name(_ draft: RegistrationDraft) -> String? {
    if case .template(_, let name) = draft.kind { name ?? "" } else { nil }
  }

  // MARK: Showing

  func list(_ query: RegistrationQuery) -> [Row] {
    rows.values.sorted { $0.number < $1.number }.filter { row in
      switch query {
      case .all: true
      case .tag(let tag): row.draft.tags.contains(tag)
      case .device(let filter):
        filter.matches(platform: row.draft.platform, channel: row.draft.channel)
      }
    }
  }

  /// - Parameter tag: Those that have it are not in the audience.
  func targets(_ kind: AudienceQuery.Kind, without tag: Tag) -> [String] {
    var seen: Set<String> = []
    return list(.all).filter { row in
      guard !row.draft.tags.contains(tag) else { return false }
      switch (kind, row.draft.kind) {
      case (.native(let platform), .native): return platform == row.draft.platform
      case (.template, .template): return true
      default: return false
      }
    }.map { row in
      let handle = row.draft.channel.handle
      let isDuplicate = kind != .template && !seen.insert(handle).inserted
      return "\(row.number) \(isDuplicate) \(handle)"
    }
  }
}

/// Does the same to a store and to a model, and compares what they show.
private struct RegistrationRun {
  let store: any HubStore
  let hub: Hub.ID
  var random: SeededGenerator
  private var model = RegistrationModel()
  /// The model's numbers by the store's.
  private var modelNumbers: [RegistrationID: RegistrationID] = [:]
  /// Ids of clients' own, then those that the hub has made for them.
  private var ids = (0..<6).map { "own-\($0)" }

  init(store: any HubStore, hub: Hub.ID, random: SeededGenerator) {
    (self.store, self.hub, self.random) = (store, hub, random)
  }

  private static let handles = ["AA", "BB", "CC"]

  private mutating func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  private mutating func draft(_ round: Int) -> RegistrationDraft {
    let kind: RegistrationDraft.Kind =
      pick(2) == 0 ? .native : .template(PushTemplate(body: "{\"n\":\(pick(3))}"), name: nil)
    return HubStoreContract.native(
      Self.handles[pick(3)],
      tags: ["r\(round)", ["red", "Blue"][pick(2)]].map { Tag(rawValue: $0) },
      kind: kind, platform: pick(4) == 0 ? .gcm : .apns)
  }

  private mutating func device(_ round: Int) -> SampleDevice {
    SampleDevice(
      "i-\(pick(4))", handle: Self.handles[pick(3)], user: pick(2) == 0 ? nil : "bob",
      tags: [Tag(rawValue: "d\(round % 3)")],
      templates: pick(2) == 0 ? [:] : ["main": PushTemplate(body: "{}")])
  }

  /// - Returns: What was done.
  mutating func step(_ round: Int) async throws -> String {
    let now = HubStoreContract.now
    switch pick(8) {
    case 0, 1:
      let draft = draft(round)
      let made = try await store.createRegistration(draft, hub: hub, at: now)
      let row = model.create(draft)
      try Self.expect(made, Shown(row), "a creation")
      model.learn(made.id, of: row.number)
      ids.append(made.id)
      return "creating"
    case 2, 3:
      let id = try await anyID()
      let draft = draft(round)
      let write = try await store.putRegistration(id, draft, hub: hub, condition: .none, at: now)
      guard case .done(let stored) = write else {
        throw HubStoreContract.Violation(description: "\(write) instead of a write")
      }
      let isOurs = !id.hasPrefix("own-")
      try Self.expect(stored, Shown(model.put(id, draft, isOurs: isOurs)), "a write")
      return "writing \(id)"
    case 4:
      let id = try await anyID()
      let condition: ETagCondition = pick(2) == 0 ? .any : .tag("1")
      let write = try await store.deleteRegistration(id, hub: hub, condition: condition, at: now)
      switch (write, model.delete(id, condition)) {
      case (.missing, nil), (.stale, (_, false)?): break
      case (.done(let stored), (let row, true)?):
        try Self.expect(stored, Shown(row), "a deletion")
      case (_, let wanted):
        throw HubStoreContract.Violation(
          description: "\(write) instead of \(String(describing: wanted))")
      }
      return "deleting \(id)"
    case 5:
      let id = "i-\(pick(4))"
      _ = try await store.deleteInstallation(id, hub: hub)
      model.deleteInstallation(id)
      return "deleting installation \(id)"
    default:
      let device = device(round)
      try await store.put(device, hub: hub, at: now)
      model.put(device)
      return "writing installation \(device.installation.installationID)"
    }
  }

  /// The id of a registration that may be there, of a client's or of an installation's making.
  private mutating func anyID() async throws -> String {
    guard pick(3) == 0 else { return ids[pick(ids.count)] }
    let list = try await HubStoreContract.list(store, .all, hub)
    guard !list.isEmpty else { return ids[0] }
    let stored = list[pick(list.count)]
    guard let number = modelNumbers[stored.number] else { return ids[0] }
    model.learn(stored.id, of: number)
    return stored.id
  }

  mutating func compare(_ when: String) async throws {
    var queries: [RegistrationQuery] = [
      .all, .tag("red"), .tag("d1"), .tag("$UserId:{bob}"), .tag("$InstallationId:{i-2}"),
      .tag("main"),
    ]
    for handle in Self.handles {
      queries.append(.device(try RegistrationFilter(parsing: "ChannelUri eq '\(handle)'")))
    }
    for query in queries {
      let (found, wanted) = (
        try await HubStoreContract.list(store, query, hub), model.list(query)
      )
      try HubStoreContract.expectEqual(
        found.map(Shown.init), wanted.map(Shown.init), "\(query), \(when)")
      for (stored, row) in zip(found, wanted) {
        let known = modelNumbers.updateValue(row.number, forKey: stored.number)
        try HubStoreContract.expectEqual(known ?? row.number, row.number, "a number, \(when)")
      }
      try HubStoreContract.expectEqual(
        found.map(\.number), found.map(\.number).sorted(), "the order, \(when)")
    }
    for kind in [AudienceQuery.Kind.native(.apns), .template] {
      let query = AudienceQuery(
        hub: hub, kind: kind, expression: .not(.tag("d2")), asOf: HubStoreContract.now)
      let page = try await store.targets(query, after: 0, limit: 1_000)
      let shown = zip(page.targets, page.handleTexts).map {
        "\(modelNumbers[$0.registration] ?? 0) \($0.isDuplicate) \($1)"
      }
      try HubStoreContract.expectEqual(
        shown, model.targets(kind, without: "d2"), "targets, \(when)")
    }
  }

  private static func expect(_ found: StoredRegistration, _ wanted: Shown, _ what: String) throws {
    try HubStoreContract.expectEqual(Shown(found), wanted, what)
  }

  /// What store and model show alike.
  private struct Shown: Equatable {
    let draft: RegistrationDraft
    let etag: Int64
    let isDerived: Bool

    init(_ stored: StoredRegistration) {
      draft = stored.draft
      (etag, isDerived) = (stored.etag, stored.isDerived)
    }

    init(_ row: RegistrationModel.Row) {
      draft = row.draft
      (etag, isDerived) = (row.etag, row.installation != nil)
    }
  }
}
