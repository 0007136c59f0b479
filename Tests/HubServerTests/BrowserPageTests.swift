import Foundation
import HTTPServer
import HubCore
import HubServer
import Testing

@Suite("The browser page")
struct BrowserPageTests {
  /// Knows one subscription, `dev-1`, and says of everything else what it was asked.
  private struct StubController: BrowserPageController {
    func settings(host: String, isSecure: Bool) async throws -> BrowserPageSettings {
      BrowserPageSettings(
        hub: "demo", token: "\(host) \(isSecure)", expiresAt: 1, vapidPublicKey: "key",
        localPush: true)
    }
    func subscribe(_ wanted: LocalSubscription.Wanted) async throws -> LocalSubscription {
      if wanted.p256dh.isEmpty { throw HubFailure(status: 400, message: "no key") }
      return LocalSubscription(id: "dev-1", endpoint: "https://localhost/" + wanted.p256dh)
    }
    func subscription(_ id: String) async throws -> LocalSubscription? {
      struct Secret: Error { let password = "hunter2" }
      if id == "broken" { throw Secret() }
      return id == "dev-1" ? LocalSubscription(id: id, endpoint: "https://localhost/") : nil
    }
    func unsubscribe(_ id: String) async throws {}
    func messages(
      of subscription: LocalSubscription, after: Int?
    ) -> AsyncThrowingStream<ServerSentEvent, any Error> {
      AsyncThrowingStream { continuation in
        continuation.yield(ServerSentEvent(event: "push", id: "\((after ?? 0) + 1)", data: "{}"))
        continuation.finish()
      }
    }
    func push(_ wanted: BrowserPush) async throws -> BrowserPush.Report {
      .init(ok: true, text: "\(wanted.message) to \(wanted.installationId)")
    }
  }

  /// Stands for the hub.
  private struct Hub: HTTPHandler {
    func respond(to request: HTTPRequest) async -> HTTPResponse { HTTPResponse(.ok, text: "hub") }
  }

  private func ask(
    _ method: HTTPMethod, _ path: String, host: String? = "localhost:8080",
    headers: HTTPHeaders = [:], body: String = ""
  ) async -> HTTPResponse {
    var headers = headers
    if let host { headers["Host"] = host }
    return await BrowserPage(controller: StubController(), next: Hub()).respond(
      to: HTTPRequest(
        method: method, target: HTTPTarget(path), headers: headers, body: Array(body.utf8)))
  }

