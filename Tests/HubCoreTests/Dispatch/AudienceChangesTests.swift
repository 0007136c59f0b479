import Foundation
import HubStorage
import HubTesting
import NotificationHubs
import StoreContract
import Testing

@testable import HubCore

/// What `docs/reliability.md` promises of an audience that changes while it is sent to, over the
/// real store.
@Suite("Audiences that change under a send", .timeLimit(.minutes(10)))
struct AudienceChangesTests {
  /// A hub with one push service, and a native send to the tag `x`.
  private struct Scene {
    private let open: @Sendable () async throws -> any HubStore
    let clock = ManualClock()
    let hub: Hub.ID
    let gateway: FakeGateway
    private(set) var store: any HubStore
    var limits = DispatchLimits()

    init(
      on engine: TestedEngine, in directory: TemporaryDirectory, _ gateway: FakeGateway
    ) async throws {
      switch engine {
      case .file:
        let path = directory.path("hub.sqlite")
        open = { try await SQLiteHubStore.open(at: path, sealing: TestSealing()) }
      case .postgres:
        let address = try await PostgresStores.makeDatabase()
        open = { try await PostgresStores.open(address) }
      }
      store = try await open()
      hub = try await store.createHub(
        named: "hub", registrationTTL: nil, policies: [], at: clock.now
      ).id
      try await store.putCredential(
        PushCredential(platform: .apns, properties: [:], modifiedAt: clock.now), hub: hub)
      self.gateway = gateway
      limits.keeping = .all
    }

    mutating func reopen() async throws {
      try await store.close()
      store = try await open()
    }

    func put(
      _ id: String, _ token: String, tags: [NotificationHubs.Tag] = ["x"], user: String? = nil
    ) async throws {
      try await store.put(
        SampleDevice(id, handle: token, user: user, tags: tags), hub: hub, at: clock.now)
    }

    func delete(_ id: String) async throws {
      _ = try await store.deleteInstallation(id, hub: hub)
    }

    func start() async throws -> (Dispatcher, StoreHook) {
      let process = StoreHook()
      let dispatcher = Dispatcher(
        store: store.seen(by: process), gateways: FakeGateways([.apns: gateway]),
        clock: clock.hubClock, random: .always(0.5),
        limits: limits)
      try await dispatcher.start()
      return (dispatcher, process)
    }

    func accept() async throws -> NotificationRecord {
      let request = NotificationRequest(
        format: .native(.apns), body: Array(#"{"aps":{}}"#.utf8), tags: "x",
        expression: .tag("x"))
      let record = NotificationRecord(
        id: NotificationID(at: clock.now, random: .system), hub: hub, request: request,
        state: .enqueued,
        enqueuedAt: clock.now)
      try await store.accept(record)
      return record
    }

    /// The one native registration of a device that is there.
    func registration(_ id: String) async throws -> RegistrationID? {
      try await store.registrations(
        .tag(.installation(id)), hub: hub, asOf: clock.now, after: 0, limit: 2
      ).registrations.first?.number
    }

    /// What is kept, by registration. A registration with two outcomes is an error.
    func outcomes(
      of record: NotificationRecord
    ) async throws -> [RegistrationID: NotificationOutcome] {
      let kept = try await store.outcomes(
        of: record.id, hub: hub, OutcomeFilter(), after: 0, limit: 10_000
      ).outcomes.map { ($0.failure.registration, $0.failure.outcome) }
      #expect(Set(kept.map(\.0)).count == kept.count)
      return Dictionary(kept, uniquingKeysWith: { $1 })
    }
  }

  // MARK: Row by row

