import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Testing

@Suite("Installations through the REST API")
struct HubAPIInstallationTests {
  static let path = "/hub1/installations/i1"

  static let badBodies: [(String, String)] = [
    ("", ""), ("{", ""), ("[]", ""), ("\u{FEFF}", ""), (#"{"platform":7,"pushChannel":"0A"}"#, ""),
    (
      #"{"platform":"pigeon","pushChannel":"0A"}"#,
      "The provided request body is invalid. Error: 'Platform' property is not specified or given "
        + "value is not supported."
    ),
    (
      #"{"platform":"apns"}"#,
      "Installation validation failed with following error(s):\r\n'PushChannel' is required."
    ),
    (#"{"platform":"apns","pushChannel":"not hex"}"#, "Installation validation failed"),
    (
      #"{"platform":"apns","pushChannel":"0A","tags":["a b"]}"#,
      ""
    ),
    (#"{"platform":"apns","pushChannel":"0A","templates":{"t":{"body":"{"}}}"#, ""),
    (#"{"installationId":"other","platform":"apns","pushChannel":"0A"}"#, ""),
    (String(repeating: "[", count: 100_000), ""),
  ]

  @Test("a bad installation is 400 with its reason, and nothing is written", arguments: badBodies)
  func badBody(body: String, message: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.put, Self.path, body: body)
    #expect(reply.status == .badRequest)
    let shown = try #require(reply.message)
    #expect(!shown.isEmpty && shown.hasPrefix(message))
    #expect(await hub.send(.get, Self.path).status == .notFound)
  }

  @Test("more different tags than the limit are 400 with what to do, wherever they stand")
  func tagLimit() async throws {
    let hub = try await TestHub()
    func body(_ tags: Range<Int>, templates: [Range<Int>], id: String = "i1") -> String {
      func list(_ tags: Range<Int>) -> String {
        "[" + tags.map { "\"T\($0)\",\"t\($0)\"" }.joined(separator: ",") + "]"
      }
      let templates = templates.enumerated().map {
        #""n\#($0.offset)":{"body":"{\"aps\":{}}","tags":\#(list($0.element))}"#
      }
      return #"{"platform":"apns","pushChannel":"0A","tags":\#(list(tags)),"templates":{"#
        + templates.joined(separator: ",") + "}}"
    }
    // Letter case is no difference, and the templates' names do not count.
    let most = body(0..<30, templates: [10..<40, 40..<70, 70..<100, 90..<120])
    let kept = await hub.send(.put, Self.path, body: most)
    #expect(kept.status == .ok, "\(kept.text)")
    let more = body(0..<30, templates: [10..<40, 40..<70, 70..<100, 91..<121])
    let reply = await hub.send(.put, Self.path, body: more)
    #expect(reply.status == .badRequest)
    #expect(
      reply.message?.contains(
        "The installation has 121 different tags, those of its templates and tiles included; at "
          + "most 120 are allowed. Whoever runs this server can raise tagsPerInstallation.")
        == true, "\(reply.text)")
    let tag = #"[{"op":"add","path":"/tags","value":"one-more"}]"#
    #expect(await hub.send(.patch, Self.path, body: tag).status == .badRequest)
    #expect(HubLimits.strict.tagsPerInstallation == 60)
  }

  @Test("a device that had more tags before the limit can still be patched, but not given more")
  func tagsOfBefore() async throws {
    let hub = try await TestHub()
    let old = Installation(
      installationID: "i1", platform: .apns, pushChannel: .handle("0A"),
      templates: Dictionary(
        uniqueKeysWithValues: (0..<4).map { number in
          var template = PushTemplate(body: #"{"aps":{}}"#)
          template.tags = (0..<50).map { Tag(rawValue: "t\(number)-\($0)") }
          return ("n\(number)", template)
        }))
    let id = try #require(try await hub.store.hubs().first).id
    try await hub.store.putInstallation(
      old, registrations: old.registrationDrafts, request: nil, hub: id, at: TestHub.now)
    func patch(_ op: String) async -> HTTPStatus {
      await hub.send(.patch, Self.path, body: "[\(op)]").status
    }
    #expect(await patch(#"{"op":"replace","path":"/pushChannel","value":"0B"}"#) == .ok)
    #expect(await patch(#"{"op":"add","path":"/tags","value":"new"}"#) == .badRequest)
    #expect(await patch(#"{"op":"remove","path":"/templates/n0"}"#) == .ok)
    #expect(await patch(#"{"op":"add","path":"/tags","value":"new"}"#) == .badRequest)
    #expect(await patch(#"{"op":"remove","path":"/templates/n1"}"#) == .ok)
    #expect(await patch(#"{"op":"add","path":"/tags","value":"new"}"#) == .ok)
  }

  @Test("a repeated request is recognised, and is not written")
  func repeated() async throws {
    let hook = StoreHook()
    let hub = try await TestHub(store: temporaryStore(hook))
    let body = #"{"platform":"apns","pushChannel":"0A"}"#
    for _ in 0..<3 { #expect(await hub.send(.put, Self.path, body: body).status == .ok) }
    #expect(hook.count(of: "putInstallation(_:registrations:request:hub:at:)") == 1)
    #expect(await hub.send(.put, Self.path, body: body + " ").status == .ok)
    #expect(hook.count(of: "putInstallation(_:registrations:request:hub:at:)") == 2)
  }

  private static let narrower: [@Sendable (inout HubLimits) -> Void] = [
    { $0.tagsPerInstallation = 1 }, { $0.refusesRetired = true },
  ]

  @Test("a repeated request is read again under other limits", arguments: narrower.indices)
  func otherLimits(narrower: Int) async throws {
    let hub = try await TestHub()
    let body = #"{"platform":"gcm","pushChannel":"0A","tags":["a","b"]}"#
    #expect(await hub.send(.put, Self.path, body: body).status == .ok)
    var limits = HubLimits.extended
    Self.narrower[narrower](&limits)
    let other = try await TestHub(hubs: [], store: hub.store, limits: limits)
    let stored = try #require(try await hub.store.hubs().first)
    await #expect(throws: HubFailure.self) {
      try await other.service.installations.put(hub: stored, id: "i1", body: Array(body.utf8))
    }
  }

  @Test("in a hub with a time to live, a repeated request renews it")
  func timeToLive() async throws {
    let hub = try await TestHub()
    let stored = try #require(try await hub.store.hubs().first)
    let mortal = Hub(
      id: stored.id, name: stored.name, registrationTTL: 3_600, createdAt: stored.createdAt)
    let body = Array(#"{"platform":"apns","pushChannel":"0A"}"#.utf8)
    for _ in 0..<2 {
      hub.clock.advance(by: .seconds(60))
      try await hub.service.installations.put(hub: mortal, id: "i1", body: body)
      let expires = try await hub.store.installation("i1", hub: stored.id)?.expirationTime
      #expect(expires == hub.clock.now.addingTimeInterval(3_600))
    }
  }

  static let badPatches = [
    "", "{}", "[1]", #"[{"op":"move","path":"/tags"}]"#, #"[{"op":"add","path":"/nothing"}]"#,
    #"[{"op":"remove","path":"/pushChannel"}]"#,
    #"[{"op":"add","path":"/tags","value":"new"},{"op":"add","path":"/tags","value":"a b"}]"#,
  ]

  @Test("a bad patch is 400 and changes nothing", arguments: badPatches)
  func badPatch(body: String) async throws {
    let hub = try await TestHub()
    #expect(
      await hub.send(.put, Self.path, body: HubAPITransportTests.installation).status == .ok)
    let before = await hub.send(.get, Self.path).text
    let reply = await hub.send(.patch, Self.path, body: body)
    #expect(reply.status == .badRequest)
    #expect(reply.message?.isEmpty == false)
    #expect(await hub.send(.get, Self.path).text == before)
  }

  @Test("a patch of a missing installation is 404")
  func patchMissing() async throws {
    let hub = try await TestHub()
    let reply = await hub.send(
      .patch, Self.path, body: #"[{"op":"add","path":"/tags","value":"a"}]"#)
    #expect(reply.status == .notFound)
    #expect(reply.message == "Installation not found")
  }

  static let subscription = #"{"endpoint":"https://push.example/a","p256dh":"k","auth":"s"}"#
  static let subscriptionText = #""\#(subscription.replacing("\"", with: "\\\""))""#

  @Test(
    "a browser's channel is read in the form in which it was written, object or text",
    arguments: [subscription, subscriptionText])
  func subscriptionForm(channel: String) async throws {
    try await withHub { hub in
      let other = channel == Self.subscription ? Self.subscriptionText : Self.subscription
      for channel in [channel, other] {
        let put = await hub.send(
          .put, Self.path, body: #"{"platform":"browser","pushChannel":\#(channel)}"#)
        #expect(put.status == .ok)
        let shown = await hub.send(.get, Self.path).text
        #expect(shown.contains("\"pushChannel\":\(channel),"), "\(shown)")
      }
      let patch = #"[{"op":"replace","path":"/pushChannel","value":\#(Self.subscriptionText)}]"#
      #expect(await hub.send(.patch, Self.path, body: patch).status == .ok)
      let shown = await hub.send(.get, Self.path).text
      #expect(shown.contains("\"pushChannel\":\(Self.subscriptionText),"), "\(shown)")
    }
  }

  @Test("the id in the body may differ from the path's in letter case; the path's is kept")
  func identifierCase() async throws {
    let hub = try await TestHub()
    let body = #"{"installationId":"I1","platform":"apns","pushChannel":"0A"}"#
    #expect(await hub.send(.put, Self.path, body: body).status == .ok)
    let shown = await hub.send(.get, Self.path).text
    #expect(shown.contains(#""installationId":"i1""#))
    #expect(await hub.send(.get, "/hub1/installations/I1").status == .notFound)
  }

  @Test("a content type among a template's headers is taken on every platform and comes back")
  func contentTypeOfTemplate() async throws {
    let hub = try await TestHub()
    let templates =
      #""templates":{"t":{"body":"{\"aps\":{}}","headers":{"Content-Type":"application/json"}}}"#
    for (platform, channel) in [("apns", "0A"), ("gcm", "g"), ("wns", "https://h.example/1")] {
      let reply = await hub.send(
        .put, Self.path,
        body: #"{"platform":"\#(platform)","pushChannel":"\#(channel)",\#(templates)}"#)
      #expect(reply.status == .ok, "\(reply.text)")
      let shown = await hub.send(.get, Self.path).text
      #expect(shown.contains(#""headers":{"Content-Type":"application/json"}"#))
    }
  }

  @Test("deleting is 204, also when there is nothing")
  func delete() async throws {
    let hub = try await TestHub()
    for _ in 0..<2 {
      let reply = await hub.send(.delete, Self.path)
      #expect(reply.status == .noContent)
      #expect(reply.headers["Content-Type"] == "application/xml; charset=utf-8")
    }
  }

  @Test("a body over the limit is 413 in the form of all errors", .timeLimit(.minutes(5)))
  func tooLarge() async throws {
    let hub = try await TestHub()
    let listener = try HTTPListener(HubAPIConfiguration.listener, handler: hub.api)
    let reply = try await SocketClient(port: listener.port).send(
      "PUT", Self.path,
      body: String(repeating: "x", count: HubAPIConfiguration.defaultMaxBodyBytes + 1))
    #expect(reply.status == 413)
    #expect(ErrorEnvelope(xml: Data(reply.body.utf8))?.code == 413)
    #expect(reply.headers["trackingid"] != nil)
    await listener.stop()
  }

  @Test("no refusal repeats a handle, a payload or a key")
  func discretion() async throws {
    let hub = try await TestHub()
    let secret = "ZZSECRETZZ"
    let bodies = [
      #"{"platform":"apns","pushChannel":"\#(secret)"}"#,
      #"{"platform":"apns","pushChannel":"0A","templates":{"t":{"body":"\#(secret)"}}}"#,
      #"{"platform":"apns","pushChannel":{"\#(secret)":1}}"#, #"{"\#(secret)": }"#,
    ]
    for body in bodies {
      let reply = await hub.send(.put, Self.path, body: body)
      #expect(reply.status == .badRequest)
      #expect(!reply.text.contains(secret))
    }
    let token = TestHub.token(key: secret)
    #expect(!(await hub.send(.get, Self.path, token: token)).text.contains(secret))
  }
}
