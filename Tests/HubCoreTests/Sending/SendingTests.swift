import Foundation
import HubTesting
import NotificationHubs
import Testing

@testable import HubCore

@Suite("Sending", .timeLimit(.minutes(5)))
struct SendingTests {
  private func service(_ world: DispatchWorld, _ dispatcher: Dispatcher) -> HubService {
    HubService(
      store: world.store,
      directory: HubDirectory(store: world.store, clock: world.clock.hubClock),
      dispatcher: dispatcher, clock: world.clock.hubClock, random: .system)
  }

  @Test("a send is in the store before it returns, under an id of the recorded form")
  func accepted() async throws {
    let world = try await DispatchWorld()
    let service = service(world, world.dispatcher())  // not started: nothing is delivered
    let record = try await service.send(
      hub: world.hub, headers: [(name: "Tags", value: "\"12345\"")],
      body: Array(#"{"message":"Hello from Postman!"}"#.utf8))
    let stored = try await world.store.notification(record.id, hub: world.hub.id)
    #expect(stored?.state == .enqueued)
    #expect(stored?.request == record.request)
    let form = /[0-9a-f]{32}-20300101000000-[0-9]+-[0-9]+/
    #expect(record.id.rawValue.wholeMatch(of: form) != nil)
    let other = NotificationID(at: world.clock.now, random: .system)
    #expect(other != record.id)
  }

  @Test("a refused send leaves nothing behind")
  func refused() async throws {
    let world = try await DispatchWorld()
    let service = service(world, world.dispatcher())
    await #expect(throws: HubFailure.self) {
      try await service.send(hub: world.hub, headers: [], body: Array("[]".utf8))
    }
    #expect(try await world.store.unfinishedNotifications().isEmpty)
  }

  @Test("a store that cannot take it is 503, a hub that is gone 404")
  func storeTrouble() async throws {
    let world = try await DispatchWorld()
    let service = service(world, world.dispatcher())
    world.hook.fail(with: .diskFull)
    await #expect {
      try await service.send(hub: world.hub, headers: [], body: Array("{}".utf8))
    } throws: {
      ($0 as? HubFailure)?.status == 503
    }
    world.hook.fail(with: nil)
    _ = try await world.store.deleteHub(named: "hub")
    await #expect(throws: HubFailure.noHub) {
      try await service.send(hub: world.hub, headers: [], body: Array("{}".utf8))
    }
  }

  @Test("telemetry tells state, times, body, tags, platforms and counts")
  func telemetry() async throws {
    let gateway = FakeGateway { push, _ in
      push.handle == "2"
        ? PushResult(outcome: .wrongChannel, handle: .remove, status: 400) : .success
    }
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<3, tags: ["red"])
    let dispatcher = try await world.started()
    let service = service(world, dispatcher)
    let sent = try await service.send(
      hub: world.hub,
      headers: [
        (name: "ServiceBusNotification-Format", value: "apple"),
        (name: "ServiceBusNotification-Tags", value: "red"),
      ], body: Array(#"{"aps":{}}"#.utf8))
    _ = try await world.finished(sent, by: dispatcher)
    let telemetry = try await service.notifications.telemetry(hub: world.hub, id: sent.id)
    #expect(telemetry.notificationID == sent.id.rawValue)
    #expect(telemetry.state == .completed)
    #expect(telemetry.enqueueTime == sent.enqueuedAt)
    #expect(telemetry.startTime != nil && telemetry.endTime != nil)
    #expect(telemetry.body == #"{"aps":{}}"#)
    #expect(telemetry.tags == "red")
    #expect(telemetry.targetPlatforms == ["apple"])
    // WrongChannel is a word of feedback only.
    #expect(telemetry.outcomes == [.apns: ["Success": 2, "BadChannel": 1]])
  }

  @Test("telemetry of template deliveries names their platforms so")
  func templatePlatforms() {
    let counts: [OutcomeKey: Int] = [
      OutcomeKey(platform: .apns, isTemplate: true, outcome: .success): 1,
      OutcomeKey(platform: .apns, isTemplate: true, outcome: .invalidToken): 2,
      OutcomeKey(platform: .apns, isTemplate: true, outcome: .invalidCredentials): 3,
      OutcomeKey(platform: .wns, isTemplate: true, outcome: .success): 4,
    ]
    let record = NotificationRecord(
      id: NotificationID(rawValue: "x"), hub: 1,
      request: NotificationRequest(format: .template, body: Array("{}".utf8)),
      state: .processing, enqueuedAt: Date(timeIntervalSince1970: 0), counts: counts)
    let telemetry = NotificationTelemetry(record)
    #expect(telemetry.targetPlatforms == ["appletemplate", "windowstemplate"])
    #expect(telemetry.count(of: .invalidCredentials, on: .apns) == 5)
  }

  @Test("telemetry of an unknown id, or of another hub's, is 404")
  func unknownID() async throws {
    let world = try await DispatchWorld()
    let service = service(world, world.dispatcher())
    let other = try await world.store.createHub(
      named: "other", registrationTTL: nil, policies: [], at: world.clock.now)
    let sent = try await service.send(hub: world.hub, headers: [], body: Array("{}".utf8))
    for (hub, id) in [
      (world.hub, NotificationID(rawValue: "none")), (other, sent.id),
    ] {
      await #expect {
        try await service.notifications.telemetry(hub: hub, id: id)
      } throws: {
        ($0 as? HubFailure)?.status == 404
      }
    }
  }
}
