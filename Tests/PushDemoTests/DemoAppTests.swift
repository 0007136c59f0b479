import Foundation
import NotificationHubs
import PushDemo
import SecurePush
import Synchronization
import Testing

@Suite("The app's logic")
struct DemoAppTests {
  /// What a person would have seen.
  final class Phone: DemoSystem {
    private let state = Mutex(
      (alerts: [String](), notifications: [String](), userInfo: Data(), asked: 0, log: [String]()))
    let grants: Bool
    init(grants: Bool = true) { self.grants = grants }

    var alerts: [String] { state.withLock { $0.alerts } }
    var notifications: [String] { state.withLock { $0.notifications } }
    var log: [String] { state.withLock { $0.log } }
    /// Of the last notification, as the notification center hands it back to the app.
    var userInfo: Data { state.withLock { $0.userInfo } }
    var registrations: Int { state.withLock { $0.asked } }

    func askForAuthorization() async throws -> Bool { grants }
    func registerForRemoteNotifications() async { state.withLock { $0.asked += 1 } }
    func showAlert(_ text: String) async { state.withLock { $0.alerts.append(text) } }
    func log(_ line: String) { state.withLock { $0.log.append(line) } }
    func showNotification(_ text: String, userInfo: [String: String]) async {
      state.withLock {
        $0.notifications.append(text)
        $0.userInfo = (try? JSONEncoder().encode(userInfo)) ?? Data()
      }
    }
  }

  final class Secrets: SecretStore {
    struct Locked: Error {}
    private let state = Mutex((items: [String: Data](), canRead: true, canWrite: true))
    var texts: [String] {
      state.withLock { $0.items.values.map { String(decoding: $0, as: UTF8.self) } }
    }
    var names: [String] { state.withLock { $0.items.keys.sorted() } }
    func allow(reading: Bool, writing: Bool) {
      state.withLock { ($0.canRead, $0.canWrite) = (reading, writing) }
    }
    func load(_ name: String) throws -> Data? {
      try state.withLock {
        guard $0.canRead else { throw Locked() }
        return $0.items[name]
      }
    }
    func save(_ data: Data?, as name: String) throws {
      try state.withLock {
        guard $0.canWrite else { throw Locked() }
        $0.items[name] = data
      }
    }
  }

  /// A backend with one user and one message, and a hub that takes every installation.
  final class Backend: HTTPTransport {
    private let state = Mutex(
      (
        installation: Data?.none, calls: [String](), isUp: true, fetched: 0, token: "t1",
        isRevoked: false, signIns: 0
      ))
    private let renewing = Mutex<(@Sendable () async -> Void)?>(nil)
    /// The message can be read once only.
    let isReadOnce: Bool
    init(isReadOnce: Bool = false) { self.isReadOnce = isReadOnce }
    static let signIn = "Basic " + Data("alice:alice".utf8).base64EncodedString()

    var installation: Installation? {
      state.withLock { $0.installation }.flatMap { try? Installation(jsonData: $0) }
    }
    var calls: [String] { state.withLock { $0.calls } }
    var isRevoked: Bool { state.withLock { $0.isRevoked } }
    /// The token that was given out is good no longer; another is given for the refresh token.
    func expireToken() { state.withLock { $0.token += "1" } }
    /// Does this before it answers the next renewal.
    func whileRenewing(_ action: @escaping @Sendable () async -> Void) {
      renewing.withLock { $0 = action }
    }
    func goDown() { state.withLock { $0.isUp = false } }
    func comeUp() { state.withLock { $0.isUp = true } }

