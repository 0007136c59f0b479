import Foundation
import NotificationHubs
import PushDemo
import Synchronization
import Testing

@Suite("The tutorial's app without its screen")
struct PushDemoTests {
  static let device = DemoDevice(installationID: "i-1", deviceToken: Data([0x0a, 0x1b, 0xff]))

  @Test("the device asks for the tutorial's tag and template")
  func installation() {
    #expect(
      String(decoding: Self.device.installation.jsonData, as: UTF8.self)
        == #"{"installationId":"i-1","pushChannel":"0A1BFF","platform":"apns","tags":["12345"],"#
        + #""templates":{"genericTemplate":{"body":"{\"aps\":{\"alert\":\"$(message)\"}}"}}}"#)
  }

  /// A hub that keeps one installation, or always returns the given one.
  final class OneDeviceHub: HTTPTransport {
    private let kept: Mutex<Data?>
    private let methods = Mutex<[String]>([])
    private let isStubborn: Bool

    init(keeps: Installation? = nil) {
      kept = Mutex(keeps?.jsonData)
      isStubborn = keeps != nil
    }

    var log: [String] { methods.withLock { $0 } }

    func send(_ request: TransportRequest) async throws -> TransportReply {
      methods.withLock { $0.append(request.method) }
      switch request.method {
      case "PUT":
        if !isStubborn { kept.withLock { $0 = request.body } }
        return TransportReply(status: 200)
      case "GET":
        guard let data = kept.withLock({ $0 }) else { return TransportReply(status: 404) }
        return TransportReply(status: 200, body: data)
      default:
        kept.withLock { $0 = nil }
        return TransportReply(status: 204)
      }
    }
  }

  static func registration(_ hub: OneDeviceHub) -> DemoRegistration {
    let connection = ConnectionString(
      endpoint: ServiceEndpoint(host: "h"), keyName: "Listen", key: "k")
    return DemoRegistration(
      client: NotificationHubClient(
        connectionString: connection, hub: "hub1", transport: hub, retry: .none))
  }

  @Test("registering writes, then reads back")
  func registering() async throws {
    let hub = OneDeviceHub()
    let kept = try await Self.registration(hub).register(Self.device)
    #expect(kept == Self.device.installation)
    #expect(hub.log == ["PUT", "GET"])
    try await Self.registration(hub).unregister(Self.device)
    #expect(hub.log == ["PUT", "GET", "DELETE"])
  }

  @Test("a hub that keeps something else is found out")
  func mismatch() async throws {
    let other = DemoDevice(installationID: "i-1", deviceToken: Data([1])).installation
    await #expect(throws: DemoRegistrationError.self) {
      _ = try await Self.registration(OneDeviceHub(keeps: other)).register(Self.device)
    }
  }

  @Test(
    "what a payload shows",
    arguments: [
      (#"{"aps":{"alert":"Hello from Postman!"}}"#, "Hello from Postman!"),
      (#"{"aps":{"alert":{"title":"T","subtitle":"S","body":"B"}},"x":1}"#, "T – S – B"),
      (#"{"aps":{"alert":{"title-loc-key":"KEY","loc-key":"TEXT"}}}"#, "KEY – TEXT"),
      (#"{"aps":{"alert":""}}"#, ""), (#"{"aps":{}}"#, ""), (#"{"aps":{"ALERT":"x"}}"#, ""),
    ])
  func summaries(payload: String, summary: String) throws {
    #expect(try #require(ShownNotification(payload: Data(payload.utf8))).summary == summary)
  }

  @Test("badge, sound and waking are read")
  func details() throws {
    let loud = try #require(
      ShownNotification(
        payload: Data(#"{"aps":{"badge":3,"sound":{"name":"bell.caf","critical":1}}}"#.utf8)))
    #expect(loud.badge == 3 && loud.sound == "bell.caf" && loud.isVisible && !loud.wakesApp)
    let plain = try #require(
      ShownNotification(payload: Data(#"{"aps":{"sound":"default","alert":"a"}}"#.utf8)))
    #expect(plain.sound == "default" && plain.body == "a" && plain.badge == nil)
    let silent = try #require(
      ShownNotification(payload: Data(#"{"aps":{"content-available":1}}"#.utf8)))
    #expect(silent.wakesApp && !silent.isVisible)
  }

  @Test(
    "payloads without aps show nothing",
    arguments: ["", "[]", "{}", #"{"aps":"x"}"#, "{", "\u{1}"])
  func noPayload(text: String) {
    #expect(ShownNotification(payload: Data(text.utf8)) == nil)
  }
}
