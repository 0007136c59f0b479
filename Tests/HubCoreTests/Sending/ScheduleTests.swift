import Foundation
import HubTesting
import NotificationHubs
import Testing
import Wire

@testable import HubCore

@Suite("Scheduled sends", .timeLimit(.minutes(5)))
struct ScheduleTests {
  static let timeHeader = "ServiceBusNotification-ScheduleTime"

  /// - Parameter seconds: From the world's now, which is 2030-01-01T00:00:00Z.
  private func schedule(
    _ world: DispatchWorld, _ service: HubService, in seconds: Double
  ) async throws -> NotificationRecord {
    try await service.schedule(
      hub: world.hub,
      headers: sendFields(
        "apple",
        [Self.timeHeader: WireDate.trimmed(world.clock.now.addingTimeInterval(seconds))]),
      body: applePayload)
  }

  @Test("it waits for its time, then goes out to who is there then")
  func waits() async throws {
    let world = try await DispatchWorld()
    let dispatcher = try await world.started()
    let service = world.service(dispatcher)
    let sent = try await schedule(world, service, in: 10)
    #expect(sent.state == .scheduled)
    let form = /[0-9a-f]{32}_20300101000000_[0-9]+_[0-9]+_QNHQueue[0-9a-f]{32}-S[0-9]+/
    #expect(sent.id.rawValue.wholeMatch(of: form) != nil)
    #expect(
      try await service.notifications.telemetry(hub: world.hub, id: sent.id).state
        == .init(rawValue: "Scheduled")
    )
    try await world.addDevices(0..<2)

