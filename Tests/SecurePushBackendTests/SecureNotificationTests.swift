import Authentication
import Foundation
import HTTPServer
import HubTesting
import NotificationHubs
import SecurePush
import SecurePushBackend
import Testing
import Wire

@Suite("Secure notifications")
struct SecureNotificationTests {
  @Test("the tutorial's run: register, send, fetch; only the id passes the push service")
  func tutorial() async throws {
    try await BackendWorld.run { world in
      let id = try await register(world, as: "alice", handle: "AB12")
      #expect(!id.isEmpty)
      let created = await world.ask(.post, "/api/notifications")
      #expect(created.status == 200)
      let message = try #require(created.json["Id"]?.scalarText)
      try await world.delivered()
      #expect(
        world.apns.pushes.map(\.body)
          == [#"{"aps":{"content-available":1},"secureId":"\#(message)"}"#])
      #expect(world.fcm.pushes.isEmpty)

      let read = await world.ask(.get, "/api/notifications/\(message)")
      #expect(read.status == 200)
      #expect(read.headers["Cache-Control"] == "no-store")
      #expect(
        read.text == #"{"Id":"\#(message)","Payload":"Secure confirmation.","Read":false}"#)
      #expect(await world.ask(.get, "/api/notifications/\(message)").json["Read"] == .bool(true))
    }
  }

  @Test("nobody else can read a notification, which in the tutorial anybody could by counting")
  func owner() async throws {
    try await BackendWorld.run { world in
      let message = try await create(world, #"{"payload":"for alice alone"}"#)
      #expect(await world.ask(.get, "/api/notifications/\(message)", as: "mallory").status == 404)
      #expect(await world.ask(.get, "/api/notifications/\(message)", as: nil).status == 401)
      for guess in 0..<20 {
        #expect(await world.ask(.get, "/api/notifications/\(guess)", as: "mallory").status == 404)
      }
      #expect(await world.ask(.get, "/api/notifications", as: "mallory").json == .array([]))
      #expect(
        await world.ask(.delete, "/api/notifications/\(message)", as: "mallory").status == 404)
      #expect(await world.ask(.get, "/api/notifications/\(message)").status == 200)
      // Somebody else's answer cannot be told from that for an id that never was.
      let other = await world.ask(.get, "/api/notifications/\(message)", as: "mallory")
      let none = await world.ask(.get, "/api/notifications/AAAAAAAAAAAAAAAAAAAAAA", as: "mallory")
      #expect(other.text == none.text)
    }
  }

  @Test("ids do not count up and hold 128 bits")
  func ids() async throws {
    try await BackendWorld.run { world in
      var ids: Set<String> = []
      for _ in 0..<20 { ids.insert(try await create(world)) }
      #expect(ids.count == 20)
      #expect(ids.allSatisfy { $0.count == 22 && Int($0) == nil })
    }
  }

  @Test("the payload is sealed in the database file")
  func atRest() async throws {
    let directory = FileManager.default.temporaryDirectory
    try await BackendWorld.run { world in
      _ = try await create(world, #"{"payload":"the secret of the house"}"#)
      let files = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        .filter { $0.hasPrefix("belfry-test-\(ProcessInfo.processInfo.processIdentifier)-") }
      var seen = 0
      for file in files {
        for name in ["backend.db", "backend.db-wal"] {
          let url = directory.appending(path: "\(file)/\(name)")
          guard let data = try? Data(contentsOf: url) else { continue }
          seen += 1
          #expect(data.range(of: Data("secret of the house".utf8)) == nil)
        }
      }
      #expect(seen > 0)
    }
  }

  @Test("a payload to be read once goes with its first reading, and is not sealed into a push")
  func readOnce() async throws {
    try await BackendWorld.run { world in
      _ = try await installKeyed(world)
      let message = try await create(world, #"{"payload":"once","readOnce":true}"#)
      try await world.delivered()
      #expect(world.apns.pushes.allSatisfy { !$0.body.contains("sealed") })
      #expect(
        await world.ask(.get, "/api/notifications/\(message)").json["Payload"] == .string("once"))
      #expect(await world.ask(.get, "/api/notifications/\(message)").status == 410)
      #expect(await world.ask(.get, "/api/notifications/\(message)", as: "bob").status == 404)
    }
  }

  @Test("after its time a notification is gone, and its row is removed without another being made")
  func expiry() async throws {
    try await BackendWorld.run { world in
      let message = try await create(world, #"{"expiresIn":60}"#)
      world.clock.advance(by: .seconds(59))
      #expect(await world.ask(.get, "/api/notifications/\(message)").status == 200)
      world.clock.advance(by: .seconds(1))
      #expect(await world.ask(.get, "/api/notifications/\(message)").status == 404)
      #expect(await world.ask(.get, "/api/notifications").json == .array([]))
      try await world.store.sweep(at: world.clock.now)
      #expect(await world.ask(.delete, "/api/users/alice").json["Messages"] == .number("0"))
    }
  }

  @Test("of many sends at once no more are kept than a user may have")
  func parallelSends() async throws {
    var configuration = BackendConfiguration()
    configuration.messagesPerUser = 5
    try await BackendWorld.run(configuration: configuration) { world in
      let taken = await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<40 {
          group.addTask { await world.ask(.post, "/api/notifications").status == 200 }
        }
        return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }
      #expect(taken == 5)
    }
  }

  // MARK: The tutorial "Notify users"

  @Test("the tutorial's request to notify a user is an ordinary push to one platform")
  func notifyUser() async throws {
    var signIn = SignIn(passwords: DemoUsers())
    signIn.everyoneSends = true
    try await BackendWorld.run(signIn: signIn) { world in
      _ = try await register(world, as: "alice", handle: "AB12")
      let sent = await world.ask(
        .post, "/api/notifications?pns=apns&to_tag=alice", as: "bob",
        body: #""Hello \"you\"""#)
      #expect(sent.status == 200, "\(sent.text)")
      #expect(sent.text.isEmpty)
      try await world.delivered()
      #expect(
        world.apns.pushes.map(\.body) == [#"{"aps":{"alert":"From bob: Hello \"you\""}}"#])
      for platform in ["fcm", "gcm", "wns"] {
        #expect(
          await world.ask(
            .post, "/api/notifications?pns=\(platform)&to_tag=alice", as: "bob", body: #""<b>""#
          ).status == 200)
      }
      for (query, body) in [
        ("pns=apns&to_tag=alice", ""), ("pns=apns&to_tag=alice", "{}"), ("pns=apns", #""x""#),
        ("pns=mpns&to_tag=alice", #""x""#), ("to_tag=alice", #""x""#),
      ] {
        #expect(
          await world.ask(.post, "/api/notifications?\(query)", as: "bob", body: body).status
            == 400)
      }
    }
  }

  @Test("outside demonstrations only operators notify others")
  func notifyOthers() async throws {
    try await BackendWorld.run { world in
      #expect(
        await world.ask(
          .post, "/api/notifications?pns=apns&to_tag=alice", as: "bob", body: #""x""#
        ).status == 403)
      #expect(
        await world.ask(
          .post, "/api/notifications?pns=apns&to_tag=bob", as: "bob", body: #""x""#
        ).status == 200)
    }
  }

  @Test("only an operator sends to others; 'to' oneself is always allowed")
  func operators() async throws {
    let boss = try #require(UserName(typed: "boss"))
    try await BackendWorld.run(
      signIn: SignIn(passwords: DemoUsers(), operators: [boss])
    ) { world in
      #expect(
        await world.ask(.post, "/api/notifications", body: #"{"to":"bob"}"#).status == 403)
      #expect(
        await world.ask(.post, "/api/notifications", body: #"{"to":"Alice"}"#).status == 200)
      let sent = await world.ask(
        .post, "/api/notifications", as: "boss", body: #"{"to":"bob","payload":"hello bob"}"#)
      let message = try #require(sent.json["Id"]?.scalarText)
      #expect(await world.ask(.get, "/api/notifications/\(message)", as: "boss").status == 404)
      #expect(
        await world.ask(.get, "/api/notifications/\(message)", as: "bob").json["Payload"]
          == .string("hello bob"))
    }
  }

  @Test(
    "a body that makes no sense is refused and nothing is kept",
    arguments: [
      ("not json", 400), ("[]", 400), (#"{"payload":7}"#, 400), (#"{"to":7}"#, 400),
      (#"{"to":"a\u0007"}"#, 400), (#"{"readOnce":"yes"}"#, 400), (#"{"expiresIn":0}"#, 400),
      (#"{"expiresIn":1e99}"#, 400), (#"{"expiresIn":"x"}"#, 400), (#"{"alert":""}"#, 400),
      (#"{"alert":{}}"#, 400),
      (#"{"payload":"\#(String(repeating: "x", count: 33_000))"}"#, 413),
    ])
  func badBodies(_ body: String, status: Int) async throws {
    try await BackendWorld.run { world in
      let response = await world.ask(.post, "/api/notifications", body: body)
      #expect(response.status.rawValue == status)
      #expect(response.json["Message"] != nil)
      #expect(await world.ask(.get, "/api/notifications").json == .array([]))
    }
  }

  @Test("a user's waiting messages are bounded")
  func bound() async throws {
    var configuration = BackendConfiguration()
    configuration.messagesPerUser = 3
    try await BackendWorld.run(configuration: configuration) { world in
      for _ in 0..<3 { _ = try await create(world) }
      #expect(await world.ask(.post, "/api/notifications").status == 429)
      #expect(await world.ask(.post, "/api/notifications", as: "bob").status == 200)
    }
  }

  @Test("when the hub cannot be reached the sender is told, and nothing is kept")
  func unreachable() async throws {
    try await BackendWorld.run(hubIsReachable: false) { world in
      let response = await world.ask(.post, "/api/notifications")
      #expect(response.status == 503)
      #expect(response.headers["Retry-After"] != nil)
      #expect(await world.ask(.get, "/api/notifications").json == .array([]))
    }
  }

  @Test("with an alert as fallback the wake-up shows a general text")
  func alert() async throws {
    try await BackendWorld.run { world in
      _ = try await register(world, as: "alice", handle: "AB12")
      let message = try await create(world, #"{"alert":true,"payload":"the real thing"}"#)
      try await world.delivered()
      let push = try #require(world.apns.pushes.first)
      #expect(push.body.contains(#""body":"You have a message""#))
      #expect(push.body.contains(message))
      #expect(!push.body.contains("real thing"))
    }
  }

  // MARK: Sealed payloads

  @Test("a device with a key gets the payload sealed, and only it can open it")
  func sealed() async throws {
    try await BackendWorld.run { world in
      let ring = try await installKeyed(world)
      _ = try await register(world, as: "alice", handle: "CD34")
      let message = try await create(world, #"{"payload":"twelve euros"}"#)
      try await world.delivered()
      let pushes = world.apns.pushes
      #expect(pushes.count == 2)
      #expect(pushes.allSatisfy { !$0.body.contains("twelve") })
      let push = try #require(pushes.first { $0.handle == "0A0B" })
      let received = try #require(SecureMessage(payload: Data(push.body.utf8)))
      #expect(received.id == message)
      let payload = try ring.open(
        #require(received.sealed), id: received.id, installationID: "phone")
      #expect(payload == Data("twelve euros".utf8))
      // The device without a key has the id alone.
      let other = try #require(pushes.first { $0.handle == "CD34" })
      #expect(SecureMessage(payload: Data(other.body.utf8)) == SecureMessage(id: message))
    }
  }

  @Test("a payload that does not fit a push is fetched by its id")
  func tooLarge() async throws {
    try await BackendWorld.run { world in
      _ = try await installKeyed(world)
      let long = String(repeating: "long ", count: 1_000)
      let message = try await create(world, #"{"payload":"\#(long)"}"#)
      try await world.delivered()
      let push = try #require(world.apns.pushes.first)
      #expect(
        SecureMessage(payload: Data(push.body.utf8)) == SecureMessage(id: message))
      #expect(
        await world.ask(.get, "/api/notifications/\(message)").json["Payload"] == .string(long))
    }
  }

  @Test("a list leaves a line, too")
  func auditOfLists() async throws {
    try await BackendWorld.run { world in
      _ = await world.ask(.get, "/api/notifications")
      let lines = try await world.store.audit()
      #expect(lines.map(\.action) == ["list"])
    }
  }

  @Test("every access leaves a line, also the refused one")
  func audit() async throws {
    try await BackendWorld.run { world in
      let message = try await create(world)
      _ = await world.ask(.get, "/api/notifications/\(message)", as: "mallory")
      _ = await world.ask(.get, "/api/notifications/\(message)")
      let lines = try await world.store.audit()
      #expect(
        lines.map { "\($0.actor) \($0.action) \($0.outcome)" } == [
          "name:alice read done", "name:mallory read not found", "name:alice create done",
        ])
      #expect(lines.allSatisfy { $0.subject == message && $0.address == "192.0.2.1" })
    }
  }

  @Test("erasing a user removes messages, devices and lines, here and at the hub")
  func erase() async throws {
    try await BackendWorld.run { world in
      _ = try await installKeyed(world)
      _ = try await register(world, as: "alice", handle: "CD34")
      let message = try await create(world)
      _ = try await create(world, as: "bob")
      try await world.delivered()
      #expect(await world.ask(.delete, "/api/users/alice", as: "bob").status == 403)
      let response = await world.ask(.delete, "/api/users/alice")
      #expect(response.status == 200)
      #expect(response.json["Messages"] == .number("1"))
      #expect(await world.ask(.get, "/api/notifications/\(message)").status == 404)
      #expect(try await world.hub.registrations(tag: "username:alice").all().isEmpty)
      let bob = try #require(UserName(typed: "bob"))
      #expect(try await world.store.audit(of: bob).count == 1)
      // What is left is that somebody was erased: no name, no address.
      let erasure = try #require(try await world.store.audit().first { $0.action == "erase" })
      #expect(erasure.actor == "erased user")
      #expect(erasure.address.isEmpty)
      let alice = try #require(UserName(typed: "alice"))
      #expect(try await world.store.audit(of: alice).allSatisfy { $0.action == "read" })
    }
  }

  // MARK: Steps

  private func create(
    _ world: BackendWorld, _ body: String = "", as user: String = "alice"
  ) async throws -> String {
    let response = await world.ask(.post, "/api/notifications", as: user, body: body)
    #expect(response.status == 200, "\(response.text)")
    return try #require(response.json["Id"]?.scalarText)
  }

  private func register(
    _ world: BackendWorld, as user: String, handle: String
  ) async throws -> String {
    let reply = await world.ask(.post, "/api/register?handle=\(handle)", as: user)
    let id = try #require(reply.json.scalarText)
    let put = await world.ask(
      .put, "/api/register/\(id)", as: user,
      body: #"{"platform":"apns","HANDLE":"\#(handle)","Tags":["news"]}"#)
    #expect(put.status == 200, "\(put.text)")
    return id
  }

  /// Installs the phone "phone" of alice with a key.
  private func installKeyed(_ world: BackendWorld) async throws -> SealingKeyRing {
    let ring = try SealingKeyRing()
    var installation = Installation(
      installationID: "phone", platform: .apns, pushChannel: .handle("0A0B"))
    installation.sealingKey = ring.current.publicKey
    let put = await world.ask(
      .put, "/api/installations/phone",
      body: String(decoding: installation.jsonData, as: UTF8.self))
    #expect(put.status == 200, "\(put.text)")
    return ring
  }
}
