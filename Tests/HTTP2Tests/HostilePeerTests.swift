import COpenSSL
import Testing

@testable import HTTP2

/// What a client may do to the public port, and what becomes of it. Each ends in a bounded way, and
/// the server goes on for others.
@Suite("Hostile clients", .timeLimit(.minutes(5)))
struct HostilePeerTests {
  private static let calm: UInt32 = 11

  /// Sends what an attacker would, and waits for the end of the connection.
  private func goAway(
    _ harness: Harness, after attack: [UInt8]
  ) async throws -> UInt32? {
    try await onThread {
      let client = try FrameClient(harness)
      client.send(attack)
      return client.readToEnd()
    }
  }

  private func serves(_ harness: Harness) async -> Bool {
    await harness.connect().send(makeBatch(1)).replies[0].status == 200
  }

  /// So many times, on streams of their own where the frames name some.
  private static func times(_ count: Int, _ frames: (UInt32) -> [Frame]) -> [UInt8] {
    (0..<count).flatMap { frames(UInt32($0) * 2 + 1).flatMap(\.bytes) }
  }

  // MARK: Too many of something

  @Test("streams opened and reset faster than allowed end the connection")
  func rapidReset() async throws {
    let (harness, _) = try timed()
    let attack = Self.times(500) { [.headers($0), .reset($0)] }
    #expect(try await goAway(harness, after: attack) == Self.calm)
    #expect(harness.handler.look { $0.requests.count } <= 101)
    #expect(await serves(harness))
  }

  @Test(
    "streams on which the client makes the server reset count as reset",
    arguments: [
      // A window over its end, a method left out, a second request on the same stream.
      { [.headers($0), .windowUpdate($0, 0x7FFF_FFFF)] },
      { [.headers($0, [0x87] + [0x41] + Frame.text("a") + [0x84])] },
      { [.headers($0, flags: Frame.endHeaders), .headers($0, flags: Frame.endHeaders)] },
    ] as [@Sendable (UInt32) -> [Frame]])
  func provokedResets(frames: @Sendable (UInt32) -> [Frame]) async throws {
    let (harness, _) = try timed(
      TestHandler(answering: { request, connection in
        guard request.path == "/0" else { return }  // of the client that means well
        connection.respond(HTTP2ServerResponse(status: 200), to: request.stream)
      })
    ) { configuration in
      configuration.maxConcurrentStreams = 50
    }
    #expect(try await goAway(harness, after: Self.times(3000, frames)) == Self.calm)
    #expect(harness.handler.look { $0.requests.count } <= 150)
    #expect(await serves(harness))
  }

  /// Frames that bring no request forward.
  enum Flood: CaseIterable {
    case pings, settings, priorities, windowUpdates, emptyData, smallData, paddedData, unknown
    case goAways, refusedStreams

    func frames(_ stream: UInt32) -> [Frame] {
      switch self {
      case .pings: [.ping(0)]
      case .settings: [.settings([(4, 100)])]
      case .priorities: [.priority(stream)]
      case .windowUpdates: [.windowUpdate(0, 1)]
      case .emptyData: [.data(1, [], flags: 0)]
      case .smallData: [.data(1, [0x20], flags: 0)]
      case .paddedData:
        [.data(1, [10] + [UInt8](repeating: 0, count: 10), flags: Frame.padded)]
      case .unknown: [Frame(kind: 0xBE)]
      case .goAways: [Frame(kind: Frame.Kind.goAway, payload: [UInt8](repeating: 0, count: 8))]
      case .refusedStreams: [.headers(stream + 2)]
      }
    }
  }

  @Test("frames that bring no request forward end the connection", arguments: Flood.allCases)
  func floods(flood: Flood) async throws {
    let (harness, _) = try timed(
      TestHandler(answering: { request, connection in
        if request.path == "/0" {
          connection.respond(HTTP2ServerResponse(status: 200), to: request.stream)
        }
      })
    ) { configuration in
      configuration.enforcedStreams = 1
    }
    let attack = Frame.headers(1, flags: Frame.endHeaders).bytes + Self.times(5000, flood.frames)
    #expect(try await goAway(harness, after: attack) == Self.calm)
    #expect(await serves(harness))
  }

