import Authentication
import Cryptography
import Foundation
import HTTPServer
import HubTesting
import NotificationHubs
import SQLDatabase
import Testing
import Wire

@testable import SecurePushBackend

@Suite("Names of users and subjects of tokens")
struct NameSpaceTests {
  /// Users who sign in with themselves as password, and a provider whose tokens none of the tests
  /// needs.
  private func both(operators: Set<UserName> = []) -> SignIn {
    SignIn(
      passwords: DemoUsers(),
      bearer: BearerConfiguration(
        issuer: "https://login.example.com", audience: "app", keys: .file("/nowhere")),
      operators: operators)
  }

  private func typed(_ name: String) throws -> UserName { try #require(UserName(typed: name)) }
  private func subject(_ name: String) throws -> UserName {
    try #require(UserName(subject: name))
  }

  @Test("a reference is exact: prefixed, or bare where only one kind of user signs in")
  func references() throws {
    let names: Set<UserName.Kind> = [.name]
    let subjects: Set<UserName.Kind> = [.subject]
    let carol = try typed("carol")
    #expect(try UserName(reference: "Carol", kinds: names) == carol)
    #expect(try UserName(reference: "name:Carol", kinds: names) == carol)
    #expect(try UserName(reference: "Carol", kinds: subjects) == subject("Carol"))
    #expect(try UserName(reference: "Carol", kinds: subjects) != subject("carol"))
    #expect(
      try UserName(reference: "subject:carol", kinds: names.union(subjects)) == subject("carol"))
    for (text, kinds) in [
      ("carol", names.union(subjects)), ("subject:carol", names), ("name:carol", subjects),
      ("", names), ("old:carol", names),
    ] {
      #expect(throws: UserReferenceFault.self, "\(text)") {
        try UserName(reference: text, kinds: kinds)
      }
    }
  }

  @Test("a message for a subject is not read by the user of the same name, nor the other way")
  func messages() async throws {
    try await BackendWorld.run(signIn: both(operators: [try typed("boss")])) { world in
      func send(_ to: String) async -> HTTPResponse {
        await world.ask(.post, "/api/notifications", as: "boss", body: #"{"to":"\#(to)"}"#)
      }
      // Nobody is guessed.
      #expect(await send("Carol").status == 400)
      #expect(await send("carol").text.contains("name:carol"))
      let secret = try #require(await send("subject:Carol").json["Id"]?.scalarText)
      #expect(await world.ask(.get, "/api/notifications/\(secret)", as: "carol").status == 404)
      let own = try #require(await send("name:Carol").json["Id"]?.scalarText)
      #expect(await world.ask(.get, "/api/notifications/\(own)", as: "carol").status == 200)
      #expect(
        try await world.store.messages(
          of: subject("Carol"), limit: 10, audit: line(world), now: world.clock.now
        ).map(\.id) == [secret])
      // Who may name only themselves is not asked.
      #expect(
        await world.ask(.post, "/api/notifications", as: "carol", body: #"{"to":"carol"}"#).status
          == 200)
    }
  }

  @Test("an erasure hits the user who is named, and nobody of the same name")
  func erasures() async throws {
    try await BackendWorld.run(signIn: both(operators: [try typed("boss")])) { world in
      let made = await world.ask(.post, "/api/notifications", as: "carol")
      let id = try #require(made.json["Id"]?.scalarText)
      func erase(_ name: String) async -> HTTPStatus {
        await world.ask(.delete, "/api/users/\(name)", as: "boss").status
      }
      #expect(await erase("Carol") == 400)
      #expect(await erase("subject:Carol") == 200)
      #expect(await erase("subject:carol") == 200)
      #expect(await world.ask(.get, "/api/notifications/\(id)", as: "carol").status == 200)
      #expect(await erase("name:carol") == 200)
      #expect(await world.ask(.get, "/api/notifications/\(id)", as: "carol").status == 404)
    }
  }

  // MARK: What an older version has stored

  private func fill(_ connection: any SQLConnection, _ sealer: SecretSealer) throws {
    let now = Date()
    try connection.migrate(with: [BackendSchema.migrations[0]])
    for owner in ["alice", "auth0|Alice"] {
      let id = owner == "alice" ? "of-alice" : "of-subject"
      let insert = try connection.statement(
        """
        INSERT INTO message (id, owner, payload, created_at, expires_at, read_once, read_at)
        VALUES (?1, ?2, ?3, ?4, ?5, 0, NULL)
        """)
      try insert.bind(id, at: 1)
      try insert.bind(owner, at: 2)
      try insert.bind(
        try sealer.seal(Array("for \(owner)".utf8), context: "message/\(id)/\(owner)"), at: 3)
      try insert.bind(now.storedTime, at: 4)
      try insert.bind(now.addingTimeInterval(3600).storedTime, at: 5)
      try insert.run()
      let device = try connection.statement(
        """
        INSERT INTO device
          (id, owner, is_installation, platform, channel, sealing_key, updated_at)
        VALUES (?1, ?2, 1, 'apns', ?3, NULL, ?4)
        """)
      try device.bind("Phone-\(id)", at: 1)
      try device.bind(owner, at: 2)
      try device.bind([1, 2, 3], at: 3)
      try device.bind(now.storedTime, at: 4)
      try device.run()
    }
    try connection.execute(
      """
      INSERT INTO audit (number, at, actor, action, subject, outcome, address)
      VALUES (1, 0, 'alice', 'create', 'of-alice', 'done', '192.0.2.1')
      """)
  }

  static var engines: [Bool] { PostgresServer.isInstalled ? [false, true] : [false] }

  @Test("what an older version stored goes to the one it belongs to", arguments: engines)
  func migration(onPostgres: Bool) async throws {
    let database = onPostgres ? try PostgresServer.shared().makeDatabase() : nil
    try await BackendWorld.run(
      database: database, before: fill
    ) { world in
      try await world.hub.createOrReplace(
        Installation(
          installationID: "Phone-of-subject", userID: "auth0#7c#41lice", platform: .apns,
          pushChannel: .handle("AB12"), tags: ["news", "username:auth0#7c#41lice"]))
      try await world.backend.settle()
      try await world.backend.settle()  // again changes nothing
      let read = await world.ask(.get, "/api/notifications/of-alice")
      #expect(read.json["Payload"] == .string("for alice"))
      #expect(try await world.store.devices(of: typed("alice")).map(\.id) == ["Phone-of-alice"])
      let other = try subject("auth0|Alice")
      #expect(try await world.store.devices(of: other).map(\.id) == ["Phone-of-subject"])
      // Its device has the tag of its own name space now.
      let device = try await world.hub.installation("Phone-of-subject")
      #expect(Set(device.tags) == ["news", "username:sub:auth0#7c#41lice"])
      #expect(device.userID == "sub:auth0#7c#41lice")
      #expect(try await world.store.audit(of: typed("alice")).map(\.action) == ["read", "create"])
      #expect(try await world.store.isForeign(device: "PHONE-OF-SUBJECT", to: typed("alice")))
    }
  }

  @Test("where both kinds sign in, what could be either's is nobody's", arguments: engines)
  func unsure(onPostgres: Bool) async throws {
    let database = onPostgres ? try PostgresServer.shared().makeDatabase() : nil
    try await BackendWorld.run(
      database: database, signIn: both(operators: [try typed("boss")]),
      before: fill
    ) { world in
      try await world.hub.createOrReplace(
        Installation(
          installationID: "Phone-of-alice", userID: "alice", platform: .apns,
          pushChannel: .handle("AB12"), tags: ["news", "username:alice"]))
      try await world.backend.settle()
      #expect(await world.ask(.get, "/api/notifications/of-alice").status == 404)
      #expect(try await world.store.devices(of: typed("alice")).isEmpty)
      #expect(try await world.store.devices(of: subject("auth0|Alice")).count == 1)
      // Its device gets nobody's pushes until it registers again, which it may.
      #expect(try await world.hub.installation("Phone-of-alice").tags == ["news"])
      let put = await world.ask(
        .put, "/api/installations/Phone-of-alice", as: "alice",
        body: #"{"platform":"apns","pushChannel":"AB12"}"#)
      #expect(put.status == 200, "\(put.text)")
      #expect(await world.ask(.delete, "/api/users/old:alice", as: "alice").status == 400)
      let erased = await world.ask(.delete, "/api/users/old:alice", as: "boss")
      #expect(erased.json["Messages"] == .number("1"))
    }
  }

  private func line(_ world: BackendWorld) -> AuditLine {
    AuditLine(
      at: world.clock.now, actor: "test", action: "list", subject: "", outcome: "done", address: "")
  }
}
