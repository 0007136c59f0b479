import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Testing

@Suite("Sends through the REST API")
struct HubAPISendTests {
  static let template: HTTPHeaders = ["ServiceBusNotification-Format": "template"]

  @Test(
    "a send is 201 and its Location repeats address and query",
    arguments: [
      ("/hub1/messages", ""), ("/HUB1/Messages/?api-version=2015-01", "?api-version=2015-01"),
      ("/hub1/messages?api-version=2020-06&%24x=a+b", "?api-version=2020-06&%24x=a+b"),
    ])
  func location(target: String, query: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.post, target, headers: Self.template, body: "{}")
    #expect(reply.status == .created)
    #expect(reply.text == "")
    #expect(reply.headers["Content-Type"] == "application/xml; charset=utf-8")
    let location = try #require(reply.headers["Location"])
    let path = target.prefix { $0 != "?" }.trimmingCharacters(in: ["/"])
    let prefix = "http://\(TestHub.host)/\(path)/"
    #expect(location.hasPrefix(prefix) && location.hasSuffix(query))
    let id = location.dropFirst(prefix.count).dropLast(query.count)
    #expect(id.wholeMatch(of: /[0-9a-f]{32}-\d{14}-\d+-\d+/) != nil)
  }

  @Test("a Location goes through the scheme that the proxy in front speaks")
  func publicScheme() async throws {
    var configuration = HubAPIConfiguration()
    configuration.publicScheme = "https"
    let hub = try await TestHub(configuration: configuration)
    let reply = await hub.send(.post, "/hub1/messages", body: "{}", host: "\(TestHub.host):443")
    #expect(reply.headers["Location"]?.hasPrefix("https://\(TestHub.host):443/hub1/") == true)
  }

  @Test("what was sent can be read back by the id of its Location")
  func telemetry() async throws {
    let hub = try await TestHub()
    let sent = await hub.send(
      .post, "/hub1/messages?api-version=2020-06",
      headers: ["ServiceBusNotification-Format": "template", "Tags": "\"12345\""],
      body: #"{"message":"a<b"}"#)
    let location = try #require(sent.headers["Location"].flatMap { URL(string: $0) })
    let target = "\(location.path)?api-version=2020-06"
    let reply = await hub.send(.get, target)
    #expect(reply.status == .ok)
    #expect(reply.headers["Content-Type"] == "application/xml; charset=utf-8")
    let telemetry = try NotificationTelemetry(xml: Data(reply.text.utf8))
    #expect(telemetry.notificationID == location.lastPathComponent)
    #expect(telemetry.location == "sb://\(TestHub.host)\(target)")
    #expect(telemetry.body == #"{"message":"a<b"}"#)
    #expect(telemetry.tags == "12345")
  }

  @Test("an unknown notification is 404")
  func unknownNotification() async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.get, "/hub1/messages/no-such-id")
    #expect(reply.status == .notFound)
    #expect(reply.message != nil)
  }

  static let badSends: [(HTTPHeaders, String, Int, String)] = [
    (
      ["ServiceBusNotification-Format": "apple"], "no json", 400,
      "The supplied notification payload is invalid"
    ),
    (["ServiceBusNotification-Format": "pigeon"], "{}", 400, "The ServiceBusNotification-Format"),
    (
      ["ServiceBusNotification-Format": "template", "ServiceBusNotification-Tags": ""], "{}", 400,
      ""
    ),
    (
      ["ServiceBusNotification-Format": "template", "ServiceBusNotification-Tags": "a &&"], "{}",
      400, ""
    ),
    (
      ["ServiceBusNotification-Tags": (0...1000).map { "t\($0)" }.joined(separator: "||")], "{}",
      400, "The supplied tag expression is invalid."
    ),
    (
      ["ServiceBusNotification-Format": "apple"],
      #"{"aps":{"alert":""# + String(repeating: "x", count: 65_536) + "\"}}", 413, ""
    ),
  ]

  @Test("a bad send is refused with its reason", arguments: badSends)
  func badSend(headers: HTTPHeaders, body: String, status: Int, message: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.post, "/hub1/messages", headers: headers, body: body)
    #expect(reply.status.rawValue == status)
    let shown = try #require(reply.message)
    #expect(!shown.isEmpty && shown.hasPrefix(message))
    #expect(try await hub.store.unfinishedNotifications().isEmpty)
  }

  @Test(
    "a direct send without a device is refused, and never goes out as a broadcast",
    arguments: ["direct", "direct=", "direct=true", "DIRECT", "%64irect", "test&direct"])
  func flags(flag: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(
      .post, "/hub1/messages?\(flag)&api-version=2015-08",
      headers: ["ServiceBusNotification-Format": "apple"], body: #"{"aps":{}}"#)
    #expect(reply.status == .badRequest)
    #expect(reply.message?.contains("DeviceHandle") == true)
    #expect(try await hub.store.unfinishedNotifications().isEmpty)
  }

  @Test("a flag that is off is off")
  func flagOff() async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.post, "/hub1/messages?direct=false", body: "{}")
    #expect(reply.status == .created)
  }
}