  @Test("each row of the page's table, one device each", arguments: TestedEngine.installed)
  func rows(engine: TestedEngine) async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let gateway = FakeGateway { push, attempt in
      push.handle.hasPrefix("R") && attempt == 1
        ? PushResult(outcome: .pnsServerError, retry: .backoff, status: 500) : .success
    }
    var scene = try await Scene(on: engine, in: directory, gateway)
    // While the first page is under way no other is read.
    scene.limits.pageSize = 1
    scene.limits.pagesPerNotification = 1
    for id in ["again", "goes", "untagged", "swaps", "repeats", "stays"] {
      try await scene.put(id, "T-\(id)")
    }
    try await scene.put("tagged", "T-tagged", tags: [])
    for id in ["untagged", "goes", "returns", "swaps"] {
      try await scene.put("r-\(id)", "R-\(id)")
    }
    gateway.hold()
    let (dispatcher, _) = try await scene.start()
    let record = try await scene.accept()
    await dispatcher.submit(record)
    await gateway.arrived(batches: 1)
    #expect(gateway.pushes.map(\.handle) == ["T-again"])
    // Before their pages are read.
    try await scene.delete("again")
    try await scene.put("again", "T-again")
    let gone = try #require(try await scene.registration("goes"))
    try await scene.delete("goes")
    try await scene.put("untagged", "T-untagged", tags: [])
    try await scene.put("swaps", "T-swapped")
    try await scene.put("repeats", "T-repeats")
    try await scene.put("tagged", "T-tagged")
    try await scene.put("comes", "T-comes")
    gateway.release()
    while try await scene.store.notification(record.id, hub: scene.hub)?.isAudienceRead != true {
      try await Task.sleep(for: .milliseconds(1))
    }
    #expect(try await scene.store.waitingRetries(record.id, hub: scene.hub) == 4)
    // Their pages are read, and their pushes wait for another try.
    let lost = try await [scene.registration("r-goes"), scene.registration("r-returns")]
    try await scene.put("r-untagged", "R-untagged", tags: [])
    try await scene.delete("r-goes")
    try await scene.delete("r-returns")
    try await scene.put("r-returns", "R-returns")
    try await scene.put("r-swaps", "R-swapped")
    let (hub, clock) = (scene.hub, scene.clock)
    let end = try await clock.running(for: dispatcher) {
      try await dispatcher.record(of: record.id, hub: hub, finishedWithin: .seconds(86_400))
    }
    let outcomes = try await scene.outcomes(of: record)
    #expect(end.map(DispatchWorld.outcomes) == [.success: 9, .expiredChannel: 2])
    #expect(outcomes.count == 11)
    #expect(outcomes[gone] == nil)
    for id in ["untagged", "r-returns"] {
      #expect(outcomes[try #require(try await scene.registration(id))] == nil, "\(id)")
    }
    for number in lost { #expect(outcomes[try #require(number)] == .expiredChannel) }
    #expect(
      gateway.pushes.map(\.handle).sorted() == [
        "R-goes", "R-returns", "R-swapped", "R-swapped", "R-swaps", "R-untagged", "R-untagged",
        "T-again", "T-again", "T-comes", "T-repeats", "T-stays", "T-swapped", "T-tagged",
      ])
    // Deleted and written again it is another registration, and the same device: one push id.
    #expect(Set(gateway.pushes.filter { $0.handle == "T-again" }.map(\.id)).count == 1)
    await dispatcher.stop(within: .seconds(1))
    try await scene.store.close()
  }

  // MARK: Mixed

  /// A case is its seed: `BELFRY_SEED=N` runs that one.
  private static let seeds: [UInt64] = {
    let own = ProcessInfo.processInfo.environment["BELFRY_SEED"].flatMap(UInt64.init)
    return own.map { [$0] } ?? Array(1...12)
  }()

  /// - Parameter attempt: From 1.
  private static func answer(
    _ seed: UInt64, _ push: FakeGateway.Push, _ attempt: Int
  ) -> PushResult {
    var generator = SeededGenerator(seed: seed ^ push.id.low &+ UInt64(attempt))
    // A token that others take over, too, is reached at once: see what the page says of duplicates
    // whose first holder changes while its push waits.
    guard attempt < 4, (Int(push.handle.dropFirst()) ?? 0) % 6 != 0 else { return .success }
    return switch Int.random(in: 0..<12, using: &generator) {
    case 0: PushResult(outcome: .pnsUnreachable, retry: .backoff)
    case 1: PushResult(outcome: .pnsServerError, retry: .backoff, status: 500)
    case 2: PushResult(outcome: .channelThrottled, retry: .backoff, status: 429, retryAfter: 30)
    case 3: PushResult(outcome: .throttled, retry: .backoff, status: 429, retryAfter: 5)
    default: .success
    }
  }

  /// Devices that come, go, change tags and take each other's tokens; what was acknowledged of
  /// them.
  private struct Crowd {
    let count: Int
    private(set) var known: [Int: (token: String, isTagged: Bool)] = [:]
    /// Every third device stays as it is, but for writing itself again as apps do at each start.
    /// Nobody else has the tokens of every second of them.
    var steady: [Int] { (0..<count).filter { $0 % 3 == 0 } }
    var tagged: Int { known.values.count { $0.isTagged } }
    let erasesUsers: Bool

    /// Half of them come in the opposite order, so that tokens wander both ways.
    init(_ scene: Scene, _ generator: inout SeededGenerator) async throws {
      count = Int.random(in: 20...80, using: &generator)
      erasesUsers = Int.random(in: 0..<3, using: &generator) == 0
      for number in (0..<count).shuffled(using: &generator) {
        try await put(number, "T\(number)", isTagged: true, scene)
      }
    }

    private mutating func put(
      _ number: Int, _ token: String, isTagged: Bool, _ scene: Scene
    ) async throws {
      try await scene.put(
        "d\(number)", token, tags: isTagged ? ["x"] : [],
        user: number % 3 == 0 ? nil : "u\(number % 10)")
      known[number] = (token, isTagged)
    }

