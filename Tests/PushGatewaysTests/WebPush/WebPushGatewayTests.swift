import Cryptography
import Foundation
import HTTP2
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Synchronization
import Testing
import Wire

@testable import PushGateways

@Suite("The Web Push gateway", .timeLimit(.minutes(5)))
struct WebPushGatewayTests {
  @Test("every browser gets the message, encrypted for it alone, under one VAPID token")
  func delivery() async throws {
    let bench = try WebPushBench()
    let browsers = try bench.browsers(150)
    let results = await (try bench.gateway()).deliver(try WebPushBench.batch(browsers))
    #expect(results.allSatisfy { $0.outcome == .success })
    #expect(bench.fake.seen.count == 150)
    #expect(bench.fake.tokens.count == 1)
    for seen in bench.fake.seen {
      let number = try #require(Int(seen.path.dropFirst("/wp/".count)))
      #expect(try browsers[number].open(seen.bytes) == #"{"title":"hi"}"#)
      #expect(seen.method == "POST")
      #expect(seen.authority == "localhost:\(bench.server.port)")
      #expect(seen.fields["ttl"] == "2419200")
      #expect(seen.fields["content-encoding"] == "aes128gcm")
      #expect(seen.fields["content-type"] == "application/octet-stream")
      #expect(seen.fields["content-length"] == String(seen.bytes.count))
      #expect(seen.fields["urgency"] == nil && seen.fields["topic"] == nil)
    }
  }

  @Test("the VAPID token names the origin, lives twelve hours and is renewed after six")
  func vapid() async throws {
    let bench = try WebPushBench()
    let gateway = try bench.gateway()
    let batch = try WebPushBench.batch(try bench.browsers(1))
    _ = await gateway.deliver(batch)
    bench.clock.advance(by: .seconds(6 * 3600 - 1))
    _ = await gateway.deliver(batch)
    #expect(bench.fake.tokens.count == 1)
    let header = try #require(bench.fake.tokens.first)
    let parts = header.split(separator: " ")
    #expect(parts[0] == "vapid")
    let token = try CompactJWS(String(parts[1].dropFirst(2).dropLast()))
    let pair = PushFixture.all.keys.p256
    #expect(parts[2] == "k=\(pair.public_uncompressed_b64u)")
    let point = try #require(Base64URL.decode(pair.public_uncompressed_b64u))
    #expect(token.verifies(with: try P256PublicKey(point: point)))
    #expect(token.header.string("typ") == "JWT")
    #expect(token.claims.string("aud") == bench.origin)
    let end: Int64 = 1_700_000_000 + 12 * 3600
    #expect(token.claims.integer("exp") == end)
    #expect(token.claims.string("sub") == "mailto:ops@example.com")
    bench.clock.advance(by: .seconds(2))
    _ = await gateway.deliver(batch)
    #expect(bench.fake.tokens.count == 2)
  }

