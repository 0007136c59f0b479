import Testing

@testable import HTTP2

/// The cases of h2spec (github.com/summerwind/h2spec), the customary list for RFC 9113, sections 3
/// to 8, and RFC 7541. Left out are the two about a priority that depends on itself, which RFC 9113
/// has dropped.
@Suite("What RFC 9113 and RFC 7541 ask of a server", .timeLimit(.minutes(5)))
struct ConformanceTests {
  enum Reaction: Sendable {
    /// The connection goes on, and no stream was reset.
    case fine
    /// The connection goes on, and the first request is answered.
    case reply
    /// GOAWAY with one of these codes, and the end of the connection.
    case connectionError([UInt32])
    /// RST_STREAM with one of these codes, or the same as an error of the connection.
    case streamError([UInt32])
    /// The end of the connection.
    case closed
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let reaction: Reaction
    /// What is sent. Between two steps the first request is answered to its end.
    let steps: [[UInt8]]

    init(_ name: String, _ reaction: Reaction, _ steps: [Frame]...) {
      self.init(name, reaction, bytes: steps.map { Frame.preface + $0.flatMap(\.bytes) })
    }

    init(_ name: String, _ reaction: Reaction, bytes steps: [[UInt8]]) {
      self.name = name
      self.reaction = reaction
      // Only the first step begins a connection.
      self.steps = steps.enumerated().map {
        $0 == 0 ? $1 : Array($1.dropFirst(Frame.preface.count))
      }
    }

    var testDescription: String { name }
  }

  // Error codes of RFC 9113, section 7.
  private static let (proto, flow, closedStream): (UInt32, UInt32, UInt32) = (1, 3, 5)
  private static let (size, refused, compression): (UInt32, UInt32, UInt32) = (6, 7, 9)

  /// A request whose end is still to come, and which would not be answered without.
  private static func open(_ stream: UInt32) -> Frame {
    .headers(stream, flags: Frame.endHeaders)
  }

  /// A request with its end, to a place that never answers: half closed (remote).
  private static func silent(_ stream: UInt32) -> Frame {
    .headers(stream, Frame.request("GET", "/silent"))
  }

  private static func raw(
    _ kind: UInt8, _ payload: [UInt8] = [], flags: UInt8 = 0, stream: UInt32 = 0
  ) -> Frame {
    Frame(kind: kind, flags: flags, stream: stream, payload: payload)
  }

  private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

  /// A request with more in its block.
  private static func with(_ fields: [(String, String)]) -> Frame {
    .headers(1, Frame.request("GET", "/", fields))
  }

  /// A request with these instead of the usual pseudo-header fields.
  private static func only(_ parts: [UInt8]...) -> Frame { .headers(1, Array(parts.joined())) }

  private static let authority = [0x41] + Frame.text("localhost")