    func send(_ request: TransportRequest) async throws -> TransportReply {
      let path = request.url.path()
      let isUp = state.withLock { state in
        state.calls.append("\(request.method) \(path)")
        return state.isUp
      }
      guard isUp else { throw URLError(.cannotConnectToHost) }
      let isHub = path.hasPrefix("/hub/")
      let shown = request.headers["Authorization"]
      if request.method == "POST", path == "/api/token" {
        let (token, isRevoked, signIns) = state.withLock { state in
          if shown == Self.signIn { state.signIns += 1 }
          return (state.token, state.isRevoked, state.signIns)
        }
        let renewed = shown?.wholeMatch(of: #/Bearer (refresh\d+)/#)?.1
        if shown == Self.signIn || renewed != nil && !isRevoked {
          if renewed != nil { await renewing.withLock { $0.take() }?() }
          return TransportReply(
            status: 200,
            body: Data(
              #"{"User":"alice","Token":"\#(token)","ExpiresAt":"2030-01-01T00:00:00Z","#.utf8)
              + Data(
                #""RefreshToken":"\#(renewed ?? "refresh\(signIns)")","RefreshExpiresAt":"2030-06-01T00:00:00Z"}"#
                  .utf8))
        }
      }
      guard isHub || shown == "Bearer " + state.withLock({ $0.token }) else {
        return TransportReply(status: 401, body: Data(#"{"Message":"wrong"}"#.utf8))
      }
      switch (request.method, path.split(separator: "/").last) {
      case ("PUT", _):
        state.withLock { $0.installation = request.body }
        return TransportReply(status: 200)
      case ("GET", "m1"):
        let isFirst = state.withLock { state in
          state.fetched += 1
          return state.fetched == 1
        }
        guard isFirst || !isReadOnce else {
          return TransportReply(status: 410, body: Data(#"{"Message":"it was read"}"#.utf8))
        }
        return TransportReply(
          status: 200, body: Data(#"{"Id":"m1","Payload":"fetched","Read":false}"#.utf8))
      case ("GET", _) where isHub:
        return TransportReply(status: 200, body: state.withLock { $0.installation ?? Data() })
      case ("POST", "notifications"):
        return TransportReply(status: 200, body: Data(#"{"Id":"m1"}"#.utf8))
      case ("DELETE", "token"):
        state.withLock { $0.isRevoked = true }
        return TransportReply(status: 204)
      case ("DELETE", _):
        state.withLock { $0.installation = nil }
        return TransportReply(status: 200)
      default:
        return TransportReply(status: 404, body: Data(#"{"Message":"no"}"#.utf8))
      }
    }
  }

  private static let address = URL(string: "https://backend.example")

  private let phone = Phone()
  private let secrets = Secrets()
  private let backend = Backend()

  private func app(
    phone: Phone? = nil, connection: Bool = false, vendorID: String = "phone-1",
    backend: Backend? = nil
  ) throws -> DemoApp {
    DemoApp(
      settings: DemoSettings(
        connection: connection
          ? ConnectionString(endpoint: ServiceEndpoint(host: "h"), keyName: "L", key: "k") : nil,
        hub: "hub", backend: Self.address),
      installationID: vendorID, system: phone ?? self.phone, secrets: secrets,
      transport: backend ?? self.backend)
  }

  private static let token = Data([0x0a, 0xff])

  @Test("launching asks for permission, then for a token; without permission it says so")
  func launch() async throws {
    try await app().didFinishLaunching()
    #expect(phone.registrations == 1)
    let other = Phone(grants: false)
    try await app(phone: other).didFinishLaunching()
    #expect(other.registrations == 0)
    #expect(other.alerts.first?.contains("Settings") == true)
  }

  @Test("with the tutorial's keys it registers at the hub, as in the tutorial")
  func hubRegistration() async throws {
    let app = try app(connection: true)
    try await app.didRegister(deviceToken: Self.token)
    #expect(backend.installation?.installationID == "phone-1")
    #expect(backend.installation?.tags == ["12345"])
    #expect(backend.installation?.sealingKey == nil)
    #expect(backend.calls == ["PUT /hub/installations/phone-1", "GET /hub/installations/phone-1"])
  }

  @Test("signing in registers through the backend with a public key; the key stays the same")
  func signingIn() async throws {
    let app = try app()
    try await app.didRegister(deviceToken: Self.token)
    #expect(backend.installation == nil)
    try await app.signIn(user: "alice", password: "alice")
    let first = try #require(backend.installation?.sealingKey)
    #expect(backend.calls.last == "PUT /api/installations/phone-1")
    // The next start of the app.
    let next = try self.app()
    #expect(await next.user == "alice")
    try await next.didRegister(deviceToken: Self.token)
    #expect(backend.installation?.sealingKey == first)
    try await next.signOut()
    #expect(backend.installation == nil)
    #expect(backend.isRevoked)
    #expect(await next.user == nil)
    #expect(await (try self.app()).user == nil)
  }

  @Test(
    "before the phone's first unlock nothing is registered; then the kept id and session are",
    arguments: [false, true])
  func locked(wakesByPush: Bool) async throws {
    _ = try await signedIn()
    let calls = backend.calls.count
    secrets.allow(reading: false, writing: false)
    let app = try app(connection: true, vendorID: "another")
    await app.didFinishLaunching()
    try await app.didRegister(deviceToken: Data([0x01]))
    try await app.secretsBecameReadable()
    #expect(await app.didReceiveInBackground(Self.silent) == .failed)
    await #expect(throws: Secrets.Locked.self) {
      try await app.signIn(user: "alice", password: "alice")
    }
    #expect(backend.calls.count == calls)
    secrets.allow(reading: true, writing: true)
    if wakesByPush {
      #expect(await app.didReceiveInBackground(Self.silent) == .newData)
    } else {
      try await app.secretsBecameReadable()
    }
    #expect(await app.user == "alice")
    #expect(backend.calls.last == "PUT /api/installations/phone-1")
    #expect(backend.installation?.pushChannel.handle == "01")
  }

  @Test("a tap that is first after the unlock does not keep the device from being registered")
  func tapAfterUnlock() async throws {
    _ = try await signedIn()
    secrets.allow(reading: false, writing: false)
    let app = try app()
    try await app.didRegister(deviceToken: Data([0x01]))
    secrets.allow(reading: true, writing: true)
    await app.didOpen(Self.silent)
    try await app.secretsBecameReadable()
    #expect(backend.installation?.pushChannel.handle == "01")
    let calls = backend.calls.count
    try await app.secretsBecameReadable()
    #expect(backend.calls.count == calls)
  }

  @Test("a registration that failed is tried again with the next background push")
  func failedRegistration() async throws {
    let app = try await signedIn()
    backend.goDown()
    await #expect(throws: SecurePushClientError.self) {
      try await app.didRegister(deviceToken: Data([0x01]))
    }
    #expect(await app.didReceiveInBackground(Self.silent) == .failed)
    backend.comeUp()
    #expect(await app.didReceiveInBackground(Self.silent) == .newData)
    #expect(backend.installation?.pushChannel.handle == "01")
  }

  @Test("an id that cannot be kept is not registered")
  func unkeptID() async throws {
    secrets.allow(reading: true, writing: false)
    let app = try app(connection: true)
    try await app.didRegister(deviceToken: Self.token)
    #expect(backend.calls.isEmpty)
    secrets.allow(reading: true, writing: true)
    try await app.secretsBecameReadable()
    #expect(backend.installation?.installationID == "phone-1")
  }

  @Test("signing out without a connection forgets user and keys, and the backend is told later")
  func signingOutOffline() async throws {
    let app = try await signedIn()
    backend.goDown()
    try await app.signOut()
    #expect(await app.user == nil)
    #expect(secrets.names == ["installation-id", "leaving"])
    // Nobody takes the device over before it has left: a late removal would hit them.
    await #expect(throws: SecurePushClientError.self) {
      try await app.signIn(user: "alice", password: "alice")
    }
    let calls = backend.calls.count
    backend.comeUp()
    backend.expireToken()
    await (try self.app()).didFinishLaunching()
    #expect(backend.installation == nil)
    #expect(backend.isRevoked)
    #expect(backend.calls.dropFirst(calls).first == "DELETE /api/installations/phone-1")
    #expect(secrets.names == ["installation-id"])
  }

  @Test("who signs in after a sign-out without a connection registers behind it")
  func signingInAgain() async throws {
    let app = try await signedIn()
    backend.goDown()
    try await app.signOut()
    backend.comeUp()
    let calls = backend.calls.count
    try await app.signIn(user: "alice", password: "alice")
    #expect(
      backend.calls.dropFirst(calls) == [
        "DELETE /api/installations/phone-1", "DELETE /api/token", "POST /api/token",
        "PUT /api/installations/phone-1",
      ])
    #expect(secrets.names == ["installation-id", "sealing-keys", "session"])
  }

  @Test("a sign-out that ended half-way is finished at the next start")
  func halfSignOut() async throws {
    _ = try await signedIn()
    try secrets.save(secrets.load("session"), as: "leaving")
    let next = try app()
    #expect(await next.user == nil)
    try await next.didRegister(deviceToken: Self.token)
    #expect(backend.installation == nil)
    #expect(secrets.names == ["installation-id"])
  }

  @Test("a token is kept, and the password nowhere; the extension renews it for both")
  func tokens() async throws {
    let app = try await signedIn()
    #expect(secrets.texts.allSatisfy { !$0.contains("alice:") && !$0.contains("password") })
    backend.expireToken()
    let inbox = try #require(SecureInbox(secrets: secrets, transport: backend))
    #expect(await inbox.content(of: Self.silent) == .text("fetched", offline: false))
    #expect(secrets.texts.contains { $0.contains(#""token":"t11""#) })
    // The app still has the first one in memory.
    #expect(try await app.sendPush() == "m1")
  }

  @Test(
    "a token that is renewed while its user signs out is not kept", arguments: [false, true])
  func lateRenewal(signsInAgain: Bool) async throws {
    let app = try await signedIn()
    backend.expireToken()
    backend.whileRenewing {
      try? await app.signOut()
      if signsInAgain { try? await app.signIn(user: "alice", password: "alice") }
    }
    _ = try? await app.sendPush()
    #expect(await app.user == (signsInAgain ? "alice" : nil))
    #expect(secrets.names.contains("session") == signsInAgain)
    #expect(secrets.texts.allSatisfy { !$0.contains("refresh1") })
  }

  @Test("a session of the version that kept the password is forgotten, its installation id is not")
  func oldSession() async throws {
    let old = #"{"installationID":"old-1","backend":"https://b","user":"alice","password":"x"}"#
    try secrets.save(Data(old.utf8), as: "session")
    #expect(try await app().installationID == "old-1")
    #expect(secrets.texts.allSatisfy { !$0.contains("password") })
  }

  @Test("a wrong password signs nobody in")
  func wrongPassword() async throws {
    let app = try app()
    try await app.didRegister(deviceToken: Self.token)
    await #expect(throws: SecurePushClientError.notSignedIn("wrong")) {
      try await app.signIn(user: "alice", password: "guess")
    }
    #expect(await app.user == nil)
    await #expect(throws: SecurePushClientError.self) { try await app.sendPush() }
  }

  @Test("the tutorial's background push is fetched by its id and shown")
  func secureFetch() async throws {
    let app = try await signedIn()
    #expect(try await app.sendPush() == "m1")
    let push = #"{"aps":{"content-available":1},"secureId":"m1"}"#
    #expect(await app.didReceiveInBackground(Data(push.utf8)) == .newData)
    #expect(phone.notifications == ["fetched"])
  }

  @Test("a sealed payload is opened without asking anybody, by the app and by its extension")
  func sealed() async throws {
    let app = try await signedIn()
    let recipient = try #require(backend.installation.flatMap { SealingRecipient($0) })
    let message = SecureMessage(
      id: "m9", sealed: try seal(Data("for your eyes only".utf8), id: "m9", for: recipient))
    let push = try #require(message.notification(for: .apns, as: .alert("You have a message")))
    backend.goDown()
    let calls = backend.calls.count
    #expect(await app.willPresent(push.body))
    #expect(phone.alerts == ["for your eyes only"])
    let inbox = try #require(SecureInbox(secrets: secrets, transport: backend))
    #expect(
      await inbox.content(of: push.body) == .text("for your eyes only", offline: true))
    #expect(backend.calls.count == calls)
  }

  @Test("without a connection or a sign-in the person sees that there is a message")
  func fallback() async throws {
    let push = Data(#"{"aps":{"content-available":1},"secureId":"m1"}"#.utf8)
    let stranger = try app()
    #expect(await stranger.didReceiveInBackground(push) == .failed)
    let app = try await signedIn()
    backend.goDown()
    #expect(await app.didReceiveInBackground(push) == .failed)
    #expect(phone.notifications == ["You have a message", "You have a message"])
    #expect(SecureInbox(secrets: Secrets(), transport: backend) == nil)
  }

  @Test("a message that is somebody else's, or no secure message, shows nothing")
  func nothing() async throws {
    let app = try await signedIn()
    for push in [#"{"aps":{"content-available":1},"secureId":"other"}"#, #"{"aps":{}}"#, "no"] {
      #expect(await app.didReceiveInBackground(Data(push.utf8)) == .noData)
    }
    #expect(phone.notifications.isEmpty)
    await app.didOpen(Data(#"{"aps":{"alert":{"title":"Hi","body":"there"}}}"#.utf8))
    #expect(phone.alerts == ["Hi – there"])
  }

  // MARK: What the notification center does

  private static let silent = Data(#"{"aps":{"content-available":1},"secureId":"m1"}"#.utf8)
  private static let alert = Data(
    #"{"aps":{"alert":"You have a message","mutable-content":1},"secureId":"m1"}"#.utf8)

  @Test("in the foreground a secure push is shown over the app, once", arguments: [false, true])
  func foreground(readOnce: Bool) async throws {
    let app = try await signedIn(Backend(isReadOnce: readOnce))
    // The system wakes the app with the push, and the app posts a notification, which the system
    // asks about before it shows it.
    #expect(await app.didReceiveInBackground(Self.silent) == .newData)
    #expect(phone.notifications == ["fetched"])
    #expect(await app.willPresent(phone.userInfo))
    #expect(phone.alerts == ["fetched"])
  }

  @Test("a tap on the notification of a background push shows its text", arguments: [false, true])
  func tap(readOnce: Bool) async throws {
    let app = try await signedIn(Backend(isReadOnce: readOnce))
    #expect(await app.didReceiveInBackground(Self.silent) == .newData)
    await app.didOpen(phone.userInfo)
    #expect(phone.alerts == ["fetched"])
  }

  @Test(
    "what the extension has read once is shown by the app, in the foreground and after a tap",
    arguments: [false, true])
  func extensionThenApp(isTap: Bool) async throws {
    let backend = Backend(isReadOnce: true)
    let app = try await signedIn(backend)
    let inbox = try #require(SecureInbox(secrets: secrets, transport: backend))
    let content = await inbox.content(of: Self.alert)
    #expect(content == .text("fetched", offline: false))
    // The extension adds the text to the notification's userInfo.
    var userInfo = try #require(
      JSONSerialization.jsonObject(with: Self.alert) as? [String: Any])
    userInfo.merge(SecureInbox.userInfo(showing: "fetched")) { _, new in new }
    let shown = try JSONSerialization.data(withJSONObject: userInfo)
    if isTap { await app.didOpen(shown) } else { #expect(await app.willPresent(shown)) }
    #expect(phone.alerts == ["fetched"])
  }

  @Test("what could not be fetched is fetched when the person taps")
  func laterFetch() async throws {
    let stranger = try app()
    #expect(await stranger.didReceiveInBackground(Self.silent) == .failed)
    let userInfo = phone.userInfo
    let app = try await signedIn()
    await app.didOpen(userInfo)
    #expect(phone.alerts == ["fetched"])
  }

  @Test("a notification without a text of its own is left to the system")
  func leftToTheSystem() async throws {
    let app = try await signedIn()
    #expect(await app.willPresent(Data("{}".utf8)) == false)
    #expect(await app.willPresent(Data(#"{"aps":{"badge":1}}"#.utf8)) == false)
    #expect(phone.alerts.isEmpty)
  }

  @Test("after a reinstall the device is the same installation and opens what is sealed for it")
  func reinstall() async throws {
    _ = try await signedIn()
    // The keychain survives; the vendor id does not.
    let again = try app(vendorID: "another")
    #expect(await again.installationID == "phone-1")
    try await again.didRegister(deviceToken: Data([0x01]))
    #expect(backend.installation?.installationID == "phone-1")
    let recipient = try #require(backend.installation.flatMap { SealingRecipient($0) })
    let message = SecureMessage(
      id: "m9", sealed: try seal(Data("offline".utf8), id: "m9", for: recipient))
    let push = try #require(message.notification(for: .apns, as: .alert("You have a message")))
    let inbox = try #require(SecureInbox(secrets: secrets, transport: backend))
    #expect(await inbox.content(of: push.body) == .text("offline", offline: true))
  }

  @Test("a registration prints what it registers, and its success")
  func printing() async throws {
    _ = try await signedIn()
    #expect(
      phone.log == [
        "installationId: phone-1", "pushChannel: 0AFF",
        "Not registered yet: the backend does it when somebody signs in",
        "installationId: phone-1", "pushChannel: 0AFF", "Registered",
      ])
  }

  @Test("a refused registration is not taken for a missing device token")
  func refusedRegistration() async throws {
    let app = try app()
    await app.didFailToInstall(SecurePushClientError.refused(status: 403, "no"))
    #expect(phone.alerts == ["This device is not registered: the backend refused (403): no"])
  }

  @Test("errors of secure push have their sentence also where an app shows any error")
  func localizedDescriptions() {
    let ofBackend: [SecurePushClientError] = [
      .notSignedIn("no"), .notFound, .gone("gone"), .limited(retryAfter: 2),
      .refused(status: 403, "no"), .unreachable("no"), .unexpectedReply,
    ]
    let ofDevice: [SecurePushError] = [.malformed, .unknownKey, .doesNotOpen, .damagedKeyRing]
    for error in ofBackend { #expect((error as any Error).localizedDescription == "\(error)") }
    for error in ofDevice { #expect((error as any Error).localizedDescription == "\(error)") }
  }

  @Test("alerts wait for the screen and for each other")
  func alertQueue() {
    var queue = AlertQueue()
    #expect(queue.add("1") == nil)
    #expect(queue.screen(isThere: true) == "1")
    #expect(queue.add("2") == nil)
    #expect(queue.add("3") == nil)
    #expect(queue.closed() == "2")
    #expect(queue.screen(isThere: false) == nil)
    #expect(queue.screen(isThere: true) == "3")
    #expect(queue.closed() == nil)
  }

  private func signedIn(_ backend: Backend? = nil) async throws -> DemoApp {
    let app = try app(backend: backend)
    try await app.didRegister(deviceToken: Self.token)
    try await app.signIn(user: "alice", password: "alice")
    return app
  }

  // MARK: Settings

  @Test("the tutorial's four keys make the connection")
  func tutorialSettings() throws {
    let settings = try DemoSettings(
      propertyList: plist([
        "notificationHubNamespace": "contoso", "notificationHubName": "hub1",
        "notificationHubKeyName": "Listen", "notificationHubKey": "abc=",
      ]))
    #expect(settings.connection?.endpoint.host == "contoso.servicebus.windows.net")
    #expect(settings.connection?.keyName == "Listen")
    #expect(settings.hub == "hub1")
    #expect(settings.backend == nil)
  }

  @Test("a namespace with a dot is a host, for clouds other than the public one")
  func sovereignSettings() throws {
    let settings = try DemoSettings(
      propertyList: plist([
        "notificationHubNamespace": "contoso.servicebus.chinacloudapi.cn",
        "notificationHubName": "hub1", "notificationHubKeyName": "Listen",
        "notificationHubKey": "abc=",
      ]))
    #expect(settings.connection?.endpoint.host == "contoso.servicebus.chinacloudapi.cn")
  }

  @Test("a connection string reaches any hub, and a backend needs no key at all")
  func otherSettings() throws {
    let settings = try DemoSettings(
      propertyList: plist([
        "connectionString":
          "Endpoint=sb://127.0.0.1:8080/;SharedAccessKeyName=L;SharedAccessKey=abc=",
        "notificationHubName": "demo", "backendURL": "http://127.0.0.1:8090",
      ]))
    #expect(settings.connection?.endpoint.port == 8080)
    #expect(settings.backend?.port == 8090)
    let alone = try DemoSettings(propertyList: plist(["backendURL": "https://push.example.com"]))
    #expect(alone.connection == nil)
  }

  @Test(
    "a setting that is missing or was not filled in is named",
    arguments: [
      ([:], "notificationHubNamespace"),
      (["notificationHubNamespace": "a"], "notificationHubKeyName"),
      (["notificationHubNamespace": "<hubNamespace>"], "notificationHubNamespace"),
      (["connectionString": "nonsense"], "connectionString"),
      (["backendURL": "no address"], "backendURL"),
    ])
  func badSettings(_ values: [String: String], key: String) throws {
    let error = #expect(throws: DemoSettingsError.self) {
      try DemoSettings(propertyList: plist(values))
    }
    #expect(error?.description.contains(key) == true)
    #expect(throws: DemoSettingsError.self) { try DemoSettings(propertyList: Data("x".utf8)) }
  }

  private func plist(_ values: [String: String]) throws -> Data {
    try PropertyListSerialization.data(fromPropertyList: values, format: .xml, options: 0)
  }
}
