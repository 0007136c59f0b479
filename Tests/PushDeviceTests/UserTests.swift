import Foundation
import NotificationHubs
import PushDevice
import PushDeviceTesting
import Testing

@Suite("Signing in and out")
struct UserTests {
  @Test("a sign-in is sent at once, and leaves with its tags")
  func signInAndOut() async throws {
    let device = TestDevice()
    let push = await device.launch()
    try await push.insert("news")
    try await push.signIn(as: "anna", tags: ["vip"])
    await push.settled()
    #expect(device.registered?.userID == "anna")
    #expect(device.registered?.tagNames == ["news", "vip"])
    try await push.signOut()
    await push.settled()
    #expect(device.registered?.userID == nil)
    #expect(device.registered?.tagNames == ["news"])
    #expect(device.hub.attempts == 3)
  }

  @Test("a sign-out without network comes before the next sign-in, also after a crash")
  func orderOfSignOut() async throws {
    let device = TestDevice()
    let first = await device.launch()
    try await first.signIn(as: "anna", tags: ["vip"])
    await first.settled()
    device.hub.answer = .offline
    try await first.signOut()
    await first.settled()
    // The process is killed.
    let second = await device.launch()
    try await second.signIn(as: "bob")
    await second.settled()
    device.hub.answer = .success
    await second.didEnterForeground()
    await second.settled()
    #expect(device.saves.map(\.userID) == [nil, "anna", nil, "bob"])
    #expect(device.saves.allSatisfy { $0.userID == "anna" || $0.tagNames == [] })
  }

  @Test("a sign-out whose sign-in may have been lost on its way back is sent")
  func lostSignIn() async throws {
    let device = TestDevice()
    let push = await device.launch()
    device.hub.answer = .lostReply
    try await push.signIn(as: "anna")
    await push.settled()
    device.hub.answer = .success
    try await push.signOut()
    await push.settled()
    #expect(device.registered?.userID == nil)
  }

  @Test("a sign-out waits for the token, and deletes the device if there is none")
  func signOutWithoutToken() async throws {
    for hasToken in [true, false] {
      let device = TestDevice()
      let first = await device.launch()
      try await first.signIn(as: "anna")
      await first.settled()
      let second = device.process()
      try await second.signOut()
      await second.settled()
      #expect(device.hub.attempts == 2)
      if hasToken {
        await second.didRegister(deviceToken: .token(1))
      } else {
        await second.didFailToRegister(CocoaError(.featureUnsupported))
      }
      await second.settled()
      #expect(device.hub.attempts == 3)
      #expect(device.hub.installations.count == (hasToken ? 1 : 0))
      #expect(device.hub.installations.values.allSatisfy { $0.userID == nil })
    }
  }

  @Test("signing out may delete the device, which registers again without user")
  func deleteDevice() async throws {
    let device = TestDevice()
    let push = await device.launch()
    try await push.signIn(as: "anna")
    await push.settled()
    try await push.signOut(.deleteDevice)
    await push.settled()
    let id = try #require(await push.installationID)
    #expect(device.hub.requests.contains(.delete(id, user: "anna")))
    #expect(device.registered?.userID == nil)
  }

  @Test("a sign-out that the hub refuses as faulty deletes the device instead")
  func refusedSignOut() async throws {
    let device = TestDevice()
    let push = await device.launch()
    try await push.signIn(as: "anna")
    await push.settled()
    try await push.insert("not a tag!")
    try await push.signOut()
    await push.settled()
    #expect(device.hub.installations.isEmpty)
    #expect(await push.state.error?.kind == .rejected)
  }

  @Test("a push for a user who has signed out is not for this device")
  func pushForAnother() async throws {
    let device = TestDevice()
    let push = await device.launch()
    let forAnna = try #require(PushMessage(json: Data(#"{"user":"anna"}"#.utf8)))
    let forAll = try #require(PushMessage(json: Data(#"{"aps":{"alert":"Hi"}}"#.utf8)))
    try await push.signIn(as: "anna")
    #expect(await push.isForThisDevice(forAnna))
    try await push.signOut()
    #expect(await !push.isForThisDevice(forAnna))
    #expect(await push.isForThisDevice(forAll))
  }

