import Foundation
import HubTesting
import NotificationHubs
import StoreContract
import Testing

@testable import HubCore

@Suite("Dispatcher", .timeLimit(.minutes(5)))
struct DispatcherTests {
  @Test("the time of the start is when the work began, not when the first page was recorded")
  func startTime() async throws {
    let world = try await DispatchWorld()
    let gateway = try #require(world.gateways[.apns])
    gateway.hold()
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 1)
    world.clock.advance(by: .seconds(2))
    gateway.release()
    let record = try await world.finished(sent, by: dispatcher)
    #expect(record.startedAt == sent.enqueuedAt)
    #expect(record.endedAt == sent.enqueuedAt.addingTimeInterval(2))
  }

  @Test("a broadcast reaches every device once, page by page")
  func broadcast() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<35)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    let record = try await world.finished(sent, by: dispatcher)
    #expect(record.state == .completed)
    #expect(DispatchWorld.outcomes(record) == [.success: 35])
    #expect(record.isAudienceRead)
    #expect(record.startedAt != nil && record.endedAt != nil)
    let pushes = world.gateways[.apns]?.pushes ?? []
    #expect(Set(pushes.map(\.handle)) == Set((0..<35).map(String.init)))
    #expect(pushes.count == 35)
    #expect(world.gateways[.apns]?.batches.max() == 10)
    #expect(await dispatcher.isIdle)
  }

  @Test("an audience that ends with a full page is complete")
  func fullLastPage() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<20)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    #expect(
      DispatchWorld.outcomes(try await world.finished(sent, by: dispatcher)) == [.success: 20])
  }

  @Test("a tag expression that nobody satisfies ends as NoTargetFound")
  func noTargets() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<3, tags: ["red"])
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(tags: "blue"), through: dispatcher)
    let record = try await world.finished(sent, by: dispatcher)
    #expect(record.state == .noTargetFound)
    #expect(record.counts.isEmpty)
  }

  @Test("without a credential, or with a broken one, every target is InvalidCredentials")
  func noCredential() async throws {
    let world = try await DispatchWorld([.apns: FakeGateway(), .wns: FakeGateway()])
    _ = try await world.store.deleteCredential(.apns, hub: world.hub.id)
    try await world.addDevices(0..<3)
    try await world.addDevices(3..<5, platform: .wns)
    let dispatcher = try await world.started(broken: [.wns])
    let apns = try await world.send(world.native(), through: dispatcher)
    let wns = try await world.send(world.native(.wns), through: dispatcher)
    let first = try await world.finished(apns, by: dispatcher)
    #expect(first.state == .completed)
    #expect(DispatchWorld.outcomes(first) == [.invalidCredentials: 3])
    #expect(
      DispatchWorld.outcomes(try await world.finished(wns, by: dispatcher))
        == [.invalidCredentials: 2])
    let failures = try await world.store.failures(
      wns.id, hub: world.hub.id, after: 0, limit: 10)
    #expect(failures.map(\.reason) == ["'KeyId' is missing", "'KeyId' is missing"])
  }

  @Test("a platform that this build cannot reach is PnsInterfaceError")
  func noGateway() async throws {
    let world = try await DispatchWorld([:], credentials: [.baidu])
    try await world.addDevices(0..<2, platform: .baidu)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(.baidu), through: dispatcher)
    #expect(
      DispatchWorld.outcomes(try await world.finished(sent, by: dispatcher))
        == [.pnsInterfaceError: 2])
  }

  @Test("a handle registered twice gets one push; the other is Skipped")
  func duplicates() async throws {
    let world = try await DispatchWorld()
    for id in ["a", "b"] {
      try await world.add(
        id, [RegistrationDraft(kind: .native, platform: .apns, channel: .handle("same"))])
    }
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    let record = try await world.finished(sent, by: dispatcher)
    #expect(DispatchWorld.outcomes(record) == [.success: 1, .skipped: 1])
    #expect(world.gateways[.apns]?.pushes.count == 1)
  }

  @Test("phones that have moved to FCM's installation ids are reached once, and their tokens leave")
  func movedToInstallationIDs() async throws {
    let dead = PushResult(
      outcome: .badChannel, handle: .remove, status: 404, reason: "UNREGISTERED")
    let gateway = FakeGateway { push, _ in
      // Whoever has an id has moved: the token is dead.
      push.handle.hasPrefix("e") && push.handle.contains(":") ? dead : .success
    }
    let world = try await DispatchWorld([.fcmv1: gateway], pageSize: 7)
    func id(_ number: Int) -> String {
      (number < 30 ? "e" : "f") + String(repeating: "x", count: 19) + "\(10 + number)"
    }
    func put(_ name: String, _ handle: String) async throws {
      try await world.add(
        name, [RegistrationDraft(kind: .native, platform: .fcmv1, channel: .handle(handle))],
        .fcmv1)
    }
    for number in 0..<60 { try await put("t\(number)", id(number) + ":APA91b") }
    for number in 0..<30 { try await put("f\(number)", id(number)) }
    let dispatcher = try await world.started()
    let first = try await world.finished(
      try await world.send(world.native(.fcmv1), through: dispatcher), by: dispatcher)
    #expect(DispatchWorld.outcomes(first) == [.success: 60, .skipped: 30])
    #expect(gateway.pushes.count == 60)
    let query = AudienceQuery(
      hub: world.hub.id, kind: .native(.fcmv1), expression: nil, asOf: world.clock.now)
    #expect(try await world.store.count(query) == 60)
    #expect(world.events.all.isEmpty)
    let hours = try await world.store.feedbackHours(hub: world.hub.id)
    let told = try await world.store.feedback(
      hub: world.hub.id, hour: try #require(hours.first).hour, after: 0, limit: 100)
    #expect(told.map(\.outcome) == Array(repeating: .expiredChannel, count: 30))
    let second = try await world.finished(
      try await world.send(world.native(.fcmv1), through: dispatcher), by: dispatcher)
    #expect(DispatchWorld.outcomes(second) == [.success: 60])
  }

  @Test(
    "a dead handle of FCM hands over once to the oldest of its installation",
    arguments: [true, false])
  func handOver(oldestLives: Bool) async throws {
    let dead = PushResult(
      outcome: .badChannel, handle: .remove, status: 404, reason: "UNREGISTERED")
    let gateway = FakeGateway { push, _ in
      oldestLives && push.handle.hasSuffix(":real") ? .success : dead
    }
    let world = try await DispatchWorld([.fcmv1: gateway, .apns: FakeGateway()])
    let id = "eKq3xYb5Q0mVn2T7wZ1aBc"
    // Somebody knows the id and has registered it with secrets of his own.
    for (name, handle) in [
      ("victim", id + ":real"), ("b1", id + ":bogus1"), ("b2", id + ":bogus2"),
    ] {
      try await world.add(
        name, [RegistrationDraft(kind: .native, platform: .fcmv1, channel: .handle(handle))],
        .fcmv1)
    }
    let dispatcher = try await world.started()
    let sent = try await world.finished(
      try await world.send(world.native(.fcmv1), through: dispatcher), by: dispatcher)
    #expect(
      DispatchWorld.outcomes(sent) == [oldestLives ? .success : .badChannel: 1, .skipped: 2])
    #expect(gateway.pushes.map(\.handle) == [id + ":bogus2", id + ":real"])
    let query = AudienceQuery(
      hub: world.hub.id, kind: .native(.fcmv1), expression: nil, asOf: world.clock.now)
    // Without any success nothing is removed: the credential may be wrong.
    #expect(try await world.store.count(query) == (oldestLives ? 2 : 3))
    let hours = try await world.store.feedbackHours(hub: world.hub.id)
    #expect(hours.count == (oldestLives ? 1 : 0))
  }

  @Test("a template send fills each template, with push variables where the message lacks a name")
  func templates() async throws {
    let world = try await DispatchWorld([.apns: FakeGateway(), .fcmv1: FakeGateway()])
    let shared = PushTemplate(
      body: #"{"aps":{"alert":"$(message)"}}"#, headers: ["apns-priority": "5"])
    let personal = PushTemplate(body: #"{"data":{"to":"$(name)","m":"$(message)"}}"#)
    try await world.add(
      "a",
      [
        RegistrationDraft(
          kind: .template(shared, name: "s"), platform: .apns, channel: .handle("A"))
      ])
    for (id, name) in [("b", "Ann"), ("c", "Bo")] {
      try await world.add(
        id,
        [
          RegistrationDraft(
            kind: .template(personal, name: "p"), platform: .fcmv1, channel: .handle(id),
            pushVariables: ["name": name])
        ], .fcmv1)
    }
    let dispatcher = try await world.started()
    var request = world.template(#"{"message":"Hi"}"#)
    request.headers = ["apns-priority": "10", "apns-push-type": "alert", "x-wns-type": "wns/raw"]
    request.expiry = 99
    let record = try await world.finished(
      try await world.send(request, through: dispatcher), by: dispatcher)
    #expect(
      record.counts == [
        OutcomeKey(platform: .apns, isTemplate: true, outcome: .success): 1,
        OutcomeKey(platform: .fcmv1, isTemplate: true, outcome: .success): 2,
      ])
    let apple = world.gateways[.apns]?.pushes.first
    #expect(apple?.body == #"{"aps":{"alert":"Hi"}}"#)
    #expect(apple?.headers == ["apns-priority": "5", "apns-push-type": "alert"])
    #expect(apple?.expiry == 99)
    #expect(
      Set(world.gateways[.fcmv1]?.pushes.map(\.body) ?? []) == [
        #"{"data":{"to":"Ann","m":"Hi"}}"#, #"{"data":{"to":"Bo","m":"Hi"}}"#,
      ])
  }

  @Test("a stored template that does not compile costs only its own targets")
  func brokenTemplate() async throws {
    let world = try await DispatchWorld()
    let broken = PushTemplate(body: #"{"aps":{"alert":"$(oops"}}"#)
    let good = PushTemplate(body: #"{"aps":{"alert":"$(a)"}}"#)
    for (id, template) in [("a", broken), ("b", good)] {
      try await world.add(
        id,
        [
          RegistrationDraft(
            kind: .template(template, name: nil), platform: .apns, channel: .handle(id))
        ])
    }
    let dispatcher = try await world.started()
    let sent = try await world.send(world.template("{}"), through: dispatcher)
    #expect(
      DispatchWorld.outcomes(try await world.finished(sent, by: dispatcher))
        == [.success: 1, .unknownError: 1])
  }

  @Test("dead handles leave the hub, failures are kept for each device")
  func deadHandles() async throws {
    let gateway = FakeGateway { push, _ in
      push.handle == "1"
        ? PushResult(
          outcome: .expiredChannel, handle: .remove, status: 410, reason: "Unregistered") : .success
    }
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<3)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    let record = try await world.finished(sent, by: dispatcher)
    #expect(DispatchWorld.outcomes(record) == [.success: 2, .expiredChannel: 1])
    #expect(try await world.store.registrations(of: "d1", hub: world.hub.id).isEmpty)
    let dead = try await world.store.installation("d1", hub: world.hub.id)
    #expect(dead?.pushChannelExpired == true)
    let failures = try await world.store.failures(sent.id, hub: world.hub.id, after: 0, limit: 9)
    #expect(failures.map(\.status) == [410])
    #expect(failures.map(\.reason) == ["Unregistered"])
  }

  @Test("a handle that the push service has replaced is the device's from then on")
  func replacedHandles() async throws {
    let gateway = FakeGateway { push, _ in
      guard push.handle == "1" else { return .success }
      return PushResult(outcome: .success, handle: .replace, status: 200, newHandle: "one")
    }
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<3)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    let record = try await world.finished(sent, by: dispatcher)
    #expect(DispatchWorld.outcomes(record) == [.success: 3])
    let installation = try await world.store.installation("d1", hub: world.hub.id)
    #expect(installation?.pushChannel == .handle("one"))
    let next = try await world.send(world.native(), through: dispatcher)
    _ = try await world.finished(next, by: dispatcher)
    #expect(Set(gateway.pushes.suffix(3).map(\.handle)) == ["0", "one", "2"])
  }
}
