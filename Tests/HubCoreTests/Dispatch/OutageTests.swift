import Foundation
import HubTesting
import NotificationHubs
import StoreContract
import Synchronization
import Testing

@testable import HubCore

/// A push service that is down costs a probe now and then, however much waits for it.
@Suite("Outages of a push service", .timeLimit(.minutes(5)))
struct OutageTests {
  /// Answers with a fault until it is back.
  private final class Service: Sendable {
    private let answer: Mutex<PushResult?>
    init(_ answer: PushResult) { self.answer = Mutex(answer) }
    func comeBack() { answer.withLock { $0 = nil } }
    func fail(with result: PushResult) { answer.withLock { $0 = result } }
    var gateway: FakeGateway { FakeGateway { [self] _, _ in answer.withLock { $0 } ?? .success } }
  }

  private static let faults = [
    PushResult(outcome: .pnsUnavailable, retry: .backoff, status: 503),
    PushResult(outcome: .pnsServerError, retry: .backoff, status: 500),
    PushResult(outcome: .pnsUnreachable, retry: .backoff, reason: "connection refused"),
    PushResult(outcome: .pnsUnavailable, retry: .backoff, status: 503, retryAfter: 20),
    // The service that gives out the tokens.
    PushResult(outcome: .tokenProviderUnreachable, retry: .backoff, reason: "no answer"),
    PushResult(outcome: .tokenProviderInterfaceError, retry: .backoff, status: 500),
  ]

  /// Lets time pass until a moment, a sleeper at a time.
  private static func wait(
    _ world: DispatchWorld, _ dispatcher: Dispatcher, until end: Date
  ) async {
    while world.clock.now < end {
      while await !dispatcher.isQuiet { try? await Task.sleep(for: .milliseconds(1)) }
      await world.clock.sleepers(1)
      world.clock.set(min(end, max(world.clock.nextDeadline ?? end, world.clock.now)))
      await Task.yield()
    }
    while await !dispatcher.isQuiet { try? await Task.sleep(for: .milliseconds(1)) }
  }

