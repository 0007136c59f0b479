import Foundation
import HubTesting
import NotificationHubs
import Testing

@testable import HubCore

@Suite("Repeated sends", .timeLimit(.minutes(5)))
struct IdempotencyTests {
  private func send(
    _ world: DispatchWorld, _ service: HubService, key: String? = "k-1",
    body: [UInt8] = applePayload, others: [String: String] = [:]
  ) async throws -> NotificationRecord {
    var fields = others
    fields["Idempotency-Key"] = key
    return try await service.send(
      hub: world.hub, headers: sendFields("apple", fields), body: body)
  }

  @Test("the same key brings the same notification and one delivery, also after a restart")
  func sameKey() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<3)
    let dispatcher = try await world.started()
    let service = world.service(dispatcher)
    let first = try await send(world, service)
    let repeats = try await withThrowingTaskGroup(of: NotificationID.self) { group in
      for _ in 0..<20 { group.addTask { try await send(world, service).id } }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(repeats == [first.id])
    _ = try await world.finished(first, by: dispatcher)
    await dispatcher.stop(within: .seconds(5))
    let later = try await world.started()
    world.clock.advance(by: .seconds(86_399))
    #expect(try await send(world, world.service(later)).id == first.id)
    #expect(await later.isIdle)
    #expect(world.gateways[.apns]?.pushes.count == 3)
    world.clock.advance(by: .seconds(2))
    #expect(try await send(world, world.service(later)).id != first.id)
  }

  @Test("without a key, and with other keys, every send is one of its own")
  func others() async throws {
    let world = try await DispatchWorld()
    let service = world.service(world.dispatcher())
    var seen: Set<NotificationID> = []
    for key in [nil, nil, "a", "b", "A"] {
      seen.insert(try await send(world, service, key: key).id)
    }
    #expect(seen.count == 5)
  }

  @Test("another request under the same key is 422 and writes nothing")
  func otherRequest() async throws {
    let world = try await DispatchWorld()
    let service = world.service(world.dispatcher())
    _ = try await send(world, service)
    let count = try await world.store.unfinishedNotifications().count
    let attempts: [() async throws -> Void] = [
      { _ = try await send(world, service, body: Array(#"{"aps":{}}"#.utf8)) },
      { _ = try await send(world, service, others: ["ServiceBusNotification-Tags": "red"]) },
      { _ = try await send(world, service, others: ["apns-priority": "5"]) },
      {
        _ = try await service.sendDirect(
          hub: world.hub,
          headers: sendFields(
            "apple", ["Idempotency-Key": "k-1", "ServiceBusNotification-DeviceHandle": "0A"]),
          body: applePayload)
      },
      {
        _ = try await service.schedule(
          hub: world.hub,
          headers: sendFields(
            "apple",
            [
              "Idempotency-Key": "k-1",
              "ServiceBusNotification-ScheduleTime": "2030-01-02T00:00:00",
            ]
          ), body: applePayload)
      },
    ]
    for attempt in attempts {
      let failure = await refusal(attempt)
      #expect(failure?.status == 422)
      #expect(failure?.message?.contains("Idempotency-Key") == true)
    }
    #expect(try await world.store.unfinishedNotifications().count == count)
  }

  @Test("a direct send to another device is another request")
  func directTargets() async throws {
    let world = try await DispatchWorld()
    let service = world.service(world.dispatcher())
    func send(_ handle: String) async throws -> NotificationID {
      try await service.sendDirect(
        hub: world.hub,
        headers: sendFields(
          "apple", ["Idempotency-Key": "d", "ServiceBusNotification-DeviceHandle": handle]),
        body: applePayload
      ).id
    }
    let first = try await send("0a")
    #expect(try await send("0A") == first)
    #expect(await refusal { _ = try await send("0b") }?.status == 422)
  }

  @Test(
    "a key that is no key is 400",
    arguments: ["", "  ", String(repeating: "k", count: 256), "schlüssel"])
  func badKey(key: String) async throws {
    let world = try await DispatchWorld()
    let service = world.service(world.dispatcher())
    #expect(await refusal { _ = try await send(world, service, key: key) }?.status == 400)
    #expect(try await world.store.unfinishedNotifications().isEmpty)
  }
}
