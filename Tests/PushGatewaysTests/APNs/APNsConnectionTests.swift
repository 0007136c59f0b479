import Cryptography
import HTTP2
import HubCore
import HubTesting
import NotificationHubs
import Synchronization
import Testing

@testable import PushGateways

@Suite("Connections to APNs", .timeLimit(.minutes(5)))
struct APNsConnectionTests {
  @Test("a certificate proves who we are, without a token", arguments: APNsFixture.all.archives)
  func certificate(archive: APNsFixture.Archive) async throws {
    let bench = try APNsBench(clientAnchors: APNsFixture.all.archiveAuthorityPEM)
    let results = await (try bench.certificateGateway(archive)).deliver(.alerts(3))
    #expect(results.allSatisfy { $0.outcome == .success })
    for seen in bench.fake.accepted {
      #expect(seen.certificate == archive.expect.sha1ThumbprintHex)
      #expect(seen.fields["authorization"] == nil)
      #expect(seen.fields["apns-topic"] == archive.expect.uid)
    }
  }

  @Test("a certificate that TLS refuses pauses the credential")
  func refusedCertificate() async throws {
    let bench = try APNsBench(decision: .alert(45))
    let archive = try #require(APNsFixture.all.archives.first)
    let results = await (try bench.certificateGateway(archive)).deliver(.alerts(5))
    #expect(results.allSatisfy { $0.outcome == .invalidCredentials })
    #expect(results.allSatisfy { $0.retry == .pauseCredential })
  }

  @Test("a server that is not trusted is unreachable and gets no push")
  func untrustedServer() async throws {
    let bench = try APNsBench(isTrusted: false)
    let results = await (try bench.tokenGateway()).deliver(.alerts(5))
    #expect(results.allSatisfy { $0.outcome == .pnsUnreachable && $0.retry == .backoff })
    #expect(bench.fake.seen.isEmpty)
  }

  @Test("after a failed connect the next waits its pause, then all goes on")
  func reconnecting() async throws {
    let bench = try APNsBench()
    bench.server.stopListening()
    let gateway = try bench.tokenGateway()
    for _ in 0..<3 {
      let results = await gateway.deliver(.alerts(5))
      #expect(results.allSatisfy { $0.outcome == .pnsUnreachable && $0.retry == .backoff })
    }
    // Closed, the port was anybody's: wait until the one that took it meanwhile has let go.
    try await eventually("the port is free again") {
      (try? bench.server.resumeListening()) != nil
    }
    // Still within the pause: nobody knocks.
    #expect(await gateway.deliver(.alerts(1)).map(\.outcome) == [.pnsUnreachable])
    #expect(bench.fake.connects == 0)
    bench.clock.advance(by: .seconds(1))
    #expect(await gateway.deliver(.alerts(1)).map(\.outcome) == [.success])
  }

  @Test("an unknown host is unreachable")
  func unknownHost() async throws {
    let bench = try APNsBench()
    let gateway = try bench.tokenGateway(["Endpoint": "https://nowhere.invalid"])
    let results = await gateway.deliver(.alerts(2))
    #expect(results.allSatisfy { $0.outcome == .pnsUnreachable && $0.retry == .backoff })
    #expect(results.allSatisfy { $0.reason?.isEmpty == false })
  }

  @Test("a proven connection that went is replaced at once")
  func replacement() async throws {
    let bench = try APNsBench()
    let gateway = try bench.tokenGateway()
    for round in 1...3 {
      #expect(await gateway.deliver(.alerts(2)).allSatisfy { $0.outcome == .success })
      #expect(bench.fake.connects == round)
      for connection in bench.server.connections { connection.goAway(lastStreamID: .max, code: 0) }
      for connection in bench.server.connections { connection.close() }
      try await eventually("the connection ends") { bench.server.connections.isEmpty }
    }
  }

