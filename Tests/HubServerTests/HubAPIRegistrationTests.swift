import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Testing

@Suite("Registrations through the REST API")
struct HubAPIRegistrationTests {
  static let path = "/hub1/registrations"
  static let any: HTTPHeaders = ["If-Match": "*"]

  private static let connect =
    #"xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect""#
  private static let instance = #"xmlns:i="http://www.w3.org/2001/XMLSchema-instance""#

  /// The same registration in every form that clients send (docs/protocol/rest.md, section 3.2).
  static let forms: [String] = [
    RegistrationBody.apple("<Tags>red, blue</Tags>"),
    // .NET: the abstract root, nil members, what it has read before.
    #"<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">"#
      + #"<RegistrationDescription i:type="AppleRegistrationDescription" \#(connect) \#(instance)>"#
      + #"<ETag>7</ETag><ExpirationTime>2001-01-01T00:00:00Z</ExpirationTime>"#
      + #"<RegistrationId>else</RegistrationId><Tags>red,blue</Tags><PushVariables i:nil="true"/>"#
      + "<DeviceToken>0a1b2c3d</DeviceToken></RegistrationDescription></content></entry>",
    // Any order, CDATA, references, blanks, a byte order mark, Atom's own children.
    "\u{FEFF}<?xml version='1.0'?>\n<entry xmlns='http://www.w3.org/2005/Atom'>\n"
      + "<title/><updated>2012-01-01T00:00:00Z</updated><author><name/></author><id/>"
      + "<content type='text/xml'>\n  <AppleRegistrationDescription \(connect)>"
      + "<DeviceToken>\n<![CDATA[0A1B2C3D]]>\n</DeviceToken><Tags>red,&#98;lue</Tags>\n"
      + "</AppleRegistrationDescription></content></entry>",
    // Prefixes.
    "<a:entry xmlns:a='http://www.w3.org/2005/Atom'>"
      + "<a:content type='application/atom+xml;type=entry;charset=utf-8'>"
      + "<s:AppleRegistrationDescription xmlns:s='http://schemas.microsoft.com/netservices/2010/"
      + "10/servicebus/connect'><s:Tags>red,blue,RED</s:Tags>"
      + "<s:DeviceToken>0A1B2C3D</s:DeviceToken></s:AppleRegistrationDescription></a:content>"
      + "</a:entry>",
  ]

