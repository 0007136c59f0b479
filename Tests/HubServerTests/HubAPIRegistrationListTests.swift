import Foundation
import HTTPServer
import HubCore
import HubServer
import NotificationHubs
import Testing

@Suite("Lists of registrations through the REST API")
struct HubAPIRegistrationListTests {
  static let path = "/hub1/registrations"

  private func feed(_ hub: TestHub, _ target: String) async throws -> (
    entries: [Registration], reply: HTTPResponse
  ) {
    let reply = await hub.send(.get, target)
    #expect(reply.status == .ok, "\(target): \(reply.text)")
    #expect(reply.headers["Content-Type"] == "application/atom+xml; type=feed; charset=utf-8")
    return (try Registration.decodeFeed(Array(reply.text.utf8)), reply)
  }

  @Test("pages follow one another, however often a client encodes the token", arguments: 0...2)
  func paging(encodings: Int) async throws {
    let hub = try await TestHub()
    var made: Set<String> = []
    for _ in 0..<7 {
      let reply = await hub.send(.post, Self.path, body: RegistrationBody.apple("<Tags>a</Tags>"))
      made.insert(try Registration.decode(Array(reply.text.utf8)).registrationID ?? "")
    }
    for list in [
      Self.path, "/hub1/tags/A/registrations",
      "\(Self.path)?$filter=ChannelUri eq '0a1b2c3d'".replacing(" ", with: "+"),
    ] {
      var found: [String] = []
      var target = list + (list.contains("?") ? "&" : "?") + "api-version=2015-01&$top=3"
      let first = target
      while true {
        let (entries, reply) = try await feed(hub, target)
        found += entries.map { $0.registrationID ?? "" }
        guard var token = reply.headers["x-ms-continuationtoken"] else {
          #expect(!reply.text.contains(#"rel="next""#))
          break
        }
        #expect(entries.count == 3)
        #expect(token.wholeMatch(of: /[A-Za-z0-9._~-]+/) != nil)
        #expect(reply.text.contains("%24top=3&amp;continuationtoken=\(token)\"/>"))
        for _ in 0..<encodings {
          token = token.utf8.map { "%" + String($0, radix: 16) }.joined()
        }
        target = "\(first)&ContinuationToken=\(token)"
      }
      #expect(found.count == 7)
      #expect(Set(found) == made)
    }
  }

  @Test("a page holds a hundred at most, whatever is asked for")
  func pageSize() async throws {
    let hub = try await TestHub()
    let body = RegistrationBody.apple()
    for _ in 0..<101 { _ = await hub.send(.post, Self.path, body: body) }
    for query in ["", "?$top=100", "?$top=101", "?%24top=99999999999999999999", "?$TOP=500"] {
      #expect(try await feed(hub, Self.path + query).entries.count == 100)
    }
    #expect(try await feed(hub, "\(Self.path)?$top=1").entries.count == 1)
  }

  static let badQueries = [
    "$top=0", "$top=-1", "$top=ten", "$top=", "$top=1.5", "$top=%F0%9F", "continuationtoken=",
    "continuationtoken=x", "continuationtoken=!!!!", "continuationtoken=AAAA",
    "continuationtoken=__________8",
    "continuationtoken=" + String(repeating: "A", count: 5_000),
    "$filter=", "$filter", "$filter=true", "$filter=Tags eq 'a'", "$filter=ChannelUri eq 'a",
    "$filter=ChannelUri ne 'a'", "$filter=ChannelUri eq a", "$filter=ChannelUri eq ''",
    "$filter=DeviceToken eq 'AA' or DeviceToken eq 'BB'",
    "$filter=DeviceToken eq 'AA' and Tags eq 'red'", "$filter=BaiduUserId eq '1'",
    "$filter=" + String(repeating: "(", count: 20_000),
  ]

