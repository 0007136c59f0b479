import Authentication
import Cryptography
import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Synchronization
import Testing

/// The API with operators: ann manages everything, bob sends in hub1 and looks elsewhere, eve
/// looks.
final class OperatorWorld: Sendable {
  static let password = "correct horse"
  let hub: TestHub
  let clock = ManualClock(now: TestHub.now)
  let path: String
  let handler: any HTTPHandler
  let operators: UserFile
  private let reports: Reports
  private let directory: TemporaryDirectory

  init() async throws {
    hub = try await TestHub(hubs: ["hub1", "hub2"])
    directory = try TemporaryDirectory()
    path = directory.url.path + "/operators"
    for (name, roles) in [
      ("ann", "*=manager"), ("bob", "*=viewer,hub1=sender"), ("eve", "hub1=viewer"),
    ] {
      try Self.set(name, roles, in: path)
    }
    let reports = Reports()
    self.reports = reports
    operators = try UserFile(
      path: path, form: .operators, now: { [clock] in clock.now }, report: { reports.add($0) })
    handler = try Self.handler(hub, path, clock, operators)
  }

  /// What was reported of the file; `nil` that it is good again.
  var faults: [String?] { reports.all.withLock { $0 } }

  private final class Reports: Sendable {
    let all = Mutex<[String?]>([])
    func add(_ fault: UserFile.Fault?) { all.withLock { $0.append(fault?.description) } }
  }

  deinit { directory.remove() }

  static func set(_ name: String, _ roles: String, password: String = password, in path: String)
    throws
  {
    _ = try UserFile.set(
      password, of: try #require(UserName(typed: name)), remark: roles, in: path, form: .operators,
      cost: 10)
  }

  /// What another process on the same store and file serves.
  static func handler(
    _ hub: TestHub, _ path: String, _ clock: ManualClock, _ operators: UserFile? = nil
  ) throws -> any HTTPHandler {
    let signIn = try OperatorSignIn(
      operators: try operators ?? UserFile(path: path, form: .operators, now: { clock.now }),
      store: hub.store, clock: clock.hubClock)
    return SignInPages(
      signIn, service: hub.service, journal: SignInJournal(service: hub.service),
      next: HubAPI(service: hub.service, signIn: signIn))
  }

  func send(
    _ method: HTTPMethod, _ target: String, cookie: String? = nil, body: String = "",
    headers: HTTPHeaders = ["Sec-Fetch-Site": "same-origin"], isSecure: Bool = true,
    host: String = TestHub.host, from address: String = "192.0.2.7",
    through other: (any HTTPHandler)? = nil
  ) async -> HTTPResponse {
    var headers = headers
    headers["Host"] = host
    headers["Cookie"] = cookie
    if !body.isEmpty, headers["Content-Type"] == nil {
      headers["Content-Type"] = "application/json"
    }
    return await (other ?? handler).respond(
      to: HTTPRequest(
        method: method, target: HTTPTarget(target), headers: headers, body: Array(body.utf8),
        remoteAddress: address, isSecure: isSecure))
  }

