import Foundation
import HTTPServer
import NotificationHubs
import SecurePush
import SecurePushBackend
import Testing

@Suite("Devices registered through the backend")
struct DeviceTests {
  @Test("a registration gets the user's tag beside the caller's")
  func tags() async throws {
    try await BackendWorld.run { world in
      let id = try await newID(world, "?handle=ab12")
      let put = await world.ask(
        .put, "/api/register/\(id)",
        body: #"{"Platform":"apns","Handle":"ab12","Tags":["news","username:alice"]}"#)
      #expect(put.status == 200, "\(put.text)")
      let kept = try await world.hub.registration(id)
      #expect(Set(kept.tags) == ["news", "username:alice"])
      #expect(kept.channel == .handle("AB12"))
    }
  }

  @Test(
    "nobody claims another user's tag",
    arguments: ["username:bob", "USERNAME:bob", "username:", "userName:alice2"])
  func foreignTags(_ tag: String) async throws {
    try await BackendWorld.run { world in
      let id = try await newID(world)
      let put = await world.ask(
        .put, "/api/register/\(id)",
        body: #"{"Platform":"apns","Handle":"AB12","Tags":["\#(tag)"]}"#)
      #expect(put.status == 403)
      for member in [
        #""tags":["\#(tag)"]"#, #""templates":{"t":{"body":"{}","tags":["\#(tag)"]}}"#,
      ] {
        let installed = await world.ask(
          .put, "/api/installations/i1",
          body: #"{"platform":"apns","pushChannel":"AB12",\#(member)}"#)
        #expect(installed.status == 403)
      }
      #expect(try await world.hub.registrations().all().isEmpty)
    }
  }

  @Test(
    "a body that makes no sense is refused with a reason",
    arguments: [
      "", "{", "[]", #"{"Platform":"apns"}"#, #"{"Platform":"nokia","Handle":"AB"}"#,
      #"{"Platform":"apns","Handle":7}"#, #"{"Platform":"apns","Handle":"xyz"}"#,
      #"{"Platform":"apns","Handle":"AB","Tags":"news"}"#,
      #"{"Platform":"apns","Handle":"AB","Tags":[7]}"#,
      #"{"Platform":"apns","Handle":"AB","Tags":["$UserId:{bob}"]}"#,
      #"{"Platform":"apns","Handle":"AB","Tags":["no blanks"]}"#,
    ])
  func badBodies(_ body: String) async throws {
    try await BackendWorld.run { world in
      let id = try await newID(world)
      let put = await world.ask(.put, "/api/register/\(id)", body: body)
      #expect(put.status == 400)
      #expect(put.json["Message"] != nil)
    }
  }

  @Test("asking for an id removes what was registered for the handle before")
  func replacing() async throws {
    try await BackendWorld.run { world in
      let first = try await newID(world, "?handle=AB12")
      _ = await put(world, first, "AB12")
      let second = try await newID(world, "?handle=AB12", as: "bob")
      #expect(second != first)
      #expect(try await world.hub.registrations().all().isEmpty)
      // The id that is gone says so, as the tutorial's client expects.
      _ = await put(world, second, "AB12", as: "bob")
      #expect(
        try await world.hub.registrations().all().map { Set($0.tags) } == [["username:bob"]])
    }
  }

  @Test("a registration is written and removed only by its owner")
  func ownership() async throws {
    try await BackendWorld.run { world in
      let id = try await newID(world)
      #expect(await put(world, id, "AB12") == 200)
      #expect(await put(world, id, "FFFF", as: "mallory") == 409)
      #expect(await world.ask(.delete, "/api/register/\(id)", as: "mallory").status == 404)
      #expect(try await world.hub.registration(id).channel == .handle("AB12"))
      #expect(await put(world, id, "CD34") == 200)
      #expect(await world.ask(.delete, "/api/register/\(id)").status == 200)
      #expect(try await world.hub.registrations().all().isEmpty)
      #expect(await world.ask(.delete, "/api/register/\(id)").status == 404)
    }
  }

  @Test("a phone on which somebody else signs in changes hands with its push channel")
  func changingHands() async throws {
    try await BackendWorld.run { world in
      let body = #"{"platform":"apns","pushChannel":"AB12","tags":["news"]}"#
      #expect(await world.ask(.put, "/api/installations/phone", body: body).status == 200)
      let stranger = #"{"platform":"apns","pushChannel":"FFFF"}"#
      #expect(
        await world.ask(.put, "/api/installations/phone", as: "bob", body: stranger).status == 409)
      #expect(
        await world.ask(.put, "/api/installations/phone", as: "bob", body: body).status == 200)
      let kept = try await world.hub.installation("phone")
      #expect(kept.userID == "bob")
      #expect(Set(kept.tags) == ["news", "username:bob"])
    }
  }

