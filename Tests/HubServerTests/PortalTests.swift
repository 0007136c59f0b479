import Cryptography
import Foundation
import HTTPServer
import HubCore
import HubServer
import Testing
import Wire

/// The files of the portal as they lie in the repository, by their names below the folder.
private func files() throws -> [String: [UInt8]] {
  let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appending(path: "../../Sources/HubServer/Portal/Files").standardizedFileURL.path
  var files: [String: [UInt8]] = [:]
  for name in try FileManager.default.subpathsOfDirectory(atPath: folder) {
    guard name.contains("."), let data = FileManager.default.contents(atPath: folder + "/" + name)
    else { continue }
    files[name] = Array(data)
  }
  return files
}

private struct Hub: HTTPHandler {
  func respond(to request: HTTPRequest) async -> HTTPResponse { HTTPResponse(.ok, text: "hub") }
}

@Suite("The portal")
struct PortalTests {
  private struct StubController: PortalController {
    static let key = "k3y"
    func key() async throws -> String { Self.key }
    func signIn(host: String, isSecure: Bool) async throws -> LocalSignIn {
      LocalSignIn(connectionString: "Endpoint=sb://\(host)", hub: "demo", emulator: true)
    }
    func emulate(_ call: EmulatorCall) async throws -> HTTPResponse {
      struct Secret: Error { let password = "hunter2" }
      if call.path.contains("broken") { throw Secret() }
      let body = String(decoding: call.body, as: UTF8.self)
      return HTTPResponse(.created, text: "\(call.method.rawValue) \(call.path) \(body)")
    }
    func events(
      _ call: EmulatorCall, after: Int?
    ) async throws -> AsyncThrowingStream<ServerSentEvent, any Error> {
      AsyncThrowingStream { continuation in
        continuation.yield(ServerSentEvent(event: call.path, id: "\(after ?? -1)", data: "{}"))
        continuation.finish()
      }
    }
  }

  /// What a browser of this machine that is known sends for a page of its own origin.
  private static let own: HTTPHeaders = [
    "Host": "localhost:8080", "Sec-Fetch-Site": "same-origin",
    "Cookie": "belfry-local-8080=\(half("cookie", 8080))", "Belfry-Portal-Half": half("page", 8080),
  ]

  /// What a browser is known by that was shown the key at a port.
  private static func half(_ whose: String, _ port: Int) -> String {
    let text = "belfry portal \(whose) \(port)"
    let code = try? MessageAuthentication.code(
      of: Array(text.utf8), key: Array(StubController.key.utf8))
    return Base64URL.encode(code ?? [])
  }

  private func ask(
    _ method: HTTPMethod, _ path: String, headers: HTTPHeaders = own, body: String = "",
    from address: String = "127.0.0.1", controller: (any PortalController)? = StubController()
  ) async -> HTTPResponse {
    await Portal(controller: controller, next: Hub()).respond(
      to: HTTPRequest(
        method: method, target: HTTPTarget(path), headers: headers, body: Array(body.utf8),
        remoteAddress: address))
  }

  private static func with(_ headers: HTTPHeaders) -> HTTPHeaders {
    var all = own
    for (name, value) in headers { all[name] = value }
    return all
  }

  @Test("every file is in the program as it lies in the repository")
  func embedded() async throws {
    for (name, bytes) in try files() {
      let reply = await ask(.get, "/$portal/" + name)
      #expect(reply.status == .ok && reply.bytes == bytes, "\(name): is it in CWebFiles/files.c?")
    }
  }

  @Test(
    "who reads gzip gets a file so, under a tag of its own",
    arguments: [
      ("gzip, deflate, br", true), ("GZIP;q=0.5", true), ("br, gzip; q=1.0", true), ("", false),
      ("br", false), ("gzip;q=0", false), ("gzip; q=0.000", false), ("identity, xgzip", false),
    ])
  func compression(accepted: String, isCompressed: Bool) async throws {
    let path = "/$portal/app.js"
    let whole = try #require(try files()["app.js"])
    let reply = await ask(.get, path, headers: Self.with(["Accept-Encoding": accepted]))
    #expect((reply.headers["Content-Encoding"] == "gzip") == isCompressed)
    #expect(reply.headers["Vary"] == "Accept-Encoding")
    let bytes = reply.bytes
    if isCompressed {
      // The header of gzip, and the length of the whole at its end.
      #expect(bytes.starts(with: [0x1f, 0x8b, 8]) && bytes.count < whole.count / 2)
      let length = bytes.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
      #expect(length == whole.count)
    } else {
      #expect(bytes == whole)
    }
    let tag = try #require(reply.headers["ETag"])
    for other in ["gzip", "br"] {
      let again = await ask(
        .get, path, headers: Self.with(["Accept-Encoding": other, "If-None-Match": tag]))
      #expect((again.status == .notModified) == ((other == "gzip") == isCompressed))
    }
  }

