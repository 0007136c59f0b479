import Foundation
import HTTPServer
import Testing
import Wire

@testable import PushEmulator

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Web pages get nothing from the control API, whatever a browser sends for them.
@Suite("The control API")
struct ControlGuardTests {
  private func ask(
    _ headers: HTTPHeaders = [:], method: HTTPMethod = .post,
    host: String? = "127.0.0.1:9400", body: String = "{}", allowsRemoteClients: Bool = false
  ) async -> HTTPResponse {
    var router = HTTPRouter()
    router.on(method, "/v1/reset") { _, _ in HTTPResponse(.ok) }
    var headers = headers
    headers["Host"] = host
    return await ControlGuard(next: router, allowsRemoteClients: allowsRemoteClients).respond(
      to: HTTPRequest(
        method: method, target: "/v1/reset", headers: headers, body: Array(body.utf8)))
  }

  private static let json: HTTPHeaders = ["Content-Type": "application/json; charset=utf-8"]

  @Test(
    "takes a body of JSON only, which no page can send to another origin without asking",
    arguments: [
      ("text/plain", 415), ("application/x-www-form-urlencoded", 415), ("multipart/form-data", 415),
      ("", 415), ("text/plain;application/json", 415), ("application/jsonp", 415),
      ("application/json", 200), ("Application/JSON ;charset=utf-8", 200),
    ])
  func bodies(type: String, status: Int) async {
    #expect(await ask(["Content-Type": type]).status.rawValue == status)
    // Forms send a type without a body, too.
    #expect(await ask(["Content-Type": type], body: "").status.rawValue == status)
  }

  @Test("needs no type where there is no body")
  func noBody() async {
    #expect(await ask(body: "").status == .ok)
    #expect(await ask().status.rawValue == 415)
    #expect(await ask(method: .get, body: "").status == .ok)
  }

  @Test(
    "is not open to pages of other origins",
    arguments: [
      ("cross-site", nil), ("same-site", nil), ("none", nil), (nil, "https://evil.example"),
      (nil, "null"), (nil, "http://127.0.0.1:8080"), (nil, "http://localhost:9400"),
      (nil, "https://127.0.0.1:9400"), ("same-origin", "https://evil.example"),
    ] as [(String?, String?)])
  func origins(site: String?, origin: String?) async {
    var headers = Self.json
    headers["Sec-Fetch-Site"] = site
    headers["Origin"] = origin
    #expect(await ask(headers).status == .forbidden)
    #expect(await ask(headers, method: .delete, body: "").status == .forbidden)
  }

  @Test("may be read in a browser's address bar, and from its own origin")
  func ownOrigin() async {
    #expect(await ask(["Sec-Fetch-Site": "none"], method: .get, body: "").status == .ok)
    var headers = Self.json
    headers["Sec-Fetch-Site"] = "same-origin"
    headers["Origin"] = "http://127.0.0.1:9400"
    #expect(await ask(headers).status == .ok)
  }

  @Test(
    "answers to names of this machine that nobody else can give out",
    arguments: [
      ("localhost:9400", true, true), ("127.0.0.1", true, true), ("[::1]:9400", true, true),
      ("evil.example", false, false), ("127.0.0.1.evil.example:9400", false, false),
      ("localhost.evil.example", false, false), (nil, false, false), ("", false, false),
      ("emulator:9400", false, true), ("192.168.1.7:9400", false, true),
      ("[fd00::1]:9400", false, true),
    ] as [(String?, Bool, Bool)])
  func hosts(host: String?, isTaken: Bool, isTakenRemotely: Bool) async {
    for (allows, wanted) in [(false, isTaken), (true, isTakenRemotely)] {
      let reply = await ask(Self.json, host: host, allowsRemoteClients: allows)
      #expect(reply.status == (wanted ? .ok : .forbidden))
    }
  }

  @Test("keeps its devices when a page posts to it over the socket")
  func socket() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      _ = try harness.server.makeDevices(app: app, count: 3)
      let url = try #require(URL(string: harness.addresses.control + "/v1/reset"))
      for (headers, status) in [
        (["Content-Type": "text/plain"], 415),
        (["Content-Type": "application/json", "Origin": "https://evil.example"], 403),
        (["Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"], 403),
      ] {
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.httpBody = Data("{}".utf8)
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        let (_, response) = try await URLSession.shared.data(for: request)
        #expect((response as? HTTPURLResponse)?.statusCode == status)
      }
      #expect(try await harness.control("GET", "/v1/devices")["devices"]?.items.count == 3)
    }
  }
}