  @Test("a backend registers nobody's device, and removes it for the user who leaves")
  func backend() async throws {
    let device = TestDevice(hub: FakeRegistrar(isForSignedInUsersOnly: true))
    let push = await device.launch()
    let id = try #require(await push.installationID)
    #expect(await push.state == .waitingForSignIn)
    #expect(device.hub.attempts == 0)
    try await push.signIn(as: "anna")
    await push.settled()
    try await push.signIn(as: "bob")
    await push.settled()
    #expect(
      device.hub.requests.dropFirst().first == .delete(id, user: "anna"))
    #expect(device.registered?.userID == "bob")
    try await push.signOut()
    await push.settled()
    #expect(device.hub.requests.last == .delete(id, user: "bob"))
    #expect(await push.state == .waitingForSignIn)
  }

  @Test("a backend that knows the leaving user no more does not hold up the next one")
  func endedSession() async throws {
    let device = TestDevice(hub: FakeRegistrar(isForSignedInUsersOnly: true))
    let push = await device.launch()
    try await push.signIn(as: "anna")
    await push.settled()
    device.hub.answer = .failure(RegistrarError(.unauthorized, "the sign-in has ended"))
    try await push.signOut()
    await push.settled()
    #expect(await push.state == .waitingForSignIn)
    device.hub.answer = .success
    try await push.signIn(as: "bob")
    await push.settled()
    #expect(device.registered?.userID == "bob")
  }

  @Test("a former user whose session has ended is not removed again and again")
  func endedSessionAndFailingAddition() async throws {
    let device = TestDevice(hub: FakeRegistrar(keepsSessions: true))
    let isReady = Flag(true)
    let push = device.process { _ in
      guard isReady.isSet else { throw CocoaError(.featureUnsupported) }
    }
    await push.didRegister(deviceToken: .token(1))
    device.hub.beginSession(of: "anna")
    try await push.signIn(as: "anna")
    await push.settled()
    try await device.hub.endSignIn(of: "anna")
    isReady.isSet = false
    device.hub.beginSession(of: "bob")
    let attempts = device.hub.attempts
    try await push.signIn(as: "bob")
    await push.settled()
    await device.clock.advance(by: .seconds(3_600))
    #expect(device.hub.attempts == attempts + 1)
    isReady.isSet = true
    await device.clock.advance(by: .seconds(1_800))
    #expect(device.registered?.userID == "bob")
  }

  @Test("a user who signs out while the app adds to the installation is not registered any more")
  func signOutWhilePreparing() async throws {
    let device = TestDevice()
    let app = Locked<PushInstallation?>(nil)
    let push = device.process { installation in
      guard installation.userID == "anna" else { return }
      try await app.withLock { $0 }?.signOut()
    }
    app.withLock { $0 = push }
    await push.didRegister(deviceToken: .token(1))
    try await push.signIn(as: "anna")
    await push.settled()
    #expect(device.saves.map(\.userID) == [nil])
  }
  @Test("an addition that fails does not hold up a sign-out")
  func signOutWithoutAddition() async throws {
    let device = TestDevice()
    let isReady = Flag(true)
    let push = device.process { installation in
      guard isReady.isSet else { throw CocoaError(.featureUnsupported) }
      installation.pushVariables["added"] = "yes"
    }
    await push.didRegister(deviceToken: .token(1))
    try await push.signIn(as: "anna", tags: ["vip"])
    await push.settled()
    isReady.isSet = false
    try await push.signOut()
    await push.settled()
    #expect(device.registered?.userID == nil && device.registered?.tagNames == [])
    isReady.isSet = true
    await device.clock.advance(by: .seconds(2))
    #expect(device.registered?.pushVariables == ["added": "yes"])
    // Nor does it leave a former user in place of the next one.
    try await push.signIn(as: "anna", tags: ["vip"])
    await push.settled()
    isReady.isSet = false
    try await push.signIn(as: "bob")
    await push.settled()
    #expect(device.registered?.userID == nil && device.registered?.tagNames == [])
    #expect(await push.state.error != nil)
    isReady.isSet = true
    await device.clock.advance(by: .seconds(60))
    #expect(device.registered?.userID == "bob")
  }

  @Test("if the next user's installation is refused, the former user leaves all the same")
  func refusedNextUser() async throws {
    for isRefusedByHub in [false, true] {
      let device = TestDevice()
      let push = await device.launch()
      try await push.signIn(as: "anna", tags: ["vip"])
      await push.settled()
      if isRefusedByHub {
        device.hub.refusalOfRegistrations = RegistrarError(status: 400, "no")
      }
      try await push.signIn(as: "bob", tags: [isRefusedByHub ? "vip" : "not a tag!"])
      await push.settled()
      #expect(device.hub.installations.isEmpty)
      #expect(await push.state.error?.kind == .rejected)
      let attempts = device.hub.attempts
      await device.clock.advance(by: .seconds(3_600))
      #expect(device.hub.attempts == attempts)
      device.hub.refusalOfRegistrations = nil
      try await push.signIn(as: "bob", tags: ["other"])
      await push.settled()
      #expect(device.registered?.userID == "bob")
    }
  }

  @Test("a device that is switched off keeps its user's sign-in")
  func switchedOff() async throws {
    let device = TestDevice(hub: FakeRegistrar(keepsSessions: true))
    let push = await device.launch()
    device.hub.beginSession(of: "anna")
    try await push.signIn(as: "anna")
    await push.settled()
    try await push.setEnabled(false)
    await push.settled()
    #expect(device.hub.installations.isEmpty)
    #expect(device.hub.sessions == ["anna"])
    try await push.setEnabled(true)
    await push.settled()
    #expect(device.registered?.userID == "anna")
    try await push.setEnabled(false)
    try await push.signOut()
    await push.settled()
    #expect(device.hub.sessions.isEmpty)
  }

  @Test(
    "a sign-out that the backend refuses is repeated, and the next user's registration replaces it",
    arguments: [302, 403, 404, 409, 410])
  func refusedRemoval(status: Int) async throws {
    let device = TestDevice(hub: FakeRegistrar(keepsSessions: true))
    let push = await device.launch()
    device.hub.beginSession(of: "anna")
    try await push.signIn(as: "anna")
    await push.settled()
    device.hub.refusalOfRemovals = RegistrarError(status: status, "no")
    try await push.signOut()
    await push.settled()
    let attempts = device.hub.attempts
    await device.clock.advance(by: .seconds(3_600))
    #expect(device.hub.attempts > attempts + 3)
    #expect(device.hub.attempts < attempts + 10)
    if status == 302 {
      device.hub.refusalOfRemovals = nil
      await device.clock.advance(by: .seconds(1_800))
      #expect(device.hub.installations.isEmpty && device.hub.sessions.isEmpty)
      return
    }
    device.hub.beginSession(of: "bob")
    try await push.signIn(as: "bob")
    await push.settled()
    #expect(device.registered?.userID == "bob")
    #expect(device.hub.sessions == ["bob"])
    #expect(await push.state.isSaved)
  }

  @Test("a registration that arrives after another process's sign-out is undone")
  func lateRegistration() async throws {
    for mode in [PushInstallation.SignOutMode.keepDevice, .deleteDevice] {
      let device = TestDevice()
      let app = await device.launch()
      let helper = device.process()
      _ = await helper.installationID
      device.hub.hold()
      try await app.signIn(as: "anna", tags: ["vip"])
      await device.hub.heldRequest()
      // The other process's requests pass by the one that is held.
      let id = try #require(await app.installationID)
      try await helper.signOut(mode)
      await helper.didRegister(deviceToken: .token(1))
      await device.hub.heldRequests(2)
      device.hub.release(1)
      while device.hub.attempts < 2 { await Task.yield() }
      device.hub.release()
      await helper.settled()
      await app.settled()
      await device.clock.advance(by: .seconds(5))
      #expect(device.hub.installations[id]?.userID == nil)
      #expect(device.hub.installations[id]?.tagNames == [])
      #expect(try await app.userID == nil)
    }
  }
}
