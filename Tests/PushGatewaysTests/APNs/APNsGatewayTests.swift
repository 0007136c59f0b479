import Cryptography
import HTTP2
import HubCore
import NotificationHubs
import Synchronization
import Testing

@testable import PushGateways

@Suite("The APNs gateway over TLS", .timeLimit(.minutes(5)))
struct APNsGatewayTests {
  @Test("a push arrives with its path, headers, id and body")
  func arrival() async throws {
    let bench = try APNsBench()
    let results = await (try bench.tokenGateway()).deliver(.alerts(1))
    #expect(results.map(\.outcome) == [.success])
    #expect(results.map(\.status) == [200])
    let seen = try #require(bench.fake.seen.first)
    #expect(seen.method == "POST")
    #expect(seen.path == "/3/device/" + PushBatch.token(1))
    #expect(seen.authority == "localhost:\(bench.server.port)")
    #expect(seen.body == #"{"aps":{"alert":"hi"}}"#)
    var fields = seen.fields
    fields["content-length"] = nil
    let authorization = try #require(fields["authorization"])
    fields["authorization"] = nil
    #expect(
      fields == [
        "apns-topic": "com.example.app", "apns-push-type": "alert", "apns-priority": "10",
        "apns-id": "deadbeef-cafe-f00d-0000-000000000001",
      ])
    let token = try CompactJWS(String(authorization.dropFirst("bearer ".count)))
    #expect(token.claims.string("iss") == "DEF123GHIJ")
    #expect(token.verifies(with: try P256PublicKey(pem: APNsFixture.all.publicKeyPEM)))
  }

  @Test("several bodies with their own headers travel in one batch")
  func severalBodies() async throws {
    let bench = try APNsBench()
    var batch = PushBatch(bodies: [
      PushBody(bytes: Array(#"{"aps":{"alert":"a"}}"#.utf8)),
      PushBody(bytes: Array(#"{"aps":{"content-available":1}}"#.utf8)),
      PushBody(
        bytes: Array(#"{"aps":{"alert":"c"}}"#.utf8),
        headers: ["apns-id": "8f14e45f-ceea-467f-a0e6-1f2f3a4b5c6d", "apns-collapse-id": "x"],
        expiry: 5),
    ])
    for number in 0..<30 { batch.add(PushBatch.token(number), body: Int32(number % 3)) }
    let results = await (try bench.tokenGateway()).deliver(batch)
    #expect(results.allSatisfy { $0.outcome == .success })
    #expect(bench.fake.accepted.count == 30)
    for seen in bench.fake.accepted {
      let number = try #require((0..<30).first { seen.path.hasSuffix(PushBatch.token($0)) })
      let isBackground = number % 3 == 1
      #expect(seen.fields["apns-push-type"] == (isBackground ? "background" : "alert"))
      #expect(seen.fields["apns-priority"] == (isBackground ? "5" : "10"))
      #expect(seen.fields["apns-expiration"] == (number % 3 == 2 ? "5" : nil))
      #expect(seen.body == String(decoding: batch.bodies[number % 3].bytes, as: UTF8.self))
      if number % 3 == 2 {
        #expect(seen.fields["apns-id"] == "8f14e45f-ceea-467f-a0e6-1f2f3a4b5c6d")
      }
    }
  }

  @Test("a thousand bodies with headers of their own keep them")
  func ownHeaders() async throws {
    let bench = try APNsBench()
    let bodies = (0..<1000).map { number in
      PushBody(
        bytes: Array(#"{"aps":{"alert":"\#(number)"}}"#.utf8),
        headers: ["apns-collapse-id": "c\(number / 2)"])
    }
    var batch = PushBatch(bodies: bodies)
    for number in bodies.indices { batch.add(PushBatch.token(number), body: Int32(number)) }
    let results = await (try bench.tokenGateway()).deliver(batch)
    #expect(results.allSatisfy { $0.outcome == .success })
    let expected = bodies.indices.map { number in
      "/3/device/\(PushBatch.token(number)) c\(number / 2) {\"aps\":{\"alert\":\"\(number)\"}}"
    }
    let seen = bench.fake.accepted.map {
      "\($0.path) \($0.fields["apns-collapse-id"] ?? "") \($0.body)"
    }
    #expect(Set(seen) == Set(expected))
    #expect(seen.count == expected.count)
  }

  @Test("what APNs would refuse for its form is not sent")
  func localRefusals() async throws {
    let bench = try APNsBench()
    func padded(_ count: Int) -> [UInt8] {
      Array("{}".utf8) + [UInt8](repeating: 0x20, count: count - 2)
    }
    var batch = PushBatch(bodies: [
      PushBody(bytes: padded(4096)), PushBody(bytes: padded(4097)),
      PushBody(bytes: Array("[]".utf8)),
      PushBody(bytes: padded(5120), headers: ["apns-push-type": "voip"]),
      PushBody(bytes: padded(5121), headers: ["apns-topic": "com.example.app.voip"]),
      PushBody(bytes: padded(10), headers: ["apns-x": "a\nb"]),
    ])
    for body in 0..<7 { batch.add(PushBatch.token(body), body: Int32(body)) }
    for handle in ["", "xyz", PushBatch.token(1) + "g", String(repeating: "a", count: 201)] {
      batch.add(handle)
    }
    let results = await (try bench.tokenGateway()).deliver(batch)
    #expect(
      results.map(\.outcome) == [
        .success, .invalidNotificationSize, .invalidNotificationFormat, .success,
        .invalidNotificationSize, .invalidNotificationFormat, .invalidNotificationFormat,
        .badChannel, .badChannel, .badChannel, .badChannel,
      ])
    #expect(results.allSatisfy { $0.handle == .keep && $0.retry == .final })
    #expect(bench.fake.seen.count == 2)
  }

  @Test("a template that renders far too much is too large, though what is left of it is no JSON")
  func renderedTooLarge() async throws {
    let list = Array(repeating: #""$(v)""#, count: 10).joined(separator: ",")
    let template = try CompiledTemplate(PushTemplate(body: #"{"a":[\#(list)]}"#))
    let value = String(repeating: "x", count: 30_000)
    let bench = try APNsBench()
    var batch = PushBatch(bodies: [template.render(TemplateProperties(["v": value]))])
    batch.add(PushBatch.token(1))
    let results = await (try bench.tokenGateway()).deliver(batch)
    #expect(results.map(\.outcome) == [.invalidNotificationSize])
    #expect(bench.fake.seen.isEmpty)
  }

  @Test("each answer becomes outcome, handle action and advice")
  func answers() async throws {
    let bench = try APNsBench { seen, _ in
      switch seen.path.last {
      case "1": .refuse(410, #"{"reason":"Unregistered","timestamp":500}"#)
      case "2": .refuse(410, #"{"reason":"Unregistered","timestamp":400}"#)
      case "3": .refuse(400, "BadDeviceToken")
      case "4": .refuse(429, "TooManyRequests", [("retry-after", "7")])
      case "5": .refuse(503, "ServiceUnavailable")
      case "6": .refuse(400, "DeviceTokenNotForTopic")
      case "7": .refuse(400, "Novelty")
      default: .accept
      }
    }
    var batch = PushBatch(bodies: [PushBody(bytes: Array("{}".utf8))])
    for number in 0..<8 { batch.add(PushBatch.token(number), confirmedAt: 450) }
    let results = await (try bench.tokenGateway()).deliver(batch)
    #expect(
      results.map(\.outcome) == [
        .success, .expiredChannel, .expiredChannel, .badChannel, .channelThrottled,
        .pnsUnavailable, .wrongChannel, .unknownError,
      ])
    #expect(
      results.map(\.handle) == [.keep, .remove, .keep, .remove, .keep, .keep, .remove, .keep])
    #expect(
      results.map(\.retry) == [
        .final, .final, .final, .final, .backoff, .backoff, .final, .final,
      ])
    #expect(results.map(\.retryAfter) == [nil, nil, nil, nil, 7, nil, nil, nil])
    #expect(results[7].reason == "Novelty")
    #expect(bench.fake.seen.count == 8)
  }

  @Test("one stream until the first success, then all of them, none refused")
  func streamLimit() async throws {
    let bench = try APNsBench(streams: 1) { _, connection in
      connection.updateSettings(maxConcurrentStreams: 1000)
      return .accept
    }
    let results = await (try bench.tokenGateway()).deliver(.alerts(500))
    #expect(results.allSatisfy { $0.outcome == .success })
    #expect(bench.fake.accepted.count == 500)
    #expect(bench.fake.connects == 1)
    #expect(bench.fake.tokens.count == 1)
  }

  @Test("a refused token is replaced once and everything arrives once")
  func tokenRefresh() async throws {
    let first = Mutex<String?>(nil)
    let bench = try APNsBench { seen, _ in
      let refused = first.withLock { first in
        first = first ?? seen.fields["authorization"]
        return first
      }
      return seen.fields["authorization"] == refused
        ? .refuse(403, "ExpiredProviderToken") : .accept
    }
    let results = await (try bench.tokenGateway()).deliver(.alerts(200))
    #expect(results.allSatisfy { $0.outcome == .success })
    #expect(bench.fake.accepted.count == 200)
    #expect(bench.fake.tokens.count == 2)
    // One push found out, over a connection that was then left.
    #expect(bench.fake.seen.count == 201)
    #expect(bench.fake.connects == 2)
  }

  @Test("a credential that is wrong is tried twice, not with every push")
  func wrongCredential() async throws {
    let bench = try APNsBench { _, _ in .refuse(403, "InvalidProviderToken") }
    let results = await (try bench.tokenGateway()).deliver(.alerts(100))
    #expect(results.allSatisfy { $0.outcome == .invalidCredentials && $0.handle == .keep })
    #expect(results.allSatisfy { $0.retry == .pauseCredential })
    #expect(bench.fake.seen.count == 2)
  }

  @Test("after too many token updates the same token goes on over another connection")
  func tooManyUpdates() async throws {
    let bench = try APNsBench { seen, _ in
      seen.connection == 1 ? .refuse(429, "TooManyProviderTokenUpdates") : .accept
    }
    let results = await (try bench.tokenGateway()).deliver(.alerts(50))
    #expect(results[0].outcome == .throttled)
    #expect(results[0].retry == .backoff)
    #expect(results.dropFirst().allSatisfy { $0.outcome == .success })
    #expect(bench.fake.tokens.count == 1)
    #expect(bench.fake.connects == 2)
  }

  @Test("what a GOAWAY left unprocessed is sent once more, elsewhere, and arrives once")
  func goAway() async throws {
    let bench = try APNsBench { seen, connection in
      guard connection.id == 1, seen.stream > 101 else { return .accept }
      return .goAway(101, "Shutdown")
    }
    let results = await (try bench.tokenGateway()).deliver(.alerts(300))
    #expect(results.allSatisfy { $0.outcome == .success })
    #expect(bench.fake.accepted.count == 300)
    #expect(Set(bench.fake.accepted.map(\.path)).count == 300)
    #expect(bench.fake.connects == 2)
  }

  @Test(
    "a refusal before the end of the connection is that push's alone",
    arguments: [(410, "Unregistered"), (400, "BadDeviceToken"), (413, "PayloadTooLarge")])
  func refusedBeforeGoAway(status: Int, reason: String) async throws {
    let bench = try APNsBench { _, connection in
      guard connection.id == 1 else { return .accept }
      connection.goAway(lastStreamID: 1, code: 0)
      return .refuse(status, reason)
    }
    let results = await (try bench.tokenGateway()).deliver(.alerts(50))
    #expect(results[0].status == UInt16(status))
    #expect(results.dropFirst().allSatisfy { $0.outcome == .success && $0.handle == .keep })
    #expect(bench.fake.accepted.count == 49)
  }

  @Test("a GOAWAY that speaks of the certificate pauses the credential")
  func goAwayWithReason() async throws {
    let bench = try APNsBench { _, _ in .goAway(0, "BadCertificate") }
    let results = await (try bench.tokenGateway()).deliver(.alerts(10))
    #expect(results.allSatisfy { $0.outcome == .invalidCredentials })
    #expect(results.allSatisfy { $0.retry == .pauseCredential })
  }

  @Test(
    "a refused stream is sent once more over another connection", arguments: [7, 8] as [UInt32])
  func refusedStream(code: UInt32) async throws {
    let bench = try APNsBench { seen, connection in
      connection.id == 1 && seen.path.hasSuffix("9") ? .reset(code) : .accept
    }
    let results = await (try bench.tokenGateway()).deliver(.alerts(64))
    #expect(results.allSatisfy { $0.outcome == .success })
    #expect(bench.fake.accepted.count == 64)
    #expect(Set(bench.fake.accepted.map(\.connection)).count == 2)
  }

  @Test(
    "a connection that an answer speaks of is left, and the push goes over another",
    arguments: [(400, "IdleTimeout"), (403, "UnrelatedKeyIdInToken"), (503, "Shutdown")])
  func newConnection(status: Int, reason: String) async throws {
    let bench = try APNsBench { seen, _ in
      seen.connection == 1 && seen.path.hasSuffix("09") ? .refuse(status, reason) : .accept
    }
    let gateway = try bench.tokenGateway()
    let results = await gateway.deliver(.alerts(16))
    #expect(results.allSatisfy { $0.outcome == .success })
    #expect(bench.fake.seen.count == 17)
    #expect(bench.fake.accepted.last?.connection == 2)
    // The first connection is not used again.
    _ = await gateway.deliver(.alerts(8))
    #expect(bench.fake.accepted.suffix(8).allSatisfy { $0.connection == 2 })
  }

  @Test("one that is refused again waits")
  func refusedTwice() async throws {
    let bench = try APNsBench { seen, _ in seen.path.hasSuffix("09") ? .reset(7) : .accept }
    let results = await (try bench.tokenGateway()).deliver(.alerts(16))
    #expect(results.filter { $0.outcome == .success }.count == 15)
    #expect(results[8].outcome == .pnsUnavailable)
    #expect(results[8].retry == .backoff)
    #expect(results[8].reason == "stream-refused")
    #expect(bench.fake.seen.count == 17)
  }

  @Test("a push without an answer is unreachable, the others are not")
  func slowReply() async throws {
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.apns.replyTimeout = .milliseconds(300)
    let bench = try APNsBench(configuration: configuration) { seen, _ in
      seen.path.hasSuffix("05") ? .ignore : .accept
    }
    let results = await (try bench.tokenGateway()).deliver(.alerts(16))
    #expect(results.filter { $0.outcome == .success }.count == 15)
    #expect(results[4].outcome == .pnsUnreachable)
    #expect(results[4].retry == .backoff)
    #expect(results[4].reason == "no reply in time")
  }

  @Test("a first push without an answer does not hold up the others")
  func slowFirstReply() async throws {
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.apns.replyTimeout = .milliseconds(300)
    let bench = try APNsBench(configuration: configuration) { seen, _ in
      seen.path.hasSuffix("01") ? .ignore : .accept
    }
    let results = await (try bench.tokenGateway()).deliver(.alerts(16))
    #expect(results[0].outcome == .pnsUnreachable)
    #expect(results.dropFirst().allSatisfy { $0.outcome == .success })
    #expect(bench.fake.connects == 1)
  }

  @Test("a connection on which nobody gets an answer any more makes way for another")
  func silentConnection() async throws {
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.apns.replyTimeout = .milliseconds(300)
    let silent = Mutex<UInt64?>(nil)
    let bench = try APNsBench(configuration: configuration) { seen, _ in
      silent.withLock { $0 == seen.connection } ? .ignore : .accept
    }
    let gateway = try bench.tokenGateway()
    #expect(await gateway.deliver(.alerts(3)).allSatisfy { $0.outcome == .success })
    silent.withLock { $0 = bench.fake.seen.first?.connection }
    #expect(await gateway.deliver(.alerts(3)).allSatisfy { $0.outcome == .pnsUnreachable })
    #expect(await gateway.deliver(.alerts(3)).allSatisfy { $0.outcome == .success })
    #expect(bench.fake.connects == 2)
  }

  @Test("a connection lost under way is unreachable for what was open, to be tried later")
  func lostConnection() async throws {
    let bench = try APNsBench { seen, connection in
      guard seen.path.hasSuffix("20") else { return .accept }
      connection.abort()
      return .ignore
    }
    let results = await (try bench.tokenGateway()).deliver(.alerts(64))
    #expect(results[31].outcome == .pnsUnreachable)
    #expect(results.allSatisfy { $0.outcome == .success || $0.outcome == .pnsUnreachable })
    #expect(results.allSatisfy { $0.outcome == .success || $0.retry == .backoff })
    // Nothing was sent twice: whether the lost ones arrived is not known.
    #expect(Set(bench.fake.seen.map(\.path)).count == bench.fake.seen.count)
  }
}