  func signIn(_ user: String, password: String = password, cookie: String? = nil) async
    -> HTTPResponse
  {
    await send(
      .post, "/$portal/session", cookie: cookie,
      body: #"{"user":"\#(user)","password":"\#(password)"}"#)
  }

  /// What the browser sends from now on.
  func cookie(of user: String) async throws -> String {
    try Self.cookie(in: await signIn(user))
  }

  static func cookie(in reply: HTTPResponse) throws -> String {
    #expect(reply.status == .ok, "\(reply.text)")
    return String(try #require(reply.headers["Set-Cookie"]).prefix { $0 != ";" })
  }
}

@Suite("Operators at the portal")
struct OperatorTests {
  private let push: HTTPHeaders = [
    "Sec-Fetch-Site": "same-origin", "ServiceBusNotification-Format": "apple",
  ]
  private let payload = #"{"aps":{"alert":"hi"}}"#

  @Test("the cookie is for this host over TLS, for no script, and for no other site's requests")
  func attributes() async throws {
    let world = try await OperatorWorld()
    let reply = await world.signIn("Ann")
    let cookie = try #require(reply.headers["Set-Cookie"])
    #expect(cookie.hasPrefix("__Host-belfry="))
    for attribute in ["Path=/", "HttpOnly", "SameSite=Strict", "Secure"] {
      #expect(cookie.contains("; \(attribute)"))
    }
    #expect(!cookie.contains("Domain"))
    #expect(reply.headers["Cache-Control"] == "no-store")
    #expect(reply.text.contains(#""user":"ann""#))
    #expect(reply.text.contains(#""hub2":"manager""#))
    // In the clear, only this machine's own names get one.
    let clear = await world.send(
      .post, "/$portal/session", body: #"{"user":"ann","password":"correct horse"}"#,
      isSecure: false)
    #expect(clear.status == .forbidden)
    let local = await world.send(
      .post, "/$portal/session", body: #"{"user":"ann","password":"correct horse"}"#,
      isSecure: false, host: "localhost:8080")
    #expect(local.headers["Set-Cookie"]?.hasPrefix("belfry=") == true)
  }

  @Test(
    "each role does what it may and no more",
    arguments: [
      ("eve", [200, 403, 403, 403, 403]), ("bob", [200, 201, 404, 403, 403]),
      ("ann", [200, 201, 404, 200, 200]),
    ])
  func roles(user: String, expected: [Int]) async throws {
    let world = try await OperatorWorld()
    let cookie = try await world.cookie(of: user)
    var found: [Int] = []
    for (method, path, body) in [
      (HTTPMethod.get, "/hub1/installations", ""), (.post, "/hub1/messages", payload),
      (.delete, "/hub1/messages/n1", ""),
      (
        .put, "/hub1/installations/i1",
        #"{"installationId":"i1","platform":"apns","pushChannel":"0a1b"}"#
      ), (.delete, "/hub1", ""),
    ] {
      let reply = await world.send(method, path, cookie: cookie, body: body, headers: push)
      found.append(reply.status.rawValue)
    }
    #expect(found == expected)
  }

  @Test("a role counts in its hub: another hub is as if it were not there, in lists too")
  func otherHub() async throws {
    let world = try await OperatorWorld()
    let eve = try await world.cookie(of: "eve")
    #expect(await world.send(.get, "/hub2/installations", cookie: eve).status == .forbidden)
    #expect(await world.send(.get, "/nowhere/installations", cookie: eve).status == .forbidden)
    let list = await world.send(.get, "/$Resources/NotificationHubs", cookie: eve)
    #expect(list.text.contains(">hub1<"))
    #expect(!list.text.contains(">hub2<"))
    #expect(await world.send(.get, "/$activity", cookie: eve).status == .forbidden)
    // The addresses of jobs hold signatures; feedback has handles.
    for path in ["/hub1/jobs", "/hub1/$feedback", "/hub1/$feedback/2030-01-05T10.xml"] {
      #expect(await world.send(.get, path, cookie: eve).status == .forbidden, "\(path)")
    }
    #expect(
      await world.send(.post, "/hub1/credentials/apns/probe", cookie: eve).status == .forbidden)
    let bob = try await world.cookie(of: "bob")
    #expect(
      await world.send(.post, "/hub2/messages", cookie: bob, body: payload, headers: push).status
        == .forbidden)
  }

  @Test("subjects and addresses that only look alike are different people")
  func lookalikes() throws {
    let (composed, apart) = ("Ren\u{e9}", "Rene\u{301}")
    #expect(composed == apart, "so Swift takes these texts for one")
    #expect(UserName(subject: composed) != UserName(subject: apart))
    #expect(UserName(email: composed + "@x.example") != UserName(email: apart + "@x.example"))
    #expect(Set([UserName(subject: composed), UserName(subject: apart)]).count == 2)
    // What people type is one name, however their keyboards make it.
    #expect(UserName(typed: composed) == UserName(typed: apart))
    #expect(UserName(subject: composed) != UserName(key: "old:" + composed))
  }

