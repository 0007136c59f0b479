import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Testing

/// Each point of the client check list (docs/protocol/rest.md, section 11) by its number: what one
/// of the official clients cannot do without. On each engine.
@Suite("The client check list")
struct ClientCheckListTests {
  private static let apple = RegistrationBody.apple("<Tags>red, blue</Tags>")
  private static let template = RegistrationBody.entry(
    "AppleTemplate",
    "<DeviceToken>0A1B</DeviceToken><BodyTemplate>{}</BodyTemplate><Tags>red</Tags>")
  private static let installation = #"{"platform":"apns","pushChannel":"0A1B"}"#
  private static let job = RegistrationBody.entryAround(
    "<NotificationHubJob xmlns=\"\(WireName.connectNamespace)\"><Type>ExportRegistrations</Type>"
      + "<OutputContainerUri>https://a.example.com/c?sig=1</OutputContainerUri>"
      + "</NotificationHubJob>")
  private static let hubDescription = RegistrationBody.entryAround(
    "<NotificationHubDescription xmlns=\"\(WireName.connectNamespace)\"/>")

  /// Method, path, headers, body, status.
  typealias Call = (HTTPMethod, String, HTTPHeaders, String, Int)

  static let statuses: [Call] = [
    (.post, "/hub1/registrations", [:], apple, 200),
    (.put, "/hub1/registrations/1-2-3", [:], apple, 200),
    (.post, "/hub1/registrationids", [:], "", 201),
    (.put, "/hub1/installations/d", [:], installation, 200),
    (
      .patch, "/hub1/installations/there", [:], #"[{"op":"add","path":"/tags","value":"a"}]"#, 200
    ),
    (.delete, "/hub1/installations/there", [:], "", 204),
    (.delete, "/hub1/installations/nowhere", [:], "", 204),
    (.post, "/hub1/messages", HubAPISendKindsTests.format, HubAPISendKindsTests.apple, 201),
    (
      .post, "/hub1/messages?direct", HubAPISendKindsTests.direct, HubAPISendKindsTests.apple, 201
    ),
    (
      .post, "/hub1/messages/$batch?direct", HubAPISendKindsTests.multipart,
      HubAPISendKindsTests.batch, 201
    ),
    (.post, "/hub1/messages?test", HubAPISendKindsTests.format, HubAPISendKindsTests.apple, 201),
    (
      .post, "/hub1/schedulednotifications", HubAPISendKindsTests.scheduled,
      HubAPISendKindsTests.apple, 201
    ),
    (.post, "/hub1/jobs", [:], job, 201),
    (.put, "/hub2", [:], hubDescription, 201),
    (.put, "/hub1", ["If-Match": "*"], hubDescription, 200),
  ]

  @Test(
    "1. every operation answers the one status that clients take for success",
    arguments: TestedEngine.installed, statuses)
  func point1(engine: TestedEngine, call: Call) async throws {
    let (method, target, headers, body, status) = call
    let hub = try await TestHub(on: engine)
    _ = await hub.send(.put, "/hub1/installations/there", body: Self.installation)
    let reply = await hub.send(
      method, target, headers: headers, body: body,
      token: TestHub.token(
        resource: "https://\(TestHub.host)/", name: "RootManageSharedAccessKey",
        key: TestHub.rootKey))
    #expect(reply.status.rawValue == status, "\(reply.text)")
  }

  @Test(
    "2. every Location is absolute, and that of a registration id has nothing behind the id",
    arguments: TestedEngine.installed,
    statuses.filter { $0.4 == 201 && !$0.1.contains("test") && $0.1 != "/hub2" })
  func point2(engine: TestedEngine, call: Call) async throws {
    let (method, target, headers, body, _) = call
    let hub = try await TestHub(on: engine)
    let reply = await hub.send(method, target, headers: headers, body: body)
    let location = try #require(reply.headers["Location"].flatMap { URL(string: $0) })
    #expect(location.scheme == "http")
    #expect(location.host() == TestHub.host)
    #expect(location.pathComponents[1] == "hub1")
    if target.contains("registrationids") {
      #expect(location.pathComponents.dropLast() == ["/", "hub1", "registrationids"])
      #expect(!location.absoluteString.hasSuffix("/"))
    }
  }

