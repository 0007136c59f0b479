import HTTP2
import HubCore
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("APNs request headers")
struct APNsHeadersTests {
  private func headers(
    _ given: [String: String] = [:], expiry: Int64? = nil, derived: APNsPayload.PushType = .alert
  ) -> [String: String]? {
    let body = PushBody(bytes: [], headers: given, expiry: expiry)
    let made = APNsHeaders(body: body, derivedType: derived, topic: "com.example.app")
    return made.map { Dictionary(uniqueKeysWithValues: $0.fields.map { ($0.name, $0.value) }) }
  }

  @Test("an alert needs nothing from the sender")
  func plain() {
    #expect(
      headers() == [
        "apns-topic": "com.example.app", "apns-push-type": "alert", "apns-priority": "10",
      ])
  }

  @Test("a background push has priority 5")
  func background() {
    #expect(
      headers(derived: .background) == [
        "apns-topic": "com.example.app", "apns-push-type": "background", "apns-priority": "5",
      ])
  }

  @Test(
    "each kind has its topic",
    arguments: [
      ("alert", ""), ("background", ""), ("mdm", ""), ("voip", ".voip"),
      ("complication", ".complication"), ("fileprovider", ".pushkit.fileprovider"),
      ("liveactivity", ".push-type.liveactivity"), ("location", ".location-query"),
      ("pushtotalk", ".voip-ptt"), ("controls", ".push-type.controls"),
      ("widgets", ".push-type.widgets"),
    ])
  func topics(kind: String, suffix: String) {
    let made = headers(["apns-push-type": kind])
    #expect(made?["apns-topic"] == "com.example.app" + suffix)
    #expect(made?["apns-push-type"] == kind)
    #expect(made?["apns-priority"] == (kind == "background" ? "5" : "10"))
    #expect(made?["apns-expiration"] == (kind == "pushtotalk" ? "0" : nil))
  }

  @Test("the sender's headers go out as they are and win")
  func callers() {
    let given = [
      "apns-topic": "com.other.app.voip", "apns-priority": "1", "apns-expiration": "77",
      "apns-collapse-id": "c", "apns-new-header": "x",
      "apns-id": "8f14e45f-ceea-467f-a0e6-1f2f3a4b5c6d",
      "x-apns-priority": "5", "x-apns-expiration": "88", "content-type": "text/plain",
      "x-wns-type": "y",
    ]
    var expected = given.filter { $0.key.hasPrefix("apns-") }
    expected["apns-push-type"] = "voip"
    #expect(headers(given, expiry: 99) == expected)
  }

  @Test("the older forms fill what is open, before the expiry and before what is derived")
  func olderForms() {
    let made = headers(
      ["x-apns-priority": "5", "x-apns-expiration": "88", "x-apns-push-type": "voip"], expiry: 99)
    #expect(
      made == [
        "apns-topic": "com.example.app.voip", "apns-push-type": "voip", "apns-priority": "5",
        "apns-expiration": "88",
      ])
    #expect(headers(expiry: 99)?["apns-expiration"] == "99")
    #expect(headers(expiry: 0)?["apns-expiration"] == "0")
  }

  @Test("blanks around a value go, and a value of nothing else counts as none")
  func blanks() {
    let made = headers([
      "apns-collapse-id": " a b\t", "apns-priority": "  ", "x-apns-topic": "\tt ",
    ])
    #expect(made?["apns-collapse-id"] == "a b")
    #expect(made?["apns-priority"] == "10")
    #expect(made?["apns-topic"] == "t")
  }

  @Test("an unknown kind goes to Apple as it is, without a guess at topic or priority")
  func unknownKind() {
    #expect(
      headers(["apns-push-type": "banner"]) == [
        "apns-topic": "com.example.app", "apns-push-type": "banner",
      ])
  }

  @Test(
    "only the credential's own topic, to the letter, is its own",
    arguments: [
      ([:], true), (["apns-push-type": "background"], true),
      (["apns-topic": "com.example.app"], true), (["apns-push-type": "voip"], false),
      (["x-apns-push-type": "liveactivity"], false), (["apns-topic": "com.example.other"], false),
      (["apns-topic": "com.example.app.voip"], false),
    ] as [([String: String], Bool)])
  func ownTopic(given: [String: String], isOwn: Bool) {
    let body = PushBody(bytes: [], headers: given)
    let made = APNsHeaders(body: body, derivedType: .alert, topic: "com.example.app")
    #expect(made?.isOwnTopic == isOwn)
  }

  @Test("what varies from send to send stays out of the peer's header table")
  func indexing() throws {
    let body = PushBody(bytes: [], headers: ["apns-collapse-id": "c", "apns-id": "i"], expiry: 1)
    let made = try #require(APNsHeaders(body: body, derivedType: .alert, topic: "t"))
    let literal = made.fields.filter { $0.indexing == .never }.map(\.name)
    #expect(literal == ["apns-collapse-id", "apns-expiration", "apns-id"])
    #expect(made.hasID)
    #expect(made.isOwnTopic)
  }

  @Test(
    "only Apple's table keeps a provider token",
    arguments: [
      ("api.push.apple.com", HTTP2Field.Indexing.allowed), ("API.Push.Apple.com", .allowed),
      ("api.sandbox.push.apple.com", .allowed), ("api.push.apple.com.example.org", .never),
      ("127.0.0.1", .never),
    ])
  func tokenIndexing(host: String, indexing: HTTP2Field.Indexing) throws {
    let endpoint = try APNsEndpoint(host)
    #expect(
      endpoint.authorization("a.b.c")
        == HTTP2Field("authorization", "bearer a.b.c", indexing: indexing))
  }

  @Test(
    "a header that could end another is refused",
    arguments: [
      ("apns-x", "a\r\nb: c"), ("apns-x", "\u{0}"), ("apns-x\r\n", "a"), ("apns-é", "a"),
      ("apns-x:", "a"), ("x-apns-x y", "a"), ("apns-x", String(repeating: "a", count: 1025)),
    ])
  func injection(name: String, value: String) { #expect(headers([name: value]) == nil) }
}