    await world.clock.sleepers(1)
    world.clock.advance(by: .milliseconds(9_999))
    #expect(try await world.store.notification(sent.id, hub: world.hub.id)?.state == .scheduled)
    await world.clock.sleepers(1)
    world.clock.advance(by: .milliseconds(1))
    let record = try await delivered(sent, world, dispatcher)
    #expect(record.state == .completed)
    #expect(DispatchWorld.outcomes(record) == [.success: 2])
    #expect(record.startedAt == world.clock.now)
    #expect(
      try await service.notifications.telemetry(hub: world.hub, id: sent.id).enqueueTime
        == sent.enqueuedAt,
      "it was accepted when it was scheduled")
  }

  /// A release happens in a task of the dispatcher's; until then it does not know the notification.
  private func delivered(
    _ sent: NotificationRecord, _ world: DispatchWorld, _ dispatcher: Dispatcher
  ) async throws -> NotificationRecord {
    while true {
      let found = try await world.store.notification(sent.id, hub: world.hub.id)
      if let found, found.state.isFinal { return found }
      await Task.yield()
    }
  }

  @Test("a long wait is slept in pieces, so that a clock that is set wakes it in time")
  func clockIsSet() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let sent = try await schedule(world, world.service(dispatcher), in: 86_400)
    await world.clock.sleepers(1)
    let wake = try #require(world.clock.nextDeadline)
    #expect(wake.timeIntervalSince(world.clock.now) <= 30)
    world.clock.set(sent.scheduledFor ?? .distantFuture)
    #expect(DispatchWorld.outcomes(try await delivered(sent, world, dispatcher)) == [.success: 1])
  }

  @Test("an earlier one that comes later is not late, and the next follows")
  func order() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let service = world.service(dispatcher)
    let late = try await schedule(world, service, in: 20)
    let early = try await schedule(world, service, in: 5)
    await world.clock.sleepers(1)
    world.clock.advance(by: .seconds(5))
    _ = try await delivered(early, world, dispatcher)
    #expect(try await world.store.notification(late.id, hub: world.hub.id)?.state == .scheduled)
    await world.clock.sleepers(1)
    world.clock.advance(by: .seconds(15))
    _ = try await delivered(late, world, dispatcher)
    #expect(world.gateways[.apns]?.pushes.count == 2)
  }

  @Test("after a restart it keeps its time, and what fell due meanwhile goes out at once")
  func restart() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<1)
    let first = try await world.started()
    let service = world.service(first)
    let past = try await schedule(world, service, in: 60)
    let future = try await schedule(world, service, in: 7000)
    await first.stop(within: .seconds(5))
    // Longer than a notification lives in the hub: that time counts from its release.
    world.clock.advance(by: .seconds(3600))
    let second = try await world.started()
    let record = try await delivered(past, world, second)
    #expect(DispatchWorld.outcomes(record) == [.success: 1])
    #expect(try await world.store.notification(future.id, hub: world.hub.id)?.state == .scheduled)
    world.clock.advance(by: .seconds(3400))
    #expect(DispatchWorld.outcomes(try await delivered(future, world, second)) == [.success: 1])
    #expect(world.gateways[.apns]?.pushes.count == 2)
  }

  @Test("a crash between its release and its delivery loses nothing")
  func crash() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<4)
    let held = FakeGateway()
    held.hold()
    let process = StoreHook()
    let first = world.dispatcher([.apns: held], process: process)
    try await first.start()
    let sent = try await schedule(
      world, world.service(first, store: world.store.seen(by: process)), in: 1)
    await world.clock.sleepers(1)
    world.clock.advance(by: .seconds(1))
    await held.arrived(batches: 1)
    await process.die()
    let second = try await world.started()
    let record = try await delivered(sent, world, second)
    #expect(DispatchWorld.outcomes(record) == [.success: 4])
    #expect(world.gateways[.apns]?.pushes.map(\.id) == held.pushes.map(\.id))
    held.release()
  }

  @Test("what was cancelled never goes out; a second time, or too late, is 404")
  func cancel() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let service = world.service(dispatcher)
    let cancelled = try await schedule(world, service, in: 5)
    let kept = try await schedule(world, service, in: 6)
    try await service.cancelScheduled(hub: world.hub, id: cancelled.id)
    let again = await refusal {
      try await service.cancelScheduled(hub: world.hub, id: cancelled.id)
    }
    #expect(again?.status == 404)
    #expect(
      try await service.notifications.telemetry(hub: world.hub, id: cancelled.id).state == .canceled
    )
    await world.clock.sleepers(1)
    world.clock.advance(by: .seconds(6))
    _ = try await delivered(kept, world, dispatcher)
    #expect(world.gateways[.apns]?.pushes.count == 1)
    let late = await refusal { try await service.cancelScheduled(hub: world.hub, id: kept.id) }
    #expect(late?.status == 404)
    let unknown = await refusal {
      try await service.cancelScheduled(hub: world.hub, id: NotificationID(rawValue: "x"))
    }
    #expect(unknown?.status == 404)
  }

  @Test("a time that is past means at once")
  func past() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let sent = try await schedule(world, world.service(dispatcher), in: -3600)
    let record = try await world.finished(sent, by: dispatcher)
    #expect(DispatchWorld.outcomes(record) == [.success: 1])
  }

  @Test(
    "every form of time that clients send is read",
    arguments: [
      "2030-01-05T10:00:00", "2030-01-05T10:00:00Z", "2030-01-05T10:00:00.000Z",
      "2030-01-05T12:00:00+02:00", "2030-01-05'T'10:00:00", "2030-01-05T10:00:00.0000000",
    ])
  func forms(text: String) async throws {
    let world = try await DispatchWorld()
    let sent = try await world.service(world.dispatcher()).schedule(
      hub: world.hub, headers: sendFields("apple", [Self.timeHeader: text]), body: applePayload)
    #expect(sent.scheduledFor == Date(timeIntervalSince1970: 1_893_837_600))
  }

  @Test(
    "a time that is missing, unreadable or beyond the horizon is 400",
    arguments: [
      (nil, HubLimits.strict), ("", .strict), ("tomorrow", .strict),
      ("2030-13-01T00:00:00", .strict),
      ("2030-01-08T00:00:01", .strict), ("2031-01-03T00:00:00", .extended),
      ("9999-12-31T23:59:59", .extended),
    ])
  func badTime(text: String?, limits: HubLimits) async throws {
    let world = try await DispatchWorld()
    let service = world.service(world.dispatcher(), limits: limits)
    let failure = await refusal {
      _ = try await service.schedule(
        hub: world.hub, headers: sendFields("apple", text.map { [Self.timeHeader: $0] } ?? [:]),
        body: applePayload)
    }
    #expect(failure?.status == 400)
    #expect(failure?.message?.contains("ScheduleTime") == true)
  }

  @Test(
    "the horizon is seven days in the original's measure, a year beyond it",
    arguments: [("2030-01-08T00:00:00", HubLimits.strict), ("2031-01-02T00:00:00", .extended)])
  func horizon(text: String, limits: HubLimits) async throws {
    let world = try await DispatchWorld()
    let sent = try await world.service(world.dispatcher(), limits: limits).schedule(
      hub: world.hub, headers: sendFields("apple", [Self.timeHeader: text]), body: applePayload)
    #expect(sent.state == .scheduled)
  }
}
