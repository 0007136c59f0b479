import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Testing
import Wire

@Suite("Search by handle")
struct DeviceSearchTests {
  private func search(_ body: String, _ hub: TestHub) async -> HTTPResponse {
    await hub.send(.post, "/hub1/devices/search?api-version=2020-06", body: body)
  }

  @Test("a pasted token leads to its installation and registrations")
  func token() async throws {
    try await withHub { hub in
      let written = await hub.send(
        .put, "/hub1/installations/phone",
        body: #"{"installationId":"phone","platform":"apns","pushChannel":"0a1b","tags":["x"],"#
          + #""templates":{"main":{"body":"{\"a\":\"$(m)\"}"}}}"#)
      #expect(written.status == .ok)
      let reply = await search(#"{"handle":"0A1b "}"#, hub)
      #expect(reply.status == .ok)
      #expect(reply.headers["Content-Type"] == "application/json;charset=utf-8")
      let found = try DeviceSearch(json: Array(reply.text.utf8))
      #expect(found.installations.map(\.installationID) == ["phone"])
      #expect(found.registrations.map(\.template) == [nil, "main"])
      #expect(found.registrations.allSatisfy { $0.installationID == "phone" })
      #expect(
        found.registrations.map(\.tags)
          == [["$InstallationId:{phone}", "x"], ["$InstallationId:{phone}", "x", "main"]])
      #expect(found.registrations.allSatisfy { $0.confirmedTime == hub.clock.now })
      // What the installation itself says, letter for letter.
      let own = await hub.send(.get, "/hub1/installations/phone")
      #expect(reply.text.contains(own.text))
      #expect(
        await search(#"{"handle":"0A1C"}"#, hub).text == #"{"installations":[],"registrations":[]}"#
      )
    }
  }

  /// Knows the hosts of Apple's credentials, and sends nothing.
  private struct Hosts: GatewayDirectory {
    func gateway(for credential: PushCredential, hub: Hub.ID) async throws -> (any PushGateway)? {
      nil
    }
    func hosts(of credential: PushCredential) -> [PushEnvironment: String] {
      [.own: "api.push.apple.com", .other: "api.sandbox.push.apple.com"]
    }
  }

  @Test("the environment is the credential's, until a push has worked in the other one")
  func environment() async throws {
    let hub = try await TestHub(gateways: Hosts())
    for (id, handle) in [("phone", "0A1B"), ("other", "0A1C")] {
      let written = await hub.send(
        .put, "/hub1/installations/\(id)",
        body: #"{"installationId":"\#(id)","platform":"apns","pushChannel":"\#(handle)"}"#)
      #expect(written.status == .ok)
    }
    func endpoints(_ handle: String) async throws -> [String?] {
      let reply = await search(#"{"handle":"\#(handle)"}"#, hub)
      return try DeviceSearch(json: Array(reply.text.utf8)).registrations.map(\.endpoint)
    }
    #expect(try await endpoints("0A1B") == [nil], "no credential")
    try await hub.store.putCredential(
      PushCredential(
        platform: .apns, properties: ["Endpoint": "api.push.apple.com"],
        modifiedAt: hub.clock.now), hub: 1)
    #expect(try await endpoints("0A1B") == ["api.push.apple.com"])
    let query = AudienceQuery(
      hub: 1, kind: .native(.apns), expression: .installation("phone"), asOf: hub.clock.now)
    let target = try #require(
      try await hub.store.targets(query, after: 0, limit: 1).targets.first)
    let id = NotificationID(rawValue: "n-1")
    let request = NotificationRequest(format: .native(.apns), body: Array("{}".utf8))
    try await hub.store.accept(
      NotificationRecord(
        id: id, hub: 1, request: request, state: .enqueued, enqueuedAt: hub.clock.now))
    var page = Checkpoint(notification: id, hub: 1, at: hub.clock.now)
    page.environments = [(target.registration, .other)]
    try await hub.store.checkpoint(page)
    #expect(try await endpoints("0A1B") == ["api.sandbox.push.apple.com"])
    #expect(try await endpoints("0A1C") == ["api.push.apple.com"])
  }

  @Test("a subscription may come as text or as an object")
  func subscription() async throws {
    let hub = try await TestHub()
    let keys =
      #""p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","#
      + #""auth":"BTBZMqHH6r4Tts7J_aSIgg""#
    let written = await hub.send(
      .put, "/hub1/installations/web",
      body: #"{"installationId":"web","platform":"browser","pushChannel":{"endpoint":"#
        + #""https://push.example/a",\#(keys)}}"#)
    #expect(written.status == .ok, "\(written.text)")
    for handle in [
      #""https://push.example/a""#, #"{"endpoint":"https://push.example/a","keys":{}}"#,
      #""{\"endpoint\":\"https://push.example/a\"}""#,
    ] {
      let reply = await search(#"{"handle":\#(handle)}"#, hub)
      let found = try DeviceSearch(json: Array(reply.text.utf8))
      #expect(found.installations.map(\.installationID) == ["web"], "\(handle)")
    }
  }

  @Test(
    "what is no handle is 400 and says what one is",
    arguments: [
      "", "[]", "{}", #"{"handle":7}"#, #"{"handle":""}"#, #"{"handle":"  "}"#,
      #"{"handle":"a\u0000b"}"#, #"{"handle":"{\"end\""}"#, #"{"handle":{"keys":{}}}"#,
      #"{"handle":"\#(String(repeating: "a", count: 16_385))"}"#,
    ])
  func nonsense(body: String) async throws {
    let hub = try await TestHub()
    let reply = await search(body, hub)
    #expect(reply.status == .badRequest)
    #expect(reply.message?.isEmpty == false)
  }

  @Test("a hub's search finds nobody of another hub")
  func otherHub() async throws {
    let hub = try await TestHub(hubs: ["hub1", "hub2"])
    let written = await hub.send(
      .put, "/hub2/installations/phone",
      body: #"{"installationId":"phone","platform":"apns","pushChannel":"0A1B"}"#,
      token: TestHub.token(resource: "https://\(TestHub.host)/hub2"))
    #expect(written.status == .ok)
    #expect(
      await search(#"{"handle":"0A1B"}"#, hub).text == #"{"installations":[],"registrations":[]}"#)
    #expect(await hub.send(.get, "/hub1/devices/search").status == .methodNotAllowed)
  }
}