  @Test("a cookie that nobody was given opens nothing")
  func forged() async throws {
    let world = try await OperatorWorld()
    let good = try await world.cookie(of: "ann")
    let forged = "__Host-belfry=" + String(repeating: "A", count: 43)
    for cookie in [forged, good + "A", String(good.dropLast()), "__Host-belfry=", "belfry=x"] {
      #expect(
        await world.send(.get, "/hub1/installations", cookie: cookie).status == .unauthorized,
        "\(cookie)")
    }
    // Of two one was planted; which, nobody knows.
    #expect(
      await world.send(.get, "/hub1/installations", cookie: good + "; " + forged).status
        == .unauthorized)
    // Over TLS the name that anybody may set says nothing.
    let plain = good.replacing("__Host-belfry", with: "belfry")
    #expect(await world.send(.get, "/hub1/installations", cookie: plain).status == .unauthorized)
    #expect(await world.send(.get, "/hub1/installations", cookie: good).status == .ok)
  }

  @Test("a page of another origin cannot use the cookie, nor sign anybody in or out")
  func crossSite() async throws {
    let world = try await OperatorWorld()
    let cookie = try await world.cookie(of: "ann")
    let foreign: [HTTPHeaders] = [
      ["Sec-Fetch-Site": "cross-site"], ["Sec-Fetch-Site": "same-site"],
      ["Sec-Fetch-Site": "none"], ["Origin": "https://evil.example"], ["Origin": "null"],
      // Whatever sends neither is no page of ours.
      [:],
    ]
    for headers in foreign {
      for (method, path) in [
        (HTTPMethod.get, "/hub1/installations"), (.delete, "/hub1"), (.get, "/$activity"),
        (.delete, "/$portal/session"),
      ] {
        let reply = await world.send(method, path, cookie: cookie, headers: headers)
        #expect(reply.status == .forbidden, "\(method.rawValue) \(path) \(headers)")
      }
      let reply = await world.send(
        .post, "/$portal/session", body: #"{"user":"ann","password":"correct horse"}"#,
        headers: headers)
      #expect(reply.status == .forbidden)
      #expect(reply.headers["Set-Cookie"] == nil)
    }
    // A form cannot send JSON.
    let form = await world.send(
      .post, "/$portal/session", body: #"{"user":"ann","password":"correct horse"}"#,
      headers: ["Sec-Fetch-Site": "same-origin", "Content-Type": "text/plain"])
    #expect(form.status == .badRequest)
    let own: HTTPHeaders = ["Origin": "https://\(TestHub.host)"]
    #expect(
      await world.send(.get, "/hub1/installations", cookie: cookie, headers: own).status == .ok)
  }

  @Test("a session ends when it is not used, and after twelve hours in any case")
  func expiry() async throws {
    let world = try await OperatorWorld()
    let idle = try await world.cookie(of: "ann")
    world.clock.advance(by: .seconds(29 * 60))
    #expect(await world.send(.get, "/hub1/installations", cookie: idle).status == .ok)
    world.clock.advance(by: .seconds(29 * 60))
    #expect(await world.send(.get, "/hub1/installations", cookie: idle).status == .ok)
    world.clock.advance(by: .seconds(30 * 60))
    #expect(await world.send(.get, "/hub1/installations", cookie: idle).status == .unauthorized)
    let busy = try await world.cookie(of: "ann")
    for _ in 0..<35 {
      world.clock.advance(by: .seconds(20 * 60))
      #expect(await world.send(.get, "/hub1/installations", cookie: busy).status == .ok)
    }
    world.clock.advance(by: .seconds(20 * 60))
    #expect(await world.send(.get, "/hub1/installations", cookie: busy).status == .unauthorized)
  }

  @Test("who is taken out of the file is out, and so is who gets another password or role")
  func removed() async throws {
    let world = try await OperatorWorld()
    let ann = try await world.cookie(of: "ann")
    let bob = try await world.cookie(of: "bob")
    let eve = try await world.cookie(of: "eve")
    _ = try UserFile.remove(
      try #require(UserName(typed: "ann")), from: world.path, form: .operators)
    try OperatorWorld.set("bob", "*=viewer", password: "another one", in: world.path)
    world.clock.advance(by: .seconds(1))
    #expect(await world.send(.get, "/hub1/installations", cookie: ann).status == .unauthorized)
    #expect(await world.send(.get, "/hub1/installations", cookie: bob).status == .unauthorized)
    #expect(await world.send(.get, "/hub1/installations", cookie: eve).status == .ok)
    let text = try String(contentsOfFile: world.path, encoding: .utf8)
    try text.replacing("hub1=viewer", with: "hub2=viewer")
      .write(toFile: world.path, atomically: true, encoding: .utf8)
    world.clock.advance(by: .seconds(1))
    #expect(await world.send(.get, "/hub1/installations", cookie: eve).status == .forbidden)
  }

  @Test("a sign-in has a token of its own, and ends the session that was there before")
  func fixation() async throws {
    let world = try await OperatorWorld()
    let planted = "__Host-belfry=" + String(repeating: "B", count: 43)
    let first = try OperatorWorld.cookie(in: await world.signIn("ann", cookie: planted))
    #expect(first != planted)
    #expect(await world.send(.get, "/hub1/installations", cookie: planted).status == .unauthorized)
    let second = try OperatorWorld.cookie(in: await world.signIn("ann", cookie: first))
    #expect(await world.send(.get, "/hub1/installations", cookie: first).status == .unauthorized)
    #expect(await world.send(.get, "/hub1/installations", cookie: second).status == .ok)
    let out = await world.send(.delete, "/$portal/session", cookie: second)
    #expect(out.status == .noContent)
    #expect(out.headers["Set-Cookie"]?.contains("Max-Age=0") == true)
    #expect(await world.send(.get, "/hub1/installations", cookie: second).status == .unauthorized)
  }

  @Test("a session outlives the process, and another one on the same store knows it")
  func restart() async throws {
    let world = try await OperatorWorld()
    let cookie = try await world.cookie(of: "ann")
    let other = try OperatorWorld.handler(world.hub, world.path, world.clock)
    #expect(
      await world.send(.get, "/hub1/installations", cookie: cookie, through: other).status == .ok)
    _ = await world.send(.delete, "/$portal/session", cookie: cookie, through: other)
    #expect(await world.send(.get, "/hub1/installations", cookie: cookie).status == .unauthorized)
  }

  @Test("guessing is slowed down, the right password included, and names nobody")
  func guessing() async throws {
    let world = try await OperatorWorld()
    let unknown = await world.signIn("nobody", password: "guess")
    let wrong = await world.signIn("ann", password: "guess 0")
    #expect(unknown.status == .unauthorized)
    #expect(unknown.text == wrong.text)
    for number in 1..<10 {
      #expect(await world.signIn("ann", password: "guess \(number)").status == .unauthorized)
    }
    let slowed = await world.signIn("ann")
    #expect(slowed.status == .tooManyRequests)
    world.clock.advance(by: .seconds(2))
    #expect(await world.signIn("ann").status == .ok)
  }

  @Test(
    "keys are shown, and things deleted, only shortly after the operator has shown who they are")
  func confirmation() async throws {
    let world = try await OperatorWorld()
    let cookie = try await world.cookie(of: "ann")
    func description() async -> String {
      await world.send(.get, "/hub1", cookie: cookie).text
    }
    #expect(await description().contains(TestHub.fullKey))
    world.clock.advance(by: .seconds(301))
    #expect(await !description().contains(TestHub.fullKey))
    #expect(await description().contains(TestHub.fullName))
    #expect(
      await !world.send(.get, "/$Resources/NotificationHubs", cookie: cookie).text
        .contains(TestHub.fullKey))
    for (method, path) in [
      (HTTPMethod.delete, "/hub1"), (.delete, "/hub1/installations/i1"),
      (.delete, "/hub1/users/u"),
    ] {
      let reply = await world.send(method, path, cookie: cookie)
      #expect(reply.status == .forbidden)
      #expect(reply.message?.hasPrefix("ConfirmationRequired: ") == true)
    }
    let update = await world.send(
      .put, "/hub1", cookie: cookie, headers: ["Sec-Fetch-Site": "same-origin", "If-Match": "*"])
    #expect(update.status == .forbidden)
    // To call something off is urgent, and deletes nothing.
    #expect(await world.send(.delete, "/hub1/messages/n", cookie: cookie).status == .notFound)
    func confirm(_ password: String) async -> HTTPStatus {
      await world.send(
        .post, "/$portal/session/confirm", cookie: cookie, body: #"{"password":"\#(password)"}"#
      ).status
    }
    #expect(await confirm("wrong one") == .unauthorized)
    #expect(await !description().contains(TestHub.fullKey))
    #expect(await confirm(OperatorWorld.password) == .noContent)
    #expect(await description().contains(TestHub.fullKey))
    #expect(await world.send(.delete, "/hub1", cookie: cookie).status == .ok)
    // A viewer sees no key, however often they confirm.
    let eve = try await world.cookie(of: "bob")
    #expect(await !world.send(.get, "/hub2", cookie: eve).text.contains(TestHub.fullKey))
  }

  @Test("what an operator does has their name in the activity log, devices included")
  func logged() async throws {
    let world = try await OperatorWorld()
    let bob = try await world.cookie(of: "bob")
    let ann = try await world.cookie(of: "ann")
    _ = await world.send(.post, "/hub1/messages", cookie: bob, body: payload, headers: push)
    _ = await world.send(.delete, "/hub1/users/u", cookie: bob)
    _ = await world.send(.delete, "/hub1/installations/i1", cookie: ann)
    let log = await world.send(.get, "/hub1/activity", cookie: ann)
    let lines = try ActivityList.decode(Array(log.text.utf8))
    #expect(
      lines.map { "\($0.actor) \($0.via.rawValue) \($0.action) \($0.status) \($0.address)" } == [
        "user/ann portal deleteInstallation 204 192.0.2.7",
        "user/bob portal eraseUser 403 192.0.2.7", "user/bob portal send 201 192.0.2.7",
      ])
    let all = await world.send(.get, "/$activity?action=signIn", cookie: ann)
    #expect(
      try ActivityList.decode(Array(all.text.utf8)).map(\.actor) == ["user/ann", "user/bob"])
  }

  @Test(
    "events of a notification end soon after the operator has gone, and keep no session alive",
    arguments: ["signs out", "leaves the file", "loses the role", "is idle"])
  func streams(ending: String) async throws {
    let world = try await OperatorWorld()
    let hub = world.hub
    var request = NotificationRequest(format: .native(.apns), body: Array("{}".utf8))
    request.isDirect = true
    try await hub.store.accept(
      NotificationRecord(
        id: NotificationID(rawValue: "n-1"), hub: 1, request: request, state: .enqueued,
        enqueuedAt: hub.clock.now))
    let eve = try await world.cookie(of: "eve")
    let listener = try HTTPListener(HubAPIConfiguration.listener, handler: world.handler)
    let client = try await onThread { Shared(try RawClient(port: listener.port)) }
    let plain = eve.replacing("__Host-belfry", with: "belfry")
    let head = try await onThread {
      try client.value.send(
        "GET /hub1/messages/n-1/events HTTP/1.1\r\nHost: localhost:\(listener.port)\r\n"
          + "Sec-Fetch-Site: same-origin\r\nCookie: \(plain)\r\n\r\n")
      return try client.value.readHead()
    }
    #expect(head.status == 200)
    func chunk() async throws -> String? { try await onThread { try client.value.readChunk() } }
    #expect(try await chunk()?.hasPrefix("event: progress") == true)
    func quarterMinute() async {
      for _ in 0..<30 {
        await hub.clock.sleepers(1)
        hub.clock.advance(by: .milliseconds(500))
      }
    }
    await quarterMinute()
    #expect(try await chunk() == ": \n\n", "still here")
    let text = try String(contentsOfFile: world.path, encoding: .utf8)
    switch ending {
    case "signs out": _ = await world.send(.delete, "/$portal/session", cookie: eve)
    case "leaves the file":
      _ = try UserFile.remove(
        try #require(UserName(typed: "eve")), from: world.path, form: .operators)
      world.clock.advance(by: .seconds(1))
    case "loses the role":
      try text.replacing("hub1=viewer", with: "hub2=viewer").write(
        toFile: world.path, atomically: true, encoding: .utf8)
      world.clock.advance(by: .seconds(1))
    default: world.clock.advance(by: .seconds(1801))
    }
    await quarterMinute()
    #expect(try await chunk() == nil)
    await listener.stop()
  }

  @Test("the address of errors that opens itself is for keys; an operator's cookie opens the list")
  func errorDetails() async throws {
    let world = try await OperatorWorld()
    let hub = world.hub
    var request = NotificationRequest(format: .native(.apns), body: Array("{}".utf8))
    request.isDirect = true
    let id = NotificationID(rawValue: "n-1")
    try await hub.store.accept(
      NotificationRecord(
        id: id, hub: 1, request: request, state: .enqueued, enqueuedAt: hub.clock.now))
    var page = Checkpoint(notification: id, hub: 1, at: hub.clock.now)
    page.state = .completed
    page.counts = [OutcomeKey(platform: .apns, isTemplate: false, outcome: .badChannel): 1]
    try await hub.store.checkpoint(page)
    let path = "/hub1/messages/n-1?api-version=2020-06"
    let key = await hub.send(.get, path)
    #expect(key.text.contains("<PnsErrorDetailsUri>"))
    let eve = try await world.cookie(of: "eve")
    let reply = await world.send(.get, path, cookie: eve)
    #expect(reply.status == .ok && !reply.text.contains("PnsErrorDetailsUri"))
    #expect(!reply.text.contains("sig="))
    #expect(await world.send(.get, "/hub1/messages/n-1/errors", cookie: eve).status == .ok)
  }

  @Test("who fails to sign in stands in the activity log, but neither what they typed nor a flood")
  func failuresAreLogged() async throws {
    let world = try await OperatorWorld()
    let ann = try await world.cookie(of: "ann")
    _ = await world.signIn("eve", password: "guess 1")
    _ = await world.signIn("my secret in the wrong field", password: "guess 2")
    _ = await world.send(
      .post, "/$portal/session/confirm", cookie: ann, body: #"{"password":"wrong one"}"#)
    func lines() async throws -> [HubActivity] {
      let log = await world.send(.get, "/$activity?$top=200", cookie: ann)
      return try ActivityList.decode(Array(log.text.utf8)).filter { $0.status == 401 }
    }
    #expect(
      try await lines().map { "\($0.actor) \($0.action) \($0.object ?? "-") \($0.address)" } == [
        "nobody confirm user/ann 192.0.2.7", "nobody signIn - 192.0.2.7",
        "nobody signIn user/eve 192.0.2.7",
      ])
    // Many names, from many networks.
    for number in 0..<60 {
      _ = await world.send(
        .post, "/$portal/session", body: #"{"user":"u\#(number)","password":"guess"}"#,
        from: "198.51.\(number).1")
    }
    #expect(try await lines().count == Int(SignInJournal.burst))
    world.hub.clock.advance(by: .seconds(121))
    world.clock.advance(by: .seconds(1))
    _ = await world.signIn("eve", password: "guess 3")
    #expect(try await lines().first?.object == "user/eve; 43 more before")
  }

  @Test("of an operator file with a bad line the others count, and the removed are out")
  func badFile() async throws {
    let world = try await OperatorWorld()
    let ann = try await world.cookie(of: "ann")
    let bob = try await world.cookie(of: "bob")
    let eve = try await world.cookie(of: "eve")
    let lines = try String(contentsOfFile: world.path, encoding: .utf8).split(separator: "\n")
    // Ann has been taken out, and a hand has slipped in bob's line.
    let edited = [String(lines[1]).replacing("viewer", with: "viewr"), String(lines[2])]
    try edited.joined(separator: "\n").write(
      toFile: world.path, atomically: true, encoding: .utf8)
    world.clock.advance(by: .seconds(1))
    #expect(await world.send(.get, "/hub1/installations", cookie: ann).status == .unauthorized)
    #expect(await world.send(.get, "/hub1/installations", cookie: bob).status == .unauthorized)
    #expect(await world.send(.get, "/hub1/installations", cookie: eve).status == .ok)
    #expect(world.faults.count == 1 && world.faults.first??.contains("operators:1: ") == true)
    let signIn = try OperatorSignIn(
      operators: world.operators, store: world.hub.store, clock: world.clock.hubClock)
    #expect(await signIn.finding()?.code == "operator-file")
    try lines.joined(separator: "\n").write(
      toFile: world.path, atomically: true, encoding: .utf8)
    world.clock.advance(by: .seconds(1))
    #expect(await signIn.finding() == nil)
    #expect(world.faults.count == 2 && world.faults.last == .some(nil))
  }

  @Test("the page learns who is there and which ways in there are")
  func state() async throws {
    let world = try await OperatorWorld()
    let nobody = await world.send(.get, "/$portal/session")
    #expect(nobody.text.contains(#""ways":["key","password"]"#))
    #expect(nobody.text.contains(#""user":null"#))
    #expect(nobody.text.contains(#""keptText":null"#))
    let bob = try await world.cookie(of: "bob")
    let there = await world.send(.get, "/$portal/session", cookie: bob)
    #expect(there.text.contains(#""user":"bob""#))
    #expect(there.text.contains(#""hub1":"sender""#))
    #expect(there.text.contains(#""*":"viewer""#))
    // A token is stronger than a cookie: a key's request is never an operator's.
    let key = await world.send(
      .post, "/hub1/messages", cookie: bob, body: payload,
      headers: [
        "Authorization": TestHub.token(), "ServiceBusNotification-Format": "apple",
      ])
    #expect(key.status == .created)
  }
}
