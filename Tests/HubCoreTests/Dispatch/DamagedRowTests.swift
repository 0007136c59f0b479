import Foundation
import HubStorage
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
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
        random: .always(0),
        limits: limits, report: events.add)
    }

    /// Changes what the file holds behind the store's back.
    func damage(_ update: String) throws {
      let connection = try SQLiteConnection(path: path)
      defer { connection.close() }
      try connection.run("UPDATE \(update)")
    }

    func add(_ number: Int, user: String? = nil) async throws {
      try await store.put(
        SampleDevice(
          "d\(number)", handle: "\(number)", user: user,
          templates: ["t": PushTemplate(body: #"{"a":"$(a)"}"#)]), hub: hub.id, at: clock.now)
    }

    /// - Parameter seconds: For a scheduled one, how far off its time is.
    func send(
      _ request: NotificationRequest, _ dispatcher: Dispatcher, hub: Hub.ID? = nil,
      dueIn seconds: Double? = nil
    ) async throws -> NotificationRecord {
      let record = NotificationRecord(
        id: NotificationID(at: clock.now, random: .system), hub: hub ?? self.hub.id,
        request: request,
        state: seconds == nil ? .enqueued : .scheduled, enqueuedAt: clock.now,
        scheduledFor: seconds.map(clock.now.addingTimeInterval))
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
      try scene.damage(
        """
        registration SET \(damage) WHERE handle = '12'
          AND template IS \(isTemplate ? "NOT " : "")NULL
        """)
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

  @Test("a list leaves out a registration that does not fit its installation, and says so")
  func unfitInList() async throws {
    try await withScene(FakeGateway()) { scene in
      for number in 0..<5 { try await scene.add(number) }
      try scene.damage("registration SET name = 'x' WHERE handle = '2' AND template IS NOT NULL")
      let service = HubService(
        store: scene.store,
        directory: HubDirectory(store: scene.store, clock: scene.clock.hubClock),
        dispatcher: scene.dispatcher(), clock: scene.clock.hubClock, random: .system)
      let page = try await service.registrations.list(hub: scene.hub, .all, after: 0, limit: 100)
      #expect(page.registrations.count == 9 && page.unreadable.count == 1)
      #expect(scene.events.all.map(\.description).allSatisfy { $0.contains("is left out") })
      #expect(scene.events.all.count == 1)
    }
  }

  /// Who is gone, and whether the dispatcher is told, or has to find out because another process
  /// did it.
  enum Going: CaseIterable {
    case user, hub, userElsewhere, hubElsewhere
    var isHub: Bool { self == .hub || self == .hubElsewhere }
    var isTold: Bool { self == .user || self == .hub }
  }

  @Test(
    "a user who is erased, or a hub that is deleted, while retries wait leaves no job behind",
    .serialized, arguments: Going.allCases)
  func deleted(_ going: Going) async throws {
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
      let other =
        going.isTold
        ? scene.store : try await SQLiteHubStore.open(at: scene.path, sealing: TestSealing())
      if going.isHub {
        _ = try await other.deleteHub(named: "hub")
      } else {
        _ = try await other.eraseUser("ann", hub: scene.hub.id)
        #expect(try await scene.store.notification(sent.id, hub: scene.hub.id) == nil)
      }
      if going.isTold {
        await dispatcher.recheck(hub: scene.hub.id)
        #expect(await dispatcher.waitUntilIdle(within: .seconds(86_400)))
      } else {
        try await other.close()
        let isIdle = try await scene.clock.running(for: dispatcher) {
          await dispatcher.waitUntilIdle(within: .seconds(86_400))
        }
        #expect(isIdle)
      }
      #expect(await dispatcher.isIdle)
    }
  }

  @Test("a hub that another process deletes does not keep the retries of other hubs waiting")
  func deletedBesideOthers() async throws {
    let gateway = FakeGateway { push, attempt in
      switch push.handle {
      case "0": PushResult(outcome: .pnsServerError, retry: .backoff, status: 500)
      case "1": PushResult(outcome: .invalidToken, retry: .pauseCredential, status: 403)
      default:
        attempt < 4 ? PushResult(outcome: .pnsServerError, retry: .backoff, status: 500) : .success
      }
    }
    try await withScene(gateway) { scene in
      for number in 0..<2 { try await scene.add(number) }
      let other = try await scene.store.createHub(
        named: "other", registrationTTL: nil, policies: [], at: scene.clock.now)
      try await scene.store.putCredential(
        PushCredential(platform: .apns, properties: [:], modifiedAt: scene.clock.now),
        hub: other.id)
      try await scene.store.put(
        SampleDevice("d2", handle: "2"), hub: other.id, at: scene.clock.now)
      let dispatcher = scene.dispatcher()
      try await dispatcher.start()
      // Its time ends while its lane still rests with a refused credential.
      var request = Self.native
      request.expiry = Int64(scene.clock.now.timeIntervalSince1970) + 45
      let sent = try await scene.send(request, dispatcher)
      let patient = try await scene.send(Self.native, dispatcher, hub: other.id)
      for (record, hub) in [(sent, scene.hub.id), (patient, other.id)] {
        while try await scene.store.waitingRetries(record.id, hub: hub) < 1 {
          try await Task.sleep(for: .milliseconds(1))
        }
      }
      let process = try await SQLiteHubStore.open(at: scene.path, sealing: TestSealing())
      _ = try await process.deleteHub(named: "hub")
      try await process.close()
      let end = try await scene.clock.running(for: dispatcher) {
        try await dispatcher.record(
          of: patient.id, hub: other.id, finishedWithin: .seconds(86_400))
      }
      #expect(end.map(DispatchWorld.outcomes) == [.success: 1])
      #expect(await dispatcher.isIdle)
    }
  }

  @Test(
    "a notification whose row cannot be read stays for repair, is reported, and stops no other",
    .serialized,
    arguments: ["state = 'Sent'", "format = 77", "headers = x'ff'", "expression = x'ff'"])
  func unreadableNotification(damage: String) async throws {
    try await withScene(FakeGateway()) { scene in
      for number in 0..<3 { try await scene.add(number) }
      let idle = scene.dispatcher()
      let lost = try await scene.send(Self.native, idle)
      let sound = try await scene.send(Self.native, idle)
      try scene.damage("notification SET \(damage) WHERE public_id = '\(lost.id.rawValue)'")

      var dispatcher = scene.dispatcher()
      try await dispatcher.start()
      let end = try await dispatcher.record(
        of: sound.id, hub: scene.hub.id, finishedWithin: .seconds(86_400))
      #expect(end.map(DispatchWorld.outcomes) == [.success: 3])
      let told = try #require(scene.events.all.first?.description)
      #expect(scene.events.all.count == 1)
      #expect(
        told.hasPrefix("hub 1, \(lost.id.rawValue): the stored notification cannot be read ("))
      #expect(await dispatcher.status().unreadable == 1)
      let health = HubHealth(
        store: scene.store, dispatcher: dispatcher, gateways: nil, clock: scene.clock.hubClock,
        machine: scene.clock.hubClock)
      let report = await health.report()
      #expect(report.isReady && report.warnings.map(\.code) == ["notification-unreadable"])
      await dispatcher.stop(within: .seconds(1))

      try scene.damage(
        """
        notification SET state = 'Enqueued', format = 1, headers = x'00', expression = NULL
        WHERE public_id = '\(lost.id.rawValue)'
        """)
      dispatcher = scene.dispatcher()
      try await dispatcher.start()
      let repaired = try await dispatcher.record(
        of: lost.id, hub: scene.hub.id, finishedWithin: .seconds(86_400))
      #expect(repaired.map(DispatchWorld.outcomes) == [.success: 3])
      #expect(await dispatcher.status().unreadable == 0)
      await dispatcher.stop(within: .seconds(1))
    }
  }

  @Test("a scheduled notification that cannot be read keeps no other schedule from its time")
  func unreadableSchedule() async throws {
    try await withScene(FakeGateway()) { scene in
      try await scene.add(0)
      let dispatcher = scene.dispatcher()
      try await dispatcher.start()
      let lost = try await scene.send(Self.native, dispatcher, dueIn: 5)
      let sound = try await scene.send(Self.native, dispatcher, dueIn: 10)
      try scene.damage("notification SET headers = x'ff' WHERE public_id = '\(lost.id.rawValue)'")
      await scene.clock.sleepers(1)
      scene.clock.advance(by: .seconds(10))
      var end: NotificationRecord?
      while end?.state.isFinal != true {
        try await Task.sleep(for: .milliseconds(1))
        end = try await scene.store.notification(sound.id, hub: scene.hub.id)
      }
      #expect(end.map(DispatchWorld.outcomes) == [.success: 1])
      #expect(scene.events.all.count == 1)
      #expect(await dispatcher.status().unreadable == 1)
      await dispatcher.stop(within: .seconds(1))
    }
  }
}
