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

@Suite("The FCM gateway", .timeLimit(.minutes(5)))
struct FCMGatewayTests {
  private static func error(_ status: String, code: String? = nil) -> String {
    let detail = code.map {
      #","details":[{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"\#($0)"}]"#
    }
    return #"{"error":{"code":0,"message":"m","status":"\#(status)"\#(detail ?? "")}}"#
  }

  @Test("every device gets the sender's message with its own token in it, under one access token")
  func delivery() async throws {
    try await withFCM { bench in
      let results = await (try bench.gateway()).deliver(FCMBench.batch(300))
      #expect(results.count == 300)
      #expect(results.allSatisfy { $0.outcome == .success })
      #expect(bench.tokens.forms.count == 1)
      #expect(bench.fake.tokens == ["Bearer token-1"])
      var reached: Set<String> = []
      for seen in bench.fake.accepted {
        #expect(seen.method == "POST")
        #expect(seen.path == "/v1/projects/demo-project/messages:send")
        #expect(seen.fields["content-type"] == "application/json; charset=UTF-8")
        let message = try JSONValue.parse(seen.bytes)["message"]
        #expect(message?["data"]?["a"]?.scalarText == "1")
        reached.insert(message?["token"]?.scalarText ?? "")
      }
      #expect(reached == Set((0..<300).map(FCMBench.handle)))
    }
  }

  @Test("the assertion is what Google's token service wants")
  func assertion() async throws {
    let vector = PushFixture.all.oauth
    let credential = try FCMCredential(
      PushFixture.fcm(["PrivateKeyId": vector.service_account.private_key_id]))
    let assertion = try credential.assertion(issuedAt: 1_700_000_000)
    #expect(assertion == vector.signing_input + "." + vector.signature_b64u)
    let form = try credential.tokenForm(at: 1_700_000_010)
    #expect(String(decoding: PercentEncoding.form(form), as: UTF8.self) == vector.form_body)
  }

  @Test("batches at the same moment ask for one access token")
  func singleFlight() async throws {
    try await withFCM { bench in
      let gateway = try bench.gateway()
      let other = try bench.gateway()
      try await withThrowingTaskGroup(of: [PushResult].self) { group in
        for number in 0..<8 {
          group.addTask { await (number % 2 == 0 ? gateway : other).deliver(FCMBench.batch(5)) }
        }
        for try await results in group { #expect(results.allSatisfy { $0.outcome == .success }) }
      }
      #expect(bench.tokens.forms.count == 1)
    }
  }

  @Test("who puts another's public key into a key of his own gets no token of that one")
  func copiedPublicKey() async throws {
    try await withFCM { bench in
      _ = await (try bench.gateway()).deliver(FCMBench.batch(1))
      #expect(bench.tokens.forms.count == 1)
      // Modulus and exponent stay; what follows is the private number.
      let pem = PushFixture.all.keys.rsa.private_pkcs8_pem
      let block = try #require(try PEM.blocks(in: pem).first)
      var der = block.der
      let exponent: [UInt8] = [0x02, 0x03, 0x01, 0x00, 0x01]
      let place = try #require(
        der.indices.dropLast(300).first { der[$0..<$0 + 5].elementsEqual(exponent) })
      for index in place + 60..<place + 100 { der[index] ^= 0x55 }
      let forged = PEM.encode(label: block.label, der: der)
      let key = try RSAPrivateKey(pem: forged)
      #expect(try key.publicKey() == RSAPrivateKey(pem: pem).publicKey())
      _ = await (try bench.gateway(["PrivateKey": forged])).deliver(FCMBench.batch(1))
      #expect(bench.tokens.forms.count == 2)
    }
  }

