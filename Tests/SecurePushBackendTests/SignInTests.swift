import Authentication
import Cryptography
import Foundation
import HTTPServer
import HubTesting
import NotificationHubs
import SecurePushBackend
import Synchronization
import Testing
import Wire

@Suite("Signing in")
struct SignInTests {
  static let pages: [(HTTPMethod, HTTPHeaders, Bool)] = [
    (.post, ["Sec-Fetch-Site": "cross-site"], true), (.post, ["Sec-Fetch-Site": "same-site"], true),
    (.post, ["Sec-Fetch-Site": "none"], true), (.post, ["Origin": "https://evil.example"], true),
    (.post, ["Origin": "null"], true), (.delete, ["Sec-Fetch-Site": "cross-site"], true),
    // Reading a message may be its end.
    (.get, ["Sec-Fetch-Site": "cross-site"], true), (.get, ["Sec-Fetch-Site": "none"], false),
    (.post, ["Sec-Fetch-Site": "same-origin"], false), (.post, [:], false),
    // A proxy has taken TLS off: the browser itself says that the page is the backend's own.
    (.post, ["Sec-Fetch-Site": "same-origin", "Origin": "https://api.example"], false),
  ]

  @Test("a page from elsewhere cannot use the password that a browser keeps", arguments: pages)
  func pagesFromElsewhere(method: HTTPMethod, headers: HTTPHeaders, isRefused: Bool) async throws {
    try await BackendWorld.run { world in
      var headers = headers
      headers["Host"] = "api.example"
      let path = method == .delete ? "/api/token" : "/api/notifications"
      let status = await world.ask(method, path, headers: headers).status
      #expect((status == 403) == isRefused, "\(status)")
    }
  }

  @Test("without a right name and password nothing is answered but 401, with what is asked for")
  func refusals() async throws {
    try await BackendWorld.run { world in
      let headers = [
        "Basic", "Basic !!!", "Basic " + Base64.encode(Array("alice".utf8)),
        "Basic " + Base64.encode(Array("alice:bob".utf8)),
        "Basic " + Base64.encode(Array(":".utf8)), "Basic " + Base64.encode([0xFF, 0x3A]),
        "Bearer abc", "Digest x",
      ]
      for header in headers {
        let response = await world.ask(.get, "/api/notifications", authorization: header)
        #expect(response.status == 401, "\(header)")
        #expect(
          response.headers["WWW-Authenticate"] == #"Basic realm="Belfry", charset="UTF-8""#)
      }
      #expect(await world.ask(.get, "/api/notifications", as: nil).status == 401)
      #expect(await world.ask(.get, "/api/notifications").status == 200)
    }
  }

  // MARK: The user file

  @Test("users of a file sign in with their passwords; changes are seen within a second")
  func userFile() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("users")
    let alice = try #require(UserName(typed: "alice"))
    let bob = try #require(UserName(typed: "bob:builder"))
    // Who has opened a draft that was left sees nothing of the file.
    #expect(FileManager.default.createFile(atPath: path + ".new", contents: nil))
    let left = try #require(FileHandle(forReadingAtPath: path + ".new"))
    #expect(try UserFile.set("correct horse", of: alice, in: path, cost: 10))
    #expect((try left.readToEnd() ?? Data()).isEmpty)
    #expect(try UserFile.set("a:b", of: bob, in: path, cost: 10))
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
    #expect((mode as? NSNumber)?.intValue == 0o600)
    #expect(try !String(contentsOfFile: path, encoding: .utf8).contains("horse"))

    let clock = ManualClock()
    let users = try UserFile(path: path, now: { clock.now })
    #expect(users.users == [alice, bob])
    func accepts(_ password: String, of user: UserName) async -> Bool {
      let fingerprint = try? await users.check(
        password, of: user, from: "192.0.2.1", isKnown: false)
      return fingerprint?.isEmpty == false
    }
    #expect(await accepts("correct horse", of: alice))
    #expect(await accepts("correct horse", of: alice))  // from memory
    #expect(await !accepts("Correct horse", of: alice))
    #expect(await !accepts("", of: alice))
    #expect(await accepts("a:b", of: bob))
    let carol = try #require(UserName(typed: "carol"))
    #expect(await !accepts("correct horse", of: carol))
    let before = await users.fingerprint(of: alice)

