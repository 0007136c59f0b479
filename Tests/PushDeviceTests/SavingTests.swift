import Foundation
import NotificationHubs
import PushDevice
import PushDeviceTesting
import Testing

@Suite("Saving the installation")
struct SavingTests {
  @Test("20 changes in 3 seconds are one save")
  func changesAreCollected() async throws {
    let device = TestDevice()
    let push = device.process()
    await push.didRegister(deviceToken: .token(1))
    for number in 1...20 {
      try await push.insert(Tag(rawValue: "tag\(number)"))
      await device.clock.advance(by: .milliseconds(150))
    }
    #expect(device.saves.isEmpty)
    await device.clock.advance(by: .seconds(1))
    #expect(device.saves.map(\.tags.count) == [20])
  }

  @Test("changes that never cease are saved after 5 seconds")
  func changesDoNotWaitForever() async throws {
    let device = TestDevice()
    let push = device.process()
    await push.didRegister(deviceToken: .token(1))
    for number in 1...60 {
      try await push.insert(Tag(rawValue: "tag\(number)"))
      await device.clock.advance(by: .milliseconds(100))
    }
    #expect(device.saves.count == 1)
  }

  @Test("a change while a save is under way is one more save after it")
  func changeWhileSaving() async throws {
    let device = TestDevice()
    let push = await device.launch()
    device.hub.hold()
    try await push.insert("first")
    async let passed: Void = device.clock.advance(by: .seconds(1))
    await device.hub.heldRequest()
    #expect(await push.state == .saving)
    try await push.insert("second")
    try await push.insert("third")
    device.hub.release()
    await passed
    await device.clock.advance(by: .seconds(1))
    #expect(device.saves.map(\.tagNames) == [[], ["first"], ["first", "second", "third"]])
  }

  @Test("the same token is saved at the first of ten launches, and again on day 8")
  func unchangedIsSkipped() async throws {
    let device = TestDevice()
    for _ in 1...10 {
      _ = await device.launch()
      await device.clock.advance(by: .seconds(86_400 * 6 / 10))
    }
    #expect(device.saves.count == 1)
    await device.clock.advance(by: .seconds(86_400 * 2))
    _ = await device.launch()
    #expect(device.saves.count == 2)
  }

  @Test("a new token is saved although nothing else has changed")
  func newToken() async throws {
    let device = TestDevice()
    _ = await device.launch(token: 1)
    let push = await device.launch(token: 2)
    #expect(device.saves.map(\.pushChannel) == [.apns(.token(1)), .apns(.token(2))])
    #expect(device.hub.installations.count == 1)
    #expect(await push.state.isSaved)
  }

  @Test("a change that is taken back is no request")
  func changeTakenBack() async throws {
    let device = TestDevice()
    let push = await device.launch()
    try await push.insert("news")
    try await push.remove("news")
    await device.clock.advance(by: .seconds(60))
    #expect(device.hub.attempts == 1)
  }

  @Test("new versions of app and system, and another hub, are registered at once")
  func newVersions() async throws {
    let device = TestDevice()
    _ = await device.launch()
    device.system.facts.appVersion = "1.1"
    _ = await device.launch()
    device.system.facts.systemVersion = "18.1"
    _ = await device.launch()
    #expect(device.saves.count == 3)
    let other = FakeRegistrar(address: "https://other.example/news")
    let push = PushInstallation(
      registrar: other, storage: device.storage, system: device.system, clock: device.clock)
    await push.didRegister(deviceToken: .token(1))
    try await push.synchronize()
    #expect(other.installations == device.hub.installations)
  }

  @Test("an expiry is renewed after two thirds of its span")
  func expiry() async throws {
    var device = TestDevice()
    device.configuration.lifetime = .seconds(86_400 * 3)
    let push = await device.launch()
    let first = try #require(device.registered?.expirationTime)
    await device.clock.advance(by: .seconds(86_400 * 2 - 60))
    #expect(device.saves.count == 1)
    await device.clock.advance(by: .seconds(120))
    #expect(device.saves.count == 2)
    #expect(try #require(device.registered?.expirationTime) > first)
    #expect(await push.state.isSaved)
  }

