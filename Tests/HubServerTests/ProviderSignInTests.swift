import Authentication
import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Synchronization
import Testing
import Wire

/// Operators who sign in at an OpenID provider: one is named by subject, one by address; pat has a
/// password.
private final class ProviderWorld: Sendable {
  typealias Person = TestProvider.Person
  static let ann = Person(subject: "auth0|Ann")
  static let bea = Person(subject: "77", email: "Bea@example.com", isVerified: true)
  static let cookieName = "__Host-belfry-oidc"

  let hub: TestHub
  let clock = ManualClock(now: TestHub.now)
  let provider: TestProvider
  let path: String
  let handler: any HTTPHandler
  private let directory: TemporaryDirectory

  init(secret: String? = TestProvider.secret) async throws {
    hub = try await TestHub(hubs: ["hub1"])
    directory = try TemporaryDirectory()
    path = directory.url.path + "/operators"
    provider = try TestProvider(now: { [clock] in clock.now })
    _ = try UserFile.set(
      "correct horse", of: try #require(UserName(typed: "pat")), remark: "*=viewer", in: path,
      form: .operators, cost: 10)
    for (key, roles) in [
      ("subject:auth0|Ann", "*=manager"), ("email:Bea@example.com", "hub1=sender"),
    ] {
      _ = try UserFile.set(
        nil, of: try #require(UserName(key: key)), remark: roles, in: path, form: .operators)
    }
    handler = try Self.handler(hub, path, clock, issuer: provider.issuer, secret: secret)
  }

  deinit { directory.remove() }

  /// What a process on this store and file serves.
  static func handler(
    _ hub: TestHub, _ path: String, _ clock: ManualClock, issuer: String,
    secret: String? = TestProvider.secret
  ) throws -> any HTTPHandler {
    var configuration = try #require(
      OpenIDConfiguration(issuer: issuer, client: TestProvider.client))
    configuration.secret = secret
    configuration.name = "Example"
    let signIn = try OperatorSignIn(
      operators: try UserFile(path: path, form: .operators, now: { clock.now }),
      provider: OpenIDProvider(
        configuration, transport: SessionTransport(), now: { clock.now }),
      store: hub.store, clock: clock.hubClock)
    return Portal(
      next: SignInPages(
        signIn, service: hub.service, journal: SignInJournal(service: hub.service),
        next: HubAPI(service: hub.service, signIn: signIn)))
  }

  func get(
    _ target: String, _ headers: HTTPHeaders, isSecure: Bool = true, host: String = TestHub.host,
    through other: (any HTTPHandler)? = nil
  ) async -> HTTPResponse {
    var headers = headers
    headers["Host"] = host
    return await (other ?? handler).respond(
      to: HTTPRequest(
        method: .get, target: HTTPTarget(target), headers: headers, remoteAddress: "192.0.2.7",
        isSecure: isSecure))
  }

  /// What the browser knows after the first step.
  struct Start {
    let query: [String: String]
    let cookie: String
  }

