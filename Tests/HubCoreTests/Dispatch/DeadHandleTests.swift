import Foundation
import HubTesting
import NotificationHubs
import Synchronization
import Testing

@testable import HubCore

/// What becomes of devices whose handles a push service calls dead, rightly or not.
@Suite("Dead handles", .timeLimit(.minutes(5)))
struct DeadHandleTests {
  /// What the push service says, which can change between two sends.
  private final class Script: Sendable {
    private let answer = Mutex<@Sendable (String) -> PushResult>({ _ in .success })
    func set(_ answer: @escaping @Sendable (String) -> PushResult) {
      self.answer.withLock { $0 = answer }
    }
    func callAsFunction(_ handle: String) -> PushResult { answer.withLock { $0 }(handle) }

    static let wrongTopic = PushResult(
      outcome: .wrongChannel, handle: .remove, status: 400, reason: "DeviceTokenNotForTopic")
  }

  private let script = Script()
  private let world: DispatchWorld
  private let gateway: FakeGateway

  init() async throws {
    let script = script
    gateway = FakeGateway { push, _ in script(push.handle) }
    world = try await DispatchWorld([.apns: gateway], pageSize: 100)
  }

  private func registrations() async throws -> Int {
    try await world.store.count(
      AudienceQuery(
        hub: world.hub.id, kind: .native(.apns), expression: nil, asOf: world.clock.now))
  }

  private func broadcast(
    through dispatcher: Dispatcher
  ) async throws -> [NotificationOutcome: Int] {
    let sent = try await world.send(world.native(), through: dispatcher)
    let record = try await world.finished(sent, by: dispatcher)
    await dispatcher.waitUntilQuiet()
    return DispatchWorld.outcomes(record)
  }

  @Test("a service that calls everything dead right after a success empties no hub")
  func waveAfterSuccess() async throws {
    try await world.addDevices(0..<2000)
    let dispatcher = try await world.started()
    #expect(try await broadcast(through: dispatcher) == [.success: 2000])
    script.set { _ in Script.wrongTopic }
    let outcomes = try await broadcast(through: dispatcher)
    #expect(outcomes == [.wrongChannel: 2000])
    #expect(try await registrations() == 2000)
    let alarms = world.events.all.filter {
      if case .deadHandlesSuspicious = $0 { true } else { false }
    }
    #expect(alarms.count == 1)
    #expect(await dispatcher.status().lanes.map(\.isAlarmed) == [true])
    #expect(try await world.store.feedbackHours(hub: world.hub.id).isEmpty)
    // Everything is well again: everything arrives, and the alarm ends.
    script.set { _ in .success }
    #expect(try await broadcast(through: dispatcher) == [.success: 2000])
    #expect(await dispatcher.status().lanes.map(\.isAlarmed) == [false])
  }

  @Test("with a wrong credential from the start nothing goes", arguments: [1, 5, 80])
  func wrongFromTheStart(devices: Int) async throws {
    try await world.addDevices(0..<devices)
    script.set { _ in Script.wrongTopic }
    let dispatcher = try await world.started()
    for _ in 0..<3 {
      #expect(try await broadcast(through: dispatcher) == [.wrongChannel: devices])
    }
    #expect(try await registrations() == devices)
    #expect(world.events.all.isEmpty == (devices == 1))
  }

  @Test("a replaced credential starts without trust, and ends the alarm of the one before")
  func replacedCredential() async throws {
    try await world.addDevices(0..<8)
    let dispatcher = try await world.started()
    #expect(try await broadcast(through: dispatcher) == [.success: 8])
    world.clock.advance(by: .seconds(60))
    try await world.putCredential(.apns)
    await dispatcher.credentialChanged(.apns, hub: world.hub.id)
    script.set { _ in Script.wrongTopic }
    _ = try await broadcast(through: dispatcher)
    #expect(try await registrations() == 8)
    _ = try await broadcast(through: dispatcher)
    #expect(await dispatcher.status().lanes.map(\.isAlarmed) == [true])
    world.clock.advance(by: .seconds(60))
    try await world.putCredential(.apns)
    await dispatcher.credentialChanged(.apns, hub: world.hub.id)
    #expect(await dispatcher.status().lanes.map(\.isAlarmed) == [false])
    script.set { $0 == "3" ? Script.wrongTopic : .success }
    #expect(try await broadcast(through: dispatcher) == [.success: 7, .wrongChannel: 1])
    #expect(try await registrations() == 7)
  }