  @Test("a browser that opens the root is sent to the portal, and no program is")
  func root() async {
    let browser = await ask(.get, "/", headers: ["Accept": "text/html,*/*;q=0.8"])
    #expect(browser.status.rawValue == 302 && browser.headers["Location"] == "/$portal/")
    #expect(await ask(.get, "/", headers: ["Accept": "*/*"]).text == "hub")
    let signed: HTTPHeaders = ["Accept": "text/html", "Authorization": "SharedAccessSignature x"]
    #expect(await ask(.get, "/", headers: signed).text == "hub")
    #expect(await ask(.post, "/", headers: ["Accept": "text/html"]).text == "hub")
    let bare = await ask(.get, "/$portal")
    #expect(bare.status.rawValue == 308 && bare.headers["Location"] == "/$portal/")
  }

  @Test(
    "every page has an address of its own, and a file that is missing is no page",
    arguments: [
      ("/$portal/", 200), ("/%24portal/", 200), ("/$portal/hubs/demo/devices/my.phone", 200),
      ("/$portal/hubs/a.b", 200), ("/$portal/devices?tag=a.b", 200), ("/$portal/nothing.js", 404),
      ("/$portal/pages/nothing.js", 404), ("/$portal/texts/xx", 404),
      ("/$portal/hubs/../x", 400), ("/$portal/%2e%2e/x", 400),
    ])
  func deepLinks(path: String, status: Int) async throws {
    let reply = await ask(.get, path)
    #expect(reply.status.rawValue == status)
    if status == 200 { #expect(reply.bytes == (try files()["portal.html"])) }
  }

  @Test(
    "what surrounds the portal is the hub's",
    arguments: ["/demo/messages", "/$health", "/portal/"])
  func others(path: String) async {
    #expect(await ask(.get, path).text == "hub")
  }

  @Test("nothing but the portal's own scripts runs in it, and no other page shows it")
  func policy() async throws {
    for path in ["/$portal/", "/$portal/icon.svg", "/$portal/local", "/$portal/nothing.js"] {
      let reply = await ask(.get, path)
      let policy = try #require(reply.headers["Content-Security-Policy"])
      #expect(
        policy.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) } == [
          "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:",
          "connect-src 'self'", "worker-src 'self'", "require-trusted-types-for 'script'",
          "trusted-types worker", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
        ])
      #expect(reply.headers["X-Content-Type-Options"] == "nosniff")
      #expect(reply.headers["Referrer-Policy"] == "no-referrer")
    }
  }

  @Test("a file that has not changed is not sent again")
  func entityTags() async throws {
    let first = await ask(.get, "/$portal/")
    let tag = try #require(first.headers["ETag"])
    #expect(first.headers["Cache-Control"] == "no-cache")
    for known in [tag, "W/\(tag)", "\"other\", \(tag)"] {
      let again = await ask(.get, "/$portal/", headers: Self.with(["If-None-Match": known]))
      #expect(again.status == .notModified && again.bytes.isEmpty && again.headers["ETag"] == tag)
    }
    let other = await ask(.get, "/$portal/", headers: Self.with(["If-None-Match": "\"0\""]))
    #expect(other.status == .ok)
    #expect(await ask(.get, "/$portal/icon.svg").headers["ETag"] != tag)
    #expect(await ask(.post, "/$portal/").status == .methodNotAllowed)
  }

  @Test("the local user is signed in where there is one, and nowhere else")
  func local() async {
    let reply = await ask(.get, "/$portal/local")
    #expect(
      reply.status == .ok && reply.text.contains("sb:\\/\\/localhost:8080")
        && reply.headers["Cache-Control"] == "no-store")
    #expect(await ask(.get, "/$portal/local", controller: nil).status == .notFound)
    #expect(await ask(.get, "/$portal/emulator/v1/apps", controller: nil).status == .notFound)
    #expect(await ask(.post, "/$portal/local").status == .methodNotAllowed)
  }

  @Test(
    "keys and emulator are for a browser of this machine alone, on a page of this origin",
    arguments: ["/$portal/local", "/$portal/emulator/v1/apps"])
  func guards(path: String) async {
    func refuses(_ headers: HTTPHeaders, from address: String = "127.0.0.1") async -> Bool {
      let reply = await ask(.get, path, headers: headers, from: address)
      return reply.status == .forbidden && !reply.text.contains("Endpoint")
    }
    for address in ["10.0.0.1", "192.168.1.5", "::2", "", "1270.0.0.1"] {
      #expect(await refuses(Self.own, from: address), "\(address)")
    }
    for address in ["127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"] {
      #expect(await !refuses(Self.own, from: address), "\(address)")
    }
    for host in ["evil.example", "localhost.evil.example", "10.0.0.1:8080", ""] {
      #expect(await refuses(Self.with(["Host": host])), "\(host)")
    }
    for site in ["cross-site", "same-site", "none"] {
      #expect(await refuses(Self.with(["Sec-Fetch-Site": site])), "\(site)")
    }
    #expect(await refuses(["Host": "localhost:8080"]), "no browser at all")
    for origin in ["http://evil.example", "null", "http://localhost"] {
      #expect(await refuses(Self.with(["Origin": origin])), "\(origin)")
    }
    #expect(await !refuses(Self.with(["Origin": "http://localhost:8080"])))
    // A tunnel into this machine: its other end is anybody.
    for name in ["X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "Via"] {
      #expect(await refuses(Self.with([name: "127.0.0.1"])), "\(name)")
    }
  }

  @Test(
    "a browser is known once it was shown the key that was printed: a tunnel's other end has none",
    arguments: ["/$portal/local", "/$portal/emulator/v1/apps"])
  func printedKey(path: String) async throws {
    func ask(_ headers: HTTPHeaders) async -> HTTPResponse {
      await self.ask(.get, path, headers: headers)
    }
    let page: HTTPHeaders = ["Host": "localhost:8080", "Sec-Fetch-Site": "same-origin"]
    func with(_ fields: (name: String, value: String)...) -> HTTPHeaders {
      var headers = page
      for (name, value) in fields { headers[name] = value }
      return headers
    }
    func cookie(_ value: String, port: Int = 8080) -> (String, String) {
      ("Cookie", "belfry-local-\(port)=\(value)")
    }
    let ofPage = ("Belfry-Portal-Half", Self.half("page", 8080))
    let ofCookie = Self.half("cookie", 8080)
    for headers in [
      page, with(("Belfry-Portal-Key", "")), with(("Belfry-Portal-Key", "k3yy")),
      with(cookie("other"), ofPage), with(cookie(StubController.key), ofPage),
      // The one half without the other: all that another port of this machine is sent, and all that
      // a script can read.
      with(cookie(ofCookie)), with(ofPage),
      with(cookie(ofCookie), ("Belfry-Portal-Half", ofCookie)),
      // Of another program on this machine, and one too many.
      with(cookie(ofCookie, port: 9090), ofPage),
      with(cookie(Self.half("cookie", 9090)), ("Belfry-Portal-Half", Self.half("page", 9090))),
      with(cookie("\(ofCookie); belfry-local-8080=x"), ofPage),
    ] {
      let reply = await ask(headers)
      #expect(reply.status == .unauthorized && !reply.text.contains("Endpoint"))
      #expect(reply.headers["Set-Cookie"] == nil)
    }
    let shown = await ask(with(("Belfry-Portal-Key", StubController.key)))
    #expect(shown.status.rawValue < 300)
    if path == "/$portal/local" {
      let cookie = try #require(shown.headers["Set-Cookie"])
      #expect(cookie.hasPrefix("belfry-local-8080=\(ofCookie); "))
      #expect(cookie.contains("; HttpOnly; SameSite=Strict"))
      #expect(shown.text.contains(#""half":"\#(ofPage.1)""#))
    }
    let known = await ask(with(cookie(ofCookie), ofPage))
    #expect(known.status.rawValue < 300 && known.headers["Set-Cookie"] == nil)
    #expect(!known.text.contains("half"))
  }

  @Test("a call goes to the emulator as it came, and only to its control API")
  func emulator() async {
    let json = Self.with(["Content-Type": "application/json"])
    let made = await ask(
      .post, "/$portal/emulator/v1/devices?a=b%20c", headers: json, body: #"{"count":1}"#)
    #expect(made.status == .created && made.text == #"POST v1/devices?a=b%20c {"count":1}"#)
    #expect(await ask(.get, "/$portal/emulator/v1/devices/a%2Fb").text == "GET v1/devices/a%2Fb ")
    for path in ["/$portal/emulator/", "/$portal/emulator/v2/apps", "/$portal/local/x"] {
      #expect(await ask(.get, path).status == .notFound, "\(path)")
    }
    #expect(await ask(.get, "/$portal/emulator/v1/../x").status == .badRequest)
    let form = Self.with(["Content-Type": "text/plain"])
    #expect(
      await ask(.post, "/$portal/emulator/v1/reset", headers: form, body: "{}").status.rawValue
        == 415)
    let broken = await ask(.get, "/$portal/emulator/v1/broken")
    #expect(broken.status.rawValue == 502 && !broken.text.contains("hunter2"))
  }

  @Test("the events of the emulator go on where the line broke")
  func events() async throws {
    let listener = try HTTPListener(handler: Portal(controller: StubController(), next: Hub()))
    let client = SocketClient(port: listener.port)
    let path = "/$portal/emulator/v1/devices/dev-1/events"
    var own = [
      "Sec-Fetch-Site": "same-origin",
      "Cookie": "belfry-local-\(listener.port)=\(Self.half("cookie", Int(listener.port)))",
      "Belfry-Portal-Half": Self.half("page", Int(listener.port)),
    ]
    let reply = try await client.send("GET", path + "?after=7", headers: own)
    #expect(reply.headers["content-type"] == "text/event-stream")
    #expect(reply.body.contains("event: v1/devices/dev-1/events\nid: 7\ndata: {}\n\n"))
    own["Last-Event-ID"] = "41"
    let again = try await client.send("GET", path, headers: own)
    #expect(again.body.contains("\nid: 41\n"))
    await listener.stop()
  }
}

extension HTTPResponse {
  var bytes: [UInt8] { if case .bytes(let bytes) = body { bytes } else { [] } }
}