  func start(_ query: String = "", session: String? = nil) async throws -> Start {
    var headers: HTTPHeaders = ["Sec-Fetch-Site": "same-origin"]
    headers["Cookie"] = session
    let reply = await get("/$portal/oidc/start?\(query)", headers)
    #expect(reply.status.rawValue == 303, "\(reply.text)")
    let target = HTTPTarget(try #require(reply.headers["Location"]))
    var fields: [String: String] = [:]
    for item in target.queryItems { fields[item.name ?? ""] = item.value }
    return Start(
      query: fields,
      cookie: String(try #require(reply.headers["Set-Cookie"]).prefix { $0 != ";" }))
  }

  func callback(
    _ query: [String: String], cookie: String?, through other: (any HTTPHandler)? = nil
  ) async -> HTTPResponse {
    var headers: HTTPHeaders = ["Sec-Fetch-Site": "cross-site"]
    headers["Cookie"] = cookie
    let text = query.map { "\($0)=\($1.percentEncoded)" }.joined(separator: "&")
    return await get("/$portal/oidc/callback?\(text)", headers, through: other)
  }

  /// The whole way of a browser.
  func signIn(
    _ person: Person, _ query: String = "", session: String? = nil
  ) async throws -> HTTPResponse {
    let start = try await start(query, session: session)
    return await callback(provider.admit(person, start.query), cookie: start.cookie)
  }

  /// The session's cookie that a reply sets.
  static func session(_ reply: HTTPResponse) throws -> String {
    #expect(reply.status.rawValue == 303, "\(reply.text)")
    let all = reply.headers.values("Set-Cookie")
    return String(try #require(all.first { $0.hasPrefix("__Host-belfry=") }).prefix { $0 != ";" })
  }

  func status(_ path: String, _ session: String, _ method: HTTPMethod = .get) async -> HTTPStatus {
    await handler.respond(
      to: HTTPRequest(
        method: method, target: HTTPTarget(path),
        headers: ["Host": TestHub.host, "Cookie": session, "Sec-Fetch-Site": "same-origin"],
        remoteAddress: "192.0.2.7", isSecure: true)
    ).status
  }

  /// What the page of a failure says to the portal's scripts.
  static func problem(_ reply: HTTPResponse) throws -> String {
    let text = reply.text
    let start = try #require(text.range(of: "name=\"belfry-problem\" content=\""), "\(text)")
    let end = try #require(text.range(of: "\">", range: start.upperBound..<text.endIndex))
    return String(text[start.upperBound..<end.lowerBound]).replacing("&quot;", with: "\"")
  }

  static func kind(_ reply: HTTPResponse) throws -> String {
    let problem = try problem(reply)
    let match = try #require(problem.firstMatch(of: /"kind":"([a-z]+)"/))
    return String(match.1)
  }
}

@Suite("Operators who sign in at an OpenID provider", .timeLimit(.minutes(5)))
struct ProviderSignInTests {
  private typealias World = ProviderWorld

  @Test("an operator signs in, lands on the wanted page, and does what the file allows")
  func signsIn() async throws {
    let world = try await World()
    let start = try await world.start("to=/$portal/hub/hub1/devices?tag=a")
    #expect(start.query["redirect_uri"] == "https://\(TestHub.host)/$portal/oidc/callback")
    #expect(start.query["response_type"] == "code")
    #expect(start.query["tenant"] == "1")
    #expect(start.query["scope"]?.split(separator: " ").contains("openid") == true)
    #expect(start.query["prompt"] == nil)
    let reply = await world.callback(
      world.provider.admit(World.ann, start.query), cookie: start.cookie)
    #expect(reply.headers["Location"] == "/$portal/hub/hub1/devices?tag=a")
    let session = try World.session(reply)
    #expect(await world.status("/hub1/installations", session) == .ok)
    let state = await world.get(
      "/$portal/session", ["Cookie": session, "Sec-Fetch-Site": "same-origin"])
    for part in [
      #""ways":["key","password","oidc"]"#, #""oidcName":"Example""#, #""user":"auth0|Ann""#,
      #""confirmation":"oidc""#, #""confirmed":false"#,
    ] { #expect(state.text.contains(part), "\(state.text)") }
    let log = try await world.hub.service.activity(
      ActivityQuery(), hub: nil, after: nil, limit: 10)
    #expect(log.lines.map(\.actor) == ["user/subject:auth0|Ann"])
  }

  @Test("the attempt's cookie is for navigation, the session's for this site alone")
  func cookies() async throws {
    let world = try await World()
    let start = await world.get("/$portal/oidc/start", ["Sec-Fetch-Site": "none"])
    let attempt = try #require(start.headers["Set-Cookie"])
    for part in [
      "__Host-belfry-oidc=", "; HttpOnly", "; SameSite=Lax", "; Secure", "; Max-Age=600",
    ] { #expect(attempt.contains(part), "\(attempt)") }
    #expect(start.headers["Cache-Control"] == "no-store")
    let reply = try await world.signIn(World.ann)
    let set = reply.headers.values("Set-Cookie")
    #expect(set.contains { $0.contains("__Host-belfry=") && $0.contains("SameSite=Strict") })
    #expect(set.contains { $0.contains("__Host-belfry-oidc=;") && $0.contains("Max-Age=0") })
  }

  @Test(
    "an address counts when the provider has verified it, and exactly; a subject is no typed name",
    arguments: [
      (World.bea, true),
      (TestProvider.Person(subject: "77", email: "Bea@example.com", isVerified: false), false),
      (TestProvider.Person(subject: "77", email: "bea@example.com", isVerified: true), false),
      (TestProvider.Person(subject: "Bea@example.com"), false),
      (TestProvider.Person(subject: "auth0|ann"), false),
      (TestProvider.Person(subject: "pat"), false),
      (TestProvider.Person(subject: "name:pat", email: "name:pat", isVerified: true), false),
    ])
  func identities(person: TestProvider.Person, isLetIn: Bool) async throws {
    let world = try await World()
    let reply = try await world.signIn(person)
    guard !isLetIn else {
      _ = try World.session(reply)
      return
    }
    #expect(reply.status == .forbidden)
    #expect(try World.kind(reply) == "unknown")
    #expect(!reply.headers.values("Set-Cookie").contains { $0.hasPrefix("__Host-belfry=") })
    // Whom to add, as the command takes it; an address only where it would count.
    let problem = try World.problem(reply).replacing("\\/", with: "/")
    #expect(problem.contains("\"subject\":\"subject:\(person.subject)\""))
    let isAddress = person.isVerified && person.email?.contains("@") == true
    #expect(problem.contains("\"email\":") == isAddress)
  }

  @Test(
    "a reply that answers no attempt of this browser signs nobody in, and costs the provider nothing"
  )
  func foreignReplies() async throws {
    let world = try await World()
    let mine = try await world.start()
    let other = try await world.start()
    let reply = world.provider.admit(World.ann, other.query)
    var changed = reply
    changed["state"]?.append("A")
    var without = reply
    without["state"] = nil
    for (query, cookie) in [
      (reply, mine.cookie), (reply, nil), (changed, other.cookie), (without, other.cookie),
      (reply, other.cookie + "; " + mine.cookie), (reply, other.cookie + ".x"),
      (reply, "__Host-belfry-oidc="),
      // Over TLS the name that anybody may set says nothing.
      (reply, other.cookie.replacing("__Host-belfry", with: "belfry")),
    ] {
      let answer = await world.callback(query, cookie: cookie)
      #expect(try World.kind(answer) == "lost")
      #expect(answer.headers["Set-Cookie"] == nil)
    }
    #expect(world.provider.calls == 0)
    _ = try World.session(await world.callback(reply, cookie: other.cookie))
  }

  @Test("an attempt lasts ten minutes, its code once, and any server on the same store may end it")
  func lifetimes() async throws {
    let world = try await World()
    let late = try await world.start()
    world.clock.advance(by: .seconds(601))
    #expect(
      try World.kind(
        await world.callback(world.provider.admit(World.ann, late.query), cookie: late.cookie))
        == "late")
    let start = try await world.start()
    let query = world.provider.admit(World.ann, start.query)
    let second = try World.handler(
      world.hub, world.path, world.clock, issuer: world.provider.issuer)
    _ = try World.session(await world.callback(query, cookie: start.cookie, through: second))
    // The cookie is gone then; also with it the code is not taken twice.
    #expect(try World.kind(await world.callback(query, cookie: start.cookie)) == "code")
  }

  @Test(
    "a token that is not for this sign-in is refused",
    arguments: [
      (["nonce": "\"other\""], "token"), (["nonce": "null"], "token"),
      (["aud": "\"other\""], "token"), (["aud": "[\"belfry\",\"other\"]"], "token"),
      (["azp": "\"other\""], "token"), (["iss": "\"https://evil.example\""], "token"),
      (["sub": "null"], "token"), (["sub": "7"], "token"), (["exp": "1"], "clock"),
      (["iat": "4000000000"], "clock"), (["exp": "null"], "clock"),
    ])
  func tokens(claims: [String: String], kind: String) async throws {
    let world = try await World()
    world.provider.manner.claims = claims
    #expect(try World.kind(try await world.signIn(World.ann)) == kind)
    world.provider.manner.claims = [:]
    world.provider.manner.signsWithAnotherKey = true
    #expect(try World.kind(try await world.signIn(World.ann)) == "token")
  }

  @Test(
    "a provider that fails, lies or declines is told apart, and nobody's words come from the address"
  )
  func failures() async throws {
    let world = try await World()
    let start = try await world.start()
    let declined = await world.callback(
      [
        "state": start.query["state"] ?? "", "error": "access_denied",
        "error_description": "<script>run me</script>",
      ], cookie: start.cookie)
    #expect(try World.kind(declined) == "declined")
    #expect(!declined.text.contains("run me"))
    let forged = await world.callback(["error": "server_error", "state": "x"], cookie: nil)
    #expect(try World.kind(forged) == "lost")
    #expect(!forged.text.contains("server_error"))
    world.provider.manner.error = "temporarily_unavailable"
    #expect(try World.kind(try await world.signIn(World.ann)) == "refused")
    world.provider.manner.error = nil
    // RFC 9207: another provider's reply.
    let mixed = try await world.start()
    var query = world.provider.admit(World.ann, mixed.query)
    query["iss"] = "https://evil.example"
    #expect(try World.kind(await world.callback(query, cookie: mixed.cookie)) == "lost")
    query["iss"] = world.provider.issuer
    _ = try World.session(await world.callback(query, cookie: mixed.cookie))

    let stranger = try await World(secret: "wrong")
    #expect(try World.kind(try await stranger.signIn(World.ann)) == "client")
    let liar = try await World()
    liar.provider.manner.issuer = "https://evil.example"
    let page = await liar.get("/$portal/oidc/start", ["Sec-Fetch-Site": "same-origin"])
    #expect(page.status.rawValue == 502)
    #expect(try World.kind(page) == "unreachable")
    let gone = try await World()
    await gone.provider.stop()
    let silent = await gone.get("/$portal/oidc/start", ["Sec-Fetch-Site": "same-origin"])
    #expect(try World.kind(silent) == "unreachable")
  }

  @Test("a person's name cannot become part of the page")
  func injection() async throws {
    let world = try await World()
    let reply = try await world.signIn(
      World.Person(subject: #"x'></meta><script>alert(1)</script>&amp;"#))
    #expect(!reply.text.contains("<script>alert"))
    #expect(reply.headers["Content-Security-Policy"]?.contains("script-src 'self'") == true)
    #expect(reply.headers["Cache-Control"] == "no-store")
  }

  @Test(
    "the way back leads to a page of the portal and nowhere else",
    arguments: [
      "https://evil.example/", "//evil.example", "/$portal//evil.example", "/\\evil.example",
      "/demo", "/$portal/../demo", "/$portal/%2e%2e/demo", "/$portal/x%0d%0aSet-Cookie:a=b",
      "/$portal/oidc/start", "javascript:alert(1)", "/$portal/%C3%A9%5Cx", "",
    ])
  func returnPath(to: String) async throws {
    let world = try await World()
    let reply = try await world.signIn(World.ann, "to=\(to)")
    _ = try World.session(reply)
    #expect(reply.headers["Location"] == "/$portal/")
    // Nor one that was put into the cookie.
    let start = try await world.start("to=/$portal/hub/hub1")
    var parts = start.cookie.split(separator: ".", omittingEmptySubsequences: false).map(
      String.init)
    parts[4] = "aHR0cHM6Ly9ldmlsLmV4YW1wbGU"
    let forged = await world.callback(
      world.provider.admit(World.ann, start.query), cookie: parts.joined(separator: "."))
    #expect(try World.kind(forged) == "lost")
  }

  @Test("nobody is sent to the provider from another site, or in the clear")
  func starts() async throws {
    let world = try await World()
    for headers: HTTPHeaders in [
      ["Sec-Fetch-Site": "cross-site"], ["Sec-Fetch-Site": "same-site"], [:],
    ] {
      let reply = await world.get("/$portal/oidc/start", headers)
      #expect(try World.kind(reply) == "insecure")
      #expect(reply.headers["Set-Cookie"] == nil && reply.headers["Location"] == nil)
    }
    let local = await world.get(
      "/$portal/oidc/start", ["Sec-Fetch-Site": "same-origin"], isSecure: false,
      host: "localhost:8080")
    #expect(
      local.headers["Location"]?.contains("redirect_uri=http%3A%2F%2Flocalhost%3A8080%2F") == true)
    #expect(local.headers["Set-Cookie"]?.hasPrefix("belfry-oidc=") == true)
    // Behind a proxy that takes TLS off.
    let proxied = await world.get(
      "/$portal/oidc/start", ["Sec-Fetch-Site": "same-origin"], isSecure: false)
    #expect(proxied.headers["Location"]?.contains("redirect_uri=https%3A%2F%2F") == true)
    #expect(proxied.headers["Set-Cookie"]?.hasPrefix("__Host-belfry-oidc=") == true)
  }

  @Test("keys and deletions want the person at the provider again, and the same person")
  func confirmation() async throws {
    let world = try await World()
    // Signed in at the provider hours ago: that is no fresh word of theirs.
    var ann = World.ann
    ann.authenticatedAt = TestHub.now.addingTimeInterval(-7200)
    let session = try World.session(try await world.signIn(ann))
    #expect(await world.status("/hub1/installations/i1", session, .delete) == .forbidden)
    let start = try await world.start("fresh=1&to=/$portal/confirmed", session: session)
    #expect(start.query["prompt"] == "login" && start.query["max_age"] == "0")
    // A provider that asks nobody, or does not say when.
    for time in [ann.authenticatedAt, nil] {
      ann.authenticatedAt = time
      let stale = try await world.signIn(ann, "fresh=1", session: session)
      #expect(try World.kind(stale) == "stale")
    }
    var bea = World.bea
    bea.authenticatedAt = TestHub.now
    let other = try await world.signIn(bea, "fresh=1", session: session)
    #expect(try World.kind(other) == "other")
    #expect(await world.status("/hub1/installations/i1", session, .delete) == .forbidden)
    ann.authenticatedAt = TestHub.now
    let reply = await world.callback(
      world.provider.admit(ann, start.query), cookie: start.cookie)
    #expect(reply.headers["Location"] == "/$portal/confirmed")
    let fresh = try World.session(reply)
    #expect(await world.status("/hub1/installations/i1", fresh, .delete) == .noContent)
    // The one that was there has ended with it.
    #expect(await world.status("/hub1/installations", session) == .unauthorized)
    world.clock.advance(by: .seconds(301))
    #expect(await world.status("/hub1/installations/i1", fresh, .delete) == .forbidden)
  }

  @Test("a session ends with the operator's line, and with the provider")
  func endings() async throws {
    let world = try await World()
    let ann = try World.session(try await world.signIn(World.ann))
    let bea = try World.session(try await world.signIn(World.bea))
    _ = try UserFile.remove(
      try #require(UserName(key: "subject:auth0|Ann")), from: world.path, form: .operators)
    world.clock.advance(by: .seconds(1))
    #expect(await world.status("/hub1/installations", ann) == .unauthorized)
    #expect(await world.status("/hub1/installations", bea) == .ok)
    // The subjects of another provider are other people.
    let elsewhere = try World.handler(
      world.hub, world.path, world.clock, issuer: "https://other.example")
    let reply = await world.get(
      "/hub1/installations", ["Cookie": bea, "Sec-Fetch-Site": "same-origin"], through: elsewhere)
    #expect(reply.status == .unauthorized)
  }

  /// Does something while the provider is asked for a token.
  private final class Interruption: HTTPTransport {
    private let transport = SessionTransport()
    private let work = Mutex<(@Sendable () async -> Void)?>(nil)

    func meanwhile(_ work: @escaping @Sendable () async -> Void) {
      self.work.withLock { $0 = work }
    }

    func send(_ request: TransportRequest) async throws -> TransportReply {
      if request.method == "POST" { await work.withLock { $0.take() }?() }
      return try await transport.send(request)
    }
  }

  @Test("the next sign-in knows the keys that the provider has moved during one")
  func movedKeys() async throws {
    let clock = ManualClock(now: TestHub.now)
    let provider = try TestProvider(now: { clock.now })
    var configuration = try #require(
      OpenIDConfiguration(issuer: provider.issuer, client: TestProvider.client))
    configuration.secret = TestProvider.secret
    let transport = Interruption()
    let reader = OpenIDProvider(configuration, transport: transport, now: { clock.now })
    let redirect = "https://\(TestHub.host)/$portal/oidc/callback"
    let attempt = OpenIDProvider.Attempt(state: "s", nonce: "n", verifier: "v")
    @Sendable func address() async throws -> String {
      try await reader.address(for: attempt, redirect: redirect, isFresh: false)
    }
    func signIn() async throws -> String {
      var query: [String: String] = [:]
      for item in HTTPTarget(try await address()).queryItems { query[item.name ?? ""] = item.value }
      let code = try #require(provider.admit(World.ann, query)["code"])
      return try await reader.identity(code: code, attempt, redirect: redirect).subject
    }
    transport.meanwhile {
      provider.manner.hasMovedKeys = true
      clock.advance(by: .seconds(3_601))
      // Another person's; the provider is asked again where its keys are.
      _ = try? await address()
    }
    #expect(try await signIn() == World.ann.subject)
    #expect(try await signIn() == World.ann.subject)
    await provider.stop()
  }

  @Test("codes of nobody's are slowed down before they reach the provider")
  func guessing() async throws {
    let world = try await World()
    var kinds: [String] = []
    for number in 0..<20 {
      let start = try await world.start()
      kinds.append(
        try World.kind(
          await world.callback(
            ["code": "guess\(number)", "state": start.query["state"] ?? ""], cookie: start.cookie)))
    }
    #expect(kinds.filter { $0 == "code" }.count == 10)
    #expect(kinds.filter { $0 == "busy" }.count == 10)
    #expect(world.provider.calls == 10)
  }
}