  @Test(
    "3. the payload follows <content> at once, and its members come in their order",
    arguments: TestedEngine.installed)
  func point3(engine: TestedEngine) async throws {
    let hub = try await TestHub(on: engine)
    let body = RegistrationBody.entry(
      "WindowsTemplate",
      "<TemplateName>main</TemplateName><WnsHeaders><WnsHeader><Header>X-WNS-Type</Header>"
        + "<Value>wns/toast</Value></WnsHeader></WnsHeaders><BodyTemplate>&lt;toast/&gt;"
        + "</BodyTemplate><SecondaryTileName>t</SecondaryTileName>"
        + "<ChannelUri>https://db5.notify.windows.com/?token=1</ChannelUri>"
        + "<PushVariables>{\"a\":\"b\"}</PushVariables><Tags>red</Tags>")
    let reply = await hub.send(.post, "/hub1/registrations", body: body)
    #expect(
      reply.text.contains(
        "<content type=\"application/xml\"><WindowsTemplateRegistrationDescription "))
    Self.expectOrder(
      [
        "ETag", "ExpirationTime", "RegistrationId", "Tags", "PushVariables", "ChannelUri",
        "SecondaryTileName", "BodyTemplate", "WnsHeaders", "TemplateName",
      ], in: reply.text)
    let hubEntry = await hub.send(.get, "/hub1")
    #expect(
      hubEntry.text.contains("<content type=\"application/xml\"><NotificationHubDescription "))
    Self.expectOrder(["RegistrationTtl", "AuthorizationRules"], in: hubEntry.text)
    let posted = await hub.send(.post, "/hub1/jobs", body: Self.job)
    #expect(posted.text.contains("<content type=\"application/xml\"><NotificationHubJob "))
    Self.expectOrder(
      ["JobId", "Type", "OutputContainerUri", "CreatedAt", "UpdatedAt"], in: posted.text)
  }

  private static func expectOrder(_ names: [String], in text: String) {
    let places = names.map { text.firstRange(of: "<\($0)>")?.lowerBound }
    #expect(places.allSatisfy { $0 != nil }, "\(names) in \(text)")
    let found = places.compactMap(\.self)
    #expect(found == found.sorted(), "\(names) in \(text)")
  }

  static let refused: [(HTTPMethod, String, String?, Int)] = [
    (.get, "/hub1/registrations/none", TestHub.token(), 404),
    (.get, "/hub1/installations/none", TestHub.token(), 404),
    (.get, "/hub1/messages/none", TestHub.token(), 404),
    (.put, "/hub1/installations/a", TestHub.token(), 400),
    (.post, "/hub1/registrations", TestHub.token(), 400),
    (.delete, "/hub1/registrations/none", TestHub.token(), 412),
    (.get, "/hub1/registrations/none", nil, 401),
    (.get, "/hub1/registrations/none", TestHub.token(key: "other"), 401),
  ]

  @Test(
    "4. an error is Error, Code, Detail without white space",
    arguments: TestedEngine.installed, refused)
  func point4(engine: TestedEngine, call: (HTTPMethod, String, String?, Int)) async throws {
    let (method, target, token, status) = call
    let hub = try await TestHub(on: engine)
    let reply = await hub.send(method, target, body: "", token: token)
    #expect(reply.status.rawValue == status)
    #expect(reply.headers["Content-Type"] == "application/xml; charset=utf-8")
    #expect(reply.text.hasPrefix("<Error><Code>\(status)</Code><Detail>"), "\(reply.text)")
    #expect(reply.text.hasSuffix("</Detail></Error>"))
    #expect(
      reply.text.firstMatch(
        of: /\.TrackingId:[0-9a-f-]{36}_G\d+,TimeStamp:\d+\/\d+\/\d{4} \d+:\d\d:\d\d [AP]M</)
        != nil)
  }

  @Test("5. TemplateName is left out or real text, never nil", arguments: TestedEngine.installed)
  func point5(engine: TestedEngine) async throws {
    let hub = try await TestHub(on: engine)
    for name in ["", #"<TemplateName i:nil="true"/>"#, "<TemplateName/>"] {
      let body = Self.template.replacing("<Tags>", with: name + "<Tags>")
      let reply = await hub.send(.put, "/hub1/registrations/1-2-3", body: body)
      #expect(reply.status == .ok)
      #expect(!reply.text.contains("TemplateName"))
      #expect(!(await hub.send(.get, "/hub1/registrations/1-2-3").text.contains("TemplateName")))
    }
    let named = Self.template.replacing("<Tags>", with: "<TemplateName>a b</TemplateName><Tags>")
    let reply = await hub.send(.put, "/hub1/registrations/1-2-3", body: named)
    #expect(reply.text.contains("<TemplateName>a b</TemplateName>"))
  }

  @Test(
    "6. a continuation token survives zero, one and two more percent-encodings",
    arguments: TestedEngine.installed, 0...2)
  func point6(engine: TestedEngine, encodings: Int) async throws {
    let hub = try await TestHub(on: engine)
    for number in 1...3 {
      _ = await hub.send(.put, "/hub1/registrations/1-2-\(number)", body: Self.apple)
      _ = await hub.send(.put, "/hub1/installations/d\(number)", body: Self.installation)
    }
    for list in ["/hub1/registrations", "/hub1/tags/red/registrations", "/hub1/installations"] {
      let first = await hub.send(.get, "\(list)?api-version=2015-01&$top=2")
      var token = try #require(first.headers["x-ms-continuationtoken"])
      for _ in 0..<encodings { token = Self.encodedWhole(token) }
      let second = await hub.send(
        .get, "\(list)?api-version=2015-01&$top=2&continuationtoken=\(token)")
      #expect(second.status == .ok, "\(second.text)")
      #expect(second.text != first.text)
    }
  }

  /// Every byte, as no client does, so that a token without anything to encode is encoded too.
  private static func encodedWhole(_ text: String) -> String {
    text.utf8.map { "%" + String($0, radix: 16, uppercase: true) }.joined()
  }

  @Test(
    "7. a test send always has a body, and the body always has Results",
    arguments: TestedEngine.installed)
  func point7(engine: TestedEngine) async throws {
    let hub = try await TestHub(on: engine)
    for expected in ["<Results/>", "<Results><RegistrationResult>"] {
      let reply = await hub.send(
        .post, "/hub1/messages?test", headers: HubAPISendKindsTests.format,
        body: HubAPISendKindsTests.apple)
      #expect(reply.status == .created)
      #expect(reply.text.hasPrefix("<NotificationOutcome "))
      #expect(reply.text.contains(expected), "\(reply.text)")
      _ = await hub.send(.post, "/hub1/registrations", body: Self.apple)
    }
  }

  @Test("8. the maps of a job have the prefix d3p1", arguments: TestedEngine.installed)
  func point8(engine: TestedEngine) async throws {
    let world = try await JobWorld(store: temporaryStore(on: engine))
    let job = try await world.run(.exportRegistrations)
    let reply = await world.hub.send(.get, "/hub1/jobs/\(job.id)")
    #expect(
      reply.text.contains(
        "<OutputProperties xmlns:d3p1=\"http://schemas.microsoft.com/2003/10/Serialization/Arrays\">"
          + "<d3p1:KeyValueOfstringstring><d3p1:Key>OutputFilePath</d3p1:Key><d3p1:Value>"),
      "\(reply.text)")
    try await world.end()
  }

  @Test("9. tags are joined by commas without blanks", arguments: TestedEngine.installed)
  func point9(engine: TestedEngine) async throws {
    let hub = try await TestHub(on: engine)
    let reply = await hub.send(.put, "/hub1/registrations/1-2-3", body: Self.apple)
    #expect(reply.text.contains("<Tags>red,blue</Tags>"))
    for list in ["/hub1/registrations", "/hub1/tags/blue/registrations"] {
      #expect(await hub.send(.get, list).text.contains("<Tags>red,blue</Tags>"))
    }
  }

  @Test(
    "10. If-Match may be strong, weak or bare",
    arguments: TestedEngine.installed, [#""1""#, #"W/"1""#, "1", "*"])
  func point10(engine: TestedEngine, condition: String) async throws {
    let hub = try await TestHub(on: engine)
    let path = "/hub1/registrations/1-2-3"
    for method in [HTTPMethod.put, .delete] {
      _ = await hub.send(.delete, path, headers: ["If-Match": "*"])
      #expect(await hub.send(.put, path, body: Self.apple).headers["ETag"] == #"W/"1""#)
      let reply = await hub.send(
        method, path, headers: ["If-Match": condition], body: method == .put ? Self.apple : "")
      #expect(reply.status == .ok, "\(method.rawValue) \(condition)")
      let stale = await hub.send(
        .put, path, headers: ["If-Match": condition.replacing("1", with: "7")], body: Self.apple)
      let isThere = method == .put
      #expect(stale.status.rawValue == (!isThere ? 404 : condition == "*" ? 200 : 412))
    }
  }

  @Test(
    "what runs on each engine runs on PostgreSQL",
    .enabled(if: PostgresStores.areInstalled, Comment(rawValue: PostgresStores.absence)))
  func engines() async throws {
    var areShared: [Bool] = []
    for engine in TestedEngine.installed {
      areShared.append(try await TestHub(on: engine).store.isShared)
    }
    #expect(areShared == [false, true])
  }
}
