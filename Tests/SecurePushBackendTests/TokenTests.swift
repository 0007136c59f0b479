import Authentication
import Cryptography
import Foundation
import HTTPServer
import HubTesting
import NotificationHubs
import SecurePush
import SecurePushBackend
import Synchronization
import Testing
import Wire

@Suite("Tokens in place of passwords and hub keys")
struct TokenTests {
  private struct Tokens {
    let access: String
    let refresh: String
    let json: JSONValue
  }

  private func signIn(
    _ world: BackendWorld, as user: String = "alice", authorization: String? = nil
  ) async throws -> Tokens {
    let reply = await world.ask(.post, "/api/token", as: user, authorization: authorization)
    #expect(reply.status == 200, "\(reply.text)")
    #expect(reply.headers["Cache-Control"] == "no-store")
    return Tokens(
      access: try #require(reply.json["Token"]?.scalarText),
      refresh: try #require(reply.json["RefreshToken"]?.scalarText), json: reply.json)
  }

  private func status(
    _ world: BackendWorld, _ token: String, _ method: HTTPMethod = .get,
    _ path: String = "/api/notifications"
  ) async -> Int {
    await world.ask(method, path, authorization: "Bearer \(token)").status.rawValue
  }

  @Test("a password gets a token that is taken everywhere until it expires, and then renewed")
  func lifetime() async throws {
    try await BackendWorld.run { world in
      let tokens = try await signIn(world)
      #expect(tokens.json["User"] == .string("alice"))
      let made = await world.ask(
        .post, "/api/notifications", authorization: "Bearer \(tokens.access)")
      let id = try #require(made.json["Id"]?.scalarText)
      #expect(await world.ask(.get, "/api/notifications/\(id)").status == 200)
      #expect(
        await status(world, tokens.access, .put, "/api/installations/phone") == 400)  // no body
      world.clock.advance(by: .seconds(3600))
      let expired = await world.ask(
        .get, "/api/notifications", authorization: "Bearer \(tokens.access)")
      #expect(expired.status == 401)
      #expect(expired.text.contains("expired"))
      let renewed = try await signIn(world, authorization: "Bearer \(tokens.refresh)")
      #expect(await status(world, renewed.access) == 200)
      // Unused for ninety days it is over.
      world.clock.advance(by: .seconds(90 * 86_400))
      #expect(await status(world, renewed.refresh, .post, "/api/token") == 401)
    }
  }

