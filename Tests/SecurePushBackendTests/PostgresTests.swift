import Foundation
import HTTPServer
import HubTesting
import NotificationHubs
import SQLDatabase
import SecurePushBackend
import Testing
import Wire

@Suite(
  "The backend on PostgreSQL",
  .enabled(
    if: PostgresServer.isInstalled,
    "PostgreSQL's server is not installed, so there is nothing to run on; script/bootstrap installs it"
  ))
struct PostgresTests {
  @Test("does everything that it does on SQLite")
  func wholeStory() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let database = try PostgresServer.shared().makeDatabase()
    try await BackendWorld.run(database: database, in: directory) { world in
      let id = try #require(
        await world.ask(.post, "/api/register?handle=AB12").json.scalarText)
      let put = await world.ask(
        .put, "/api/register/\(id)", body: #"{"Platform":"apns","Handle":"AB12"}"#)
      #expect(put.status == 200)
      var messages: [String] = []
      for body in [
        #"{"payload":"stays"}"#, #"{"payload":"once","readOnce":true}"#, #"{"expiresIn":60}"#,
      ] {
        let made = await world.ask(.post, "/api/notifications", body: body)
        #expect(made.status == 200, "\(made.text)")
        messages.append(try #require(made.json["Id"]?.scalarText))
      }
      try await world.delivered()
      #expect(world.apns.pushes.count == 3)
      func read(_ index: Int, as user: String = "alice") async -> HTTPResponse {
        await world.ask(.get, "/api/notifications/\(messages[index])", as: user)
      }
      #expect(await read(0).json["Payload"] == .string("stays"))
      #expect(await read(0).json["Read"] == .bool(true))
      #expect(await read(0, as: "bob").status == 404)
      #expect(await read(1).json["Payload"] == .string("once"))
      #expect(await read(1).status == 410)
      world.clock.advance(by: .seconds(61))
      #expect(await read(2).status == 404)
      let list = await world.ask(.get, "/api/notifications").json
      guard case .array(let items) = list else {
        Issue.record("no list: \(list)")
        return
      }
      #expect(Set(items.compactMap { $0["Id"]?.scalarText }) == Set(messages.prefix(2)))
      #expect(try await world.store.audit().count == 11)
      #expect(
        await world.ask(
          .put, "/api/register/\(id)", as: "bob", body: #"{"Platform":"apns","Handle":"FF"}"#
        ).status == 409)
      #expect(await world.ask(.delete, "/api/notifications/\(messages[0])").status == 204)
      let erased = await world.ask(.delete, "/api/users/alice")
      // The one that is over goes with it.
      #expect(erased.json["Messages"] == .number("2"), "\(erased.text)")
      #expect(try await world.hub.registrations().all().isEmpty)
    }
    // A restart finds the schema as it is.
    try await BackendWorld.run(database: database, in: directory) { world in
      #expect(await world.ask(.get, "/api/notifications").json == .array([]))
    }
  }

  @Test("many at once share transactions, and each gets its own answer")
  func concurrency() async throws {
    try await BackendWorld.run(database: try PostgresServer.shared().makeDatabase()) { world in
      let ids = try await withThrowingTaskGroup(of: (String, String).self) { group in
        for number in 0..<40 {
          group.addTask {
            let user = "user\(number)"
            let made = await world.ask(
              .post, "/api/notifications", as: user, body: #"{"payload":"for \#(user)"}"#)
            return (user, try #require(made.json["Id"]?.scalarText))
          }
        }
        return try await group.reduce(into: [String: String]()) { $0[$1.0] = $1.1 }
      }
      for (user, id) in ids {
        #expect(
          await world.ask(.get, "/api/notifications/\(id)", as: user).json["Payload"]
            == .string("for \(user)"))
      }
    }
  }

  @Test("backends on one database count wrong passwords together")
  func guessing() async throws {
    let database = try PostgresServer.shared().makeDatabase()
    try await BackendWorld.run(database: database) { world in
      let other = world.restarted()
      func guess(_ password: String, at backend: BackendAPI) async -> Int {
        let word = Base64.encode(Array("alice:\(password)".utf8))
        return await backend.respond(
          to: HTTPRequest(
            method: .get, target: HTTPTarget("/api/notifications"),
            headers: ["Authorization": "Basic \(word)"], body: [], remoteAddress: "203.0.113.9")
        ).status.rawValue
      }
      for number in 0..<10 {
        #expect(await guess("wrong\(number)", at: number % 2 == 0 ? world.backend : other) == 401)
      }
      // The next wait is a second, which may be over already on a busy machine.
      let connection = try PostgresConnection(address: database, component: "backend")
      try connection.execute(
        "UPDATE failed_password SET failures = failures + 9 WHERE failures >= 10")
      connection.close()
      #expect(await guess("wrong", at: world.backend) == 429)
      #expect(await guess("wrong", at: other) == 429)
      // Elsewhere the user gets in.
      #expect(await world.ask(.get, "/api/notifications").status == 200)
    }
  }
}
