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
    guard case .saved = await push.state else { return #expect(Bool(false)) }
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
    guard case .saved = await push.state else { return #expect(Bool(false)) }
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

  @Test("verify() names the difference, and sends it again")
  func verify() async throws {
    let device = TestDevice()
    let push = await device.launch()
    #expect(try await push.verify() == [])
    device.hub.lose(try #require(await push.installationID))
    #expect(try await push.verify() == ["installationId"])
    #expect(device.hub.installations.count == 1)
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

  @Test("the states tell the way from a missing token to a confirmation")
  func states() async throws {
    let device = TestDevice()
    let push = device.process()
    var states = push.states.makeAsyncIterator()
    await push.start()
    #expect(await states.next() == .waitingForToken(problem: nil))
    #expect(device.system.tokenRequests == 1)
    await push.didFailToRegister(CocoaError(.featureUnsupported))
    guard case .waitingForToken(.some) = await states.next() else { return #expect(Bool(false)) }
    await push.didRegister(deviceToken: .token(1))
    #expect(await states.next() == .pending)
    await device.clock.advance(by: .seconds(1))
    #expect(await states.next() == .saving)
    guard case .saved(let receipt) = await states.next() else { return #expect(Bool(false)) }
    #expect(receipt.confirmedAt == device.clock.now)
  }
}