  @Test("TTL, Urgency and Topic come from the sender; without a TTL the expiry counts")
  func headers() async throws {
    let bench = try WebPushBench()
    let browser = try bench.browsers(1)
    let gateway = try bench.gateway()
    func send(_ headers: [String: String], expiry: Int64? = nil) async throws -> PushResult {
      let body = PushBody(bytes: Array("{}".utf8), headers: headers, expiry: expiry)
      return await gateway.deliver(try WebPushBench.batch(browser, body: body))[0]
    }
    #expect(
      try await send(["ttl": "60", "urgency": "HIGH", "topic": "a-B_9"]).outcome == .success)
    #expect(bench.fake.seen.last?.fields["ttl"] == "60")
    #expect(bench.fake.seen.last?.fields["urgency"] == "high")
    #expect(bench.fake.seen.last?.fields["topic"] == "a-B_9")
    for (expiry, ttl) in [
      (1_700_000_030, "30"), (0, "0"), (1_600_000_000, "0"), (Int64.max, "2419200"),
      (Int64.min, "0"),
    ] as [(Int64, String)] {
      #expect(try await send([:], expiry: expiry).outcome == .success)
      #expect(bench.fake.seen.last?.fields["ttl"] == ttl)
    }
    let count = bench.fake.seen.count
    for bad in [
      ["ttl": "-1"], ["ttl": "1.5"], ["ttl": "99999999999"], ["urgency": "now"],
      ["topic": "no blanks"], ["topic": String(repeating: "x", count: 33)],
    ] {
      #expect(try await send(bad).outcome == .invalidNotificationFormat)
    }
    #expect(bench.fake.seen.count == count)
  }

  @Test("a row of the table is what an answer comes to", arguments: PushFixture.all.webPushRows)
  func answers(row: Vectors.Row) async throws {
    let groups = ["200|202|204": 202, "3xx": 307, "4xx": 418, "5xx": 504]
    guard let status = Int(row.status) ?? groups[row.status] else { return }
    let bench = try WebPushBench { request, _ in
      request.path == "/elsewhere"
        ? .status(201) : .refuse(status, "{}", [("location", "/elsewhere")])
    }
    let browsers = try bench.browsers(2)
    let results = await (try bench.gateway()).deliver(try WebPushBench.batch(browsers))
    for result in results {
      #expect(result.outcome.name == row.outcome)
      #expect((result.handle == .remove) == (row.handle == "remove"))
      #expect((result.retry == .backoff) == (row.retry == "backoff"))
      #expect(row.outcome == "Success" || result.status == UInt16(status))
    }
    #expect(!bench.fake.seen.contains { $0.path == "/elsewhere" })
  }

  @Test("Retry-After is handed on, as seconds or as a date")
  func retryAfter() async throws {
    for (value, seconds) in [("120", 120), ("Tue, 14 Nov 2023 22:14:50 GMT", 90), ("soon", nil)]
      as [(String, Int32?)]
    {
      let bench = try WebPushBench { _, _ in .refuse(429, "", [("retry-after", value)]) }
      let browsers = try bench.browsers(1)
      let results = await (try bench.gateway()).deliver(try WebPushBench.batch(browsers))
      #expect(results[0].outcome == .throttled && results[0].retryAfter == seconds)
    }
  }

  @Test(
    "a subscription made with another key counts as the credential's fault until the key has worked",
    arguments: [
      (400, #"{"reason":"VapidPkHashMismatch"}"#),
      (403, "the VAPID credentials do not correspond to the credentials of the subscription"),
    ])
  func foreignKey(status: Int, body: String) async throws {
    let bench = try WebPushBench { request, _ in
      request.path == "/wp/0" ? .refuse(status, body) : .status(201)
    }
    let browsers = try bench.browsers(2)
    let gateway = try bench.gateway()
    let alone = await gateway.deliver(try WebPushBench.batch([browsers[0]]))[0]
    #expect(alone.outcome == .invalidCredentials && alone.handle == .keep)
    let beside = await gateway.deliver(try WebPushBench.batch(browsers))
    #expect(beside.map(\.outcome) == [.badChannel, .success])
    #expect(beside[0].handle == .remove)
    bench.clock.advance(by: .seconds(3601))
    let later = await gateway.deliver(try WebPushBench.batch([browsers[0]]))[0]
    #expect(later.outcome == .invalidCredentials && later.handle == .keep)
  }

  @Test("a subscription that cannot be encrypted for, or is none, is removed without a request")
  func badSubscriptions() async throws {
    let bench = try WebPushBench()
    let good = try bench.browsers(1)[0]
    let parts = try good.handle.split(separator: "\n").map(String.init)
    var point = try #require(Base64URL.decode(parts[1]))
    point[64] ^= 1
    let handles = [
      "\(parts[0])\n\(Base64URL.encode(point))\n\(parts[2])", "\(parts[0])\n\(parts[1])\nAAAA",
      "\(parts[0])\nAAAA\n\(parts[2])", "\(parts[0])\n\(parts[1])", parts[0], "",
      "http://localhost/wp/0\n\(parts[1])\n\(parts[2])", "no url\n\(parts[1])\n\(parts[2])",
      try good.handle,
    ]
    let results = await (try bench.gateway()).deliver(WebPushBench.batch(handles: handles))
    for result in results.dropLast() {
      #expect(result.outcome == .badChannel && result.handle == .remove)
      #expect(result.retry == .final)
    }
    #expect(results.last?.outcome == .success)
    #expect(bench.fake.seen.count == 1)
  }

  @Test("a message over 3993 bytes is too large, one of 3993 goes out with 4096")
  func size() async throws {
    let bench = try WebPushBench()
    let browsers = try bench.browsers(1)
    let gateway = try bench.gateway()
    for (count, outcome) in [(3993, NotificationOutcome.success), (3994, .invalidNotificationSize)]
    {
      let body = PushBody(bytes: [UInt8](repeating: 0x30, count: count))
      let results = await gateway.deliver(try WebPushBench.batch(browsers, body: body))
      #expect(results[0].outcome == outcome && results[0].handle == .keep)
    }
    #expect(bench.fake.seen.map(\.bytes.count) == [4096])
  }

  @Test("a push without a message has no body and no encoding")
  func empty() async throws {
    let bench = try WebPushBench()
    let browsers = try bench.browsers(1)
    let results = await (try bench.gateway()).deliver(
      try WebPushBench.batch(browsers, body: PushBody(bytes: [])))
    #expect(results[0].outcome == .success)
    let seen = try #require(bench.fake.seen.first)
    #expect(seen.bytes.isEmpty && seen.fields["content-encoding"] == nil)
    #expect(seen.fields["content-length"] == "0")
  }

  @Test("one batch reaches the services of several origins")
  func origins() async throws {
    let (first, second) = (try WebPushBench(), try WebPushBench())
    let browsers = try first.browsers(3) + second.browsers(2) + first.browsers(1)
    let results = await (try first.gateway()).deliver(try WebPushBench.batch(browsers))
    #expect(results.allSatisfy { $0.outcome == .success })
    #expect(first.fake.seen.count == 4 && second.fake.seen.count == 2)
    #expect(first.fake.tokens.isDisjoint(with: second.fake.tokens))
  }

  @Test("a push service without HTTP/2 is spoken to over HTTP/1.1")
  func oldHTTP() async throws {
    let seen = Mutex<[(String, [UInt8], String?)]>([])
    try await withSecureServer { request in
      seen.withLock {
        $0.append((request.target.description, request.body, request.headers["content-encoding"]))
      }
      return HTTPResponse(request.target.description == "/wp/1" ? 410 : 201)
    } body: { server in
      var configuration = PushGatewaysConfiguration.forStandIns
      configuration.extraAnchorsPEM = server.anchors
      configuration.allowedHosts = ["localhost"]
      let gateway = try WebPushGateways(
        supplies: GatewaySupplies(configuration, clock: .system, random: .system)
      )
      .gateway(
        for: PushFixture.webPush())
      let browsers = try (0..<3).map { try FakeBrowser(endpoint: server.url("/wp/\($0)")) }
      let results = await gateway.deliver(try WebPushBench.batch(browsers))
      #expect(results.map(\.outcome) == [.success, .expiredChannel, .success])
      for (path, body, encoding) in seen.withLock({ $0 }) {
        let number = try #require(Int(path.dropFirst("/wp/".count)))
        #expect(try browsers[number].open(body) == #"{"title":"hi"}"#)
        #expect(encoding == "aes128gcm")
      }
    }
  }
}
