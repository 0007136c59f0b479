import Foundation
import HubTesting
import NotificationHubs
import StoreContract
import Synchronization
import Testing

@testable import HubCore

@Suite("Refused credentials", .timeLimit(.minutes(5)))
struct RefusedCredentialTests {
  private static let refused = PushResult(
    outcome: .invalidCredentials, retry: .pauseCredential, status: 403,
    reason: "BadCertificate")

  /// A push service that refuses the credential until told otherwise.
  private final class Service: Sendable {
    private let accepts = Mutex(false)
    func accept() { accepts.withLock { $0 = true } }
    var gateway: FakeGateway {
      FakeGateway { [self] _, _ in
        accepts.withLock { $0 } ? .success : RefusedCredentialTests.refused
      }
    }
  }

  @Test("targets of a refused push have their outcome at once, with the reason")
  func atOnce() async throws {
    let world = try await DispatchWorld([.apns: Service().gateway])
    try await world.addDevices(0..<8)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    // The clock stands still.
    let record = try await world.finished(sent, by: dispatcher)
    #expect(record.state == .completed)
    #expect(DispatchWorld.outcomes(record) == [.invalidCredentials: 8])
    let failures = try await world.store.failures(
      sent.id, hub: world.hub.id, after: 0, limit: 100)
    #expect(failures.allSatisfy { $0.status == 403 })
    #expect(world.gateways[.apns]?.batches == [8])
    #expect(world.events.all.count == 1)
    #expect(world.events.all.first?.description.contains("BadCertificate") == true)
  }

  @Test("what was there before the refusal shares it, though it was not sent")
  func sharedAnswer() async throws {
    let gateway = Service().gateway
    gateway.hold()
    let world = try await DispatchWorld([.apns: gateway], laneTargets: 1)
    try await world.addDevices(0..<5)
    let dispatcher = try await world.started()
    var sent: [NotificationRecord] = []
    for _ in 0..<4 { sent.append(try await world.send(world.native(), through: dispatcher)) }
    await gateway.arrived(batches: 1)
    gateway.release()
    for record in sent {
      let record = try await world.finished(record, by: dispatcher)
      #expect(DispatchWorld.outcomes(record) == [.invalidCredentials: 5])
    }
    #expect(gateway.pushes.count <= 10)
  }

  @Test(
    "what comes while the lane rests is answered by the next probe, all of it", .serialized,
    arguments: [false, true])
  func probeAnswersAll(isTemplate: Bool) async throws {
    let world = try await DispatchWorld([.apns: Service().gateway])
    try await world.add(
      "d",
      [
        RegistrationDraft(kind: .native, platform: .apns, channel: .handle("n")),
        RegistrationDraft(
          kind: .template(PushTemplate(body: #"{"a":"$(a)"}"#), name: "t"), platform: .apns,
          channel: .handle("t")),
      ])
    let dispatcher = try await world.started()
    let request = isTemplate ? world.template("{}") : world.native()
    let first = try await world.send(request, through: dispatcher)
    _ = try await world.finished(first, by: dispatcher)
    let start = world.clock.now
    let later = try await world.runningClock(for: dispatcher) {
      var sent: [NotificationRecord] = []
      for _ in 0..<10 { sent.append(try await world.send(request, through: dispatcher)) }
      var later: [NotificationRecord] = []
      for record in sent { later.append(try await world.finished(record, by: dispatcher)) }
      return later
    }
    for record in later {
      #expect(DispatchWorld.outcomes(record) == [.invalidCredentials: 1])
    }
    // The rest, and a while for what the probe has put off.
    let took = later.compactMap(\.endedAt).map { $0.timeIntervalSince(start) }.max() ?? 0
    #expect((59...75).contains(took))
    #expect(world.gateways[.apns]?.pushes.count == 2)
  }

  @Test("a broadcast's unread pages wait, and are delivered once a probe succeeds")
  func unreadPagesWait() async throws {
    let service = Service()
    let gateway = service.gateway
    gateway.hold()
    let world = try await DispatchWorld([.apns: gateway], pageSize: 5, laneTargets: 5)
    try await world.addDevices(0..<100)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 1)
    gateway.release()
    while await !dispatcher.hasRefusals { try await Task.sleep(for: .milliseconds(1)) }
    service.accept()
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    let outcomes = DispatchWorld.outcomes(record)
    #expect(outcomes.values.reduce(0, +) == 100)
    // Those in flight and those that stood ready behind them.
    #expect((5...20).contains(outcomes[.invalidCredentials] ?? 0))
    #expect(world.clock.now.timeIntervalSince(sent.enqueuedAt) < 70)
  }

  @Test("a credential refused to the end leaves InvalidCredentials, with a probe now and then")
  func refusedToTheEnd() async throws {
    let gateway = Service().gateway
    let world = try await DispatchWorld([.apns: gateway], pageSize: 5)
    try await world.addDevices(0..<100)
    let dispatcher = try await world.started()
    let record = try await world.runningClock(for: dispatcher) {
      let sent = try await world.send(world.native(), through: dispatcher)
      return try await world.finished(sent, by: dispatcher)
    }
    let outcomes = DispatchWorld.outcomes(record)
    #expect(outcomes.values.reduce(0, +) == 100)
    #expect((outcomes[.invalidCredentials] ?? 0) >= 5)
    #expect(outcomes[.success] == nil)
    // The pages in flight at first, then single probes.
    #expect(gateway.pushes.count < 60)
  }

  @Test("a new credential, or none, ends the rest at once", arguments: [true, false])
  func changedHere(isReplaced: Bool) async throws {
    let service = Service()
    let world = try await DispatchWorld([.apns: service.gateway])
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let first = try await world.send(world.native(), through: dispatcher)
    _ = try await world.finished(first, by: dispatcher)
    let second = try await world.send(world.native(), through: dispatcher)
    let hub = HubService(
      store: world.store,
      directory: HubDirectory(store: world.store, clock: world.clock.hubClock),
      dispatcher: dispatcher, clock: world.clock.hubClock, random: .system)
    if isReplaced {
      service.accept()
      try await hub.credentials.set(
        PushCredential(
          platform: .apns, properties: [:], modifiedAt: world.clock.now.addingTimeInterval(1)),
        hub: "hub", checkedBy: FakeGateways(world.gateways))
    } else {
      try await hub.credentials.remove(.apns, hub: "hub")
    }
    // The clock stands still.
    let record = try await world.finished(second, by: dispatcher)
    #expect(DispatchWorld.outcomes(record) == [isReplaced ? .success : .invalidCredentials: 1])
  }

  @Test("a credential that another process has replaced is noticed within a second or two")
  func changedElsewhere() async throws {
    let service = Service()
    let world = try await DispatchWorld([.apns: service.gateway])
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let first = try await world.send(world.native(), through: dispatcher)
    _ = try await world.finished(first, by: dispatcher)
    let second = try await world.send(world.native(), through: dispatcher)
    let start = world.clock.now
    service.accept()
    try await world.store.putCredential(
      PushCredential(
        platform: .apns, properties: [:], modifiedAt: world.clock.now.addingTimeInterval(1)),
      hub: world.hub.id)
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(second, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 1])
    #expect(world.clock.now.timeIntervalSince(start) <= 3)
  }

