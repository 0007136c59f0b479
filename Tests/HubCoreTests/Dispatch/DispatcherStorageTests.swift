import Foundation
import HubTesting
import NotificationHubs
import Synchronization
import Testing

@testable import HubCore

/// The dispatcher over the store that people run.
@Suite("Dispatcher over SQLite", .timeLimit(.minutes(5)))
struct DispatcherStorageTests {
  @Test("a broadcast with retries, dead handles and a restart ends with one outcome each")
  func broadcast() async throws {
    try await withTemporaryStore { store in try await self.broadcast(over: store) }
  }

  private func broadcast(over store: any HubStore) async throws {
    let clock = ManualClock()
    let hub = try await store.createHub(
      named: "hub", registrationTTL: nil, policies: [], at: clock.now)
    try await store.putCredential(
      PushCredential(platform: .apns, properties: [:], modifiedAt: clock.now), hub: hub.id)
    let devices = 1500
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<devices {
        group.addTask {
          let draft = RegistrationDraft(
            kind: .template(PushTemplate(body: #"{"aps":{"alert":"$(m)"}}"#), name: "t"),
            platform: .apns, channel: .handle("H\(number)"), tags: ["all"])
          let installation = Installation(
            installationID: "d\(number)", platform: .apns, pushChannel: .handle("H\(number)"))
          try await store.putInstallation(
            installation, registrations: [draft], request: nil, hub: hub.id, at: clock.now)
        }
      }
      try await group.waitForAll()
    }

    let gateway = FakeGateway { push, attempt in
      if push.handle.hasSuffix("77") {
        return PushResult(outcome: .expiredChannel, handle: .remove, status: 410)
      }
      return push.handle.hasSuffix("5") && attempt == 1
        ? PushResult(outcome: .pnsServerError, retry: .backoff, status: 500) : .success
    }
    var limits = DispatchLimits()
    limits.pageSize = 200
    let first = Dispatcher(
      store: store, gateways: FakeGateways([.apns: gateway]), clock: clock.hubClock,
      random: .always(0),
      limits: limits)
    try await first.start()
    let record = NotificationRecord(
      id: NotificationID(at: clock.now, random: .system), hub: hub.id,
      request: NotificationRequest(
        format: .template, body: Array(#"{"m":"Hi"}"#.utf8), tags: "all", expression: "all"),
      state: .enqueued, enqueuedAt: clock.now)
    try await store.accept(record)
    await first.submit(record)
    await gateway.arrived(batches: 4)
    await first.stop(within: .seconds(30))

    let second = Dispatcher(
      store: store, gateways: FakeGateways([.apns: gateway]), clock: clock.hubClock,
      random: .always(0),
      limits: limits)
    try await second.start()
    let isIdle = try await clock.running(for: second) {
      await second.waitUntilIdle(within: .seconds(86_400))
    }
    #expect(isIdle)
    let final = try await store.notification(record.id, hub: hub.id)
    #expect(final?.state == .completed)
    #expect(
      final?.counts == [
        OutcomeKey(platform: .apns, isTemplate: true, outcome: .success): devices - 15,
        OutcomeKey(platform: .apns, isTemplate: true, outcome: .expiredChannel): 15,
      ])
    #expect(gateway.pushes.count == devices + 150)
    #expect(Set(gateway.pushes.map(\.id)).count == devices)
    #expect(try await store.installation("d77", hub: hub.id)?.pushChannelExpired == true)
    let left = try await store.count(
      AudienceQuery(hub: hub.id, kind: .template, expression: "all", asOf: clock.now))
    #expect(left == devices - 15)
  }

  @Test("work that is due and that nobody has taken up is told after five seconds, until it is")
  func unclaimed() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let health = HubHealth(
      store: world.store, dispatcher: dispatcher, gateways: nil, clock: world.clock.hubClock,
      machine: world.clock.hubClock)
    let lines = Mutex<[String]>([])
    let log = HubLog(
      level: .info, format: .text, now: { world.clock.now },
      write: { line in lines.withLock { $0.append(line) } })
    let watch = Task { await health.watchWork(log: log) }
    func look(_ seconds: Double) async -> [String] {
      for _ in 0..<Int(seconds / 2.5) {
        await world.clock.sleepers(1)
        world.clock.set(world.clock.now + 2.5)
      }
      await world.clock.sleepers(1)
      return await health.report().warnings.map(\.code)
    }
    // Accepted, and its dispatcher never hears of it.
    let lost = try await world.accept(world.native())
    #expect(await look(5) == [])
    #expect(await look(2.5) == ["work-unclaimed"])
    #expect(health.unclaimedWork == 1)
    await dispatcher.submit(lost)
    _ = try await world.finished(lost, by: dispatcher)
    #expect(await look(2.5) == [])
    watch.cancel()
    await watch.value
    let told = lines.withLock { $0 }
    #expect(told.count == 2 && told[0].contains("work.unclaimed"), "\(told)")
    #expect(told.last?.contains("work.claimed") == true)
  }
}