  @Test("small hubs lose their odd dead handle", arguments: [(2, 1), (4, 3), (15, 10)])
  func drip(devices: Int, dead: Int) async throws {
    try await world.addDevices(0..<devices)
    script.set { (Int($0) ?? 0) < dead ? Script.wrongTopic : .success }
    let dispatcher = try await world.started()
    _ = try await broadcast(through: dispatcher)
    #expect(try await registrations() == devices - dead)
    #expect(world.events.all.isEmpty)
    #expect(dispatcher.metrics.snapshot.removed.values.reduce(0, +) == dead)
  }

  @Test("what went before the alarm comes back with it")
  func comesBack() async throws {
    // Push by push the share rises slowly, so that some go first.
    try await world.addDevices(0..<200)
    let dispatcher = try await world.started()
    #expect(try await broadcast(through: dispatcher) == [.success: 200])
    script.set { _ in Script.wrongTopic }
    var counts: [NotificationOutcome: Int] = [:]
    for number in 0..<200 {
      try await world.add(
        "d\(number)",
        [
          RegistrationDraft(
            kind: .native, platform: .apns, channel: .handle("\(number)"),
            tags: [Tag(rawValue: "one-\(number)")])
        ])
      let sent = try await world.send(
        world.native(tags: .tag(Tag(rawValue: "one-\(number)"))), through: dispatcher)
      let record = try await world.finished(sent, by: dispatcher)
      counts.merge(DispatchWorld.outcomes(record), uniquingKeysWith: +)
    }
    await dispatcher.waitUntilQuiet()
    #expect(counts == [.wrongChannel: 200])
    #expect(try await registrations() == 200)
    let snapshot = dispatcher.metrics.snapshot
    #expect(snapshot.removed.values.reduce(0, +) > 50)
    #expect(snapshot.removed == snapshot.restored)
    #expect(
      world.events.all.contains { if case .handlesRestored = $0 { true } else { false } })
    #expect(try await world.store.feedbackHours(hub: world.hub.id).isEmpty)
  }

  @Test("a service that replaces every handle changes none")
  func replacedHandles() async throws {
    try await world.addDevices(0..<100)
    let dispatcher = try await world.started()
    script.set { _ in
      PushResult(outcome: .success, handle: .replace, status: 200, newHandle: "the-only-one")
    }
    #expect(try await broadcast(through: dispatcher) == [.success: 100])
    script.set { _ in .success }
    #expect(try await broadcast(through: dispatcher) == [.success: 100])
    #expect(Set(gateway.pushes.suffix(100).map(\.handle)).count == 100)
  }

  @Test("a handle that was registered again while the push was under way stays")
  func registeredAgain() async throws {
    try await world.addDevices(0..<2)
    script.set { $0 == "1" ? Script.wrongTopic : .success }
    let dispatcher = try await world.started()
    gateway.hold()
    let sent = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 1)
    // The clock has been set back meanwhile.
    world.clock.set(world.clock.now.addingTimeInterval(-600))
    try await world.add(
      "d1",
      [RegistrationDraft(kind: .native, platform: .apns, channel: .handle("new"), tags: [])])
    gateway.release()
    let record = try await world.finished(sent, by: dispatcher)
    #expect(DispatchWorld.outcomes(record) == [.success: 1, .wrongChannel: 1])
    #expect(try await registrations() == 2)
  }
}

extension Dispatcher {
  /// Waits until no task is under way.
  fileprivate func waitUntilQuiet() async {
    while !isQuiet { try? await Task.sleep(for: .milliseconds(1)) }
  }
}