  @Test("what the app adds before a save is sent, and a change of it noticed")
  func enrichment() async throws {
    let device = TestDevice()
    for value in ["a", "a", "b"] {
      let push = device.process { $0.pushVariables["key"] = value }
      await push.didRegister(deviceToken: .token(1))
      await device.clock.advance(by: .seconds(1))
    }
    #expect(device.saves.map { $0.pushVariables["key"] } == ["a", "b"])
  }

  @Test("leaving the foreground and synchronize() save without delay")
  func flush() async throws {
    let device = TestDevice()
    let push = device.process()
    await push.didRegister(deviceToken: .token(1))
    await push.willLeaveForeground()
    await push.settled()
    #expect(device.saves.count == 1)
    try await push.insert("news")
    let receipt = try await push.synchronize()
    #expect(device.registered?.tagNames == ["news"])
    #expect(receipt.fingerprint.count == 8)
    #expect(try await push.synchronize() == receipt)
    #expect(device.hub.attempts == 2)
  }

  @Test("an installation that the hub has lost is back within the refresh interval")
  func lostInstallation() async throws {
    let device = TestDevice()
    let push = await device.launch()
    let id = try #require(await push.installationID)
    device.hub.lose(id)
    await device.clock.advance(by: .seconds(7 * 86_400))
    #expect(device.hub.installations[id] != nil)
  }

  @Test("synchronize() returns when its changes are saved, whatever changes meanwhile")
  func changeWhileSynchronizing() async throws {
    let device = TestDevice()
    let push = await device.launch()
    try await push.insert("first")
    device.hub.hold()
    async let receipt = push.synchronize()
    await device.hub.heldRequest()
    try await push.insert("second")
    device.hub.release()
    #expect(try await receipt.fingerprint.count == 8)
    #expect(device.registered?.tagNames == ["first"])
    // A change during the app's addition is sent with it.
    let app = Locked<PushInstallation?>(nil)
    let isFirst = Flag(true)
    let other = device.process { _ in
      guard isFirst.isSet else { return }
      isFirst.isSet = false
      try await app.withLock { $0 }?.insert("third")
    }
    app.withLock { $0 = other }
    await other.didRegister(deviceToken: .token(1))
    try await other.synchronize()
    #expect(device.registered?.tagNames == ["first", "second", "third"])
  }

  @Test("verify() names the difference, and sends it again")
  func verify() async throws {
    let device = TestDevice()
    let push = await device.launch()
    #expect(try await push.verify() == [])
    device.hub.lose(try #require(await push.installationID))
    #expect(try await push.verify() == ["installationId"])
    #expect(device.hub.installations.count == 1)
  }

  @Test(
    "verify() compares each member that was sent",
    arguments: ["pushChannel", "userId", "tags", "pushVariables", "templates"])
  func verifyMember(name: String) async throws {
    let device = TestDevice()
    let push = await device.launch()
    try await push.update {
      $0.tags = ["news"]
      $0.templates["main"] = PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)
      $0.pushVariables["name"] = "Anna"
    }
    try await push.signIn(as: "anna")
    try await push.synchronize()
    #expect(try await push.verify() == [])
    let sent = try #require(device.registered)
    var other = sent
    switch name {
    case "pushChannel": other.pushChannel = .apns(.token(9))
    case "userId": other.userID = nil
    case "tags": other.tags.append("more")
    case "pushVariables": other.pushVariables = [:]
    default: other.templates["main"]?.body = "{}"
    }
    try await device.hub.save(other)
    #expect(try await push.verify() == [name])
    #expect(device.registered == sent)
  }

