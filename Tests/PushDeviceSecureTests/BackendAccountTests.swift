import Foundation
import NotificationHubs
import PushDevice
import PushDeviceSecure
import PushDeviceTesting
import SecurePush
import Testing

@Suite("The user's sign-in at the backend")
struct BackendAccountTests {
  @Test("signing in registers with a public key, which stays the same at the next launch")
  func signingIn() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.launch()
    #expect(await push.state == .waitingForSignIn)
    try await account.signIn(user: "alice", password: "alice", on: push)
    try await push.synchronize()
    let key = try #require(device.backend.installation?.sealingKey)
    let calls = device.backend.calls.count
    let (next, _) = try await device.launch()
    #expect(try await next.userID == "alice")
    #expect(device.backend.installation?.sealingKey == key)
    #expect(device.backend.calls.count == calls)
  }

  @Test("a key is replaced after 90 days, and the new one registered")
  func keyRotation() async throws {
    let device = SecureDevice()
    _ = try await device.signedIn()
    let key = try #require(device.backend.installation?.sealingKey)
    let old = try device.sealedPush("old")
    await device.clock.advance(by: .seconds(91 * 86_400))
    let (_, account) = try await device.launch()
    #expect(try #require(device.backend.installation?.sealingKey) != key)
    #expect(await account.messages.content(of: old) == .text("old", offline: true))
  }

  @Test("signing out removes device, sign-in and keys")
  func signingOut() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    let sealed = try device.sealedPush("secret")
    try await account.signOut(of: push)
    try await push.finishSignOut()
    #expect(device.backend.installation == nil)
    #expect(device.backend.sessions.isEmpty)
    #expect(account.messages.open(sealed) == nil)
    #expect(!device.stored.contains("refresh-"))
    #expect(try await device.launch().push.userID == nil)
  }

  @Test("a wrong password signs nobody in, and leaves the former user")
  func wrongPassword() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    await #expect(throws: SecurePushClientError.notSignedIn("wrong")) {
      try await account.signIn(user: "bob", password: "guess", on: push)
    }
    #expect(try await push.userID == "alice")
    #expect(device.backend.owner == "alice")
  }

  @Test("without a connection user and keys are gone at once, and the backend hears it later")
  func offline() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    device.backend.isUp = false
    try await account.signOut(of: push)
    await push.settled()
    #expect(try await push.userID == nil)
    #expect(device.storage[StoredItem("sealing-keys", isSecret: true)] == nil)
    // Nobody takes the device over before it has left: a late removal would hit them.
    await #expect(throws: RegistrarError.self) {
      try await account.signIn(user: "alice", password: "alice", on: push)
    }
    device.backend.isUp = true
    device.backend.expireTokens()
    _ = try await device.launch()
    #expect(device.backend.installation == nil)
    #expect(device.backend.sessions.isEmpty)
    #expect(!device.stored.contains("refresh-"))
  }

  @Test("who signs in after a sign-out without a connection registers behind it")
  func signingInAgain() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    let id = try #require(await push.installationID)
    device.backend.isUp = false
    try await account.signOut(of: push)
    await push.settled()
    device.backend.isUp = true
    let calls = device.backend.calls.count
    try await account.signIn(user: "alice", password: "alice", on: push)
    try await push.synchronize()
    #expect(
      device.backend.calls.dropFirst(calls) == [
        "DELETE /api/installations/\(id)", "DELETE /api/token", "POST /api/token",
        "PUT /api/installations/\(id)",
      ])
    #expect(device.backend.sessions == ["alice-2"])
  }

  @Test("another user's sign-in removes the former one's device and sign-in first")
  func anotherUser() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    try await account.signIn(user: "bob", password: "bob", on: push)
    try await push.synchronize()
    #expect(device.backend.owner == "bob")
    #expect(device.backend.sessions == ["bob-2"])
  }

  @Test("a sign-in that was revoked does not hold up the next user")
  func revoked() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    device.backend.revoke()
    try await account.signIn(user: "bob", password: "bob", on: push)
    try await push.synchronize()
    #expect(device.backend.owner == "bob")
  }

  @Test("a sign-in that has ended is a state that the app can show")
  func ended() async throws {
    let device = SecureDevice()
    _ = try await device.signedIn()
    device.backend.revoke()
    await device.clock.advance(by: .seconds(8 * 86_400))
    let (push, _) = try await device.launch()
    #expect(await push.state.error?.kind == .unauthorized)
  }

  @Test("a token is kept, and the password nowhere; the extension renews it for both")
  func tokens() async throws {
    let device = SecureDevice()
    let (_, account) = try await device.signedIn()
    #expect(!device.stored.contains("password"))
    #expect(!device.stored.contains(Data("alice:alice".utf8).base64EncodedString()))
    device.backend.expireTokens()
    let silent = try #require(PushMessage(json: Data(#"{"aps":{},"secureId":"m1"}"#.utf8)))
    #expect(
      await (try device.account()).messages.content(of: silent) == .text("fetched", offline: false))
    #expect(device.stored.contains(#"alice-1\/2"#))
    // The app still has the first one in memory.
    #expect(try await account.send() == "m1")
  }

  @Test("a token that is renewed while its user signs out is not kept")
  func lateRenewal() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    device.backend.expireTokens()
    device.backend.whileRenewing { try? await account.signOut(of: push) }
    _ = try? await account.send()
    try await push.finishSignOut()
    #expect(try await push.userID == nil)
    #expect(device.backend.sessions.isEmpty)
    #expect(!device.stored.contains("refresh-"))
    try await account.signIn(user: "alice", password: "alice", on: push)
    try await push.synchronize()
    #expect(device.backend.sessions == ["alice-2"])
  }

  @Test("a reinstalled app ends the sign-in that the keychain has kept")
  func reinstalled() async throws {
    let device = SecureDevice()
    _ = try await device.signedIn()
    device.storage.deleteApp()
    let (push, account) = try await device.launch()
    #expect(await push.storageCondition == .reinstalled)
    #expect(device.backend.installation == nil)
    #expect(device.backend.sessions.isEmpty)
    try await account.signIn(user: "bob", password: "bob", on: push)
    try await push.synchronize()
    #expect(device.backend.owner == "bob")
  }

  @Test("a sign-in that comes before the start is not one of an earlier launch")
  func signInBeforeStart() async throws {
    let device = SecureDevice()
    let account = try device.account()
    let push = PushInstallation(
      registrar: account.registrar, storage: device.storage, system: FakeSystem(),
      clock: device.clock, enrich: account.enrichment)
    try await account.signIn(user: "alice", password: "alice", on: push)
    await account.start(push)
    await push.didRegister(deviceToken: Data([1]))
    try await push.synchronize()
    #expect(device.backend.owner == "alice")
    #expect(device.backend.sessions == ["alice-1"])
  }

  @Test("damaged sign-ins and keys are replaced")
  func damaged() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    let key = try #require(device.backend.installation?.sealingKey)
    device.storage[StoredItem("sign-ins", isSecret: true)] = Data("x".utf8)
    device.storage[StoredItem("sealing-keys", isSecret: true)] = Data("x".utf8)
    try await account.signIn(user: "alice", password: "alice", on: push)
    await push.didEnterForeground()
    try await push.synchronize()
    #expect(device.backend.installation?.sealingKey != key)
  }

  @Test("while the storage is locked nobody signs in, and nothing is lost")
  func locked() async throws {
    let device = SecureDevice()
    _ = try await device.signedIn()
    device.storage.error = .locked
    let calls = device.backend.calls.count
    let (push, account) = try await device.launch()
    await #expect(throws: StorageError.locked) {
      try await account.signIn(user: "bob", password: "bob", on: push)
    }
    #expect(device.backend.calls.count == calls)
    device.storage.error = nil
    await push.protectedDataDidBecomeAvailable()
    #expect(try await push.userID == "alice")
    #expect(device.backend.sessions == ["alice-1"])
  }
  @Test("switching pushes off and on again needs no new sign-in")
  func switchedOff() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    try await push.setEnabled(false)
    await push.settled()
    #expect(device.backend.installation == nil)
    #expect(device.backend.sessions == ["alice-1"])
    try await push.setEnabled(true)
    try await push.synchronize()
    #expect(device.backend.owner == "alice")
    try await account.signOut(of: push)
    try await push.finishSignOut()
    #expect(device.backend.sessions.isEmpty)
  }

  @Test(
    "a sign-out that something else than the backend answers is not forgotten",
    arguments: [302, 307, 400, 403, 405, 409, 413, 451, 502])
  func oddAnswers(status: Int) async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    device.backend.intercept { request in
      request.method == "DELETE" ? TransportReply(status: status) : nil
    }
    try await account.signOut(of: push)
    await push.settled()
    #expect(device.backend.owner == "alice")
    device.backend.intercept(nil)
    await device.clock.advance(by: .seconds(1_800))
    #expect(device.backend.installation == nil)
    #expect(device.backend.sessions.isEmpty)
    #expect(!device.stored.contains("refresh-"))
  }

  @Test("a backend that refuses to remove a device does not hold up the next user")
  func refusedRemoval() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    device.backend.intercept { request in
      request.method == "DELETE" && request.url.path().contains("installations")
        ? TransportReply(status: 405) : nil
    }
    try await account.signOut(of: push)
    await push.settled()
    for user in ["alice", "bob"] {
      try await account.signIn(user: user, password: user, on: push)
      try await push.synchronize()
      await push.settled()
      #expect(device.backend.owner == user)
      #expect(device.backend.sessions.map { $0.prefix { $0 != "-" } } == [user[...]])
    }
  }

  @Test("who signs in again replaces the former sign-in, which ends")
  func signingInTwice() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    try await account.signIn(user: "alice", password: "alice", on: push)
    #expect(device.backend.sessions == ["alice-2"])
    // If the backend cannot be told now, it is told later.
    device.backend.intercept { $0.method == "DELETE" ? TransportReply(status: 503) : nil }
    try await account.signIn(user: "alice", password: "alice", on: push)
    #expect(device.backend.sessions == ["alice-2", "alice-3"])
    device.backend.intercept(nil)
    device.backend.expireTokens()
    try await account.signIn(user: "alice", password: "alice", on: push)
    try await push.synchronize()
    #expect(device.backend.sessions == ["alice-4"])
    #expect(device.backend.owner == "alice")
  }

  @Test("a sign-in whose sign-in had ended is tried again at once with the new one")
  func signInAfterEnd() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    device.backend.revoke()
    try await push.insert("news")
    await #expect(throws: RegistrarError.self) { try await push.synchronize() }
    try await account.signIn(user: "alice", password: "alice", on: push)
    await push.settled()
    #expect(device.backend.installation?.tags == ["news"])
  }

  @Test("a sign-out during a sign-in takes effect at once, and the sign-in ends")
  func signOutDuringSignIn() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    device.backend.intercept { request in
      if request.method == "POST" { try? await account.signOut(of: push) }
      return nil
    }
    await #expect(throws: CancellationError.self) {
      try await account.signIn(user: "alice", password: "alice", on: push)
    }
    device.backend.intercept(nil)
    try await push.finishSignOut()
    #expect(try await push.userID == nil)
    #expect(device.backend.installation == nil)
    #expect(device.backend.sessions.isEmpty)
    #expect(!device.stored.contains("refresh-"))
  }

  @Test("of two sign-ins at a time the later one counts")
  func twoSignIns() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.launch()
    let isFirst = Locked(true)
    device.backend.intercept { request in
      let isFirst = isFirst.withLock { isFirst in
        defer { isFirst = false }
        return isFirst
      }
      if isFirst { try? await account.signIn(user: "bob", password: "bob", on: push) }
      return nil
    }
    await #expect(throws: CancellationError.self) {
      try await account.signIn(user: "alice", password: "alice", on: push)
    }
    try await push.synchronize()
    #expect(try await push.userID == "bob")
    #expect(device.backend.owner == "bob")
    #expect(device.backend.sessions == ["bob-1"])
  }

  @Test("on a full disk nobody signs out or in, and the user keeps keys and sign-in")
  func fullDisk() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    let sealed = try device.sealedPush("secret")
    device.storage.failingItem = .record
    await #expect(throws: StorageError.self) { try await account.signOut(of: push) }
    #expect(try await push.userID == "alice")
    await #expect(throws: StorageError.self) {
      try await account.signIn(user: "bob", password: "bob", on: push)
    }
    #expect(try await push.userID == "alice")
    #expect(await account.messages.content(of: sealed) == .text("secret", offline: true))
    device.storage.failingItem = nil
    try await push.synchronize()
    #expect(device.backend.sessions == ["alice-1"])
    #expect(device.stored.contains("alice-1") && !device.stored.contains("bob"))
  }

  @Test("another user cannot open what was sealed for the former one")
  func keysOfUsers() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    let sealed = try device.sealedPush("secret")
    let keys = try #require(device.storage[StoredItem("sealing-keys", isSecret: true)])
    try await account.signOut(of: push)
    // As if the keychain had refused to delete them.
    device.storage[StoredItem("sealing-keys", isSecret: true)] = keys
    #expect(account.messages.open(sealed) == nil)
    try await account.signIn(user: "bob", password: "bob", on: push)
    try await push.synchronize()
    #expect(account.messages.open(sealed) == nil)
    try await account.signOut(of: push)
    device.storage[StoredItem("sealing-keys", isSecret: true)] = keys
    _ = try await device.launch()
    #expect(device.storage[StoredItem("sealing-keys", isSecret: true)] == nil)
  }

  @Test("a backend that ends the sign-in while hub tokens are fetched is asked once")
  func hubTokens() async throws {
    let fetches = Locked(0)
    let clock = ManualDeviceClock()
    let hub = HubRegistrar(
      endpoint: ServiceEndpoint(namespace: "contoso"), hub: "news",
      tokens: TokenProvider {
        fetches.withLock { $0 += 1 }
        throw SecurePushClientError.notSignedIn("the sign-in has ended")
      }, transport: FakeBackend())
    let push = PushInstallation(
      registrar: hub, storage: FakeStorage(), system: FakeSystem(), clock: clock, jitter: { 1 })
    await push.didRegister(deviceToken: Data([1]))
    await clock.advance(by: .seconds(86_400))
    #expect(fetches.withLock { $0 } == 1)
    #expect(await push.state.error?.kind == .unauthorized)
  }
}