  @Test("the access token is renewed five minutes before its end, and kept when that fails")
  func renewal() async throws {
    try await withFCM { bench in
      let gateway = try bench.gateway()
      func deliver() async { _ = await gateway.deliver(FCMBench.batch(1)) }
      await deliver()
      bench.clock.advance(by: .seconds(3599 - 301))
      await deliver()
      #expect(bench.tokens.forms.count == 1)
      bench.clock.advance(by: .seconds(2))
      bench.tokens.refuse(503, "")
      await deliver()
      #expect(bench.tokens.forms.count == 2)
      #expect(bench.fake.accepted.count == 3)
      #expect(bench.fake.tokens == ["Bearer token-1"])
    }
  }

  @Test("a token that is revoked midway is replaced once, and nobody misses the message")
  func revokedToken() async throws {
    let seen = Atomic(0)
    try await withFCM { request, _ in
      let number = seen.add(1, ordering: .relaxed).newValue
      if number > 40, request.fields["authorization"] == "Bearer token-1" {
        return .refuse(401, Self.error("UNAUTHENTICATED"))
      }
      return .accept
    } body: { bench in
      let results = await (try bench.gateway()).deliver(FCMBench.batch(100))
      #expect(results.allSatisfy { $0.outcome == .success })
      #expect(bench.tokens.forms.count == 2)
      #expect(bench.fake.accepted.count == 100)
    }
  }

  @Test("a credential that FCM refuses costs a push or two, and pauses")
  func refusedCredential() async throws {
    let answers = [
      (401, Self.error("UNAUTHENTICATED"), 2), (403, Self.error("PERMISSION_DENIED"), 1),
      (404, Self.error("NOT_FOUND"), 1),
    ]
    for (status, body, pushes) in answers {
      try await withFCM { _, _ in
        .refuse(status, body)
      } body: { bench in
        let results = await (try bench.gateway()).deliver(FCMBench.batch(50))
        #expect(results.allSatisfy { $0.outcome == .invalidCredentials && $0.handle == .keep })
        #expect(results.allSatisfy { $0.retry == .pauseCredential })
        #expect(bench.fake.seen.count == pushes)
      }
    }
  }

  @Test("one dead token among many is told apart")
  func deadToken() async throws {
    try await withFCM { request, _ in
      request.body.contains(FCMBench.handle(7))
        ? .refuse(404, Self.error("NOT_FOUND", code: "UNREGISTERED")) : .accept
    } body: { bench in
      let results = await (try bench.gateway()).deliver(FCMBench.batch(20))
      for (number, result) in results.enumerated() {
        #expect(result.outcome == (number == 7 ? .badChannel : .success))
        #expect(result.handle == (number == 7 ? .remove : .keep))
      }
      #expect(results[7].reason == "UNREGISTERED")
      #expect(results[7].status == 404)
    }
  }

  @Test("a throttled push waits as long as Retry-After says; without it, a minute at least")
  func throttling() async throws {
    let answers: [([(String, String)], retryAfter: Int32?, leastPause: Int32?)] = [
      ([("retry-after", "120")], 120, nil), ([("retry-after", "5")], 5, nil),
      ([("retry-after", "soon")], nil, 60), ([], nil, 60),
    ]
    for (headers, retryAfter, leastPause) in answers {
      try await withFCM { _, _ in
        .refuse(429, Self.error("RESOURCE_EXHAUSTED", code: "QUOTA_EXCEEDED"), headers)
      } body: { bench in
        let results = await (try bench.gateway()).deliver(FCMBench.batch(2))
        #expect(results.allSatisfy { $0.outcome == .throttled && $0.retry == .backoff })
        #expect(results.allSatisfy { $0.retryAfter == retryAfter && $0.leastPause == leastPause })
      }
    }
  }

