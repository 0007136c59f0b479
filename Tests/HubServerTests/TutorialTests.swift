import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Testing

/// The requests of the tutorials, byte for byte where it matters.
@Suite("The tutorial's requests", .timeLimit(.minutes(5)))
struct TutorialTests {
  static let installation =
    #"{"installationId":"5A1C2F0E-3B5C-4A6F-8D1E-6C8F0A9B7E55","tags":["12345"],"#
    + #""templates":{"genericTemplate":{"body":"{\"aps\":{\"alert\":\"$(message)\"}}"}},"#
    + #""platform":"apns","#
    + #""pushChannel":"62BCD3484834B7E2DC56733AC5509259230CC1BA82BA1AE7D06E91908A05A8FA"}"#
  static let path = "/hub1/installations/5A1C2F0E-3B5C-4A6F-8D1E-6C8F0A9B7E55?api-version=2015-01"

  @Test(
    "register, read back, send to a tag, read what became of it")
  func tutorial() async throws {
    try await withHub { try await play(on: $0) }
  }

  private func play(on hub: TestHub) async throws {
    let listener = try HTTPListener(HubAPIConfiguration.listener, handler: hub.api)
    let client = SocketClient(port: listener.port)
    let headers = ["Content-Type": "application/json", "x-ms-version": "2015-01"]

    let missing = try await client.send("GET", Self.path, headers: headers)
    #expect(missing.status == 404)
    #expect(missing.body.contains("Installation not found"))

    let put = try await client.send("PUT", Self.path, headers: headers, body: Self.installation)
    #expect(put.status == 200)
    #expect(put.body == "")

    let read = try await client.send("GET", Self.path, headers: headers)
    #expect(read.status == 200)
    let stored = try Installation(jsonData: Data(read.body.utf8))
    #expect(stored.tags == ["12345"])
    #expect(stored.templates["genericTemplate"]?.body == #"{"aps":{"alert":"$(message)"}}"#)

    // The trailing full stop is the tutorial's own.
    let sent = try await client.send(
      "POST", "/hub1/messages/?api-version=2015-01",
      headers: [
        "Content-Type": "application/json;charset=utf-8.", "Cache-Control": "no-cache",
        "ServiceBusNotification-Format": "template", "Tags": "\"12345\"",
      ], body: "{\n    \"message\" : \"Hello from Postman!\"\n}")
    #expect(sent.status == 201)
    let location = try #require(sent.headers["location"].flatMap { URL(string: $0) })
    #expect(location.port == Int(listener.port))

    let accepted = try #require(try await hub.store.unfinishedNotifications().first)
    #expect(accepted.request.expression == .tag("12345"))
    let audience = AudienceQuery(
      hub: accepted.hub, kind: .template, expression: accepted.request.expression,
      asOf: TestHub.now)
    #expect(try await hub.store.count(audience) == 1)

    let telemetry = try await client.send("GET", "\(location.path)?api-version=2015-01")
    #expect(telemetry.status == 200)
    #expect(telemetry.body.contains("<State>Enqueued</State>"))
    await listener.stop()
  }
}