  @Test("a client that works may send such frames along with its requests")
  func busyClient() async throws {
    let (harness, _) = try timed { configuration in configuration.maxControlFramesPerSecond = 20 }
    let replies = try await onThread {
      let client = try FrameClient(harness)
      for number in UInt32(0)..<100 {
        let stream = number * 2 + 1
        client.send(.priority(stream), .headers(stream), .windowUpdate(0, 100), .ping(1))
        client.wait { $0.stream == stream && $0.flags & Frame.endStream != 0 }
      }
      return client.frames.count { $0.kind == Frame.Kind.headers }
    }
    #expect(replies == 100)
  }

  @Test(
    "a header block that does not end is cut off",
    arguments: [0, 1, 100, 16_384])
  func continuations(size: Int) async throws {
    let harness = try Harness()
    let part = [UInt8](repeating: 0x82, count: size)
    let attack =
      Frame.headers(1, [0x82], flags: Frame.endStream).bytes
      + Self.times(size > 1000 ? 20 : 5000) { _ in [.continuation(1, part, flags: 0)] }
    _ = try await goAway(harness, after: attack)
    #expect(harness.handler.look { $0.requests.isEmpty })
    #expect(await serves(harness))
  }

  // MARK: Header bombs

  @Test("a few bytes that HPACK makes many of end the connection")
  func headerBomb() async throws {
    let harness = try Harness()
    // An entry of 4 kB for the table, and a frame full of references to it.
    let entry = [0x40] + Frame.text("x") + Frame.text(String(repeating: "y", count: 4000))
    let bomb = [UInt8](repeating: 0xBE, count: 12_000)
    let attack = Frame.headers(1, Frame.request() + entry + bomb)
    #expect(try await goAway(harness, after: attack.bytes) == Self.calm)
    #expect(harness.handler.look { $0.requests.isEmpty })
    #expect(await serves(harness))
  }