  @Test("a query that is not understood is 400", arguments: badQueries)
  func badQuery(query: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.get, "\(Self.path)?\(query.replacing(" ", with: "%20"))")
    #expect(reply.status == .badRequest)
    #expect(reply.message?.isEmpty == false)
  }

  // Spec 3.10: the registration, the filters that find it.
  static let filters: [(String, String, [String])] = [
    (
      "Apple", "<DeviceToken>0a1b2c3d</DeviceToken>",
      [
        "DeviceToken eq '0A1B2C3D'", "deviceToken+eq+'0A1B2C3D'", "ChannelUri eq '0A1B2C3D'",
        "channeluri%20EQ%20%270a1b2c3d%27", "DeviceToken%2520eq%2520'0A1B2C3D'",
      ]
    ),
    (
      "Gcm", "<GcmRegistrationId>it's</GcmRegistrationId>",
      ["GcmRegistrationId eq 'it''s'", "ChannelUri+eq+'it''s'"]
    ),
    (
      "FcmV1", "<FcmV1RegistrationId>c:APA_1</FcmV1RegistrationId>",
      ["FcmV1RegistrationId eq 'c:APA_1'", "ChannelUri eq 'c%3AAPA_1'"]
    ),
    ("Adm", "<AdmRegistrationId>a.1</AdmRegistrationId>", ["AdmRegistrationId eq 'a.1'"]),
    (
      "Xiaomi", "<XiaomiRegistrationId>x/y=</XiaomiRegistrationId>",
      ["XiaomiRegistrationId eq 'x/y='", "ChannelUri eq 'x%2Fy%3D'"]
    ),
    (
      "Windows", "<ChannelUri>https://wns.example/?token=A%2bB&amp;x=1</ChannelUri>",
      ["ChannelUri eq 'https%3a%2f%2fwns.example%2f%3ftoken%3dA%252bB%26x%3d1'"]
    ),
    (
      "Windows", "<ChannelUri>https://wns.example</ChannelUri>",
      [
        "ChannelUri eq 'https://wns.example'", "ChannelUri eq 'https://wns.example/'",
        "ChannelUri eq 'https%3A%2F%2Fwns.example'",
      ]
    ),
    (
      "Windows", "<ChannelUri>https://wns.example?token=a</ChannelUri>",
      [
        "ChannelUri eq 'https://wns.example?token=a'",
        "ChannelUri eq 'https://wns.example/?token=a'",
      ]
    ),
    ("Mpns", "<ChannelUri>http://m.example/a</ChannelUri>", ["ChannelUri eq 'http://m.example/a'"]),
    (
      "Baidu", "<BaiduUserId>11</BaiduUserId><BaiduChannelId>22</BaiduChannelId>",
      [
        "BaiduChannelId eq '22' and BaiduUserId eq '11'",
        "BaiduUserId eq '11' and BaiduChannelId eq '22'",
        "BaiduChannelId eq 22' and BaiduUserId eq '11'", "ChannelUri eq '11-22'",
      ]
    ),
    (
      "Browser",
      "<Auth>au</Auth><Endpoint>https://push.example/a</Endpoint><P256DH>BKey</P256DH>",
      [
        "Endpoint eq 'https://push.example/a' and P256DH eq 'BKey' and Auth eq 'au'",
        "Endpoint eq 'https%253A%252F%252Fpush.example%252Fa' and P256DH eq 'BKey' and Auth eq 'au'",
        "ChannelUri eq 'https://push.example/a'",
      ]
    ),
  ]

  @Test("a device's registrations are found by every form of filter", arguments: filters)
  func filter(platform: String, handle: String, filters: [String]) async throws {
    let hub = try await TestHub()
    let isXML = platform == "Windows" || platform == "Mpns"
    var template = handle + "<BodyTemplate>{}</BodyTemplate>"
    if platform == "Windows" {
      template +=
        "<WnsHeaders><WnsHeader><Header>X-WNS-Type</Header><Value>wns/raw</Value>"
        + "</WnsHeader></WnsHeaders>"
    } else if isXML {
      template =
        handle + "<BodyTemplate><![CDATA[<wp:Notification xmlns:wp=\"WPNotification\">"
        + "<wp:Toast/></wp:Notification>]]></BodyTemplate>"
    }
    for body in [
      RegistrationBody.entry(platform, handle),
      RegistrationBody.entry("\(platform)Template", template),
      RegistrationBody.apple(token: "FFFF"),
    ] {
      let reply = await hub.send(.post, Self.path, body: body)
      #expect(reply.status == .ok, "\(reply.text)")
    }
    for filter in filters {
      let query = filter.replacing(" ", with: "%20")
      let found = try await feed(hub, "\(Self.path)?api-version=2015-01&$filter=\(query)").entries
      #expect(found.count == 2, "\(filter)")
      #expect(Set(found.map { $0.template == nil }) == [true, false])
    }
  }

  @Test(
    "a tag's registrations are found in every spelling of the path",
    arguments: [
      "red", "RED", "%72ed", "$InstallationId:{i-1}", "%24InstallationId%3A%7Bi-1%7D",
      "$userid:{bob}", "%24UserId:%7BBOB%7D",
    ])
  func tag(segment: String) async throws {
    let hub = try await TestHub()
    let installation =
      #"{"installationId":"i-1","userId":"bob","platform":"apns","pushChannel":"0A","tags":["Red"],"#
      + #""templates":{"Template Name":{"body":"{\"aps\":{}}"}}}"#
    #expect(await hub.send(.put, "/hub1/installations/i-1", body: installation).status == .ok)
    _ = await hub.send(.post, Self.path, body: RegistrationBody.apple("<Tags>blue</Tags>"))
    let (entries, reply) = try await feed(hub, "/hub1/tags/\(segment)/registrations?$top=5")
    #expect(entries.count == 2)
    #expect(entries[0].tags.map(\.rawValue) == ["$InstallationId:{i-1}", "$UserId:{bob}", "Red"])
    #expect(entries[1].tags.last?.rawValue == "Template Name")
    #expect(
      reply.text.contains("/registrations/\(entries[0].registrationID ?? "")?$top=5</id>"))
    let named = try await feed(hub, "/hub1/tags/template%20name/registrations").entries
    #expect(named.map(\.registrationID) == [entries[1].registrationID])
    #expect(try await feed(hub, "/hub1/tags/nobody/registrations").entries.isEmpty)
  }

  @Test("an installation's registrations rise with its patches and can be deleted alone")
  func derived() async throws {
    let hub = try await TestHub()
    let path = "/hub1/installations/i-1"
    let body =
      #"{"installationId":"i-1","platform":"apns","pushChannel":"0A","templates":{"main":"#
      + #"{"body":"{\"aps\":{}}","headers":{"apns-priority":"5"},"expiry":"$(e)"}}}"#
    #expect(await hub.send(.put, path, body: body).status == .ok)
    let patch = #"[{"op":"add","path":"/tags","value":"new"}]"#
    #expect(await hub.send(.patch, path, body: patch).status == .ok)
    let (both, reply) = try await feed(hub, Self.path)
    #expect(both.map(\.etag) == ["2", "2"])
    #expect(both.allSatisfy { $0.tags.contains("new") })
    #expect(reply.text.contains("<ExpirationTime>9999-12-31T23:59:59.9999999Z</ExpirationTime>"))
    #expect(reply.text.contains("<Expiry>$(e)</Expiry><TemplateName>main</TemplateName>"))
    #expect(reply.text.contains("<Header>apns-priority</Header><Value>5</Value>"))

    let id = both[0].registrationID ?? ""
    let echoed = RegistrationBody.apple("<Tags>$InstallationId:{i-1},new</Tags>")
    let refused = await hub.send(.put, "\(Self.path)/\(id)", body: echoed)
    #expect(refused.message == "Tags can not start with $")
    #expect(
      await hub.send(.delete, "\(Self.path)/\(id)", headers: ["If-Match": "*"]).status == .ok)
    #expect(
      try await feed(hub, Self.path).entries.map(\.registrationID) == [both[1].registrationID])
    #expect(await hub.send(.get, path).status == .ok)
    #expect(await hub.send(.put, path, body: body).status == .ok)
    #expect(try await feed(hub, Self.path).entries.count == 2)
    #expect(await hub.send(.delete, path).status == .noContent)
    #expect(try await feed(hub, Self.path).entries.isEmpty)
  }
}