  @Test("what the token service says decides when there is no access token")
  func tokenService() async throws {
    let answers: [(Int, String, NotificationOutcome, RetryAdvice)] = [
      (400, #"{"error":"invalid_grant"}"#, .invalidCredentials, .pauseCredential),
      (401, #"{"error":"invalid_client"}"#, .invalidCredentials, .pauseCredential),
      (500, "", .tokenProviderInterfaceError, .backoff),
      (200, "{}", .tokenProviderInterfaceError, .backoff),
    ]
    for (status, body, outcome, retry) in answers {
      try await withFCM { bench in
        bench.tokens.refuse(status, body)
        let results = await (try bench.gateway()).deliver(FCMBench.batch(3))
        #expect(results.allSatisfy { $0.outcome == outcome && $0.retry == retry })
        #expect(bench.fake.seen.isEmpty)
      }
    }
    try await withFCM { bench in
      let nobody = try bench.gateway(["TokenUri": "https://localhost:1/token"])
      let results = await nobody.deliver(FCMBench.batch(3))
      #expect(results.allSatisfy { $0.outcome == .tokenProviderUnreachable })
    }
  }

  @Test("what a GOAWAY leaves unprocessed goes over another connection, once")
  func goAway() async throws {
    let first = Mutex<UInt64?>(nil)
    try await withFCM { request, connection in
      let isFirst = first.withLock { first in
        first = first ?? connection.id
        return first == connection.id
      }
      guard isFirst else { return .accept }
      return request.stream <= 21 ? .accept : .goAway(21, "")
    } body: { bench in
      let results = await (try bench.gateway()).deliver(FCMBench.batch(50))
      #expect(results.allSatisfy { $0.outcome == .success })
      let tokens = bench.fake.accepted.map(\.body)
      #expect(tokens.count == 50)
      #expect(Set(tokens).count == 50)
    }
  }

  @Test("a peer without HTTP/2 is spoken to over HTTP/1.1, and remembered")
  func oldHTTP() async throws {
    let bodies = Mutex<[String]>([])
    try await withSecureServer { request in
      if request.target.description == "/token" {
        return HTTPResponse(
          200, body: .bytes(Array(#"{"access_token":"t","expires_in":3599}"#.utf8)))
      }
      let body = String(decoding: request.body, as: UTF8.self)
      bodies.withLock { $0.append(body) }
      return body.contains(FCMBench.handle(3))
        ? HTTPResponse(404, body: .bytes(Array(Self.error("NOT_FOUND", code: "UNREGISTERED").utf8)))
        : HTTPResponse(200)
    } body: { server in
      var configuration = PushGatewaysConfiguration.forStandIns
      configuration.extraAnchorsPEM = server.anchors
      let gateway = try FCMGateways(
        supplies: GatewaySupplies(configuration, clock: .system, random: .system)
      )
      .gateway(
        for: PushFixture.fcm(["Endpoint": server.url(""), "TokenUri": server.url("/token")]))
      for round in 1...2 {
        let results = await gateway.deliver(FCMBench.batch(5))
        #expect(results.map(\.outcome).filter { $0 == .success }.count == 4)
        #expect(results[3].outcome == .badChannel && results[3].handle == .remove)
        #expect(bodies.withLock { $0.count } == 5 * round)
      }
    }
  }

  @Test("nobody there is unreachable, and a push for nobody is not sent")
  func nobody() async throws {
    try await withFCM { bench in
      let gateway = try bench.gateway(["Endpoint": "https://localhost:1"])
      let results = await gateway.deliver(FCMBench.batch(3))
      #expect(results.allSatisfy { $0.outcome == .pnsUnreachable && $0.retry == .backoff })

      var batch = PushBatch(bodies: [FCMBench.body, PushBody(bytes: Array("{}".utf8))])
      batch.add("bad \"token", body: 0)
      batch.add("", body: 0)
      batch.add(FCMBench.handle(1), body: 1)
      batch.add(FCMBench.handle(1), body: 2)
      batch.add(FCMBench.handle(1), body: 0)
      let outcomes = await (try bench.gateway()).deliver(batch).map(\.outcome)
      #expect(
        outcomes == [
          .badChannel, .badChannel, .invalidNotificationFormat, .invalidNotificationFormat,
          .success,
        ])
      #expect(bench.fake.seen.count == 1)
    }
  }
}