  @Test("small fields and crumbs of cookies count with what they cost", arguments: ["a", "cookie"])
  func manyFields(name: String) async throws {
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        let status = request.excess == .header ? 431 : 200
        connection.respond(HTTP2ServerResponse(status: status), to: request.stream)
      }))
    let fields = [(String, String)](repeating: (name, "b"), count: 600)
    let few = Array(fields.prefix(200))
    let statuses = try await onThread {
      let client = try FrameClient(harness)
      client.send(.headers(1, Frame.request("GET", "/", fields)))
      client.wait { $0.stream == 1 && $0.flags & Frame.endStream != 0 }
      client.send(.headers(3, Frame.request("GET", "/", few)))
      client.wait { $0.stream == 3 && $0.flags & Frame.endStream != 0 }
      return client.frames.filter { $0.kind == Frame.Kind.headers }.map(\.stream)
    }
    #expect(statuses == [1, 3])
    let requests = harness.handler.look { $0.requests }
    #expect(requests.map(\.excess) == [.header, nil])
    #expect((requests.first?.fields.count ?? .max) < 600)
    #expect(requests.last?.fields.count == 200)
  }

  // MARK: Memory

  @Test("bodies that do not fit into the connection's share are refused, the others arrive")
  func manyBodies() async throws {
    let harness = try Harness { configuration, _ in configuration.maxHeldBodies = 50_000 }
    let part = [UInt8](repeating: 0x20, count: 16_000)
    let codes = try await onThread { () -> [UInt32: UInt32?] in
      let client = try FrameClient(harness)
      for stream in [UInt32(1), 3, 5, 7] {
        client.send(.headers(stream, flags: Frame.endHeaders), .data(stream, part, flags: 0))
      }
      client.send(.data(1, []), .data(3, []), .data(5, []), .headers(9))
      client.wait { $0.stream == 9 && $0.flags & Frame.endStream != 0 }
      return Dictionary(
        client.frames.filter { $0.stream != 0 }.map { ($0.stream, $0.code) },
        uniquingKeysWith: { $1 })
    }
    #expect(codes == [1: nil, 3: nil, 5: nil, 7: 7, 9: nil])
    #expect(harness.handler.look { $0.requests.map(\.stream) } == [1, 3, 5, 9])
  }

  @Test("senders divide the memory for bodies, and each divides its own by connections")
  func dividedBodies() {
    let budget = BodyBudget(limit: 16 << 20)
    var flood = [BodyBudget.Claim(on: budget, of: "flood")]
    #expect(flood[0].share == .max, "nobody else is there")
    flood += (1..<250).map { _ in BodyBudget.Claim(on: budget, of: "flood") }
    #expect(flood[0].share == (16 << 20) / 250)
    let other = BodyBudget.Claim(on: budget, of: "other")
    #expect(other.share == 8 << 20)
    #expect(flood[0].share == (8 << 20) / 250)
    // Who shows no name is one, however many they are.
    let strangers = (0..<1_000).map { _ in BodyBudget.Claim(on: budget) }
    #expect(other.share == (16 << 20) / 3)
    #expect(strangers[0].share == BodyBudget.least)
    flood.removeAll()
    #expect(other.share == 8 << 20)
    #expect(budget.holderCount == 1_001)
  }

  @Test("connections that hold bodies divide what there is for them; a little is always left")
  func sharedBodies() async throws {
    let budget = BodyBudget(limit: 640_000)
    var others = (0..<20).map { _ in BodyBudget.Claim(on: budget) }
    #expect(others[0].share == 32_000)
    let harness = try Harness { configuration, _ in configuration.bodyBudget = budget }
    let part = [UInt8](repeating: 0x20, count: 16_000)
    let codes = try await onThread { () -> [UInt32: UInt32?] in
      let client = try FrameClient(harness)
      // The third is one too many; a request without a body, and one that is small, are not.
      for stream in [UInt32(1), 3] {
        client.send(.headers(stream, flags: Frame.endHeaders), .data(stream, part, flags: 0))
      }
      client.send(.data(1, []), .data(3, []), .headers(5))
      client.wait { $0.stream == 5 && $0.flags & Frame.endStream != 0 }
      // Who has shown a name has a part of their own, on the same connection too.
      client.send(
        .headers(
          11, Frame.request("PUT", "/", [("authorization", "known")]), flags: Frame.endHeaders))
      for _ in 0..<2 { client.send(.data(11, part, flags: 0)) }
      client.send(.data(11, []))
      client.wait { $0.stream == 11 && $0.flags & Frame.endStream != 0 }
      return Dictionary(
        client.frames.filter { $0.stream != 0 }.map { ($0.stream, $0.code) },
        uniquingKeysWith: { $1 })
    }
    // With this connection there are 21, and 30 476 bytes for each.
    #expect(codes == [1: nil, 3: 7, 5: nil, 11: nil])
    #expect(budget.holderCount == others.count, "its streams have ended")
    others.removeAll()
    #expect(budget.holderCount == 0)
  }

  // MARK: Time

  /// A server whose clock stands still.
  private func timed(
    _ handler: TestHandler = TestHandler(),
    configure: (inout HTTP2ServerConfiguration) -> Void = { _ in }
  ) throws -> (Harness, TestClock) {
    let clock = TestClock()
    let harness = try Harness(handler) { configuration, _ in
      configuration.monotonicClock = clock.now
      configuration.handshakeTimeout = .seconds(10)
      configuration.idleTimeout = .seconds(100)
      configure(&configuration)
    }
    clock.drives(harness.server)
    return (harness, clock)
  }

  @Test(
    "a client that does not finish its TLS handshake is left after its time",
    arguments: [[], [0x16, 0x03, 0x01, 0x01, 0x00, 0x01]] as [[UInt8]])
  func noHandshake(bytes: [UInt8]) async throws {
    let accepted = Signal()
    let (harness, clock) = try timed(
      TestHandler(accept: { _ in
        accepted.set()
        return .proceed
      }))
    let end = Task {
      try await onThread {
        let client = try #require(RawClient(port: harness.server.port))
        client.send(bytes)
        return client.readToEnd()
      }
    }
    await accepted.wait()
    clock.advance(by: .seconds(11))
    #expect(try await end.value == [])
  }

  @Test(
    "a client that does not send its preface is left after its time",
    arguments: [0, 1, 24, 30])
  func noPreface(count: Int) async throws {
    let opened = Signal()
    let (harness, clock) = try timed(TestHandler(opened: { _ in opened.set() }))
    let end = Task {
      try await onThread {
        let client = try FrameClient(harness, sending: Array(Frame.preface.prefix(count)))
        return client.readToEnd()
      }
    }
    await opened.wait()
    clock.advance(by: .seconds(11))
    #expect(try await end.value == nil)
    await eventually("it is gone") { harness.handler.look { $0.closedConnections } == 1 }
  }

  @Test(
    "a frame or header block that does not end closes the connection after its time",
    arguments: [
      [UInt8]([0, 0, 8, 6]), Array(Frame.ping(1).bytes.dropLast()),
      Frame.headers(3, [0x82], flags: Frame.endStream).bytes,
      Frame.headers(3, [0x82], flags: 0).bytes + Frame.continuation(3, [0x84], flags: 0).bytes,
    ])
  func slowFrame(bytes: [UInt8]) async throws {
    let (harness, clock) = try timed()
    let isSent = Signal()
    let code = Task {
      try await onThread {
        let client = try FrameClient(harness)
        client.send(Frame.headers(1).bytes + bytes)
        client.wait { $0.stream == 1 && $0.flags & Frame.endStream != 0 }
        isSent.set()
        return client.readToEnd()
      }
    }
    await isSent.wait()
    clock.advance(by: .seconds(59))
    #expect(harness.handler.look { $0.closedConnections } == 0)
    clock.advance(by: .seconds(2))
    #expect(try await code.value == 0)
  }

  @Test("a body that does not arrive in its time costs its stream alone")
  func slowBody() async throws {
    let shown = Signal()
    let (harness, clock) = try timed(TestHandler(headers: { _, _ in shown.set() }))
    let outcome = Task {
      try await onThread { () -> (UInt32?, Bool) in
        let client = try FrameClient(harness)
        client.send(.headers(1, flags: Frame.endHeaders), .data(1, [0x20], flags: 0))
        let code = client.wait { $0.kind == Frame.Kind.reset && $0.stream == 1 }?.code
        return (code, client.isAlive())
      }
    }
    await shown.wait()
    clock.advance(by: .seconds(61))
    #expect(try await outcome.value == (8, true))
    #expect(harness.handler.look { $0.requests.isEmpty })
  }

  @Test("a reply that the client's window does not let out costs its stream after its time")
  func closedWindow() async throws {
    let (harness, clock) = try timed(
      TestHandler(answering: { request, connection in
        connection.respond(
          HTTP2ServerResponse(status: 200, body: [UInt8](repeating: 0x20, count: 10)),
          to: request.stream)
      }))
    let answered = Signal()
    let outcome = Task {
      try await onThread { () -> (UInt32?, Bool) in
        let client = try FrameClient(harness)
        client.send(.settings([(4, 0)]), .headers(1))
        client.wait { $0.kind == Frame.Kind.headers }
        answered.set()
        let code = client.wait { $0.kind == Frame.Kind.reset && $0.stream == 1 }?.code
        return (code, client.isAlive())
      }
    }
    await answered.wait()
    clock.advance(by: .seconds(61))
    #expect(try await outcome.value == (8, true))
  }

  @Test("a window opened byte by byte is a flood of control frames")
  func tinyWindows() async throws {
    let (harness, _) = try timed(
      TestHandler(answering: { request, connection in
        connection.respond(
          HTTP2ServerResponse(status: 200, body: [UInt8](repeating: 0x20, count: 50_000)),
          to: request.stream)
      }))
    let attack =
      bytes(.settings([(4, 0)]), .headers(1)) + Self.times(5000) { _ in [.windowUpdate(1, 1)] }
    #expect(try await goAway(harness, after: attack) == Self.calm)
  }

  @Test("a client that reads nothing is left after its time")
  func neverReads() async throws {
    let (harness, clock) = try timed(
      TestHandler(answering: { request, connection in
        connection.respond(
          HTTP2ServerResponse(status: 200, body: [UInt8](repeating: 0x20, count: 8 << 20)),
          to: request.stream)
      }))
    let client = try await onThread { () -> Held in
      let client = try FrameClient(harness)
      let open: UInt32 = 0x7FFF_0000
      client.send(
        .settings([(4 as UInt16, open)]), .windowUpdate(0, open), .headers(1), .headers(3))
      return Held(client)
    }
    await eventually("its requests are there") { harness.handler.look { $0.requests.count } == 2 }
    await eventually("it is gone") {
      clock.advance(by: .seconds(5))
      return harness.handler.look { $0.closedConnections } == 1
    }
    withExtendedLifetime(client) {}
  }

  @Test("a client that sends PINGs and no requests is idle, and is sent away in good order")
  func idle() async throws {
    let (harness, clock) = try timed()
    let isAlive = Signal()
    let code = Task {
      try await onThread { () -> UInt32? in
        let client = try FrameClient(harness)
        #expect(client.isAlive())
        isAlive.set()
        return client.readToEnd()
      }
    }
    await isAlive.wait()
    clock.advance(by: .seconds(101))
    #expect(try await code.value == 0)
  }

  @Test("a client that is silent while its request is under way is asked whether it lives")
  func silent() async throws {
    let (harness, clock) = try timed(.silent())
    let (asked, askedAgain) = (Signal(), Signal())
    let end = Task {
      try await onThread { () -> Int in
        let client = try FrameClient(harness)
        client.send(.headers(1))
        let ping = client.wait { $0.kind == Frame.Kind.ping }
        asked.set()
        // An answer is good for as long again.
        client.send(Frame(kind: Frame.Kind.ping, flags: Frame.ack, payload: ping?.payload ?? []))
        #expect(client.isAlive())
        askedAgain.set()
        _ = client.readToEnd()
        return client.frames.count { $0.kind == Frame.Kind.ping && $0.flags == 0 }
      }
    }
    await eventually("the request is there") { harness.handler.look { $0.requests.count } == 1 }
    clock.advance(by: .seconds(101))
    await asked.wait()
    await askedAgain.wait()
    clock.advance(by: .seconds(101))
    await eventually("it is asked again, and does not answer") {
      clock.advance(by: .seconds(5))
      return harness.handler.look { $0.closedConnections } == 1
    }
    #expect(try await end.value == 2)
  }

  // MARK: TLS

  @Test("a client cannot renegotiate")
  func renegotiation() async throws {
    let harness = try Harness()
    let isRefused = try await onThread { () -> Bool in
      let client = try #require(RawClient(port: harness.server.port))
      #expect(
        try client.startTLS(
          offering: "h2", anchors: harness.material.authorityPEM, atMost: TLS1_2_VERSION) == 0)
      // What the server sent first must be read before OpenSSL begins again.
      client.send(Frame.preface)
      _ = client.readSome()
      return SSL_renegotiate(client.ssl) == 1 && client.finishHandshake() != 0
    }
    #expect(isRefused)
    #expect(await serves(harness))
  }

  @Test("changes of the key without end close the connection")
  func keyUpdates() async throws {
    let harness = try Harness()
    try await onThread {
      let client = try #require(RawClient(port: harness.server.port))
      #expect(try client.startTLS(offering: "h2", anchors: harness.material.authorityPEM) == 0)
      let ssl = client.ssl
      client.send(Frame.preface)
      for _ in 0..<1000 {
        // Without a request for the server's, whose answers nobody would read.
        guard SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1, SSL_do_handshake(ssl) == 1
        else { break }
      }
      #expect(client.readToEnd() != nil)
    }
    #expect(await serves(harness))
  }
}

/// Carries what one thread made to where only its lifetime matters.
private struct Held: @unchecked Sendable {  // nobody uses the client any more
  let client: FrameClient
  init(_ client: FrameClient) { self.client = client }
}
