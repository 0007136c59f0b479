import Authentication
import Foundation
import HTTPServer
import HubServer
import HubTesting
import NotificationHubs
import SecurePush
import SecurePushBackend
import Synchronization
import Testing
import Wire

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

  @Test("a user has so many devices at most; those that are there can be written again and removed")
  func limit() async throws {
    var configuration = BackendConfiguration()
    configuration.devicesPerUser = 2
    try await BackendWorld.run(configuration: configuration) { world in
      func put(_ id: String) async -> Int {
        await world.ask(
          .put, "/api/installations/\(id)", body: #"{"platform":"apns","pushChannel":"AB12"}"#
        ).status.rawValue
      }
      #expect(await put("a") == 200)
      #expect(await put("b") == 200)
      #expect(await put("c") == 403)
      #expect(await put("a") == 200)
      #expect(await world.ask(.delete, "/api/installations/a").status.rawValue < 300)
      #expect(await put("c") == 200)
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

  @Test("asking for an id removes what the caller registered for the handle before, nobody else's")
  func replacing() async throws {
    try await BackendWorld.run { world in
      let first = try await newID(world, "?handle=AB12")
      _ = await put(world, first, "AB12")
      let second = try await newID(world, "?handle=AB12")
      #expect(second != first)
      #expect(try await world.hub.registrations().all().isEmpty)
      _ = await put(world, second, "AB12")
      // A handle alone is no proof of having the device.
      let third = try await newID(world, "?handle=AB12", as: "mallory")
      #expect(
        try await world.hub.registrations().all().map { Set($0.tags) } == [["username:alice"]])
      // Registered beside it, alice's stays.
      _ = await put(world, third, "AB12", as: "mallory")
      #expect(try await world.hub.registrations().all().count == 2)
    }
  }

  @Test("sealed pushes of a device go on after somebody has named its handle")
  func foreignHandle() async throws {
    try await BackendWorld.run { world in
      var phone = Installation(
        installationID: "dave", platform: .apns, pushChannel: .handle("DA0E"))
      phone.sealingKey = try SealingKey().publicKey
      let body = String(decoding: phone.jsonData, as: UTF8.self)
      #expect(
        await world.ask(.put, "/api/installations/dave", as: "dave", body: body).status == 200)
      _ = try await newID(world, "?handle=DA0E", as: "mallory")
      #expect(await world.ask(.post, "/api/notifications", as: "dave").status == 200)
      try await world.delivered()
      #expect(world.apns.pushes.map(\.handle) == ["DA0E"])
    }
  }

  @Test(
    "a device that changes hands while its removal is under way stays with its new user",
    arguments: ["/api/installations/phone", "/api/users/alice"])
  func removalMeetsTakeover(path: String) async throws {
    let gate = HubGate("DELETE")
    try await BackendWorld.run(holding: gate) { world in
      let body = #"{"platform":"apns","pushChannel":"AB12"}"#
      let address = "/api/installations/phone"
      #expect(await world.ask(.put, address, as: "alice", body: body).status == 200)
      async let removal = world.ask(.delete, path, as: "alice")
      await gate.holds()
      let done = Mutex(false)
      async let takeover = {
        let reply = await world.ask(.put, address, as: "bob", body: body)
        done.withLock { $0 = true }
        return reply
      }()
      // Bob may have to wait for the end of the removal, which nothing announces.
      for _ in 0..<50 where !done.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(2)) }
      await gate.open()
      #expect([200, 404].contains(await removal.status))
      #expect(await takeover.status == 200)
      #expect(try await world.hub.installation("phone").userID == "bob")
      #expect(
        await world.ask(.post, "/api/notifications", as: "bob").json["Devices"] == .number("1"))
      #expect(await world.ask(.delete, address, as: "bob").status == 200)
    }
  }

  @Test("an id that differs from another user's in letter case only is refused")
  func twins() async throws {
    try await BackendWorld.run { world in
      let body = #"{"platform":"apns","pushChannel":"AB12"}"#
      #expect(
        await world.ask(.put, "/api/installations/dave", as: "dave", body: body).status == 200)
      for id in ["DAVE", "Dave", "dave2"] {
        let status = await world.ask(
          .put, "/api/installations/\(id)", as: "mallory", body: body
        ).status
        #expect(status == (id == "dave2" ? 200 : 409), "\(id)")
      }
    }
  }

  @Test("what the hub knows under an id is not taken over by who only knows the id")
  func unknownToTheStore() async throws {
    try await BackendWorld.run { world in
      try await world.hub.createOrReplace(
        Installation(
          installationID: "direct", userID: "dave", platform: .apns,
          pushChannel: .handle("AB12"), tags: ["vip"]))
      let body = #"{"platform":"apns","pushChannel":"AB12"}"#
      #expect(
        await world.ask(.put, "/api/installations/direct", as: "mallory", body: body).status == 409)
      #expect(try await world.hub.installation("direct").tags == ["vip"])
      #expect(
        await world.ask(.put, "/api/installations/direct", as: "dave", body: body).status == 200)
      let id = try await world.hub.createRegistrationID()
      _ = try await world.hub.createOrUpdate(
        Registration(
          platform: .apns, channel: .handle("CD34"), tags: ["vip"], registrationID: id))
      #expect(await put(world, id, "CD34", as: "mallory") == 409)
    }
  }

  @Test("of many who claim one id at the same time one gets it, here and at the hub")
  func raceForAnID() async throws {
    try await BackendWorld.run { world in
      let taken = await withTaskGroup(of: String?.self) { group in
        for number in 0..<20 {
          group.addTask {
            let status = await world.ask(
              .put, "/api/installations/one", as: "user\(number)",
              body: #"{"platform":"apns","pushChannel":"AB\#(10 + number)"}"#
            ).status
            return status == 200 ? "user\(number)" : nil
          }
        }
        return await group.reduce(into: [String]()) { if let user = $1 { $0.append(user) } }
      }
      #expect(taken.count == 1)
      let kept = try await world.hub.installation("one")
      #expect(kept.userID == taken.first)
    }
  }

  @Test("who loses a device to another user is in the audit, and the next sender is told")
  func detachment() async throws {
    try await BackendWorld.run { world in
      let body = #"{"platform":"apns","pushChannel":"AB12"}"#
      #expect(await world.ask(.put, "/api/installations/phone", body: body).status == 200)
      let before = await world.ask(.post, "/api/notifications").json
      #expect(before["Devices"] == .number("1"))
      #expect(before["Detached"] == nil)
      #expect(
        await world.ask(.put, "/api/installations/phone", as: "bob", body: body).status == 200)
      let sent = await world.ask(.post, "/api/notifications").json
      #expect(sent["Devices"] == .number("0"))
      guard case .array(let detached)? = sent["Detached"] else {
        Issue.record("the reply does not say that a device was detached: \(sent)")
        return
      }
      #expect(detached.map { $0["Id"]?.scalarText } == ["phone"])
      let alice = try #require(UserName(typed: "alice"))
      let line = try await world.store.audit(of: alice).first { $0.action == "detached" }
      #expect(line?.subject == "phone")
      #expect(line?.outcome == "by name:bob")
      // Back again, it is no news any more.
      #expect(await world.ask(.put, "/api/installations/phone", body: body).status == 200)
      #expect(await world.ask(.post, "/api/notifications").json["Detached"] == nil)
    }
  }

  @Test("an id is a registration's or an installation's, so that an erasure reaches all of it")
  func oneKind() async throws {
    try await BackendWorld.run { world in
      let installation = #"{"platform":"apns","pushChannel":"AB12"}"#
      let registration = #"{"Platform":"apns","Handle":"AB12"}"#
      #expect(await world.ask(.put, "/api/installations/m1", body: installation).status == 200)
      #expect(await world.ask(.put, "/api/register/m1", body: registration).status == 409)
      #expect(await world.ask(.delete, "/api/register/m1").status == 404)
      let kept = try await world.hub.installation("m1")
      #expect(kept.pushChannel == .handle("AB12"))
      #expect(await world.ask(.delete, "/api/installations/m1").status == 200)
      await #expect(throws: NotificationHubError.self) {
        _ = try await world.hub.installation("m1")
      }
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
    #expect(subject.tag.rawValue == "username:sub:auth0#7c#41lice")
    #expect(subject.tag.isImplicit == false)
    #expect(throws: Never.self) { try subject.tag.validated() }
    #expect(UserName(subject: "auth0|alice") != subject)
    #expect(UserName(subject: "auth0|alice")?.tag != subject.tag)
    #expect(UserName(subject: "alice")?.tag != typed.tag)
    #expect(UserName(subject: "alice") != typed)
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
