import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Testing

/// The routes over each protocol that a listener speaks.
@Suite("The hub over HTTP/1.1, HTTPS and HTTP/2")
struct ProtocolTests {
  @Test(
    "every operation answers over a socket as it does without one",
    arguments: Wire.allCases, ClientCheckListTests.statuses)
  func statuses(wire: Wire, call: ClientCheckListTests.Call) async throws {
    let (method, target, headers, body, status) = call
    let expected = try await hub().send(
      method, target, headers: headers, body: body, token: Self.rootToken)
    let hub = try await hub()
    let server = try WireServer(wire, HubAPIConfiguration.listener, handler: hub.api)
    var fields = headers.map { ($0.name, $0.value) }
    fields += [("Host", TestHub.host), ("Authorization", Self.rootToken)]
    let reply = try await server.exchange(method.rawValue, target, headers: fields, body: body)
    #expect(reply.status == status, "\(reply.body)")
    #expect(reply.headers["content-type"] == expected.headers["Content-Type"])
    #expect((reply.headers["location"] == nil) == (expected.headers["Location"] == nil))
    #expect(
      reply.headers["location"].map { $0.hasPrefix(wire.isSecure ? "https://" : "http://") } ?? true
    )
    #expect(reply.body.isEmpty == expected.text.isEmpty)
    await server.stop()
  }

  @Test(
    "every recorded reply is the same over TLS", arguments: [Wire.https1, .http2],
    RecordingTests.installations + RecordingTests.sends + RegistrationRecordingTests.creations
      + RegistrationRecordingTests.changes + RegistrationRecordingTests.lists)
  func recordings(wire: Wire, scenario: RecordingReplay.Scenario) async throws {
    let hub = try await TestHub(hubs: ["sdk-sample-nh", "hub1"])
    try await RecordingReplay.run(scenario, on: hub, over: wire)
  }

  private static let rootToken = TestHub.token(
    resource: "https://\(TestHub.host)/", name: "RootManageSharedAccessKey", key: TestHub.rootKey)

  private func hub() async throws -> TestHub {
    let hub = try await TestHub()
    _ = await hub.send(
      .put, "/hub1/installations/there", body: #"{"platform":"apns","pushChannel":"0A1B"}"#)
    return hub
  }
}