  @Test("every form of a request makes the same registration", arguments: forms)
  func form(body: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.post, "\(Self.path)?api-version=2020-06", body: body)
    #expect(reply.status == .ok)
    #expect(reply.headers["ETag"] == #"W/"1""#)
    #expect(
      reply.text.contains(
        "<Tags>red,blue</Tags><DeviceToken>0A1B2C3D</DeviceToken></AppleRegistrationDescription>"))
    let made = try Registration.decode(Array(reply.text.utf8))
    #expect(made.expirationTime == nil)
    #expect(
      reply.headers["Content-Location"]
        == "http://\(TestHub.host)/hub1/registrations/\(made.registrationID ?? "")"
        + "?api-version=2020-06")
  }

  static let notDescriptions = [
    "", "x", "<", "<entry/>", "<entry><content/></entry>", "{}",
    RegistrationBody.entry("Fcm", "<FcmRegistrationId>a</FcmRegistrationId>"),
    RegistrationBody.entry("Apple", ""),
    RegistrationBody.entry("Baidu", "<BaiduUserId>1</BaiduUserId>"),
    RegistrationBody.entry("AppleTemplate", "<DeviceToken>0A</DeviceToken>"),
    RegistrationBody.apple().replacing("</entry>", with: ""),
    "<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]>" + RegistrationBody.apple(),
    String(repeating: "<a>", count: 50_000),
  ]

  @Test("what is no registration is 400 in the service's words", arguments: notDescriptions)
  func notADescription(body: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.post, Self.path, body: body)
    #expect(reply.status == .badRequest)
    #expect(reply.message == "The specified resource description is invalid.")
  }

  static let badTags = [
    ("a b", "An invalid tag(s) 'a b' was supplied."),
    (",a", "An invalid tag(s) ',a' was supplied."),
    ("a,,b", "An invalid tag(s) 'a,,b' was supplied."),
    ("$UserId:{bob}", "Tags can not start with $"), ("red,$InstallationId:{i}", "Tags can not"),
    (String(repeating: "x", count: 121), "An invalid tag(s) '"),
    ((1...61).map { "t\($0)" }.joined(separator: ","), ""),
  ]

  @Test("bad tags are 400 in the service's words", arguments: badTags)
  func tags(tags: String, message: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(
      .post, Self.path, body: RegistrationBody.apple("<Tags>\(tags)</Tags>"))
    #expect(reply.status == .badRequest)
    #expect(reply.message?.hasPrefix(message) == true)
  }

  // Spec 3.6: the header, the status when the registration has etag 3, and when there is none.
  static let conditions: [(String?, Int, Int)] = [
    (nil, 200, 200), ("*", 200, 404), ("\"3\"", 200, 404), ("W/\"3\"", 200, 404), ("3", 200, 404),
    (" W/\"3\" ", 200, 404), ("\"2\"", 412, 404), ("W/\"4\"", 412, 404), ("2", 412, 404),
    ("nonsense", 412, 412), ("\"", 412, 412), ("", 412, 412), ("\"1\", \"3\"", 412, 412),
  ]

  @Test("a condition is kept on writing", arguments: conditions)
  func writing(ifMatch: String?, present: Int, absent: Int) async throws {
    let hub = try await TestHub()
    for _ in 0..<3 {
      #expect(
        await hub.send(.put, "\(Self.path)/mine", body: RegistrationBody.apple()).status == .ok)
    }
    var headers: HTTPHeaders = [:]
    if let ifMatch { headers.add("If-Match", ifMatch) }
    let body = RegistrationBody.apple("<Tags>new</Tags>")
    let first = await hub.send(.put, "\(Self.path)/mine", headers: headers, body: body)
    #expect(first.status.rawValue == present)
    #expect(first.headers["ETag"] == (present == 200 ? #"W/"4""# : nil))
    #expect(first.headers["Content-Location"] == nil)
    let second = await hub.send(.put, "\(Self.path)/other", headers: headers, body: body)
    #expect(second.status.rawValue == absent)
    #expect(second.headers["ETag"] == (absent == 200 ? #"W/"1""# : nil))
    if absent == 404 { #expect(second.message == "") }
  }

  @Test("deleting wants a condition that holds", arguments: conditions)
  func deleting(ifMatch: String?, present: Int, absent: Int) async throws {
    let hub = try await TestHub()
    for _ in 0..<3 {
      _ = await hub.send(.put, "\(Self.path)/mine", body: RegistrationBody.apple())
    }
    var headers: HTTPHeaders = [:]
    if let ifMatch { headers.add("If-Match", ifMatch) }
    let first = await hub.send(.delete, "\(Self.path)/mine", headers: headers)
    #expect(first.status.rawValue == (ifMatch == nil ? 412 : present))
    if first.status == .ok {
      #expect(first.text == "")
      #expect(await hub.send(.get, "\(Self.path)/mine").status == .notFound)
    } else if ifMatch == nil || absent == 412 {
      #expect(first.message == ETagCondition.fault)
    }
    let second = await hub.send(.delete, "\(Self.path)/mine2", headers: headers)
    #expect(second.status.rawValue == (ifMatch == nil ? 412 : absent))
  }

  @Test("the type of a registration may change from write to write")
  func changesType() async throws {
    let hub = try await TestHub()
    let template = RegistrationBody.entry(
      "GcmTemplate",
      "<GcmRegistrationId>a</GcmRegistrationId><BodyTemplate>{}</BodyTemplate>"
        + #"<TemplateName i:nil="true"/>"#)
    for (body, element) in [
      (RegistrationBody.apple("<Tags>a</Tags>"), "<Apple"), (template, "<GcmTemplate"),
      (RegistrationBody.apple(), "<Apple"),
    ] {
      #expect(await hub.send(.put, "\(Self.path)/x", body: body).text.contains(element))
    }
    let last = await hub.send(.get, "\(Self.path)/x")
    #expect(last.headers["ETag"] == #"W/"3""#)
    #expect(!last.text.contains("<Tags>") && !last.text.contains("TemplateName"))
  }

  @Test("a reserved id has exactly the address that .NET takes apart, and is free until written")
  func reserved() async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.post, "/hub1/registrationIDs/?api-version=2015-01")
    #expect(reply.status == .created)
    #expect(reply.text == "")
    let location = try #require(reply.headers["Location"].flatMap { URL(string: $0) })
    // In the request's spelling: clients match their own.
    #expect(location.pathComponents.dropLast() == ["/", "hub1", "registrationIDs"])
    #expect(location.query == "api-version=2015-01")
    let id = location.lastPathComponent
    #expect(id.wholeMatch(of: /\d+-\d+-\d/) != nil)
    #expect(await hub.send(.get, "\(Self.path)/\(id)").status == .notFound)
    let put = await hub.send(.put, "\(Self.path)/\(id)", body: RegistrationBody.apple())
    #expect(put.status == .ok)
    #expect(put.text.contains("<RegistrationId>\(id)</RegistrationId>"))
  }

  @Test(
    "an id that cannot be kept is 400",
    arguments: [String(repeating: "x", count: 261), "a%0Ab", "%FF"])
  func badID(id: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.put, "\(Self.path)/\(id)", body: RegistrationBody.apple())
    #expect(reply.status == .badRequest)
  }

  @Test("a hub's time to live counts from the last write and shows in three digits")
  func timeToLive() async throws {
    let hub = try await TestHub()
    let name = "short"
    _ = try await hub.store.createHub(
      named: name, registrationTTL: 86_400,
      policies: try await hub.store.accessPolicies(hub: hub.store.hubs()[0].id), at: TestHub.now)
    let token = TestHub.token(resource: "https://\(TestHub.host)/")
    let reply = await hub.send(
      .post, "/short/registrations", body: RegistrationBody.apple(), token: token)
    #expect(reply.text.contains("<ExpirationTime>2030-01-06T10:00:00.000Z</ExpirationTime>"))
  }

  @Test(
    "reading says the time that writing said, to the last digit",
    arguments: [0.000_4, 0.123_6, 0.499_9, 0.999_7])
  func timeToLiveIsRounded(fraction: TimeInterval) async throws {
    try await withTemporaryStore { store in
      let hub = try await TestHub(store: store, now: TestHub.now.addingTimeInterval(fraction))
      _ = try await hub.store.createHub(
        named: "short", registrationTTL: 86_400,
        policies: try await hub.store.accessPolicies(hub: hub.store.hubs()[0].id), at: TestHub.now)
      let token = TestHub.token(resource: "https://\(TestHub.host)/")
      let path = "/short/registrations/1-2-3"
      let written = await hub.send(.put, path, body: RegistrationBody.apple(), token: token)
      let read = await hub.send(.get, path, token: token)
      let pattern = /<ExpirationTime>[^<]+</
      let first = try #require(written.text.firstMatch(of: pattern)).0
      #expect(try #require(read.text.firstMatch(of: pattern)).0 == first)
    }
  }

  // docs/protocol/sas.md, section 5.
  static let rights: [(HTTPMethod, String, Bool)] = [
    (.post, "/hub1/registrations", true), (.post, "/hub1/registrationids", true),
    (.put, "/hub1/registrations/x", true), (.get, "/hub1/registrations/x", true),
    (.delete, "/hub1/registrations/x", true),
    (.get, "/hub1/registrations?$filter=DeviceToken%20eq%20'AA'", true),
    (.get, "/hub1/registrations?%24filter=ChannelUri+eq+'AA'", true),
    (.get, "/hub1/registrations", false), (.get, "/hub1/registrations?$top=1", false),
    (.get, "/hub1/tags/red/registrations", false),
  ]

  @Test("a device may care for registrations, only a manager may list them", arguments: rights)
  func allowed(method: HTTPMethod, target: String, listenSuffices: Bool) async throws {
    let hub = try await TestHub()
    _ = await hub.send(.put, "\(Self.path)/x", body: RegistrationBody.apple())
    let token = TestHub.token(name: TestHub.listenName, key: TestHub.listenKey)
    for (token, isAllowed) in [(token, listenSuffices), (TestHub.token(), true)] {
      let reply = await hub.send(
        method, target, headers: method == .delete ? Self.any : [:], body: RegistrationBody.apple(),
        token: token)
      if isAllowed {
        #expect(reply.status != .forbidden && reply.status != .unauthorized)
      } else {
        #expect(reply.status == .forbidden && reply.text == "")
      }
    }
  }

  @Test("other methods are 405 and name those that would do")
  func methods() async throws {
    let hub = try await TestHub()
    #expect(await hub.send(.patch, "\(Self.path)/x").headers["Allow"] == "PUT, GET, DELETE")
    #expect(await hub.send(.delete, Self.path).headers["Allow"] == "POST, GET")
    #expect(await hub.send(.get, "/hub1/registrationids").status == .methodNotAllowed)
  }
}
