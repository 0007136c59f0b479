import Foundation
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Synchronization
import Testing

@testable import PushGateways

@Suite("WNS gateway", .timeLimit(.minutes(5)))
struct WNSGatewayTests {
  static let toast = PushBody(bytes: Array("<toast><visual/></toast>".utf8))
  static let sid = "ms-app://s-1-15-2-1-2-3"

  static func live(_ server: SecureServer) -> [String: String] {
    ["PackageSid": sid, "SecretKey": "a+b/c", "WindowsLiveEndpoint": server.url("/token")]
  }

  private func withWNS(
    connections: Int? = nil, hosts: [String] = [], tokenReply: HTTPResponse? = nil,
    push: @escaping FakeService.Answer, body: (GatewayRoom) async throws -> Void
  ) async throws {
    try await withGateway(
      .wns, connections: connections, hosts: hosts, tokenReply: tokenReply, Self.live, push: push,
      body: body)
  }

  @Test("a toast goes out as WNS wants it, with the app's token")
  func toast() async throws {
    try await withWNS { _ in
      HTTPResponse(.ok, headers: ["X-WNS-Status": "received"])
    } body: { room in
      var body = Self.toast
      body.headers = ["x-wns-tag": "news", "x-wns-cache-policy": "cache", "apns-topic": "no"]
      body.expiry = 1_700_000_060
      let url = room.server.url("/?token=AwYAAAB%2bc%3d")
      let results = await room.send(body, to: [url, url])
      #expect(results.map(\.outcome) == [.success, .success])
      #expect(room.service.tokens.count == 1)
      #expect(
        room.service.tokens.first?.form == [
          "grant_type": "client_credentials", "client_id": Self.sid, "client_secret": "a+b/c",
          "scope": "notify.windows.com",
        ])
      let push = try #require(room.service.pushes.first)
      #expect(push.path == "/?token=AwYAAAB%2bc%3d")
      #expect(push.body == #"<?xml version="1.0" encoding="utf-8"?><toast><visual/></toast>"#)
      for (name, value) in [
        "authorization": "Bearer token1", "content-type": "text/xml", "x-wns-type": "wns/toast",
        "x-wns-requestforstatus": "true", "x-wns-tag": "news", "x-wns-cache-policy": "cache",
        "x-wns-ttl": "60", "content-length": "\(push.body.utf8.count)",
      ] {
        #expect(push.headers[name] == value, "\(name)")
      }
      #expect(push.headers["expect"] == nil)
      #expect(push.headers["transfer-encoding"] == nil)
      #expect(push.headers["apns-topic"] == nil)
    }
  }

  @Test("the Entra token service is asked in its own way")
  func entra() async throws {
    try await withGateway(.wns) { server in
      [
        "TenantId": "contoso.example", "ClientId": "c", "ClientSecret": "x~Y.z",
        "WindowsLiveEndpoint": server.url("/token"),
      ]
    } push: { _ in
      HTTPResponse(.ok)
    } body: { room in
      let url = room.server.url("/?token=a")
      #expect(await room.send(Self.toast, to: [url]).map(\.outcome) == [.success])
      #expect(room.service.tokens.first?.form["scope"] == "https://wns.windows.com/.default")
      #expect(room.service.tokens.first?.form["client_id"] == "c")
      let tile = PushBody(bytes: Array("<tile/>".utf8))
      let results = await room.send(tile, to: [url])
      #expect(results.map(\.outcome) == [.invalidNotificationFormat])
    }
  }

  @Test("every row of the table, by its answer", arguments: try Vectors.rows("wns"))
  func rows(row: Vectors.Row) async throws {
    guard !row.status.hasPrefix("token"), row.status != "transport" else { return }
    let status = ["4xx": 418, "5xx": 504][row.status] ?? Int(row.status) ?? 0
    let reason = row.reason
    try await withWNS { _ in
      var response = HTTPResponse(HTTPStatus(rawValue: status))
      for word in ["received", "dropped", "channelthrottled"] where reason.contains(word) {
        response.headers["x-wns-NotificationStatus"] = word.uppercased()
      }
      if reason.contains("disconnected") {
        response.headers["X-WNS-DeviceConnectionStatus"] = "Disconnected"
      }
      return response
    } body: { room in
      let results = await room.send(Self.toast, to: [room.server.url("/?token=a")])
      expectRow(row, results[0])
      #expect(results[0].status == UInt16(status))
      // One refused token is made afresh once.
      #expect(room.service.pushes.count == (row.retry == "refresh-once" ? 2 : 1))
      #expect(room.service.tokens.count == (row.retry == "refresh-once" ? 2 : 1))
    }
  }

  @Test(
    "how long to wait is what WNS says",
    arguments: [
      (406, "Retry-After", "17", Int32(17)), (406, "X-None", "", 60),
      (503, "Retry-After", "Tue, 14 Nov 2023 22:14:50 GMT", 90),
      (200, "X-WNS-CONTINUE-AFTER", "45", 45),
    ])
  func pauses(status: Int, name: String, value: String, expected: Int32) async throws {
    try await withWNS { _ in
      var response = HTTPResponse(HTTPStatus(rawValue: status), headers: [name: value])
      if status == 200 { response.headers["X-WNS-Status"] = "channelthrottled" }
      return response
    } body: { room in
      let results = await room.send(Self.toast, to: [room.server.url("/?token=a")])
      #expect(results[0].retryAfter == expected)
    }
  }

  @Test("a token that is refused is made afresh once for all, and everything goes out again")
  func refresh() async throws {
    try await withWNS { asked in
      HTTPResponse(asked.headers["authorization"] == "Bearer token1" ? .unauthorized : .ok)
    } body: { room in
      let urls = (0..<100).map { room.server.url("/?token=\($0)") }
      let results = await room.send(Self.toast, to: urls)
      #expect(results.allSatisfy { $0.outcome == .success })
      #expect(room.service.tokens.count == 2)
      // The first went ahead alone and was refused; nothing else was wasted.
      #expect(room.service.pushes.count == 101)
    }
  }

  @Test("batches that meet a refused token together refresh it once")
  func parallelRefresh() async throws {
    try await withWNS { asked in
      HTTPResponse(asked.headers["authorization"] == "Bearer token2" ? .ok : .unauthorized)
    } body: { room in
      await withTaskGroup { group in
        for batch in 0..<8 {
          group.addTask {
            let urls = (0..<10).map { room.server.url("/?token=\(batch)-\($0)") }
            let results = await room.send(Self.toast, to: urls)
            #expect(results.allSatisfy { $0.outcome == .success })
          }
        }
      }
      #expect(room.service.tokens.count == 2)
    }
  }

  @Test("a limit stops the rest of the batch, which gets the same answer")
  func throttled() async throws {
    let count = Mutex(0)
    try await withWNS(connections: 1) { _ in
      let number = count.withLock { count in
        count += 1
        return count
      }
      return number == 4
        ? HTTPResponse(HTTPStatus(rawValue: 406), headers: ["Retry-After": "30"])
        : HTTPResponse(.ok)
    } body: { room in
      let urls = (0..<50).map { room.server.url("/?token=\($0)") }
      let results = await room.send(Self.toast, to: urls)
      #expect(results.prefix(3).allSatisfy { $0.outcome == .success })
      #expect(
        results.dropFirst(3).allSatisfy {
          $0.outcome == .throttled && $0.retryAfter == 30 && $0.retry == .backoff
        })
      #expect(room.service.pushes.count == 4)
    }
  }

  @Test("a credential that the token service refuses is told for every push, which nobody sees")
  func badCredential() async throws {
    let refusal = FakeService.json(400, #"{"error":"invalid_client","error_description":"x"}"#)
    try await withWNS(tokenReply: refusal) { _ in
      HTTPResponse(.ok)
    } body: { room in
      let results = await room.send(Self.toast, to: [room.server.url("/?token=a")])
      #expect(results[0].outcome == .invalidCredentials)
      #expect(results[0].retry == .pauseCredential)
      #expect(results[0].reason == "invalid_client")
      #expect(room.service.pushes.isEmpty)
    }
  }

  @Test("no more connections than configured are used, also by several batches")
  func connections() async throws {
    try await withWNS(connections: 3) { _ in
      for _ in 0..<20 { await Task.yield() }
      return HTTPResponse(.ok)
    } body: { room in
      await withTaskGroup { group in
        for _ in 0..<3 {
          group.addTask {
            let urls = (0..<30).map { room.server.url("/?token=\($0)") }
            _ = await room.send(Self.toast, to: urls)
          }
        }
      }
      #expect(room.service.pushes.count == 90)
      #expect(room.service.most <= 3)
    }
  }

  @Test(
    "a channel that is no address of WNS, or leads to this machine, is not called",
    arguments: [
      "https://evil.example/?token=a", "http://db5.notify.windows.com/?token=a",
      "https://db5.notify.windows.com:8443/?token=a", "https://a@db5.notify.windows.com/",
      "https://notify.windows.com.evil.example/", "https://evilnotify.windows.com/", "", "token",
      "https://127.0.0.2/", "https://[::1]/", "https://db5.notify.windows.com@evil.example/",
      #"https://evil.example\@db5.notify.windows.com/"#, "https://db5.notify.windows.com./",
    ])
  func badChannels(url: String) async throws {
    try await withWNS { _ in
      HTTPResponse(.ok)
    } body: { room in
      let good = room.server.url("/?token=a")
      let results = await room.send(Self.toast, to: [url, good])
      #expect(results.map(\.outcome) == [.badChannel, .success])
      #expect(results[0].handle == .keep)
      #expect(room.service.pushes.count == 1)
    }
  }

  @Test("a host that is not there fails alone")
  func hostDown() async throws {
    try await withWNS(hosts: [".invalid"]) { _ in
      HTTPResponse(.ok)
    } body: { room in
      let urls = (0..<20).map {
        $0 % 2 == 0 ? room.server.url("/?token=\($0)") : "https://nowhere.invalid/?token=\($0)"
      }
      let results = await room.send(Self.toast, to: urls)
      for (index, result) in results.enumerated() {
        #expect(result.outcome == (index % 2 == 0 ? .success : .pnsUnreachable))
        #expect(result.retry == (index % 2 == 0 ? .final : .backoff))
      }
    }
  }
}

