import HubCore
import NotificationHubs

extension HubStoreContract {
  static let registrationRandomClauses = (UInt64(1)...8).map { seed in
    Clause("whatever is written, lists and sends agree with the store in memory (seed \(seed))") {
      store in
      try await compareWithMemory(store, seed: seed, rounds: 120)
    }
  }

  /// Does the same to a store and to one in memory, and compares what they show.
  private static func compareWithMemory(
    _ store: any HubStore, seed: UInt64, rounds: Int
  ) async throws {
    let memory = InMemoryHubStore()
    var pair = StorePair(
      stores: [store, memory], hubs: [try await makeHub(store), try await makeHub(memory)],
      random: SeededGenerator(seed: seed))
    for round in 0..<rounds {
      let what = try await pair.step(round)
      try await pair.compare("seed \(seed), round \(round), after \(what)")
    }
  }
}

/// Two stores to which the same is done.
private struct StorePair {
  let stores: [any HubStore]
  let hubs: [Hub.ID]
  var random: SeededGenerator
  /// What clients call the registrations that they made, in each store.
  private var ids: [[String]] = (0..<6).map { ["own-\($0)", "own-\($0)"] }

  init(stores: [any HubStore], hubs: [Hub.ID], random: SeededGenerator) {
    (self.stores, self.hubs, self.random) = (stores, hubs, random)
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
    switch pick(8) {
    case 0, 1:
      let draft = draft(round)
      var made: [StoredRegistration] = []
      for (store, hub) in zip(stores, hubs) {
        made.append(
          try await store.createRegistration(draft, hub: hub, at: HubStoreContract.now))
      }
      ids.append(made.map(\.id))
      return "creating"
    case 2, 3:
      let id = try await anyID()
      let draft = draft(round)
      try await same("a write") { store, hub, index in
        try await store.putRegistration(
          id[index], draft, hub: hub, condition: .none, at: HubStoreContract.now)
      }
      return "writing \(id)"
    case 4:
      let id = try await anyID()
      let condition: ETagCondition = pick(2) == 0 ? .any : .tag("1")
      try await same("a deletion") { store, hub, index in
        try await store.deleteRegistration(
          id[index], hub: hub, condition: condition, at: HubStoreContract.now)
      }
      return "deleting \(id)"
    case 5:
      let id = "i-\(pick(4))"
      for (store, hub) in zip(stores, hubs) { _ = try await store.deleteInstallation(id, hub: hub) }
      return "deleting installation \(id)"
    default:
      let device = device(round)
      for (store, hub) in zip(stores, hubs) {
        try await store.put(device, hub: hub, at: HubStoreContract.now)
      }
      return "writing installation \(device.installation.installationID)"
    }
  }

  /// The id of a registration that may be there, of a client's or of an installation's making.
  private mutating func anyID() async throws -> [String] {
    guard pick(3) == 0 else { return ids[pick(ids.count)] }
    let lists = try await each { store, hub, _ in try await HubStoreContract.list(store, .all, hub)
    }
    guard !lists[0].isEmpty, lists[0].count == lists[1].count else { return ids[0] }
    let index = pick(lists[0].count)
    return lists.map { $0[index].id }
  }

  func compare(_ when: String) async throws {
    var queries: [RegistrationQuery] = [
      .all, .tag("red"), .tag("d1"), .tag("$UserId:{bob}"), .tag("$InstallationId:{i-2}"),
      .tag("main"),
    ]
    for handle in Self.handles {
      queries.append(.device(try RegistrationFilter(parsing: "ChannelUri eq '\(handle)'")))
    }
    for query in queries {
      let lists = try await each { store, hub, _ in
        try await HubStoreContract.list(store, query, hub).map(Shown.init)
      }
      try HubStoreContract.expectEqual(lists[0], lists[1], "\(query), \(when)")
    }
    for kind in [AudienceQuery.Kind.native(.apns), .template] {
      let targets = try await each { store, hub, _ in
        let query = AudienceQuery(
          hub: hub, kind: kind, expression: .not(.tag("d2")), asOf: HubStoreContract.now)
        let page = try await store.targets(query, after: 0, limit: 1_000)
        return zip(page.targets, page.handleTexts).map {
          "\($0.registration) \($0.isDuplicate) \($1)"
        }
      }
      try HubStoreContract.expectEqual(targets[0], targets[1], "targets, \(when)")
    }
  }

  /// What two stores show alike; ids differ.
  private struct Shown: Equatable {
    let number: RegistrationID
    let draft: RegistrationDraft
    let etag: Int64
    let isDerived: Bool

    init(_ stored: StoredRegistration) {
      (number, draft) = (stored.number, stored.draft)
      (etag, isDerived) = (stored.etag, stored.isDerived)
    }
  }

  private func each<Value>(
    _ ask: (any HubStore, Hub.ID, Int) async throws -> Value
  ) async throws -> [Value] {
    var values: [Value] = []
    for index in stores.indices { values.append(try await ask(stores[index], hubs[index], index)) }
    return values
  }

  private func same(
    _ what: String, _ write: (any HubStore, Hub.ID, Int) async throws -> RegistrationWrite
  ) async throws {
    let writes = try await each(write).map { write -> String in
      switch write {
      case .done(let stored): "done \(Shown(stored))"
      case .missing: "missing"
      case .stale: "stale"
      }
    }
    try HubStoreContract.expectEqual(writes[0], writes[1], what)
  }
}