  @Test("apps of one team share connection and token, another key has its own")
  func sharing() async throws {
    let bench = try APNsBench()
    let one = try bench.tokenGateway()
    let two = try bench.tokenGateway(["AppName": "com.example.two"])
    let other = try bench.tokenGateway(["KeyId": "ZZZ123DEFG"])
    for gateway in [one, two, other] {
      #expect(await gateway.deliver(.alerts(2)).allSatisfy { $0.outcome == .success })
    }
    #expect(bench.fake.connects == 2)
    #expect(bench.fake.tokens.count == 2)
    #expect(Set(bench.fake.seen.compactMap { $0.fields["apns-topic"] }).count == 2)
  }

  @Test("connections double when the stream limit has held back for its time, and go when idle")
  func growth() async throws {
    let open = HeldReplies()
    let bench = try APNsBench(streams: 2) { seen, connection in
      // Everything but the first push waits for the test.
      if seen.path.hasSuffix("01") { return .accept }
      open.add(connection, seen.stream)
      return .ignore
    }
    let gateway = try bench.tokenGateway()
    #expect(await gateway.deliver(.alerts(1)).map(\.outcome) == [.success])
    await withTaskGroup(of: Void.self) { group in
      func deliver(_ count: Int, from first: Int) {
        group.addTask { _ = await gateway.deliver(.alerts(count, from: first)) }
      }
      do {
        deliver(12, from: 0x110)
        try await eventually("two streams are open") { bench.fake.seen.count == 3 }
        // Full, but with too few answers to tell; then with enough, but no time.
        deliver(12, from: 0x210)
        for answered in 1...12 {
          open.answer(1)
          try await eventually("the next") { bench.fake.seen.count >= 3 + answered }
          deliver(1, from: 0x300 + answered)
        }
        #expect(bench.fake.connects == 1)
        for round in 1...40 where bench.fake.connects == 1 {
          bench.clock.advance(by: .seconds(1))
          deliver(2, from: 0x400 + 2 * round)
          let seen = bench.fake.seen.count
          open.answer(1)
          try await eventually("the next") { bench.fake.seen.count > seen }
        }
        try await eventually("another connection") { bench.fake.connects == 2 }
      } catch {
        Issue.record(error)
      }
      open.answerAll()
    }
    #expect(await gateway.connections.count == 2)
    // The first look still finds the pushes since the last, the second finds none.
    for _ in 0..<2 {
      await bench.clock.sleepers(1)
      bench.clock.advance(by: .seconds(300))
    }
    while await gateway.connections.count > 1 { try await Task.sleep(for: .milliseconds(1)) }
    open.answerAll()
    #expect(await gateway.deliver(.alerts(1)).map(\.outcome) == [.success])
    #expect(bench.fake.connects == 2)
  }

  @Test("a closed gateway's pushes end as unreachable")
  func closing() async throws {
    let bench = try APNsBench { seen, _ in seen.path.hasSuffix("01") ? .accept : .ignore }
    let gateway = try bench.tokenGateway()
    #expect(await gateway.deliver(.alerts(1)).map(\.outcome) == [.success])
    async let results = gateway.deliver(.alerts(4, from: 16))
    try await eventually("four streams are open") { bench.fake.seen.count == 5 }
    await gateway.close()
    #expect(await results.allSatisfy { $0.outcome == .pnsUnreachable && $0.retry == .backoff })
  }
}

/// Requests that have had no answer yet.
private final class HeldReplies: Sendable {
  private struct State {
    var waiting: [(connection: HTTP2ServerConnection, stream: Int32)] = []
    var isOpen = false
  }
  private let state = Mutex(State())

  func add(_ connection: HTTP2ServerConnection, _ stream: Int32) {
    let isOpen = state.withLock { state in
      if !state.isOpen { state.waiting.append((connection, stream)) }
      return state.isOpen
    }
    if isOpen { connection.respond(HTTP2ServerResponse(status: 200), to: stream) }
  }

  func answer(_ count: Int) {
    let taken = state.withLock { state in
      defer { state.waiting.removeFirst(min(count, state.waiting.count)) }
      return state.waiting.prefix(count)
    }
    for (connection, stream) in taken {
      connection.respond(HTTP2ServerResponse(status: 200), to: stream)
    }
  }

  /// These and all that come later.
  func answerAll() {
    state.withLock { $0.isOpen = true }
    answer(.max)
  }
}