  @Test("an installation gets user and tag; signing out removes it")
  func installation() async throws {
    try await BackendWorld.run { world in
      var phone = Installation(
        installationID: "phone", userID: "bob", platform: .fcmv1, pushChannel: .handle("token"))
      phone.sealingKey = try SealingKey().publicKey
      let put = await world.ask(
        .put, "/api/installations/phone", body: String(decoding: phone.jsonData, as: UTF8.self))
      #expect(put.status == 200, "\(put.text)")
      let kept = try await world.hub.installation("phone")
      #expect(kept.userID == "alice")
      #expect(Set(kept.tags) == ["username:alice", "securepush:sealed"])
      #expect(kept.sealingKey == phone.sealingKey)
      #expect(await world.ask(.delete, "/api/installations/phone", as: "bob").status == 404)
      #expect(await world.ask(.delete, "/api/installations/phone").status == 200)
      await #expect(throws: NotificationHubError.self) {
        try await world.hub.installation("phone")
      }
    }
  }

  @Test("users whose names differ in letter case only are told apart when tokens name them")
  func names() throws {
    let typed = try #require(UserName(typed: "Alice"))
    #expect(typed.text == "alice")
    #expect(typed.tag == "username:alice")
    let subject = try #require(UserName(subject: "auth0|Alice"))
    #expect(subject.tag.rawValue == "username:auth0#7c#41lice")
    #expect(subject.tag.isImplicit == false)
    #expect(throws: Never.self) { try subject.tag.validated() }
    #expect(UserName(subject: "auth0|alice") != subject)
    #expect(UserName(subject: "auth0|alice")?.tag != subject.tag)
    for bad in ["", "a\nb", String(repeating: "a", count: 120), String(repeating: "é", count: 40)] {
      #expect(UserName(subject: bad) == nil)
    }
  }

  @Test(
    "an id of dots reaches neither store nor hub",
    arguments: ["..", ".", "%2E%2E", "%252e%252e", "..;x", "..%5Cx"])
  func dots(id: String) async throws {
    try await BackendWorld.run { world in
      for path in ["register/\(id)", "installations/\(id)", "users/\(id)"] {
        for method in [HTTPMethod.put, .delete] {
          let reply = await world.ask(
            method, "/api/\(path)",
            body: #"{"Platform":"apns","Handle":"AB12","pushChannel":"AB12"}"#)
          #expect(reply.status == 400)
        }
      }
      #expect(try await world.hub.registrations().all().isEmpty)
      #expect(try await world.hub.installations().all().isEmpty)
      let client = SecurePushClient(
        backend: try #require(URL(string: "https://backend.example")),
        credentials: .password(user: "alice", password: "alice"),
        transport: InProcessTransport(handler: world.backend))
      for call in [client.unregister, client.uninstall] {
        await #expect(throws: SecurePushClientError.self) { try await call("..") }
      }
    }
  }

  // MARK: Steps

  private func newID(
    _ world: BackendWorld, _ query: String = "", as user: String = "alice"
  ) async throws -> String {
    let reply = await world.ask(.post, "/api/register\(query)", as: user)
    #expect(reply.status == 200, "\(reply.text)")
    return try #require(reply.json.scalarText)
  }

  private func put(
    _ world: BackendWorld, _ id: String, _ handle: String, as user: String = "alice"
  ) async -> Int {
    await world.ask(
      .put, "/api/register/\(id)", as: user, body: #"{"Platform":"apns","Handle":"\#(handle)"}"#
    ).status.rawValue
  }
}
