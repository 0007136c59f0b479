import Foundation
import HubStorage
import HubTesting
import NotificationHubs
import SQLDatabase
import Testing

@testable import HubCore

/// Rows that go, or make no sense, while notifications wait for them.
@Suite("Rows that are damaged or deleted under the dispatcher", .timeLimit(.minutes(5)))
struct DamagedRowTests {
  /// A hub in a file, with a dispatcher.
  private struct Scene {
    let path: String
    let store: SQLiteHubStore
    let clock = ManualClock()
    let hub: Hub
    let gateway: FakeGateway
    let events = DispatchWorld.Events()

    func dispatcher() -> Dispatcher {
      var limits = DispatchLimits()
      limits.pageSize = 10
      return Dispatcher(
        store: store, gateways: FakeGateways([.apns: gateway]), clock: clock.hubClock,
        limits: limits, random: { 0 }, report: events.add)
    }

    func add(_ number: Int, user: String? = nil) async throws {
      try await store.put(
        SampleDevice(
          "d\(number)", handle: "\(number)", user: user,
          templates: ["t": PushTemplate(body: #"{"a":"$(a)"}"#)]), hub: hub.id, at: clock.now)
    }

    func send(_ request: NotificationRequest, _ dispatcher: Dispatcher) async throws
      -> NotificationRecord
    {
      let record = NotificationRecord(
        id: NotificationID(at: clock.now), hub: hub.id, request: request, state: .enqueued,
        enqueuedAt: clock.now)
      try await store.accept(record)
      await dispatcher.submit(record)
      return record
    }
  }

  private static let native = NotificationRequest(
    format: .native(.apns), body: Array(#"{"aps":{}}"#.utf8))

  private func withScene(
    _ gateway: FakeGateway, _ body: (Scene) async throws -> Void
  ) async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    let clock = ManualClock()
    let hub = try await store.createHub(
      named: "hub", registrationTTL: nil, policies: [], at: clock.now)
    try await store.putCredential(
      PushCredential(platform: .apns, properties: [:], modifiedAt: clock.now), hub: hub.id)
    let scene = Scene(path: path, store: store, hub: hub, gateway: gateway)
    do { try await body(scene) } catch {
      try? await store.close()
      throw error
    }
    try await store.close()
  }

  @Test(
    "a row that cannot be read has an outcome of its own, and the others get the push, also after a restart",
    .serialized, arguments: ["platform = 99", "variables = x'ff'", "template = 4711"])
  func unreadable(damage: String) async throws {
    try await withScene(FakeGateway()) { scene in
      for number in 0..<35 { try await scene.add(number) }
      let isTemplate = damage.hasPrefix("template")
      do {
        let connection = try SQLiteConnection(path: scene.path)
        defer { connection.close() }
        try connection.run(
          """
          UPDATE registration SET \(damage) WHERE handle = '12'
            AND template IS \(isTemplate ? "NOT " : "")NULL
          """)
      }
      let request =
        isTemplate ? NotificationRequest(format: .template, body: Array("{}".utf8)) : Self.native
      for round in 0..<2 {
        let dispatcher = scene.dispatcher()
        try await dispatcher.start()
        let sent = try await scene.send(request, dispatcher)
        let record = try await dispatcher.record(
          of: sent.id, hub: scene.hub.id, finishedWithin: .seconds(86_400))
        #expect(record?.state == .completed)
        #expect(record.map(DispatchWorld.outcomes) == [.success: 34, .unknownError: 1])
        #expect(scene.events.all.count == round + 1)
        #expect(scene.events.all.last?.description.contains("cannot be read") == true)
        await dispatcher.stop(within: .seconds(1))
      }
    }
  }

  @Test(
    "a user who is erased, or a hub that is deleted, while retries wait leaves no job behind",
    .serialized, arguments: [true, false])
  func deleted(isHub: Bool) async throws {
    let gateway = FakeGateway { _, _ in
      PushResult(outcome: .pnsServerError, retry: .backoff, status: 500)
    }
    try await withScene(gateway) { scene in
      for number in 0..<3 { try await scene.add(number, user: "ann") }
      let dispatcher = scene.dispatcher()
      try await dispatcher.start()
      var request = Self.native
      request.expression = .tag("$UserId:{ann}")
      request.tags = "$UserId:{ann}"
      let sent = try await scene.send(request, dispatcher)
      while try await scene.store.waitingRetries(sent.id, hub: scene.hub.id) < 3 {
        try await Task.sleep(for: .milliseconds(1))
      }
      if isHub {
        _ = try await scene.store.deleteHub(named: "hub")
      } else {
        _ = try await scene.store.eraseUser("ann", hub: scene.hub.id)
        #expect(try await scene.store.notification(sent.id, hub: scene.hub.id) == nil)
      }
      await dispatcher.recheck(hub: scene.hub.id)
      #expect(await dispatcher.waitUntilIdle(within: .seconds(86_400)))
      #expect(await dispatcher.isIdle)
    }
  }
}