  @Test("every file that the page names is there, under its type, and is kept to its own origin")
  func files() async throws {
    let page = await ask(.get, "/$browser/")
    #expect(page.status == .ok && page.headers["Content-Type"] == "text/html; charset=utf-8")
    let named = page.text.matches(of: /(?:href|src)="([^"#][^"]*)"/).map { String($0.1) }
    let scripts = ["local.js", "webpush.js", "worker.js"]
    #expect(Set(named) == ["icon.svg", "style.css", "hub.js", "page.js"])
    for name in named + scripts {
      let file = await ask(.get, "/$browser/" + name)
      #expect(file.status == .ok, "\(name)")
      let type =
        name.hasSuffix(".js") ? "text/javascript" : name.hasSuffix(".css") ? "text/css" : "image"
      #expect(file.headers["Content-Type"]?.hasPrefix(type) == true, "\(name)")
      let policy = try #require(file.headers["Content-Security-Policy"])
      #expect(policy.hasPrefix("default-src 'none'; script-src 'self';"))
      #expect(!policy.contains("unsafe") && !policy.contains("*"))
      #expect(file.headers["X-Content-Type-Options"] == "nosniff")
    }
  }

  @Test("without its slash the page is moved to where its files are")
  func slash() async {
    let moved = await ask(.get, "/$browser")
    #expect(moved.status.rawValue == 308 && moved.headers["Location"] == "/$browser/")
  }

  @Test(
    "everything else is the hub's", arguments: ["/", "/demo/messages", "/$health", "/browser/"])
  func others(path: String) async {
    #expect(await ask(.get, path).text == "hub")
    #expect(await ask(.get, path, host: "push.example.com").text == "hub")
  }

  @Test(
    "it answers to this machine's own names alone",
    arguments: [
      ("localhost", true), ("LOCALHOST:8080", true), ("127.0.0.1:80", true), ("[::1]:80", true),
      ("belfry.localhost", true), ("example.com", false), ("localhost.example.com", false),
      ("127.0.0.1.example.com", false), ("[::1].example.com", false), ("10.0.0.1", false),
      ("", false),
    ])
  func names(host: String, isOwn: Bool) async {
    for path in ["/$browser/", "/$browser/settings"] {
      #expect((await ask(.get, path, host: host).status == .ok) == isOwn)
    }
  }

  @Test("a page from elsewhere gets no token, and starts nothing")
  func elsewhere() async {
    for site in ["cross-site", "same-site", "none"] {
      let headers: HTTPHeaders = ["Sec-Fetch-Site": site]
      #expect(await ask(.get, "/$browser/settings", headers: headers).status == .forbidden)
    }
    for origin in ["https://localhost:8080", "http://localhost", "http://evil.example", "null"] {
      let headers: HTTPHeaders = ["Origin": origin]
      #expect(await ask(.get, "/$browser/settings", headers: headers).status == .forbidden)
    }
    let own: HTTPHeaders = ["Origin": "http://localhost:8080"]
    #expect(await ask(.get, "/$browser/settings", headers: own).status == .ok)
    // What a form can send without asking.
    let body = #"{"installationId":"a","message":"b"}"#
    for type in ["text/plain", "application/x-www-form-urlencoded"] {
      let reply = await ask(
        .post, "/$browser/pushes", headers: ["Content-Type": type], body: body)
      #expect(reply.status == .badRequest)
    }
    #expect(await ask(.post, "/$browser/pushes", body: body).status == .badRequest)
  }

  @Test("the page's own calls reach the controller")
  func calls() async throws {
    let json: HTTPHeaders = ["Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"]
    let settings = await ask(.get, "/$browser/settings", headers: json)
    #expect(settings.text.contains("localhost:8080 false"))
    #expect(settings.headers["Cache-Control"] == "no-store")
    let made = await ask(
      .post, "/$browser/subscriptions", headers: json,
      body: #"{"p256dh":"k","auth":"a","vapidPublicKey":"v"}"#)
    #expect(made.status == .created && made.text.contains("dev-1"))
    let push = await ask(
      .post, "/$browser/pushes", headers: json, body: #"{"installationId":"i","message":"m"}"#)
    #expect(push.text.contains("m to i"))
    #expect(await ask(.delete, "/$browser/subscriptions/dev-1").status == .noContent)
    #expect(await ask(.get, "/$browser/subscriptions/dev-1").status == .ok)
  }

  @Test("what is wrong is said, and what only concerns the operator is not")
  func failures() async {
    let json: HTTPHeaders = ["Content-Type": "application/json"]
    let empty = await ask(
      .post, "/$browser/subscriptions", headers: json,
      body: #"{"p256dh":"","auth":"a","vapidPublicKey":"v"}"#)
    #expect(empty.status == .badRequest && empty.text == #"{"error":"no key"}"#)
    for (method, path) in [(HTTPMethod.get, ""), (.delete, ""), (.get, "/messages")] {
      let missing = await ask(method, "/$browser/subscriptions/dev-2\(path)")
      #expect(missing.status == .notFound && missing.text.contains("subscribe again"))
    }
    let broken = await ask(.get, "/$browser/subscriptions/broken")
    #expect(broken.status.rawValue == 502 && !broken.text.contains("hunter2"))
    #expect(await ask(.get, "/$browser/nothing").status == .notFound)
    #expect(await ask(.put, "/$browser/settings").status == .methodNotAllowed)
  }

  @Test("the line to the push service goes on where it broke")
  func stream() async throws {
    let listener = try HTTPListener(handler: BrowserPage(controller: StubController(), next: Hub()))
    let client = SocketClient(port: listener.port)
    let address = "/$browser/subscriptions/dev-1/messages?after=7"
    #expect(try await client.send("GET", address).body.contains("\nid: 8\n"))
    let reply = try await client.send("GET", address, headers: ["Last-Event-ID": "41"])
    #expect(reply.headers["content-type"] == "text/event-stream")
    #expect(reply.body.contains("event: push\nid: 42\ndata: {}\n\n"))
    await listener.stop()
  }
}