  static let frames: [Case] = [
    Case("3.4 the preface is answered", .fine, []),
    Case("3.4 a wrong preface", .closed, bytes: [Array("PRI * HTTP/1.1\r\n\r\nSM\r\n\r\n".utf8)]),
    Case(
      "3.4 a frame other than SETTINGS first", .connectionError([proto]),
      bytes: [Frame.preface.prefix(24) + Frame.ping(1).bytes]),
    Case("4.1 a frame of unknown type", .fine, [raw(0x16, zeros(8))]),
    Case(
      "4.1 a flag that is not defined", .fine,
      [raw(Frame.Kind.ping, zeros(8), flags: 0x16)]),
    Case(
      "4.1 the reserved bit", .fine, [raw(Frame.Kind.ping, zeros(8), stream: 0x8000_0000)]),
    Case("4.2 DATA of 2^14 bytes", .reply, [open(1), .data(1, zeros(16_384))]),
    Case("4.2 DATA that is too long", .streamError([size]), [open(1), .data(1, zeros(16_385))]),
    Case(
      "4.2 HEADERS that is too long", .connectionError([size]),
      [.headers(1, Frame.request() + zeros(16_385))]),
    Case(
      "4.2 SETTINGS that is too long", .connectionError([size]),
      [raw(Frame.Kind.settings, zeros(16_386))]),
    Case("4.3 a block that is none", .connectionError([compression]), [.headers(1, [0xFF, 0xFF])]),
    Case(
      "4.3 a block that ends within a field", .connectionError([compression]),
      [.headers(1, Frame.request().dropLast())]),
    Case(
      "4.3 PRIORITY within a block", .connectionError([proto]),
      [.headers(1, flags: Frame.endStream), .priority(1), .continuation(1)]),
    Case(
      "4.3 HEADERS of another stream within a block", .connectionError([proto]),
      [.headers(1, flags: Frame.endStream), .headers(3), .continuation(1)]),

    Case("5.1 idle: DATA", .connectionError([proto, closedStream]), [.data(1, [1])]),
    Case("5.1 idle: RST_STREAM", .connectionError([proto]), [.reset(1)]),
    Case("5.1 idle: WINDOW_UPDATE", .connectionError([proto]), [.windowUpdate(1, 100)]),
    Case("5.1 idle: CONTINUATION", .connectionError([proto]), [.continuation(1)]),
    Case(
      "5.1 half closed: DATA", .streamError([closedStream]), [silent(1), .data(1, [1])]),
    Case("5.1 half closed: HEADERS", .streamError([closedStream]), [silent(1), silent(1)]),
    Case(
      "5.1 half closed: CONTINUATION", .connectionError([proto, closedStream]),
      [silent(1), .continuation(1)]),
    Case("5.1 half closed: WINDOW_UPDATE", .fine, [silent(1), .windowUpdate(1, 10)]),
    Case("5.1 half closed: PRIORITY", .fine, [silent(1), .priority(1)]),
    Case("5.1 half closed: RST_STREAM", .fine, [silent(1), .reset(1)]),
    // Frames on a stream just reset may have been on their way: RFC 9113 lets a server pass over
    // DATA; a new HEADERS with that id is wrong either way.
    Case(
      "5.1 closed by RST_STREAM: HEADERS", .connectionError([proto, closedStream]),
      [open(1), .reset(1), .headers(1)]),
    Case(
      "5.1 closed by RST_STREAM: CONTINUATION", .connectionError([proto, closedStream]),
      [open(1), .reset(1), .continuation(1)]),
    // docs/decisions.md says why it is not answered.
    Case("5.1 closed: DATA", .fine, [.headers(1)], [.data(1, [1])]),
    Case("5.1 closed: RST_STREAM", .fine, [.headers(1)], [.reset(1)]),
    Case("5.1 closed: WINDOW_UPDATE", .fine, [.headers(1)], [.windowUpdate(1, 1)]),
    Case("5.1 closed: PRIORITY", .fine, [.headers(1)], [.priority(1)]),
    Case(
      "5.1 closed: HEADERS", .connectionError([closedStream, proto]), [.headers(1)],
      [.headers(1)]),
    Case(
      "5.1 closed: CONTINUATION", .connectionError([proto, closedStream]), [.headers(1)],
      [.continuation(1)]),
    Case("5.1.1 an even stream", .connectionError([proto]), [.headers(2)]),
    Case(
      "5.1.1 a smaller stream", .connectionError([proto, closedStream]), [silent(5), silent(3)]),
    Case(
      "5.1.2 more streams than allowed", .streamError([refused, proto]),
      (0..<4).map { silent($0 * 2 + 1) }),
    Case("5.3 PRIORITY of an idle stream", .fine, [.priority(9)]),
    Case(
      "5.4.1 after an error of the connection GOAWAY, and the end", .connectionError([size]),
      [raw(Frame.Kind.ping, zeros(6))]),
    Case("5.5 an unknown frame", .fine, [raw(0xFF, zeros(8))]),
    Case(
      "5.5 an unknown frame within a block", .connectionError([proto]),
      [.headers(1, flags: Frame.endStream), raw(0xFF, zeros(8)), .continuation(1)]),

    Case("6.1 DATA on the connection", .connectionError([proto]), [.data(0, [1])]),
    Case(
      "6.1 DATA with more padding than payload", .connectionError([proto]),
      [open(1), .data(1, [5, 1, 1], flags: Frame.padded | Frame.endStream)]),
    Case(
      "6.1 DATA with padding", .reply,
      [open(1), .data(1, [2, 1, 0, 0], flags: Frame.padded | Frame.endStream)]),
    Case(
      "6.2 HEADERS without its end, then DATA", .connectionError([proto]),
      [.headers(1, flags: 0), .data(1, [1])]),
    Case("6.2 HEADERS on the connection", .connectionError([proto]), [.headers(0)]),
    Case(
      "6.2 HEADERS with more padding than payload", .connectionError([proto]),
      [
        .headers(
          1, [200] + Frame.request(),
          flags: Frame.padded | Frame.endHeaders | Frame.endStream)
      ]),
    Case(
      "6.2 HEADERS with padding and priority", .reply,
      [
        .headers(
          1, [2] + [0, 0, 0, 0, 15] + Frame.request() + [0, 0],
          flags: Frame.padded | Frame.prioritized | Frame.endHeaders | Frame.endStream)
      ]),
    Case("6.3 PRIORITY on the connection", .connectionError([proto]), [.priority(0)]),
    Case(
      "6.3 PRIORITY of another length", .streamError([size]),
      [open(1), raw(Frame.Kind.priority, zeros(4), stream: 1)]),
    Case("6.4 RST_STREAM on the connection", .connectionError([proto]), [.reset(0)]),
    Case(
      "6.4 RST_STREAM of another length", .connectionError([size]),
      [open(1), raw(Frame.Kind.reset, zeros(3), stream: 1)]),
    Case(
      "6.5 SETTINGS with an acknowledgement and more", .connectionError([size]),
      [raw(Frame.Kind.settings, zeros(6), flags: Frame.ack)]),
    Case(
      "6.5 SETTINGS on a stream", .connectionError([proto]),
      [raw(Frame.Kind.settings, zeros(6), stream: 1)]),
    Case(
      "6.5 SETTINGS of another length", .connectionError([size]),
      [raw(Frame.Kind.settings, zeros(3))]),
    Case("6.5.2 ENABLE_PUSH of 2", .connectionError([proto]), [.settings([(2, 2)])]),
    Case(
      "6.5.2 INITIAL_WINDOW_SIZE over its end", .connectionError([flow]),
      [.settings([(4, 0x8000_0000)])]),
    Case(
      "6.5.2 MAX_FRAME_SIZE below its range", .connectionError([proto]), [.settings([(5, 16_383)])]),
    Case(
      "6.5.2 MAX_FRAME_SIZE above its range", .connectionError([proto]),
      [.settings([(5, 16_777_216)])]),
    Case("6.5.2 an unknown setting", .fine, [.settings([(0xFF, 1)])]),
    Case(
      "6.6 PUSH_PROMISE", .connectionError([proto]),
      [
        open(1), raw(Frame.Kind.pushPromise, [0, 0, 0, 3] + Frame.request(), flags: 4, stream: 1),
      ]),
    Case(
      "6.7 PING on a stream", .connectionError([proto]),
      [
        raw(Frame.Kind.ping, zeros(8), stream: 1)
      ]),
    Case("6.7 PING of another length", .connectionError([size]), [raw(Frame.Kind.ping, zeros(7))]),
    Case(
      "6.8 GOAWAY on a stream", .connectionError([proto]),
      [raw(Frame.Kind.goAway, zeros(8), stream: 1)]),
    Case(
      "6.9 WINDOW_UPDATE of nothing on the connection", .connectionError([proto]),
      [.windowUpdate(0, 0)]),
    Case(
      "6.9 WINDOW_UPDATE of nothing on a stream", .streamError([proto]),
      [open(1), .windowUpdate(1, 0)]),
    Case(
      "6.9 WINDOW_UPDATE of another length", .connectionError([size]),
      [raw(Frame.Kind.windowUpdate, zeros(3))]),
    Case(
      "6.9.1 the connection's window over its end", .connectionError([flow]),
      [.windowUpdate(0, 0x7FFF_FFFF), .windowUpdate(0, 0x7FFF_FFFF)]),
    Case(
      "6.9.1 a stream's window over its end", .streamError([flow]),
      [open(1), .windowUpdate(1, 0x7FFF_FFFF), .windowUpdate(1, 0x7FFF_FFFF)]),
    Case(
      "6.9.2 SETTINGS that take a stream's window over its end", .streamError([flow]),
      [silent(1), .windowUpdate(1, 0x7FFF_0000), .settings([(4, 0x7FFF_FFFF)])]),
    Case(
      "6.10 several CONTINUATION", .reply,
      [
        .headers(1, [], flags: Frame.endStream), .continuation(1, flags: 0),
        .continuation(1, Frame.request()),
      ]),
    Case(
      "6.10 CONTINUATION, then another frame", .connectionError([proto]),
      [.headers(1, flags: 0), .continuation(1, flags: 0), .data(1, [1])]),
    Case(
      "6.10 CONTINUATION on the connection", .connectionError([proto]),
      [.headers(1, flags: 0), .continuation(0)]),
    Case(
      "6.10 CONTINUATION after the end of HEADERS", .connectionError([proto]),
      [open(1), .continuation(1)]),
    Case(
      "6.10 CONTINUATION after the end of CONTINUATION", .connectionError([proto]),
      [.headers(1, flags: 0), .continuation(1), .continuation(1)]),
    Case(
      "6.10 CONTINUATION after DATA", .connectionError([proto]),
      [open(1), .data(1, [1], flags: 0), .continuation(1)]),
  ]

