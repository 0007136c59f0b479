import Foundation
import HubTesting
import NotificationHubs
import StoreContract
import Synchronization
import Testing

@testable import HubCore
@testable import HubStorage

/// Whatever pages, platforms, answers and crashes come together: every target gets exactly one
/// outcome, the counts add up, and the cursor never runs ahead.
@Suite("Dispatcher under random conditions", .timeLimit(.minutes(5)))
struct DispatcherPropertyTests {
  /// splitmix64: the same case for the same seed on every machine.
  private struct Generator: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var z = state
      z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
      z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
      return z ^ (z >> 31)
    }
  }

  /// An answer that depends on the push and the try alone.
  private static func answer(
    _ seed: UInt64, removes: Bool
  ) -> @Sendable (FakeGateway.Push, Int) -> PushResult {
    { push, attempt in
      var generator = Generator(state: seed ^ push.id.low &+ UInt64(attempt))
      switch Int.random(in: 0..<20, using: &generator) {
      case 0:
        return PushResult(outcome: .badChannel, handle: removes ? .remove : .keep, status: 400)
      case 1:
        return PushResult(outcome: .expiredChannel, handle: removes ? .remove : .keep, status: 410)
      case 2: return PushResult(outcome: .pnsUnreachable, retry: .backoff)
      case 3: return PushResult(outcome: .pnsServerError, retry: .backoff, status: 500)
      case 4:
        return PushResult(outcome: .throttled, retry: .backoff, status: 429, retryAfter: 20)
      case 5:
        return PushResult(outcome: .invalidCredentials, retry: .pauseCredential, status: 403)
      case 6: return PushResult(outcome: .invalidNotificationSize, status: 413)
      default: return .success
      }
    }
  }

  @Test(
    "every target gets exactly one outcome, also across a crash",
    arguments: 1...24 as ClosedRange<UInt64>)
  func everyTargetOnce(seed: UInt64) async throws {
    var generator = Generator(state: seed)
    let platforms: [PushPlatform] = [.apns, .fcmv1, .adm]
    let sends = Int.random(in: 1...4, using: &generator)
    // A registration that one send removes is no target of the next: only a lone send removes.
    let answer = Self.answer(seed, removes: sends == 1)
    let gateways = Dictionary(
      uniqueKeysWithValues: platforms.map { ($0, FakeGateway(answer: answer)) })
    let world = try await DispatchWorld(
      gateways, pageSize: Int.random(in: 1...12, using: &generator),
      credentials: Bool.random(using: &generator) ? nil : [.apns, .fcmv1],
      laneTargets: Int.random(in: 1...40, using: &generator))
    let template = PushTemplate(body: #"{"a":"$(a)"}"#)
    let devices = Int.random(in: 0...120, using: &generator)
    for number in 0..<devices {
      let platform = platforms[Int.random(in: 0..<3, using: &generator)]
      try await world.add(
        "d\(number)",
        [
          RegistrationDraft(
            kind: .template(template, name: nil), platform: platform,
            channel: .handle("\(number)"))
        ], platform)
    }
    let everyone = AudienceQuery(
      hub: world.hub.id, kind: .template, expression: nil, asOf: world.clock.now)
    let numbers = try await world.store.targets(everyone, after: 0, limit: 1000).targets
      .map(\.registration)

    // The first process answers some, holds some, and dies at a moment of its own.
    let crashing = Dictionary(
      uniqueKeysWithValues: platforms.map { ($0, FakeGateway(answer: answer)) })
    if Bool.random(using: &generator) { crashing[.fcmv1]?.hold() }
    let process = StoreHook()
    let first = world.dispatcher(crashing, process: process)
    try await first.start()
    var records: [NotificationRecord] = []
    for _ in 0..<sends {
      records.append(try await world.send(world.template(#"{"a":"b"}"#), through: first))
    }
    for _ in 0..<Int.random(in: 0..<400, using: &generator) { await Task.yield() }
    await process.die()
    let alreadySent = crashing.values.flatMap(\.pushes)
    for record in records {
      let read = try await world.store.notification(record.id, hub: world.hub.id)
      let outcomes = read?.counts.values.reduce(0, +) ?? 0
      let rows = try await world.store.waitingRetries(record.id, hub: world.hub.id)
      // What lies behind the cursor, and nothing else, has its outcome or its row.
      #expect(outcomes + rows == numbers.count { $0 <= read?.cursor ?? 0 })
    }

    let second = try await world.started()
    for record in records {
      let final = try await world.runningClock(for: second) {
        try await world.finished(record, by: second)
      }
      #expect(final.counts.values.reduce(0, +) == devices)
      #expect(final.isAudienceRead)
      let failures = try await world.store.failures(
        record.id, hub: world.hub.id, after: 0, limit: 1000)
      let failed = final.counts.filter { $0.key.outcome != .success }.values.reduce(0, +)
      #expect(failures.count == failed)
      #expect(try await world.store.waitingRetries(record.id, hub: world.hub.id) == 0)
    }
    // A repeat carries the id of the first try, whichever process made it.
    let ids = Dictionary(
      grouping: alreadySent + gateways.values.flatMap(\.pushes), by: \.handle)
    for pushes in ids.values { #expect(Set(pushes.map(\.id)).count <= sends) }
    crashing[.fcmv1]?.release()
  }

  /// What a store may throw for a while. Another process has the work, or the hub is gone, only
  /// where the store is shared, which is where a node may be mistaken.
  private static func errors(isShared: Bool) -> [any Error] {
    struct Unforeseen: Error {}
    let all: [StoreError] = [
      .diskFull, .locked, .cannotOpen("gone"), .corrupt("page 7"), .sealedSecret,
      .engine(code: 5, message: "busy"), .unfinishedMove, .newerSchema(found: 2, known: 1),
      .hubExists("hub"), .policyExists("p"), .quota("tags", limit: 1), .busy,
    ]
    return [Unforeseen()] + all + (isShared ? [StoreError.leaseLost, .noHub, .closed] : [])
  }

  struct Case: CustomTestStringConvertible {
    let engine: TestedEngine
    let seed: UInt64
    var testDescription: String { "\(engine), seed \(seed)" }
  }

  private static let faultyCases = TestedEngine.installed.flatMap { engine in
    (1...6).map { Case(engine: engine, seed: $0) }
  }

  @Test(
    "whatever the store throws, at any call, before it is made or after, everything ends",
    arguments: faultyCases)
  func storeFaults(_ test: Case) async throws {
    var generator = Generator(state: test.seed &* 77)
    let gateways: [PushPlatform: FakeGateway] = [
      .apns: FakeGateway(answer: Self.answer(test.seed, removes: false)),
      .fcmv1: FakeGateway(answer: Self.answer(test.seed, removes: false)),
    ]
    let world = try await DispatchWorld(
      gateways, pageSize: Int.random(in: 3...12, using: &generator), on: test.engine)
    let devices = 60
    for number in 0..<devices {
      let platform: PushPlatform = number % 2 == 0 ? .apns : .fcmv1
      try await world.add(
        "d\(number)",
        [
          RegistrationDraft(
            kind: .template(PushTemplate(body: #"{"a":"$(a)"}"#), name: nil), platform: platform,
            channel: .handle("\(number)"))
        ], platform)
    }
    let faulty = StoreHook()
    let errors = Self.errors(isShared: world.store.isShared)
    // The calls that may be made and not answered. To claim or record twice is for the store to
    // notice, which knows whether an answer was lost: there the server's answer goes astray. (A file
    // answers in this process.)
    let server = (world.store as? PostgresHubStore)?.engine.shared
    let isCalm = Mutex(false)
    /// Lets no answer to this test's own calls go astray.
    func calmly<Value>(_ body: () async throws -> Value) async throws -> Value {
      isCalm.withLock { isCalm in
        isCalm = true
        server?.losesAnswer.store(false, ordering: .relaxed)
      }
      defer { isCalm.withLock { $0 = false } }
      return try await body()
    }
    let repeatable: Set = [
      "targets(_:after:limit:)", "directoryVersion()", "waitingRetries(_:part:hub:)",
      "nextSchedule()", "retryLanes()", "dueRetries(of:asOf:limit:)", "nextRetry(of:)",
      "retries(of:notification:part:limit:)", "notification(_:hub:)", "credentials(hub:)",
      "exchange(_:recovered:)", "releaseWork(_:of:hub:)", "directTargets(of:hub:after:limit:)",
    ]
    let random = Mutex(Generator(state: test.seed))
    let thrown = Mutex<Set<String>>([])
    faulty.faults { call in
      random.withLock { random in
        guard Int.random(in: 0..<6, using: &random) == 0 else { return nil }
        if call == "claimWork(limit:)" || call == "checkpoint(_:)", Bool.random(using: &random) {
          isCalm.withLock { if !$0 { server?.losesAnswer.store(true, ordering: .relaxed) } }
          return nil
        }
        let error = errors[Int.random(in: 0..<errors.count, using: &random)]
        _ = thrown.withLock { $0.insert("\(call) \(error)") }
        return repeatable.contains(call) && Bool.random(using: &random)
          ? .unanswered(error) : .refused(error)
      }
    }
    let dispatcher = world.dispatcher(process: faulty)
    // A clock that waited for the dispatcher's tasks would never move: they sleep on it between two
    // tries. So it gives a call of the store some time, and goes on.
    let driver = Task {
      while !Task.isCancelled {
        if let next = world.clock.nextDeadline { world.clock.set(max(next, world.clock.now)) }
        try? await Task.sleep(for: .milliseconds(3))
      }
    }
    defer { driver.cancel() }
    // It cannot start on a store that refuses.
    while (try? await dispatcher.start()) == nil { await Task.yield() }
    let due = world.clock.now.addingTimeInterval(20)
    let later = NotificationRecord(
      id: NotificationID(at: due, random: .system), hub: world.hub.id,
      request: world.template("{}"),
      state: .scheduled, enqueuedAt: world.clock.now, scheduledFor: due)
    var request = world.native()
    request.isDirect = true
    let direct = NotificationRecord(
      id: NotificationID(at: world.clock.now, random: .system), hub: world.hub.id, request: request,
      state: .enqueued, enqueuedAt: world.clock.now)
    let targets = (0..<20).map { DirectTarget(handle: "\($0)", isDuplicate: false) }
    try await calmly {
      try await world.store.accept(later)
      _ = try await world.store.accept(Submission(record: direct, targets: targets))
    }
    await dispatcher.submit(later)
    await dispatcher.submit(direct)
    var sent: [NotificationRecord] = [later]
    for _ in 0..<3 {
      sent.append(
        try await calmly {
          try await world.send(world.template(#"{"a":"b"}"#), through: dispatcher)
        })
    }
    let aborted = sent[1]
    try await calmly {
      try await world.putCredential(.fcmv1)
      _ = try await world.store.abort(aborted.id, hub: world.hub.id, at: world.clock.now)
    }
    await dispatcher.credentialChanged(.fcmv1, hub: world.hub.id)
    await dispatcher.abort(aborted.id)
    let limit = ContinuousClock.now + .seconds(240)
    for record in sent + [direct] {
      while try await world.store.notification(record.id, hub: world.hub.id)?.state.isFinal != true
      {
        guard ContinuousClock.now < limit else {
          Issue.record("\(record.id.rawValue) has not ended: \(await dispatcher.state)")
          return
        }
        try await Task.sleep(for: .milliseconds(2))
      }
    }
    faulty.faults(nil)
    for record in sent + [direct] {
      let found = try await world.store.notification(record.id, hub: world.hub.id)
      let count = record.id == direct.id ? targets.count : devices
      #expect(found?.counts.values.reduce(0, +) == count)
      #expect(try await world.store.waitingRetries(record.id, hub: world.hub.id) == 0)
    }
    // The number of calls is chance, but the faults reach some.
    #expect(thrown.withLock { !$0.isEmpty })
    await dispatcher.stop(within: .seconds(5))
  }
}
