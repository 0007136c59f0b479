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
    guard case .failed(let error, retryAt: nil) = await push.state else {
      return #expect(Bool(false))
    }
    #expect(error.kind == .rejected)
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
}