    #expect(try !UserFile.set("battery staple", of: alice, in: path, cost: 10))
    clock.advance(by: .seconds(1))
    #expect(await !accepts("correct horse", of: alice))
    #expect(await accepts("battery staple", of: alice))
    #expect(await users.fingerprint(of: alice) != before)
    // A line that a person wrote with a capital is the same user's.
    let typed = try String(contentsOfFile: path, encoding: .utf8)
      .replacingOccurrences(of: "alice:", with: "Alice:")
    try typed.write(toFile: path, atomically: true, encoding: .utf8)
    #expect(try !UserFile.set("battery staple", of: alice, in: path, cost: 10))
    try typed.write(toFile: path, atomically: true, encoding: .utf8)
    #expect(try UserFile.remove(alice, from: path))
    #expect(try !UserFile.remove(alice, from: path))
    clock.advance(by: .seconds(1))
    #expect(await !accepts("battery staple", of: alice))
    #expect(await users.fingerprint(of: alice) == nil)
  }

  @Test(
    "a line that is no user is named with its number",
    arguments: ["alice", "alice:plain", "alice:scrypt$40$8$1$AAAA$AAAA", ":x"])
  func badLines(_ line: String) throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("users")
    try "# users\n\(line)\n".write(toFile: path, atomically: true, encoding: .utf8)
    let fault = #expect(throws: UserFile.Fault.self) { try UserFile(path: path) }
    #expect(fault?.description.hasPrefix("\(path):2:") == true)
  }

  // MARK: Bearer tokens

  /// An OpenID provider with one key of each kind.
  private struct Issuer {
    static let name = "https://login.example.com"
    let rsa: RSAPrivateKey
    let p256: P256PrivateKey

    init() throws {
      rsa = try RSAPrivateKey()
      p256 = try P256PrivateKey()
    }

    func keySet() throws -> String {
      let point = try p256.publicKey().point
      let numbers = try Self.numbers(of: rsa.publicKey())
      return """
        {"keys":[{"kty":"OKP","kid":"ed"},{"kty":"RSA","kid":"r1","use":"sig",
        "n":"\(numbers.n)","e":"\(numbers.e)"},{"kty":"EC","crv":"P-256","kid":"e1",
        "x":"\(Base64URL.encode(Array(point[1...32])))",
        "y":"\(Base64URL.encode(Array(point[33...])))"}]}
        """
    }

    /// Modulus and exponent: the last two integers of the SubjectPublicKeyInfo.
    private static func numbers(of key: RSAPublicKey) throws -> (n: String, e: String) {
      let der = key.der
      let exponent = Array(der.suffix(3))
      let modulus = Array(der.dropLast(5).suffix(256))
      return (Base64URL.encode(modulus), Base64URL.encode(exponent))
    }

    func token(
      algorithm: String = "RS256", kid: String? = "r1", crit: Bool = false, claims: String
    ) throws -> String {
      let members =
        #""alg":"\#(algorithm)""# + (kid.map { #","kid":"\#($0)""# } ?? "")
        + (crit ? #","crit":["b64"],"b64":false"# : "")
      let header = Array("{\(members)}".utf8)
      return algorithm == "ES256"
        ? try CompactJWS.sign(header: header, claims: Array(claims.utf8), with: p256)
        : try CompactJWS.sign(header: header, claims: Array(claims.utf8), with: rsa)
    }
  }

  /// Serves a key set and counts how often it was asked.
  private final class KeyServer: HTTPTransport {
    private let state = Mutex((json: "", calls: 0))
    var json: String {
      get { state.withLock { $0.json } }
      set { state.withLock { $0.json = newValue } }
    }
    var calls: Int { state.withLock { $0.calls } }

    func send(_ request: TransportRequest) async throws -> TransportReply {
      let json = state.withLock { state in
        state.calls += 1
        return state.json
      }
      return TransportReply(status: json.isEmpty ? 500 : 200, body: Data(json.utf8))
    }
  }

  private func claims(_ world: BackendWorld, _ changes: String = "", exp: Double = 300) -> String {
    let now = world.clock.now.timeIntervalSince1970
    return #"{"iss":"https://login.example.com","aud":"app","sub":"auth0|Alice","iat":\#(now)"#
      + #","exp":\#(now + exp)\#(changes)}"#
  }

  private func signIn(_ keys: IssuerKeySource) -> SignIn {
    SignIn(
      bearer: BearerConfiguration(issuer: Issuer.name, audience: "app", keys: keys))
  }

  @Test("tokens of the issuer are taken, with either algorithm; the keys are fetched once")
  func tokens() async throws {
    let issuer = try Issuer()
    let server = KeyServer()
    server.json = try issuer.keySet()
    let url = try #require(URL(string: "https://login.example.com/keys"))
    try await BackendWorld.run(signIn: signIn(.url(url)), transport: server) { world in
      for (algorithm, kid) in [("RS256", "r1"), ("ES256", "e1")] {
        let token = try issuer.token(algorithm: algorithm, kid: kid, claims: claims(world))
        let response = await world.ask(
          .get, "/api/notifications", authorization: "Bearer \(token)")
        #expect(response.status == 200, "\(algorithm): \(response.text)")
      }
      #expect(server.calls == 1)
      // Someone whose name differs in letter case only is someone else.
      let token = try issuer.token(claims: claims(world))
      let made = await world.ask(.post, "/api/notifications", authorization: "Bearer \(token)")
      let id = try #require(made.json["Id"]?.scalarText)
      let other = try issuer.token(
        claims: claims(world).replacing("auth0|Alice", with: "auth0|alice"))
      #expect(
        await world.ask(
          .get, "/api/notifications/\(id)", authorization: "Bearer \(other)"
        ).status == 404)
    }
  }

  @Test("a token with anything wrong is refused with what is wrong")
  func wrongTokens() async throws {
    let issuer = try Issuer()
    let stranger = try Issuer()
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("keys.json")
    try issuer.keySet().write(toFile: path, atomically: true, encoding: .utf8)
    try await BackendWorld.run(signIn: signIn(.file(path))) { world in
      let good = claims(world)
      let cases: [(String, String)] = [
        ("a.b", "three parts"),
        (try issuer.token(algorithm: "HS256", claims: good), "RS256 or ES256"),
        (try issuer.token(algorithm: "none", claims: good), "RS256 or ES256"),
        (try issuer.token(crit: true, claims: good), "crit"),
        (try issuer.token(kid: "r2", claims: good), "not one of its issuer's"),
        (try issuer.token(kid: nil, claims: good), "not one of its issuer's"),
        (try issuer.token(kid: "e1", claims: good), "signature"),
        (try stranger.token(claims: good), "signature"),
        (
          try issuer.token(claims: good.replacing("login.example", with: "evil.example")),
          "another issuer"
        ),
        (try issuer.token(claims: good.replacing(#""app""#, with: #""other""#)), "audience"),
        (try issuer.token(claims: claims(world, exp: -61)), "expired"),
        (
          try issuer.token(claims: #"{"iss":"https://login.example.com","aud":"app","sub":"a"}"#),
          "expired"
        ),
        (try issuer.token(claims: claims(world, #","nbf":99999999999"#)), "not valid yet"),
        (try issuer.token(claims: good.replacing(#""sub""#, with: #""SUB""#)), "names no user"),
      ]
      for (token, reason) in cases {
        let response = await world.ask(
          .get, "/api/notifications", authorization: "Bearer \(token)")
        #expect(response.status == 401)
        #expect(response.text.contains(reason), "\(response.text)")
        #expect(response.headers["WWW-Authenticate"]?.contains("invalid_token") == true)
      }
      // Within the clocks' skew, and with several audiences.
      for claims in [
        claims(world, exp: -59), good.replacing(#""app""#, with: #"["x","app"]"#),
      ] {
        let token = try issuer.token(claims: claims)
        #expect(
          await world.ask(
            .get, "/api/notifications", authorization: "Bearer \(token)"
          ).status == 200)
      }
    }
  }

  @Test("new keys of the issuer are fetched when a token names one; a flood of them is not")
  func rotation() async throws {
    let old = try Issuer()
    let new = try Issuer()
    let server = KeyServer()
    let url = try #require(URL(string: "https://login.example.com/keys"))
    try await BackendWorld.run(signIn: signIn(.url(url)), transport: server) { world in
      let token = try old.token(claims: claims(world))
      #expect(
        await world.ask(.get, "/api/notifications", authorization: "Bearer \(token)").status
          == 503)
      server.json = try old.keySet()
      #expect(
        await world.ask(.get, "/api/notifications", authorization: "Bearer \(token)").status
          == 200)
      let calls = server.calls
      server.json = try new.keySet().replacing("\"r1\"", with: "\"r2\"")
      let next = try new.token(kid: "r2", claims: claims(world))
      for _ in 0..<5 {
        #expect(
          await world.ask(.get, "/api/notifications", authorization: "Bearer \(next)").status
            == 401)
      }
      #expect(server.calls == calls)
      world.clock.advance(by: .seconds(31))
      #expect(
        await world.ask(.get, "/api/notifications", authorization: "Bearer \(next)").status
          == 200)
      #expect(server.calls == calls + 1)
    }
  }
}