  @Test(
    "a broadcast waits unread and unwritten, and is delivered when the service is back",
    .serialized, arguments: 0..<6)
  func broadcast(fault: Int) async throws {
    let service = Service(Self.faults[fault])
    let gateway = service.gateway
    let world = try await DispatchWorld([.apns: gateway], pageSize: 20)
    try await world.addDevices(0..<600)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    let start = world.clock.now
    await Self.wait(world, dispatcher, until: start + 60)
    let early = gateway.pushes.count
    let rows = try await world.store.waitingRetries(sent.id, hub: world.hub.id)
    // The pages that were in flight when it began, and what was probed since.
    #expect(rows <= 8 * 20 + 10)
    await Self.wait(world, dispatcher, until: start + 1200)
    // A probe each half minute, and nothing else.
    #expect(gateway.pushes.count - early <= 1140 / 20 + 2)
    let later = try await world.store.waitingRetries(sent.id, hub: world.hub.id)
    #expect(later - rows <= 1140 / 20 + 2)
    #expect(await dispatcher.status().lanes.first?.isDown == true)
    service.comeBack()
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 600])
    #expect(record.counts.values.reduce(0, +) == 600)
    #expect(await dispatcher.status().lanes.first?.isDown == false)
    let events = world.events.all.map(\.description)
    #expect(events.contains { $0.contains("cannot be reached or fails") })
    #expect(events.count <= 5)
  }

  @Test("what an outage outlasts is abandoned at the end of its window, all of it")
  func toTheEnd() async throws {
    let world = try await DispatchWorld([.apns: Service(Self.faults[0]).gateway], pageSize: 10)
    try await world.addDevices(0..<300)
    let dispatcher = try await world.started()
    let record = try await world.runningClock(for: dispatcher) {
      let sent = try await world.send(world.native(), through: dispatcher)
      return try await world.finished(sent, by: dispatcher)
    }
    #expect(record.state == .abandoned)
    #expect(DispatchWorld.outcomes(record) == [.abandonedNotificationMessages: 300])
    #expect(record.endedAt == record.enqueuedAt.addingTimeInterval(1800))
  }

  @Test("a message's own time ends while it waits for a service that is down")
  func ownExpiry() async throws {
    let service = Service(Self.faults[0])
    let gateway = service.gateway
    let world = try await DispatchWorld([.apns: gateway], pageSize: 10)
    try await world.addDevices(0..<200)
    let dispatcher = try await world.started()
    let expiry = Int64(world.clock.now.timeIntervalSince1970) + 300
    let sent = try await world.send(world.native(expiry: expiry), through: dispatcher)
    await Self.wait(world, dispatcher, until: sent.enqueuedAt + 299)
    let tried = gateway.pushes.count
    service.comeBack()
    world.clock.advance(by: .seconds(1))
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.abandonedNotificationMessages: 200])
    #expect(gateway.pushes.count == tried)
  }

  @Test(
    "a template send's share of a service that is down is written once, and read when it is back")
  func templateShare() async throws {
    let service = Service(Self.faults[0])
    let down = service.gateway
    let up = FakeGateway()
    let world = try await DispatchWorld([.apns: down, .fcmv1: up], pageSize: 10)
    let template = PushTemplate(body: #"{"a":"$(a)"}"#)
    for number in 0..<200 {
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
    let sent = try await world.send(world.template("{}"), through: dispatcher)
    await Self.wait(world, dispatcher, until: sent.enqueuedAt + 60)
    #expect(up.pushes.count == 100)
    #expect(try await world.store.waitingRetries(sent.id, hub: world.hub.id) == 100)
    let early = down.pushes.count
    await Self.wait(world, dispatcher, until: sent.enqueuedAt + 600)
    #expect(down.pushes.count - early <= 540 / 30 + 2)
    service.comeBack()
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 200])
  }

  @Test("pushes that wait for another try wait with a credential that rests, as new sends do")
  func credentialRest() async throws {
    let service = Service(Self.faults[0])
    let gateway = service.gateway
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<5)
    let dispatcher = try await world.started()
    let waiting = try await world.send(world.native(), through: dispatcher)
    await Self.wait(world, dispatcher, until: waiting.enqueuedAt + 1)
    service.fail(
      with: PushResult(
        outcome: .invalidToken, retry: .pauseCredential, status: 403,
        reason: "ExpiredProviderToken"))
    let refused = try await world.send(world.native(), through: dispatcher)
    _ = try await world.finished(refused, by: dispatcher)
    let new = try await world.send(world.native(), through: dispatcher)
    // Their tries have come due twice meanwhile.
    await Self.wait(world, dispatcher, until: waiting.enqueuedAt + 50)
    for record in [waiting, new] {
      let found = try await world.store.notification(record.id, hub: world.hub.id)
      #expect(found?.state.isFinal == false)
    }
    service.comeBack()
    for record in [waiting, new] {
      let record = try await world.runningClock(for: dispatcher) {
        try await world.finished(record, by: dispatcher)
      }
      #expect(DispatchWorld.outcomes(record) == [.success: 5])
    }
  }

  @Test("devices that are throttled one by one have everything when the storm is over")
  func throttledDevices() async throws {
    let service = Service(
      PushResult(
        outcome: .channelThrottled, retry: .backoff, status: 429, reason: "TooManyRequests",
        retryAfter: 3600))
    let world = try await DispatchWorld([.apns: service.gateway], pageSize: 100)
    try await world.addDevices(0..<200)
    let dispatcher = try await world.started()
    var sent: [NotificationRecord] = []
    for _ in 0..<3 { sent.append(try await world.send(world.native(), through: dispatcher)) }
    await Self.wait(world, dispatcher, until: sent[0].enqueuedAt + 600)
    service.comeBack()
    for record in sent {
      let record = try await world.runningClock(for: dispatcher) {
        try await world.finished(record, by: dispatcher)
      }
      #expect(DispatchWorld.outcomes(record) == [.success: 200])
    }
  }

  @Test("why a service cannot be reached is in the log, the status, health and an explanation")
  func reason() async throws {
    let gateway = FakeGateway { _, _ in
      PushResult(
        outcome: .pnsUnreachable, retry: .backoff,
        reason: "the server at push.example does not speak HTTP/2 (no h2 in ALPN)")
    }
    let world = try await DispatchWorld([.apns: gateway])
    try await world.store.put(SampleDevice("d0"), hub: world.hub.id, at: world.clock.now)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    await Self.wait(world, dispatcher, until: sent.enqueuedAt + 1500)
    let lane = await dispatcher.status().lanes.first
    #expect(lane?.isDown == true)
    #expect(lane?.reason == "the server at push.example does not speak HTTP/2 (no h2 in ALPN)")
    let lines = world.events.all.filter { if case .serviceDown = $0 { true } else { false } }
    #expect((1...4).contains(lines.count))
    #expect(lines.allSatisfy { $0.description.contains("no h2 in ALPN") })
    let health = HubHealth(
      store: world.store, dispatcher: dispatcher, gateways: nil, clock: world.clock.hubClock,
      machine: world.clock.hubClock)
    let warning = await health.report().warnings.first { $0.code == "push-service-resting" }
    #expect(warning?.text.contains("no h2 in ALPN") == true)
    let explanation = try await world.service(dispatcher).explain(
      sent.id, hub: world.hub, device: .installation("d0"))
    #expect(explanation.verdict == .retrying)
    #expect(explanation.text.contains("no h2 in ALPN"), "\(explanation.text)")
    let fact = explanation.candidates.first?.facts.first { $0.name == "push service" }
    #expect(fact?.holds == false)
    #expect(
      fact?.text.hasPrefix(
        "The push service cannot be reached or fails (the server at push.example does not speak "
          + "HTTP/2 (no h2 in ALPN)); it is ") == true, "\(fact?.text ?? "")")
  }

  @Test("the failures of servers that people have chosen rest nothing", arguments: 0..<4)
  func chosenServers(fault: Int) async throws {
    var result = Self.faults[fault]
    (result.concernsOthers, result.retryAfter) = (false, nil)
    let service = Service(result)
    let gateway = service.gateway
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<60)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    let lane = LaneKey(hub: world.hub.id, platform: .apns)
    await Self.wait(world, dispatcher, until: world.clock.now + 60)
    #expect(gateway.pushes.count >= 120, "each was tried again")
    let state = await dispatcher.state.schedule.lanes[lane]
    #expect(state?.restsUntil == nil && state?.mustProbe == false)
    service.comeBack()
    let found = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(found) == [.success: 60])
    await dispatcher.stop(within: .seconds(1))
  }

  @Test("the answers of servers that people have chosen end no outage, and raise no alarm")
  func chosenServersVouchForNothing() async throws {
    let isBack = Atomic(false)
    // Half of the devices are at servers of their own, of which most call the handle dead.
    let gateway = FakeGateway { push, _ in
      let number = push.handle.utf8.reduce(0) { $0 &* 31 &+ Int($1) } & 7
      guard number < 4 else {
        return isBack.load(ordering: .relaxed) ? .success : Self.faults[0]
      }
      var result =
        number == 0
        ? .success
        : PushResult(outcome: .expiredChannel, handle: .remove, status: 410)
      result.concernsOthers = false
      return result
    }
    let world = try await DispatchWorld([.apns: gateway], pageSize: 50)
    try await world.addDevices(0..<1200)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    await Self.wait(world, dispatcher, until: world.clock.now + 300)
    #expect(await dispatcher.status().lanes.first?.isDown == true)
    isBack.store(true, ordering: .relaxed)
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    let outcomes = DispatchWorld.outcomes(record)
    #expect(outcomes.values.reduce(0, +) == 1200)
    #expect((outcomes[.expiredChannel] ?? 0) > (outcomes[.success] ?? 0) / 3)
    #expect(
      await dispatcher.state.schedule.lanes[
        LaneKey(hub: world.hub.id, platform: .apns)]?.alarm == nil)
    await dispatcher.stop(within: .seconds(1))
  }

  // MARK: Clocks that are set

  @Test(
    "a clock that is set back while a service rests delays nothing", .serialized,
    arguments: [-600.0, 600.0])
  func clockStep(by seconds: Double) async throws {
    let service = Service(Self.faults[2])
    let gateway = service.gateway
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<20)
    let dispatcher = try await world.started()
    let first = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 1)
    let lane = LaneKey(hub: world.hub.id, platform: .apns)
    while await dispatcher.state.schedule.lanes[lane]?.restsUntil == nil {
      try await Task.sleep(for: .milliseconds(1))
    }
    world.clock.step(by: seconds)
    service.comeBack()
    let second = try await world.send(world.native(), through: dispatcher)
    let steady = world.clock.hubClock.steady()
    for record in [first, second] {
      let record = try await world.runningClock(for: dispatcher) {
        try await world.finished(record, by: dispatcher)
      }
      #expect(DispatchWorld.outcomes(record) == [.success: 20])
    }
    #expect(world.clock.hubClock.steady().timeIntervalSince(steady) < 60)
  }

  @Test("a clock that is set forward by more than the window abandons nothing under way")
  func clockForward() async throws {
    let gateway = FakeGateway()
    gateway.hold()
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<300)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 1)
    world.clock.step(by: 31 * 60)
    gateway.release()
    let record = try await world.finished(sent, by: dispatcher)
    #expect(DispatchWorld.outcomes(record) == [.success: 300])
  }

  /// Two worlds of a push service: the address of a credential says which it leads to.
  private struct Addresses: GatewayDirectory {
    let byAddress: [String: FakeGateway]
    func gateway(
      for credential: PushCredential, hub: Hub.ID
    ) async throws -> (any PushGateway)? { credential["Endpoint"].flatMap { byAddress[$0] } }
  }

  @Test(
    "sends that wait at a wrong address go to the right one once the credential is replaced",
    arguments: [(true, true), (true, false), (false, true), (false, false)])
  func newCredential(isSetHere: Bool, isReplaced: Bool) async throws {
    let (wrong, right) = (Service(Self.faults[2]).gateway, FakeGateway())
    let world = try await DispatchWorld([.apns: wrong], pageSize: 20)
    try await world.addDevices(0..<53)
    func credential(_ address: String, after seconds: Double) -> PushCredential {
      PushCredential(
        platform: .apns, properties: ["Endpoint": address],
        modifiedAt: world.clock.now + seconds)
    }
    try await world.store.putCredential(credential("wrong", after: 0), hub: world.hub.id)
    let dispatcher = Dispatcher(
      store: world.store, gateways: Addresses(byAddress: ["wrong": wrong, "right": right]),
      clock: world.clock.hubClock, random: .always(0), limits: world.limits,
      report: world.events.add)
    try await dispatcher.start()
    let start = world.clock.now
    let first = try await world.send(world.native(), through: dispatcher)
    await Self.wait(world, dispatcher, until: start + 12)
    let second = try await world.send(world.native(), through: dispatcher)
    await Self.wait(world, dispatcher, until: start + 24)
    if isReplaced {
      try await world.store.putCredential(credential("right", after: 1), hub: world.hub.id)
    } else {
      _ = try await world.store.deleteCredential(.apns, hub: world.hub.id)
    }
    if isSetHere { await dispatcher.credentialChanged(.apns, hub: world.hub.id) }
    let tries = wrong.pushes.count
    let outcome: NotificationOutcome = isReplaced ? .success : .invalidCredentials
    for record in [first, second] {
      let found = try await world.runningClock(for: dispatcher) {
        try await world.finished(record, by: dispatcher)
      }
      #expect(DispatchWorld.outcomes(found) == [outcome: 53])
    }
    #expect(world.clock.now.timeIntervalSince(start) <= 64)
    // A probe may have been under way.
    #expect(wrong.pushes.count <= tries + 1 && right.pushes.count == (isReplaced ? 106 : 0))
    await dispatcher.stop(within: .seconds(1))
  }
}
