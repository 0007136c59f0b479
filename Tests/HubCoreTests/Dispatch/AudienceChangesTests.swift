import Foundation
import HubStorage
import HubTesting
import NotificationHubs
import Testing

@testable import HubCore

/// What `docs/reliability.md` promises of an audience that changes while it is sent to: devices
/// come, go, change tags and take each other's tokens, and the hub is killed and started again over
/// the same file. A case is its seed: `BELFRY_SEED=N` runs that one.
@Suite("Audiences that change under a send", .timeLimit(.minutes(10)))
struct AudienceChangesTests {
  private static let seeds: [UInt64] = {
    let own = ProcessInfo.processInfo.environment["BELFRY_SEED"].flatMap(UInt64.init)
    return own.map { [$0] } ?? Array(1...12)
  }()

  private static func answer(_ seed: UInt64) -> @Sendable (FakeGateway.Push, Int) -> PushResult {
    { push, attempt in
      var generator = SeededGenerator(seed: seed ^ push.id.low &+ UInt64(attempt))
      // A token that others take over, too, is reached at once: see what the page says of duplicates
      // whose first holder changes while its push waits.
      guard attempt < 4, (Int(push.handle.dropFirst()) ?? 0) % 6 != 0 else { return .success }
      return switch Int.random(in: 0..<12, using: &generator) {
      case 0: PushResult(outcome: .pnsUnreachable, retry: .backoff)
      case 1: PushResult(outcome: .pnsServerError, retry: .backoff, status: 500)
      case 2:
        PushResult(outcome: .channelThrottled, retry: .backoff, status: 429, retryAfter: 30)
      case 3: PushResult(outcome: .throttled, retry: .backoff, status: 429, retryAfter: 5)
      default: .success
      }
    }
  }

  @Test(
    "a device that was in the audience throughout gets the push, and one outcome says so",
    arguments: seeds)
  func changes(seed: UInt64) async throws {
    print("AudienceChangesTests seed \(seed)")
    var generator = SeededGenerator(seed: seed)
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    var store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    let clock = ManualClock()
    let hub = try await store.createHub(
      named: "hub", registrationTTL: nil, policies: [], at: clock.now)
    try await store.putCredential(
      PushCredential(platform: .apns, properties: [:], modifiedAt: clock.now), hub: hub.id)

    // Every third device is left alone; what the others do is acknowledged before it counts.
    let count = Int.random(in: 20...80, using: &generator)
    let steady = Set((0..<count).filter { $0 % 3 == 0 })
    var known: [Int: SampleDevice] = [:]
    for number in 0..<count {
      known[number] = SampleDevice("d\(number)", handle: "T\(number)", tags: ["x"])
    }
    // Half of them have come in the opposite order, so that tokens wander both ways.
    for number in (0..<count).shuffled(using: &generator) {
      if let device = known[number] { try await store.put(device, hub: hub.id, at: clock.now) }
    }

    let gateway = FakeGateway(answer: Self.answer(seed))
    var limits = DispatchLimits()
    limits.pageSize = Int.random(in: 1...9, using: &generator)
    limits.laneTargets = Int.random(in: 1...20, using: &generator)
    limits.pagesPerNotification = Int.random(in: 1...3, using: &generator)
    func start(_ store: SQLiteHubStore) async throws -> (Dispatcher, StoreHook) {
      let process = StoreHook()
      let dispatcher = Dispatcher(
        store: store.seen(by: process), gateways: FakeGateways([.apns: gateway]),
        clock: clock.hubClock,
        limits: limits, random: { 0.5 })
      try await dispatcher.start()
      return (dispatcher, process)
    }
    var (dispatcher, process) = try await start(store)
    let request = NotificationRequest(
      format: .native(.apns), body: Array(#"{"aps":{}}"#.utf8), tags: "x", expression: .tag("x"))
    let record = NotificationRecord(
      id: NotificationID(at: clock.now), hub: hub.id, request: request, state: .enqueued,
      enqueuedAt: clock.now)
    try await store.accept(record)
    await dispatcher.submit(record)

    var kills = 0
    for _ in 0..<Int.random(in: 10...80, using: &generator) {
      let number = Int.random(in: 0..<count + 10, using: &generator)
      if !steady.contains(number) {
        if Int.random(in: 0..<4, using: &generator) == 0 {
          _ = try await store.deleteInstallation("d\(number)", hub: hub.id)
          known[number] = nil
        } else {
          let drawn = Int.random(in: 0..<count, using: &generator)
          let token = drawn % 6 == 3 ? drawn - 3 : drawn
          let device = SampleDevice(
            "d\(number)", handle: "T\(token)", tags: Bool.random(using: &generator) ? ["x"] : [])
          try await store.put(device, hub: hub.id, at: clock.now)
          known[number] = device
        }
      }
      for _ in 0..<Int.random(in: 0..<30, using: &generator) { await Task.yield() }
      guard kills < 3, Int.random(in: 0..<15, using: &generator) == 0 else { continue }
      kills += 1
      await process.die()
      // What it had set an alarm for must not move the clock.
      await dispatcher.stop(within: .zero)
      try await store.close()
      store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      (dispatcher, process) = try await start(store)
    }
    let last = dispatcher
    let isIdle = try await clock.running(for: last) {
      await last.waitUntilIdle(within: .seconds(86_400))
    }
    #expect(isIdle)

    let end = try #require(try await store.notification(record.id, hub: hub.id))
    #expect(end.state == .completed && end.isAudienceRead)
    // Each device that was there throughout has its push.
    let reached = Set(gateway.pushes.map(\.handle))
    for number in steady { #expect(reached.contains("T\(number)"), "T\(number)") }
    // Each outcome is counted once; failures name theirs.
    let outcomes = DispatchWorld.outcomes(end)
    let failures = try await store.failures(record.id, hub: hub.id, after: 0, limit: 10_000)
    #expect(outcomes.filter { $0.key != .success }.values.reduce(0, +) == failures.count)
    #expect(outcomes.values.reduce(0, +) >= steady.count)
    #expect(Set(failures.map(\.outcome)).isSubset(of: [.skipped, .expiredChannel]))
    // All that was acknowledged is there.
    let query = AudienceQuery(
      hub: hub.id, kind: .native(.apns), expression: .tag("x"), asOf: clock.now)
    let tagged = known.values.filter { $0.installation.tags.contains("x") }
    #expect(try await store.count(query) == tagged.count)
    #expect(try await store.waitingRetries(record.id, hub: hub.id) == 0)
    try await store.close()
  }
}