    /// Has one device do something.
    mutating func change(_ scene: Scene, _ generator: inout SeededGenerator) async throws {
      let number = Int.random(in: 0..<count + 10, using: &generator)
      if number < count, number % 3 == 0 {
        return try await put(number, "T\(number)", isTagged: true, scene)
      }
      switch Int.random(in: 0..<16, using: &generator) {
      case 0 where erasesUsers:
        _ = try await scene.store.eraseUser("u\(number % 10)", hub: scene.hub)
        for other in known.keys where other % 3 != 0 && other % 10 == number % 10 {
          known[other] = nil
        }
      case 0..<4:
        try await scene.delete("d\(number)")
        known[number] = nil
      default:
        let drawn = Int.random(in: 0..<count, using: &generator)
        let token = drawn % 6 == 3 ? drawn - 3 : drawn
        try await put(
          number, "T\(token)", isTagged: Bool.random(using: &generator), scene)
      }
    }
  }

  @Test(
    "a device that was in the audience throughout gets the push, and one outcome says so",
    arguments: seeds)
  func changes(seed: UInt64) async throws { try await changes(seed, on: .file) }

  @Test(
    "so it is on PostgreSQL",
    .enabled(if: PostgresStores.areInstalled, Comment(rawValue: PostgresStores.absence)),
    arguments: seeds.prefix(1))
  func changesOnPostgres(seed: UInt64) async throws { try await changes(seed, on: .postgres) }

  private func changes(_ seed: UInt64, on engine: TestedEngine) async throws {
    print("AudienceChangesTests seed \(seed)")
    var generator = SeededGenerator(seed: seed)
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let gateway = FakeGateway { push, attempt in Self.answer(seed, push, attempt) }
    var scene = try await Scene(on: engine, in: directory, gateway)
    var crowd = try await Crowd(scene, &generator)
    scene.limits.pageSize = Int.random(in: 1...9, using: &generator)
    scene.limits.laneTargets = Int.random(in: 1...20, using: &generator)
    scene.limits.pagesPerNotification = Int.random(in: 1...3, using: &generator)
    var (dispatcher, process) = try await scene.start()
    let record = try await scene.accept()
    // Accepted, and nothing of it read.
    for _ in 0..<Int.random(in: 0...5, using: &generator) {
      try await crowd.change(scene, &generator)
    }
    await dispatcher.submit(record)

    let mostKills = Int.random(in: 0...3, using: &generator)
    var kills = 0
    for _ in 0..<Int.random(in: 10...80, using: &generator) {
      try await crowd.change(scene, &generator)
      for _ in 0..<Int.random(in: 0..<30, using: &generator) { await Task.yield() }
      guard kills < mostKills, Int.random(in: 0..<15, using: &generator) == 0 else { continue }
      kills += 1
      await process.die()
      // What it had set an alarm for must not move the clock.
      await dispatcher.stop(within: .zero)
      try await scene.reopen()
      (dispatcher, process) = try await scene.start()
    }
    let (last, hub) = (dispatcher, scene.hub)
    let end = try await scene.clock.running(for: last) {
      try await last.record(of: record.id, hub: hub, finishedWithin: .seconds(86_400))
    }
    try await check(try #require(end), seed, scene, crowd, kills: kills)
    await last.stop(within: .zero)
    try await scene.store.close()
  }

  private func check(
    _ end: NotificationRecord, _ seed: UInt64, _ scene: Scene, _ crowd: Crowd, kills: Int
  ) async throws {
    #expect(end.state == .completed && end.isAudienceRead)
    let pushes = Dictionary(grouping: scene.gateway.pushes, by: \.handle)
    // Whatever became of the registrations, a repeat can be recognised.
    for (handle, sent) in pushes { #expect(Set(sent.map(\.id)).count == 1, "\(handle)") }

    let outcomes = try await scene.outcomes(of: end)
    for number in crowd.steady {
      let own = outcomes[try #require(try await scene.registration("d\(number)"))]
      let sent = try #require(pushes["T\(number)"], "T\(number)")
      if number % 6 == 0 {
        #expect(own == .success || own == .skipped)
        continue
      }
      #expect(own == .success)
      // Without a kill nothing follows the answer that it was taken.
      guard kills == 0, let push = sent.first else { continue }
      for attempt in 1..<sent.count {
        #expect(Self.answer(seed, push, attempt).outcome != .success)
      }
    }
    // Each outcome is counted once. What was kept of an erased user is gone, and the counts stay.
    let counts = DispatchWorld.outcomes(end)
    #expect(Set(counts.keys).isSubset(of: [.success, .skipped, .expiredChannel]))
    for (outcome, kept) in Dictionary(grouping: outcomes.values, by: \.self) {
      let counted = counts[outcome] ?? 0
      #expect(crowd.erasesUsers ? counted >= kept.count : counted == kept.count, "\(outcome)")
    }
    // All that was acknowledged is there, and nothing waits.
    let query = AudienceQuery(
      hub: scene.hub, kind: .native(.apns), expression: .tag("x"), asOf: scene.clock.now)
    #expect(try await scene.store.count(query) == crowd.tagged)
    #expect(try await scene.store.waitingRetries(end.id, hub: scene.hub) == 0)
  }
}