  @Test("a switched-off device leaves the hub, and comes back with what the app wants by then")
  func disabled() async throws {
    let device = TestDevice()
    let push = await device.launch()
    try await push.setEnabled(false)
    await push.settled()
    #expect(device.hub.installations.isEmpty)
    #expect(await push.state == .disabled)
    try await push.insert("news")
    let later = await device.launch()
    #expect(await later.state == .disabled)
    #expect(device.hub.attempts == 2)
    try await later.setEnabled(true)
    try await later.synchronize()
    #expect(device.registered?.tagNames == ["news"])
  }

  @Test("the permission is a tag, and follows the Settings app at the next foreground")
  func permissionTag() async throws {
    var device = TestDevice()
    device.configuration.tagsPermission = true
    let push = await device.launch()
    #expect(device.registered?.tagNames == ["push:undetermined"])
    #expect(try await push.requestPermission() == .authorized)
    try await push.synchronize()
    #expect(device.registered?.tagNames == ["push:authorized"])
    device.system.chosenPermission = .denied
    await push.didEnterForeground()
    await device.clock.advance(by: .seconds(1))
    #expect(device.registered?.tagNames == ["push:denied"])
  }

  @Test(
    "while the permission is unknown nothing is sent, and after a locked launch it is looked up")
  func permissionAfterUnlock() async throws {
    var device = TestDevice()
    device.configuration.tagsPermission = true
    device.system.chosenPermission = .authorized
    _ = await device.launch()
    device.clock.endProcess()
    device.storage.error = .locked
    let push = device.process()
    await push.start()
    await push.didRegister(deviceToken: .token(1))
    device.storage.error = nil
    await push.protectedDataDidBecomeAvailable()
    await device.clock.advance(by: .seconds(600))
    #expect(device.hub.attempts == 1)
    #expect(device.registered?.tagNames == ["push:authorized"])
  }

  /// A system whose answers come when the test says so.
  final class SlowSystem: PushSystem {
    private let questions = Locked<[CheckedContinuation<PushPermission, Never>]>([])
    let facts = DeviceFacts(appVersion: "1", systemVersion: "1")
    var asked: Int { questions.withLock { $0.count } }
    func answer(_ number: Int, _ permission: PushPermission) {
      questions.withLock { $0[number] }.resume(returning: permission)
    }
    func registerForRemoteNotifications() async {}
    func permission() async -> PushPermission {
      await withCheckedContinuation { continuation in
        questions.withLock { $0.append(continuation) }
      }
    }
    func requestPermission(_ options: PermissionOptions) async throws -> PushPermission {
      .authorized
    }
  }

  @Test("an answer about the permission that comes after a later one does not count")
  func latePermission() async throws {
    let (hub, clock, system) = (FakeRegistrar(), ManualDeviceClock(), SlowSystem())
    var configuration = PushInstallation.Configuration()
    configuration.tagsPermission = true
    let push = PushInstallation(
      registrar: hub, storage: FakeStorage(), system: system, clock: clock,
      configuration: configuration, jitter: { 1 })
    async let started: Void = push.start()
    while system.asked == 0 { await Task.yield() }
    #expect(try await push.requestPermission() == .authorized)
    system.answer(0, .undetermined)
    await started
    await push.didRegister(deviceToken: .token(1))
    try await push.synchronize()
    #expect(hub.installations.values.first?.tagNames == ["push:authorized"])
  }

  @Test("the states tell the way from a missing token to a confirmation")
  func states() async throws {
    let device = TestDevice()
    let push = device.process()
    var states = push.states.makeAsyncIterator()
    await push.start()
    #expect(await states.next() == .waitingForToken(problem: nil))
    #expect(device.system.tokenRequests == 1)
    await push.didFailToRegister(CocoaError(.featureUnsupported))
    #expect(await states.next() == .waitingForToken(problem: "\(CocoaError(.featureUnsupported))"))
    await push.didRegister(deviceToken: .token(1))
    #expect(await states.next() == .pending)
    await device.clock.advance(by: .seconds(1))
    #expect(await states.next() == .saving)
    let saved = await states.next()
    #expect(saved?.receipt?.confirmedAt == device.clock.now)
  }
}