  @Test(
    "a long pause that was asked of a credential ends when it is replaced, here or elsewhere",
    arguments: [true, false])
  func longPause(isHere: Bool) async throws {
    let isLimited = Mutex(true)
    let gateway = FakeGateway { _, _ in
      isLimited.withLock { $0 }
        ? PushResult(outcome: .throttled, retry: .backoff, status: 429, retryAfter: 3600)
        : .success
    }
    let world = try await DispatchWorld([.apns: gateway], pageSize: 5, laneTargets: 5)
    try await world.addDevices(0..<100)
    let dispatcher = try await world.started()
    let first = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 1)
    let lane = LaneKey(hub: world.hub.id, platform: .apns)
    while await dispatcher.state.schedule.lanes.restsUntil(lane, at: world.clock.now) == nil {
      await Task.yield()
    }
    while await !dispatcher.isQuiet { await Task.yield() }
    let tried = gateway.pushes.count
    let start = world.clock.now
    isLimited.withLock { $0 = false }
    try await world.store.putCredential(
      PushCredential(
        platform: .apns, properties: [:], modifiedAt: start.addingTimeInterval(1)),
      hub: world.hub.id)
    if isHere { await dispatcher.credentialChanged(.apns, hub: world.hub.id) }
    // Those that the old one was limited for have their rows.
    let isIdle = try await world.runningClock(for: dispatcher) {
      await dispatcher.waitUntilIdle(within: .seconds(3))
    }
    #expect(!isIdle && gateway.pushes.count == 100 && tried < 50)
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(first, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 100])
  }

  @Test("what a template send put off for a refused credential is sent as soon as it is replaced")
  func templateShare() async throws {
    let service = Service()
    let world = try await DispatchWorld(
      [.apns: service.gateway, .fcmv1: FakeGateway()], pageSize: 2)
    let template = PushTemplate(body: #"{"a":"$(a)"}"#)
    for number in 0..<8 {
      let platform: PushPlatform = number % 2 == 0 ? .apns : .fcmv1
      try await world.add(
        "d\(number)",
        [
          RegistrationDraft(
            kind: .template(template, name: nil), platform: platform,
            channel: .handle("\(number)"))
        ], platform)
    }
    let dispatcher = try await world.started()
    let first = try await world.send(world.template("{}"), through: dispatcher)
    _ = try await world.runningClock(for: dispatcher) {
      try await world.finished(first, by: dispatcher)
    }
    let second = try await world.send(world.template("{}"), through: dispatcher)
    while try await world.store.waitingRetries(second.id, hub: world.hub.id) < 4 {
      try await Task.sleep(for: .milliseconds(1))
    }
    let start = world.clock.now
    service.accept()
    try await world.store.putCredential(
      PushCredential(
        platform: .apns, properties: [:], modifiedAt: world.clock.now.addingTimeInterval(1)),
      hub: world.hub.id)
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(second, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 8])
    #expect(world.clock.now.timeIntervalSince(start) <= 3)
  }

  @Test("a refusal of a credential that has been replaced meanwhile does not rest the lane")
  func lateRefusal() async throws {
    let service = Service()
    let gateway = service.gateway
    gateway.hold()
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let first = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 1)
    try await world.store.putCredential(
      PushCredential(
        platform: .apns, properties: [:], modifiedAt: world.clock.now.addingTimeInterval(1)),
      hub: world.hub.id)
    service.accept()
    let second = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 2)
    gateway.release()
    _ = try await world.finished(first, by: dispatcher)
    let record = try await world.finished(second, by: dispatcher)
    #expect(DispatchWorld.outcomes(record) == [.success: 1])
    #expect(await !dispatcher.hasRefusals)
  }
}
