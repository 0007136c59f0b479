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
    private let state = Mutex((alerts: [String](), notifications: [String](), asked: 0))
    let grants: Bool
    init(grants: Bool = true) { self.grants = grants }

    var alerts: [String] { state.withLock { $0.alerts } }
    var notifications: [String] { state.withLock { $0.notifications } }
    var registrations: Int { state.withLock { $0.asked } }

    func askForAuthorization() async throws -> Bool { grants }
    func registerForRemoteNotifications() async { state.withLock { $0.asked += 1 } }
    func showAlert(_ text: String) async { state.withLock { $0.alerts.append(text) } }
    func showNotification(_ text: String) async { state.withLock { $0.notifications.append(text) } }
  }

  final class Secrets: SecretStore {
    private let items = Mutex<[String: Data]>([:])
    func load(_ name: String) throws -> Data? { items.withLock { $0[name] } }
    func save(_ data: Data?, as name: String) throws { items.withLock { $0[name] = data } }
  }

  /// A backend with one user and one message, and a hub that takes every installation.
  final class Backend: HTTPTransport {
    private let state = Mutex((installation: Data?.none, calls: [String](), isUp: true))
    static let signIn = "Basic " + Data("alice:alice".utf8).base64EncodedString()

    var installation: Installation? {
      state.withLock { $0.installation }.flatMap { try? Installation(jsonData: $0) }
    }
    var calls: [String] { state.withLock { $0.calls } }
    func goDown() { state.withLock { $0.isUp = false } }

    func send(_ request: TransportRequest) async throws -> TransportReply {
      let path = request.url.path()
      let isUp = state.withLock { state in
        state.calls.append("\(request.method) \(path)")
        return state.isUp
      }
      guard isUp else { throw URLError(.cannotConnectToHost) }
      let isHub = path.hasPrefix("/hub/")
      guard isHub || request.headers["Authorization"] == Self.signIn else {
        return TransportReply(status: 401, body: Data(#"{"Message":"wrong"}"#.utf8))
      }
      switch (request.method, path.split(separator: "/").last) {
      case ("PUT", _):
        state.withLock { $0.installation = request.body }
        return TransportReply(status: 200)
      case ("GET", "m1"):
        return TransportReply(
          status: 200, body: Data(#"{"Id":"m1","Payload":"fetched","Read":false}"#.utf8))
      case ("GET", _) where isHub:
        return TransportReply(status: 200, body: state.withLock { $0.installation ?? Data() })
      case ("POST", "notifications"):
        return TransportReply(status: 200, body: Data(#"{"Id":"m1"}"#.utf8))
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

  private func app(phone: Phone? = nil, connection: Bool = false) throws -> DemoApp {
    DemoApp(
      settings: DemoSettings(
        connection: connection
          ? ConnectionString(endpoint: ServiceEndpoint(host: "h"), keyName: "L", key: "k") : nil,
        hub: "hub", backend: Self.address),
      installationID: "phone-1", system: phone ?? self.phone, secrets: secrets, transport: backend)
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
    #expect(await next.user == nil)
    #expect(await (try self.app()).user == nil)
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
    await app.willPresent(push.body)
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

  private func signedIn() async throws -> DemoApp {
    let app = try app()
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