  @Test("two spellings of one typed name are one user")
  func spellings() {
    #expect(
      UserName(typed: "Jos\u{e9}")?.key.utf8.count == UserName(typed: "jose\u{301}")?.key.utf8.count
    )
  }

  @Test("a refresh token opens nothing but POST /api/token, and an access token not that")
  func kinds() async throws {
    try await BackendWorld.run { world in
      let tokens = try await signIn(world)
      #expect(await status(world, tokens.refresh) == 401)
      #expect(await status(world, tokens.refresh, .post, "/api/token/hub") == 401)
      #expect(await status(world, tokens.access, .post, "/api/token") == 403)
    }
  }

  @Test("signing out revokes one sign-in; with the password, all of the user's and nobody else's")
  func revocation() async throws {
    try await BackendWorld.run { world in
      let first = try await signIn(world)
      let second = try await signIn(world)
      let bob = try await signIn(world, as: "bob")
      #expect(await status(world, first.access, .delete, "/api/token") == 204)
      #expect(await status(world, first.access) == 401)
      #expect(await status(world, first.refresh, .post, "/api/token") == 401)
      #expect(await status(world, second.access) == 200)
      #expect(await world.ask(.delete, "/api/token").status == 204)
      #expect(await status(world, second.access) == 401)
      #expect(await status(world, bob.access) == 200)
      let actions = try await world.store.audit(of: UserName(typed: "alice")).map(\.action)
      #expect(actions.filter { $0 == "sign in" }.count == 2)
      #expect(actions.filter { $0 == "revoke" }.count == 2)
    }
  }

  @Test("an operator revokes a user's tokens in the store of a backend that runs")
  func operatorRevokes() async throws {
    try await BackendWorld.run { world in
      let tokens = try await signIn(world)
      let alice = try #require(UserName(typed: "alice"))
      let count = try await world.store.revoke(
        alice,
        audit: AuditLine(
          at: world.clock.now, actor: "operator", action: "revoke", subject: alice.key,
          outcome: "done", address: ""))
      #expect(count == 1)
      #expect(await status(world, tokens.access) == 401)
      #expect(await status(world, tokens.refresh, .post, "/api/token") == 401)
    }
  }

  @Test("a token does not erase its user; the password does, and ends the user's sign-ins")
  func erasure() async throws {
    try await BackendWorld.run { world in
      let tokens = try await signIn(world)
      #expect(await status(world, tokens.access, .delete, "/api/users/alice") == 403)
      #expect(await world.ask(.delete, "/api/users/alice").status == 200)
      #expect(await status(world, tokens.access) == 401)
    }
  }

  @Test("another password, and taking the user out of the file, revoke the user's tokens")
  func passwordChange() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("users")
    let clock = ManualClock()
    let alice = try #require(UserName(typed: "alice"))
    let bob = try #require(UserName(typed: "bob"))
    for user in [alice, bob] { _ = try UserFile.set(user.text, of: user, in: path, cost: 10) }
    let users = try UserFile(path: path, now: { clock.now })
    try await BackendWorld.run(signIn: SignIn(passwords: users)) { world in
      let tokens = try await signIn(world)
      let other = try await signIn(world, as: "bob")
      _ = try UserFile.set("another one", of: alice, in: path, cost: 10)
      _ = try UserFile.remove(bob, from: path)
      clock.advance(by: .seconds(1))
      #expect(await status(world, tokens.access) == 401)
      #expect(await status(world, tokens.refresh, .post, "/api/token") == 401)
      #expect(await status(world, other.access) == 401)
    }
  }

  @Test("a token that somebody else has signed, or that was changed, is worth nothing")
  func forgeries() async throws {
    try await BackendWorld.run { world in
      let tokens = try await signIn(world)
      let parts = tokens.access.split(separator: ".").map(String.init)
      let claims = try #require(Base64URL.decode(parts[1]))
      let text = String(decoding: claims, as: UTF8.self)
      let header = Array(#"{"alg":"ES256","typ":"belfry-access+jwt"}"#.utf8)
      let stranger = try P256PrivateKey()
      let other = Array(text.replacing("name:alice", with: "name:bob").utf8)
      let cases = [
        try CompactJWS.sign(header: header, claims: claims, with: stranger),
        parts[0] + "." + Base64URL.encode(other) + "." + parts[2],
        Base64URL.encode(Array(#"{"alg":"none","typ":"belfry-access+jwt"}"#.utf8)) + "."
          + parts[1] + ".",
        Base64URL.encode(Array(#"{"alg":"HS256","typ":"belfry-access+jwt"}"#.utf8)) + "."
          + parts[1] + "." + parts[2],
        // A refresh token made an access token by its header.
        parts[0] + "." + tokens.refresh.split(separator: ".").dropFirst().joined(separator: "."),
      ]
      for token in cases { #expect(await status(world, token) == 401, "\(token)") }
    }
  }

  @Test("the key survives a restart and lies sealed in the store")
  func restart() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    try await BackendWorld.run(in: directory) { world in
      let tokens = try await signIn(world)
      let again = world.restarted()
      let reply = await again.respond(
        to: HTTPRequest(
          method: .get, target: HTTPTarget("/api/notifications"),
          headers: ["Authorization": "Bearer \(tokens.access)"]))
      #expect(reply.status == 200)
      for name in ["backend.db", "backend.db-wal"] {
        guard let data = try? Data(contentsOf: URL(filePath: directory.path(name))) else {
          continue
        }
        #expect(data.range(of: Data("PRIVATE KEY".utf8)) == nil)
      }
    }
  }

  @Test("a user has so many sign-ins; another one ends the oldest")
  func bound() async throws {
    try await BackendWorld.run { world in
      let first = try await signIn(world)
      for _ in 0..<100 {
        world.clock.advance(by: .seconds(1))
        _ = try await signIn(world)
      }
      #expect(await status(world, first.access) == 401)
    }
  }

  @Test("sign-ins that have ended are removed from the store")
  func sweep() async throws {
    try await BackendWorld.run { world in
      _ = try await signIn(world)
      world.clock.advance(by: .seconds(91 * 86_400))
      try await world.store.sweep(at: world.clock.now)
      let alice = try #require(UserName(typed: "alice"))
      let left = try await world.store.revoke(
        alice,
        audit: AuditLine(
          at: world.clock.now, actor: "operator", action: "revoke", subject: "", outcome: "done",
          address: ""))
      #expect(left == 0)
    }
  }

  // MARK: Hub tokens

  @Test("a signed-in user gets a token with the right Listen, and no more")
  func hubToken() async throws {
    try await BackendWorld.run(givesHubTokens: true) { world in
      let reply = await world.ask(.post, "/api/token/hub")
      #expect(reply.status == 200, "\(reply.text)")
      #expect(reply.json["Hub"] == .string("app"))
      let client = SecurePushClient(
        backend: world.url, credentials: .password(user: "alice", password: "alice"),
        transport: world.transport)
      let hub = world.hubClient(tokens: TokenProvider { try await client.hubToken() })
      try await hub.createOrReplace(
        Installation(installationID: "phone", platform: .apns, pushChannel: .handle("AB12")))
      await #expect(throws: NotificationHubError.self) {
        try await hub.send(.apple(#"{"aps":{"alert":"x"}}"#), to: .tag("news"))
      }
      // Narrowed to one installation it opens no other. The installation has to be the user's.
      #expect(await world.ask(.post, "/api/token/hub?installation=mine").status == 404)
      _ = await world.ask(
        .put, "/api/installations/mine", body: #"{"platform":"apns","pushChannel":"CD34"}"#)
      let narrow = world.hubClient(
        tokens: TokenProvider { try await client.hubToken(installation: "mine") })
      try await narrow.createOrReplace(
        Installation(installationID: "mine", platform: .apns, pushChannel: .handle("CD34")))
      for other in ["phone", "MINE"] {
        await #expect(throws: NotificationHubError.self) { try await narrow.installation(other) }
        await #expect(throws: NotificationHubError.self) {
          try await narrow.createOrReplace(
            Installation(installationID: other, platform: .apns, pushChannel: .handle("CD34")))
        }
      }
      // Another user's installation is not to be had.
      _ = await world.ask(
        .put, "/api/installations/davesPhone", as: "dave",
        body: #"{"platform":"apns","pushChannel":"EF56"}"#)
      for id in ["davesPhone", "DAVESPHONE"] {
        #expect(
          await world.ask(.post, "/api/token/hub?installation=\(id)").status == 409)
      }
    }
  }

  @Test("without a key with Listen there are no hub tokens")
  func noHubTokens() async throws {
    try await BackendWorld.run { world in
      #expect(await world.ask(.post, "/api/token/hub").status == 404)
    }
  }

  // MARK: The client

  @Test("the client signs in once, renews its token when it has expired, and signs out")
  func client() async throws {
    try await BackendWorld.run { world in
      let token = try await SecurePushClient.signIn(
        backend: world.url, user: "Alice", password: "alice", transport: world.transport)
      #expect(token.user == "alice")
      #expect(!"\(token)".contains(token.token))
      // What is stored is enough.
      let stored = try JSONDecoder().decode(
        SignInToken.self, from: JSONEncoder().encode(token))
      #expect(stored == token)
      let saved = Mutex<[SignInToken]>([])
      let client = SecurePushClient(
        backend: world.url,
        credentials: .token(stored) { new in saved.withLock { $0.append(new) } },
        transport: world.transport)
      let id = try await client.send("hello")
      #expect(saved.withLock { $0.isEmpty })
      world.clock.advance(by: .seconds(3601))
      // Renewed once, however many ask.
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<8 { group.addTask { _ = try await client.payload(of: id) } }
        try await group.waitForAll()
      }
      let renewed = try #require(saved.withLock { $0.last })
      #expect(saved.withLock { $0.count } == 1)
      #expect(renewed.token != token.token)
      try await client.signOut()
      try await client.signOut()  // again is no error
      await #expect {
        try await client.send("x")
      } throws: {
        guard case SecurePushClientError.notSignedIn = $0 else { return false }
        return true
      }
    }
  }

  @Test("a wrong password is told apart, and gives no token")
  func wrongPassword() async throws {
    try await BackendWorld.run { world in
      await #expect {
        try await SecurePushClient.signIn(
          backend: world.url, user: "alice", password: "guess", transport: world.transport)
      } throws: {
        guard case SecurePushClientError.notSignedIn = $0 else { return false }
        return true
      }
    }
  }
}
