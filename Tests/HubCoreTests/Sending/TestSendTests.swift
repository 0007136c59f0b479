import Foundation
import HubTesting
import NotificationHubs
import Testing

@testable import HubCore

@Suite("Test sends", .timeLimit(.minutes(5)))
struct TestSendTests {
  @Test("ten devices at most get it, and the report tells each one's outcome")
  func report() async throws {
    let gateway = FakeGateway { push, _ in
      Int(push.handle)?.isMultiple(of: 2) == true
        ? PushResult(
          outcome: .expiredChannel, handle: .remove, status: 410, reason: "Unregistered")
        : .success
    }
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<40)
    let service = world.service(world.dispatcher())
    let report = try await service.testSend(
      hub: world.hub, headers: sendFields(), body: applePayload)
    #expect(report.results.count == 10)
    #expect(report.success + report.failure == 10)
    #expect(Set(report.results.map(\.pnsHandle)) == Set(gateway.pushes.map(\.handle)))
    for result in report.results {
      #expect(result.platform == "apple")
      #expect(!result.registrationID.isEmpty)
      let isDead = Int(result.pnsHandle)?.isMultiple(of: 2) == true
      let outcome: NotificationOutcome = isDead ? .expiredChannel : .success
      #expect(result.outcome == outcome.sentence)
      #expect(result.status == (isDead ? 410 : 200))
      #expect(result.reason == (isDead ? "Unregistered" : nil))
    }
    // Nothing of it is kept, tried again or held against a device.
    #expect(try await world.store.unfinishedNotifications().isEmpty)
    let query = AudienceQuery(
      hub: world.hub.id, kind: .native(.apns), expression: nil, asOf: world.clock.now)
    #expect(try await world.store.count(query) == 40)
  }

  @Test("a handle that is registered twice gets a native one once")
  func sameHandle() async throws {
    let gateway = FakeGateway()
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<2)
    try await world.add(
      "again",
      [RegistrationDraft(kind: .native, platform: .apns, channel: .handle("0"), tags: [])])
    let report = try await world.service(world.dispatcher()).testSend(
      hub: world.hub, headers: sendFields(), body: applePayload)
    #expect(report.success == 2)
    #expect(report.results.map(\.pnsHandle).sorted() == ["0", "1"])
    #expect(gateway.pushes.map(\.handle).sorted() == ["0", "1"])
  }

  @Test("nobody matches: the report is there, and empty")
  func nobody() async throws {
    let world = try await DispatchWorld()
    let report = try await world.service(world.dispatcher()).testSend(
      hub: world.hub, headers: sendFields("apple", ["ServiceBusNotification-Tags": "nobody"]),
      body: applePayload)
    #expect(report == NotificationOutcomeReport(success: 0, failure: 0))
  }

  @Test("a missing credential is an outcome, too")
  func noCredential() async throws {
    let world = try await DispatchWorld(credentials: [])
    try await world.addDevices(0..<2)
    let report = try await world.service(world.dispatcher()).testSend(
      hub: world.hub, headers: sendFields(), body: applePayload)
    #expect(report.failure == 2)
    #expect(report.results.first?.outcome == NotificationOutcome.invalidCredentials.sentence)
  }

  @Test("the eleventh call of a minute is 429, and says when the next one is free")
  func rate() async throws {
    let world = try await DispatchWorld()
    let service = world.service(world.dispatcher())
    func call() async -> HubFailure? {
      await refusal {
        _ = try await service.testSend(hub: world.hub, headers: sendFields(), body: applePayload)
      }
    }
    for _ in 0..<10 {
      #expect(await call() == nil)
      world.clock.advance(by: .seconds(1))
    }
    let refused = await call()
    #expect(refused?.status == 429)
    #expect(refused?.retryAfter == 50)
    world.clock.advance(by: .seconds(50))
    #expect(await call() == nil)
    #expect(await call()?.status == 429)
  }

  @Test("one hub's test sends are not counted for another")
  func perHub() throws {
    let meter = CallMeter(perMinute: 1, "calls a minute")
    let now = Date(timeIntervalSince1970: 1_893_456_000)
    try meter.take(1, at: now)
    try meter.take(2, at: now)
    #expect(throws: HubFailure.self) { try meter.take(1, at: now) }
  }

  @Test("a key, which promises one delivery, is refused")
  func key() async throws {
    let world = try await DispatchWorld()
    let service = world.service(world.dispatcher())
    let failure = await refusal {
      _ = try await service.testSend(
        hub: world.hub, headers: sendFields("apple", ["Idempotency-Key": "k"]), body: applePayload)
    }
    #expect(failure?.status == 400)
  }
}