@Suite("WNS notifications")
struct WNSMessageTests {
  private func outcome(_ body: PushBody) -> NotificationOutcome {
    do throws(PushRefusal) {
      _ = try WNSBody(body, isEntra: false, now: 0)
      return .success
    } catch {
      return error.result.outcome
    }
  }

  @Test(
    "the type follows from the root, the header, or the content type",
    arguments: [
      ("<toast/>", nil, "wns/toast"), ("<tile a='b'/>", nil, "wns/tile"),
      ("<?xml version='1.0'?>\n<!-- x --><badge value='1'/>", nil, "wns/badge"),
      ("<toast/>", "WNS/Toast", "wns/toast"), ("anything", "wns/raw", "wns/raw"),
      ("<toast/>", "wns/raw", "wns/raw"),
    ])
  func types(text: String, header: String?, expected: String) throws {
    var body = PushBody(bytes: Array(text.utf8))
    body.headers["x-wns-type"] = header
    let message = try WNSBody(body, isEntra: false, now: 0)
    #expect(message.headers.contains { $0.name == "x-wns-type" && $0.value == expected })
    let contentType = expected == "wns/raw" ? "application/octet-stream" : "text/xml"
    #expect(message.headers.contains { $0.name == "Content-Type" && $0.value == contentType })
    if expected == "wns/raw" { #expect(message.body == Array(text.utf8)) }
  }

  @Test(
    "what has no type, or not the one it says, is refused",
    arguments: [
      ("{}", nil), ("", nil), ("<other/>", nil), ("<toast/>", "wns/tile"),
      ("<toast/>", "wns/thing"), ("x", "wns/toast"), ("<", nil), ("<!DOCTYPE x><toast/>", nil),
      ("<?xml", nil),
    ])
  func badTypes(text: String, header: String?) {
    var body = PushBody(bytes: Array(text.utf8))
    body.headers["x-wns-type"] = header
    #expect(outcome(body) == .invalidNotificationFormat)
  }

  @Test(
    "header values that WNS refuses are refused here",
    arguments: [
      ("x-wns-tag", "aaaaaaaaaaaaaaaaa"), ("x-wns-tag", "a b"), ("x-wns-group", ""),
      ("x-wns-ttl", "0"), ("x-wns-ttl", "soon"), ("x-wns-priority", "5"),
      ("x-wns-cache-policy", "maybe"),
    ])
  func badHeaders(name: String, value: String) {
    let body = PushBody(bytes: Array("<toast/>".utf8), headers: [name: value])
    #expect(outcome(body) == .invalidNotificationFormat)
  }

  @Test(
    "5000 bytes are the limit",
    arguments: [(5000, NotificationOutcome.success), (5001, .invalidNotificationSize)])
  func size(count: Int, expected: NotificationOutcome) {
    let raw = PushBody(
      bytes: [UInt8](repeating: 65, count: count), headers: ["x-wns-type": "wns/raw"])
    #expect(outcome(raw) == expected)
    let text = "<toast>" + String(repeating: " ", count: count - 15) + "</toast>"
    #expect(outcome(PushBody(bytes: Array(text.utf8))) == expected)
  }

  @Test("a declaration of UTF-16 on UTF-8 text is put right")
  func declaration() throws {
    let text = #"<?xml version="1.0" encoding="utf-16"?><toast/>"#
    let message = try WNSBody(PushBody(bytes: Array(text.utf8)), isEntra: false, now: 0)
    #expect(
      String(decoding: message.body, as: UTF8.self)
        == #"<?xml version="1.0" encoding="utf-8"?><toast/>"#)
  }

  @Test(
    "a credential is read with or without ms-app://, and a wrong one says what to do",
    arguments: [
      (["PackageSid": "S-1-15-2-1-2", "SecretKey": "x"], nil),
      (["PackageSid": "ms-app://s-1-15-2-1", "SecretKey": " x\n"], nil),
      (["PackageSid": "com.example.app", "SecretKey": "x"], "PackageSid"),
      (["PackageSid": "s-1-15-2-1"], "SecretKey"), ([:], "PackageSid"),
      (["PackageSid": "s-1-15-2-1", "SecretKey": "x", "WindowsLiveEndpoint": "http://a"], "https"),
      (["WnsCertificate": "MII", "CertificateKey": ""], "WnsCertificate"),
      (["TenantId": "a/b", "ClientId": "c", "ClientSecret": "s"], "TenantId"),
      (["TenantId": "t", "ClientId": "c"], "ClientSecret"),
    ])
  func credentials(properties: [String: String], fault: String?) {
    let credential = PushCredential(
      platform: .wns, properties: properties, modifiedAt: Date(timeIntervalSince1970: 0))
    do throws(CredentialError) {
      let read = try WNSCredential(credential)
      #expect(fault == nil)
      #expect(read.clientID.hasPrefix("ms-app://"))
    } catch {
      #expect(fault.map { error.description.contains($0) } == true, "\(error)")
    }
  }
}