  static let messages: [Case] =
    [
      Case("8.1 trailers without the end", .streamError([proto]), [open(1), open(1)]),
      Case(
        "8.1 trailers", .reply,
        [open(1), .data(1, [1], flags: 0), .headers(1, Frame.field("x", "y"))]
      ),
      Case(
        "8.2.1 a name in capitals", .streamError([proto]), [with([("X-Test", "ok")])]),
      Case("8.2.1 a name with a blank", .streamError([proto]), [with([("x test", "ok")])]),
      Case("8.2.1 a value with a line's end", .streamError([proto]), [with([("x", "a\r\nb")])]),
      Case("8.2.1 a value with a zero", .streamError([proto]), [with([("x", "a\u{0}b")])]),
      Case("8.2.2 connection", .streamError([proto]), [with([("connection", "keep-alive")])]),
      Case(
        "8.2.2 transfer-encoding", .streamError([proto]), [with([("transfer-encoding", "chunked")])]
      ),
      Case(
        "8.2.2 te other than trailers", .streamError([proto]), [with([("te", "trailers, gzip")])]),
      Case("8.2.2 te: trailers", .reply, [with([("te", "trailers")])]),
      Case("8.3 an unknown pseudo-header field", .streamError([proto]), [with([(":test", "ok")])]),
      Case("8.3 one of replies", .streamError([proto]), [with([(":status", "200")])]),
      Case(
        "8.3 one after the others", .streamError([proto]),
        [only([0x82, 0x87], authority, Frame.field("x", "y"), [0x84])]),
      Case(
        "8.3 one in trailers", .streamError([proto]),
        [open(1), .headers(1, Frame.field(":method", "GET"))]),
      Case("8.3.1 an empty path", .streamError([proto]), [.headers(1, Frame.request("GET", ""))]),
      Case("8.3.1 no method", .streamError([proto]), [only([0x87, 0x84], authority)]),
      Case("8.3.1 no scheme", .streamError([proto]), [only([0x82, 0x84], authority)]),
      Case("8.3.1 no path", .streamError([proto]), [only([0x82, 0x87], authority)]),
      Case(
        "8.3.1 two methods", .streamError([proto]), [only([0x82, 0x82, 0x87, 0x84], authority)]),
      Case(
        "8.3.1 two schemes", .streamError([proto]), [only([0x82, 0x87, 0x87, 0x84], authority)]),
      Case("8.3.1 two paths", .streamError([proto]), [only([0x82, 0x87, 0x84, 0x84], authority)]),
      Case(
        "8.1.1 a length that DATA does not have", .streamError([proto]),
        [
          .headers(1, Frame.request("POST", "/", [("content-length", "1")]), flags: 4),
          .data(1, [1, 2, 3, 4]),
        ]),
      Case(
        "8.1.1 a length that several DATA do not have", .streamError([proto]),
        [
          .headers(1, Frame.request("POST", "/", [("content-length", "1")]), flags: 4),
          .data(1, [1, 2], flags: 0), .data(1, [1, 2]),
        ]),
      Case(
        "8.1.1 a length without DATA", .streamError([proto]),
        [.headers(1, Frame.request("POST", "/", [("content-length", "1")]))]),
    ]
    + ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"].map {
      Case("8.3.1 \($0)", .reply, [.headers(1, Frame.request($0, "/"))])
    }

  static let compression7541: [Case] = [
    Case(
      "HPACK 2.3.3 an index beyond the tables", .connectionError([compression]),
      [
        .headers(1, Frame.request() + [0xC6])
      ]),
    Case(
      "HPACK 2.3.3 a literal whose name is beyond the tables", .connectionError([compression]),
      [
        .headers(1, Frame.request() + [0x7F, 0x10] + Frame.text("x"))
      ]),
    Case(
      "HPACK 4.2 a change of the table's size after a field", .connectionError([compression]),
      [
        .headers(1, Frame.request() + [0x20])
      ]),
    Case(
      "HPACK 5.2 padding of more than seven bits", .connectionError([compression]),
      [
        .headers(1, Frame.request() + [0x00, 0x85, 0xF2, 0xB2, 0x4A, 0x84, 0xFF, 0x82, 0x49, 0x50])
      ]),
    Case(
      "HPACK 5.2 padding of zeros", .connectionError([compression]),
      [
        .headers(
          1, Frame.request() + [0x00, 0x85, 0xF2, 0xB2, 0x4A, 0x87, 0xFF, 0x83, 0x49, 0x50, 0x90])
      ]),
    Case(
      "HPACK 5.2 the end-of-string symbol", .connectionError([compression]),
      [
        .headers(
          1,
          Frame.request() + [
            0x00, 0x85, 0xF2, 0xB2, 0x4A, 0x87, 0xFF, 0x87, 0x49, 0x51, 0xFF, 0xFF, 0xFF, 0xFA,
            0x7F,
          ])
      ]),
    Case(
      "HPACK 6.1 index 0", .connectionError([compression]),
      [
        .headers(1, Frame.request() + [0x80])
      ]),
    Case(
      "HPACK 6.3 a table larger than allowed", .connectionError([compression]),
      [
        .headers(1, [0x3F, 0xE2, 0x1F] + Frame.request())
      ]),
    Case(
      "HPACK 5.1 an integer that has no end", .connectionError([compression]),
      [
        .headers(1, Frame.request() + [0xFF] + [UInt8](repeating: 0xFF, count: 12))
      ]),
    Case("HPACK 6.1 indexed", .reply, [only([0x82, 0x87, 0x84], authority)]),
    Case(
      "HPACK 6.2.1 indexing, and what it indexed", .reply,
      [
        .headers(1, Frame.request() + [0x40] + Frame.text("x") + Frame.text("y") + [0xBE])
      ]),
    Case(
      "HPACK 6.2.2 without indexing", .reply,
      [
        .headers(1, Frame.request() + Frame.field("x", "y"))
      ]),
    Case(
      "HPACK 6.2.3 never indexed", .reply,
      [
        .headers(1, Frame.request() + [0x10] + Frame.text("x") + Frame.text("y"))
      ]),
    Case(
      "HPACK 6.3 the table's size, once and twice", .reply,
      [
        .headers(1, [0x20, 0x3F, 0xE1, 0x1F] + Frame.request())
      ]),
    Case(
      "HPACK 5.2 Huffman's code", .reply,
      [
        // www.example.com, of RFC 7541, appendix C.4.1.
        .headers(
          1,
          [0x82, 0x87, 0x84, 0x41, 0x8C]
            + [0xF1, 0xE3, 0xC2, 0xE5, 0xF2, 0x3A, 0x6B, 0xA0, 0xAB, 0x90, 0xF4, 0xFF])
      ]),
  ]

  /// Answers with five bytes, unless the path says not to.
  private static func harness() throws -> Harness {
    try Harness(
      TestHandler(answering: { request, connection in
        guard request.path != "/silent" else { return }
        connection.respond(
          HTTP2ServerResponse(status: 200, body: Array("12345".utf8)), to: request.stream)
      })
    ) { configuration, _ in
      configuration.maxConcurrentStreams = 3
    }
  }

  @Test("frames and streams", arguments: frames)
  func framing(_ item: Case) async throws { try await check(item) }

  @Test("requests", arguments: messages)
  func requests(_ item: Case) async throws { try await check(item) }

  @Test("header compression", arguments: compression7541)
  func headerCompression(_ item: Case) async throws { try await check(item) }

  private func check(_ item: Case) async throws {
    let harness = try Self.harness()
    try await onThread {
      let client = try FrameClient(harness, sending: item.steps[0])
      for step in item.steps.dropFirst() {
        client.wait { $0.stream == 1 && $0.flags & Frame.endStream != 0 }
        client.send(step)
      }
      let isAlive = client.isAlive(0xA7)
      let goAway = client.frames.first { $0.kind == Frame.Kind.goAway }?.code
      let reset = client.frames.first { $0.kind == Frame.Kind.reset }?.code
      switch item.reaction {
      case .fine:
        #expect(isAlive, "\(item.name)")
        #expect(reset == nil, "\(item.name)")
      case .reply:
        client.wait { $0.stream == 1 && $0.flags & Frame.endStream != 0 }
        #expect(isAlive, "\(item.name)")
        #expect(client.frames.contains { $0.kind == Frame.Kind.headers && $0.stream == 1 })
        #expect(reset == nil, "\(item.name)")
      case .connectionError(let codes):
        #expect(!isAlive)
        #expect(
          codes.contains(goAway ?? .max),
          "\(item.name): GOAWAY \(goAway.map(String.init) ?? "missing")")
      case .streamError(let codes):
        let code = reset ?? goAway
        #expect(
          codes.contains(code ?? .max), "\(item.name): \(code.map(String.init) ?? "no reaction")")
        #expect(isAlive == (goAway == nil))
      case .closed: #expect(!isAlive)
      }
    }
    #expect(await harness.connect().send(makeBatch(1)).replies[0].status == 200)
  }

  // MARK: What takes more than one look

  @Test("6.5.3: SETTINGS are acknowledged, the last of several values counts")
  func settings() async throws {
    let harness = try Self.harness()
    try await onThread {
      let client = try FrameClient(harness)
      client.send(.settings([(4, 100), (4, 1)]), .headers(1))
      let data = client.wait { $0.kind == Frame.Kind.data }
      #expect(data?.payload == Array("1".utf8))
      #expect(client.frames.count { $0.kind == Frame.Kind.settings && $0.flags == Frame.ack } == 2)
    }
  }

  @Test("6.7: a PING is answered with what it holds, an answer is not")
  func pings() async throws {
    let harness = try Self.harness()
    try await onThread {
      let client = try FrameClient(harness)
      client.send(
        Frame(kind: Frame.Kind.ping, flags: Frame.ack, payload: [UInt8](repeating: 1, count: 8)))
      #expect(client.isAlive(2))
      let answers = client.frames.filter { $0.kind == Frame.Kind.ping }
      #expect(answers.map(\.payload) == [[UInt8](repeating: 2, count: 8)])
    }
  }

  @Test("6.9.2: a change of the initial window holds for open streams, below zero too")
  func windows() async throws {
    let harness = try Self.harness()
    try await onThread {
      let client = try FrameClient(harness)
      client.send(.settings([(4, 3)]), .headers(1))
      client.wait { $0.kind == Frame.Kind.data }
      client.send(.settings([(4, 2)]))  // now -1
      #expect(client.isAlive(1))
      client.send(.windowUpdate(1, 1))  // now 0
      #expect(client.isAlive(2))
      #expect(client.frames.count { $0.kind == Frame.Kind.data } == 1)
      client.send(.windowUpdate(1, 1))
      client.wait { $0.kind == Frame.Kind.data && $0.payload == Array("4".utf8) }
      client.send(.settings([(4, 3)]))
      client.wait { $0.kind == Frame.Kind.data && $0.flags & Frame.endStream != 0 }
      let parts = client.frames.filter { $0.kind == Frame.Kind.data }.map(\.payload)
      #expect(parts == [Array("123".utf8), Array("4".utf8), Array("5".utf8)])
    }
  }
}
