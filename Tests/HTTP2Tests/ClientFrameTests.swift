import Testing

@testable import HTTP2

/// The client's reactions to frames of a server, right and wrong (RFC 9113), without a socket.
@Suite("Frames of servers")
struct ClientFrameTests {
  enum Reaction: Sendable {
    /// The first request is answered with this status.
    case reply(UInt16)
    /// Nothing happens to the request.
    case waits
    /// The stream is reset, by us or by the server; with our code, if it is ours.
    case failed(HTTP2Failure, reset: HTTP2ErrorCode?)
    /// GOAWAY with this code, and the end.
    case goAway(HTTP2ErrorCode)
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let frames: [Frame]
    let reaction: Reaction
    var testDescription: String { name }

    init(_ name: String, _ frames: Frame..., reaction: Reaction) {
      self.name = name
      self.frames = frames
      self.reaction = reaction
    }
  }

  private static let ok: [UInt8] = [0x88]
  private static let open = Frame.endHeaders

  private static let hints = Frame.headers(
    1, Frame.field(":status", "103") + Frame.field("x", String(repeating: "y", count: 3000)),
    flags: open)

  static let replies = [
    Case("a status alone", .headers(1, ok), reaction: .reply(200)),
    Case("an announced table of nothing", .headers(1, [0x20] + ok), reaction: .reply(200)),
    Case(
      "a status that is no entry of the table", .headers(1, Frame.field(":status", "410")),
      reaction: .reply(410)),
    Case(
      "fields that the peer would keep if it could",
      .headers(1, ok + [0x40] + Frame.text("apns-id") + Frame.text("x")), reaction: .reply(200)),
    Case(
      "a value with a line end, which is passed over",
      .headers(1, Frame.field(":status", "410") + Frame.field("retry-after", "1\r\nx: y")),
      reaction: .reply(410)),
    Case(
      "padding and priority",
      .headers(
        1, [3, 0, 0, 0, 0, 0] + ok + [0, 0, 0],
        flags: Frame.endHeaders | Frame.endStream | Frame.padded | Frame.prioritized),
      reaction: .reply(200)),
    Case(
      "a block in three frames",
      .headers(1, [0x20], flags: Frame.endStream), .continuation(1, [], flags: 0),
      .continuation(1, ok), reaction: .reply(200)),
    Case(
      "early hints", .headers(1, Frame.field(":status", "103"), flags: open), .headers(1, ok),
      reaction: .reply(200)),
    Case(
      "trailers", .headers(1, ok, flags: open), .data(1, [1], flags: 0),
      .headers(1, Frame.field("x", "y")), reaction: .reply(200)),
    Case(
      "frames of unknown types", Frame(kind: 0xBE, stream: 1), .priority(1), .headers(1, ok),
      reaction: .reply(200)),
    Case(
      "what comes for a stream that has ended", .headers(1, ok), .data(1, [1]), .reset(1),
      .windowUpdate(1, 1), .headers(1, [0xFF, 0xFF]), reaction: .reply(200)),
    Case("half a reply", .headers(1, ok, flags: open), .data(1, [1], flags: 0), reaction: .waits),
  ]

  static let failures = [
    Case(
      "a reset", .headers(1, ok, flags: open), .reset(1, code: 2),
      reaction: .failed(.reset(code: 2), reset: nil)),
    Case("a refusal", .reset(1, code: 7), reaction: .failed(.refused, reset: nil)),
    Case(
      "no status", .headers(1, Frame.field("x", "y")),
      reaction: .failed(.reset(code: 1), reset: .protocolError)),
    Case(
      "two statuses", .headers(1, ok + ok),
      reaction: .failed(.reset(code: 1), reset: .protocolError)),
    Case(
      "a status after another field", .headers(1, Frame.field("x", "y") + ok),
      reaction: .failed(.reset(code: 1), reset: .protocolError)),
    Case(
      "a status of four digits", .headers(1, Frame.field(":status", "2000")),
      reaction: .failed(.reset(code: 1), reset: .protocolError)),
    Case(
      "a field ahead of the status", .headers(1, [0x90] + ok),
      reaction: .failed(.reset(code: 1), reset: .protocolError)),
    Case(
      "a field of the connection, whatever the status",
      .headers(1, ok + Frame.field("connection", "close")),
      reaction: .failed(.reset(code: 1), reset: .protocolError)),
    Case(
      "a second status in Huffman's code",
      .headers(1, ok + [0, 0x85, 0xB8, 0x84, 0x8D, 0x36, 0xA3, 1, 0x31]),
      reaction: .failed(.reset(code: 1), reset: .protocolError)),
    Case(
      "a body shorter than the reply says",
      .headers(
        1, Frame.field(":status", "410") + Frame.field("content-length", "100"), flags: open),
      .data(1, [1]), reaction: .failed(.reset(code: 1), reset: .protocolError)),
    Case(
      "a field of the connection",
      .headers(1, Frame.field(":status", "410") + Frame.field("connection", "close")),
      reaction: .failed(.reset(code: 1), reset: .protocolError)),
    Case(
      "hints whose fields are together more than the limit", hints, hints, hints, hints, hints,
      hints,
      reaction: .failed(.reset(code: 2), reset: .internalError)),
    Case(
      "hints that end the stream", .headers(1, Frame.field(":status", "103")),
      reaction: .failed(.reset(code: 1), reset: .protocolError)),
    Case(
      "DATA ahead of HEADERS", .data(1, [1]),
      reaction: .failed(.reset(code: 1), reset: .protocolError)),
    Case(
      "trailers that end nothing", .headers(1, ok, flags: open),
      .headers(1, Frame.field("x", "y"), flags: open),
      reaction: .failed(.reset(code: 1), reset: .protocolError)),
    Case(
      "more fields than the limit",
      .headers(
        1, ok + Frame.field("x", String(repeating: "y", count: 9000)), flags: Frame.endStream),
      .continuation(1, Frame.field("z", String(repeating: "y", count: 9000))),
      reaction: .failed(.reset(code: 2), reset: .internalError)),
    Case(
      "a stream's window over its end", .windowUpdate(1, 0x7FFF_FFFF),
      reaction: .failed(.reset(code: 3), reset: .flowControlError)),
    Case(
      "a stream's WINDOW_UPDATE of nothing", .windowUpdate(1, 0),
      reaction: .failed(.reset(code: 1), reset: .protocolError)),
  ]

  static let ends = [
    Case("HEADERS of an idle stream", .headers(99, ok), reaction: .goAway(.protocolError)),
    Case("HEADERS of a server's stream", .headers(2, ok), reaction: .goAway(.protocolError)),
    Case("HEADERS of the connection", .headers(0, ok), reaction: .goAway(.protocolError)),
    Case("a reference to a table", .headers(1, [0xBE]), reaction: .goAway(.compressionError)),
    Case("a table that we forbid", .headers(1, [0x21] + ok), reaction: .goAway(.compressionError)),
    Case("a block cut short", .headers(1, [0x88, 0x40, 5]), reaction: .goAway(.compressionError)),
    Case(
      "another frame in a block", .headers(1, ok, flags: 0), .ping(1),
      reaction: .goAway(.protocolError)),
    Case(
      "CONTINUATION of another stream", .headers(1, ok, flags: 0), .continuation(3),
      reaction: .goAway(.protocolError)),
    Case("CONTINUATION of nothing", .continuation(1, ok), reaction: .goAway(.protocolError)),
    Case(
      "all padding", .headers(1, [9, 0x88], flags: Frame.padded | Frame.endHeaders),
      reaction: .goAway(.protocolError)),
    Case("RST_STREAM of an idle stream", .reset(99), reaction: .goAway(.protocolError)),
    Case(
      "RST_STREAM of three bytes", Frame(kind: Frame.Kind.reset, stream: 1, payload: [0, 0, 0]),
      reaction: .goAway(.frameSizeError)),
    Case(
      "PING of seven bytes",
      Frame(kind: Frame.Kind.ping, payload: [UInt8](repeating: 0, count: 7)),
      reaction: .goAway(.frameSizeError)),
    Case(
      "PING of a stream",
      Frame(kind: Frame.Kind.ping, stream: 1, payload: [UInt8](repeating: 0, count: 8)),
      reaction: .goAway(.protocolError)),
    Case(
      "a window over its end", .windowUpdate(0, 0x7FFF_FFFF), reaction: .goAway(.flowControlError)),
    Case("WINDOW_UPDATE of nothing", .windowUpdate(0, 0), reaction: .goAway(.protocolError)),
    Case("a server that enables pushes", .settings([(2, 1)]), reaction: .goAway(.protocolError)),
    Case(
      "a window beyond 2^31, ahead of one that is right", .settings([(4, 1 << 31), (4, 1)]),
      reaction: .goAway(.flowControlError)),
    Case(
      "streams' windows over their end", .windowUpdate(1, 0x7FFF_0000 - 65_535),
      .settings([(4, 0x7FFF_FFFF)]), reaction: .goAway(.flowControlError)),
    Case("a small frame size", .settings([(5, 100)]), reaction: .goAway(.protocolError)),
    Case(
      "SETTINGS of five bytes", Frame(kind: Frame.Kind.settings, payload: [0, 0, 0, 0, 0]),
      reaction: .goAway(.frameSizeError)),
    Case(
      "an acknowledgement with content",
      Frame(kind: Frame.Kind.settings, flags: Frame.ack, payload: [0, 0, 0, 0, 0, 0]),
      reaction: .goAway(.frameSizeError)),
    Case(
      "GOAWAY of four bytes", Frame(kind: Frame.Kind.goAway, payload: [0, 0, 0, 0]),
      reaction: .goAway(.frameSizeError)),
    Case(
      "PUSH_PROMISE",
      Frame(
        kind: Frame.Kind.pushPromise, flags: Frame.endHeaders, stream: 1,
        payload: [0, 0, 0, 2, 0x82]),
      reaction: .goAway(.protocolError)),
    Case(
      "a frame of 16385 bytes",
      Frame(kind: Frame.Kind.data, stream: 1, payload: [UInt8](repeating: 0, count: 16_385)),
      reaction: .goAway(.frameSizeError)),
  ]

  private static func session(
    _ batch: HTTP2RequestBatch = makeBatch(3)
  ) throws -> DetachedClientSession {
    try #require(
      DetachedClientSession(
        HTTP2ConnectionConfiguration(host: "localhost", port: 443), sending: batch))
  }

  @Test(
    "replies are taken, failures are those of their stream", arguments: replies + failures + ends)
  func reactions(_ item: Case) throws {
    let client = try Self.session()
    #expect(client.exchange(Frame.settings([]).bytes[...]).error == nil)
    let (sent, error) = client.exchange(item.frames.flatMap(\.bytes)[...])
    let answers = Self.frames(in: sent)
    let reset = answers.first { $0.kind == Frame.Kind.reset && $0.stream == 1 }?.code
    let goAway = answers.first { $0.kind == Frame.Kind.goAway }?.code
    switch item.reaction {
    case .reply(let status):
      #expect(error == nil && client.replies[0].status == status)
      #expect(client.replies[0].failure == nil && client.remaining == 2)
    case .waits: #expect(error == nil && client.remaining == 3)
    case .failed(let failure, let code):
      #expect(error == nil && client.replies[0].failure == failure && client.remaining == 2)
      #expect(reset == code?.rawValue)
    case .goAway(let code):
      #expect(error?.kind == .protocolViolation)
      #expect(goAway == code.rawValue)
    }
  }

  @Test("the first frame is SETTINGS, and no acknowledgement")
  func preface() throws {
    for frame in [Frame.ping(1), Frame(kind: Frame.Kind.settings, flags: Frame.ack)] {
      let (sent, error) = try Self.session().exchange(frame.bytes[...])
      #expect(error?.kind == .protocolViolation)
      #expect(Self.frames(in: sent).last?.code == HTTP2ErrorCode.protocolError.rawValue)
    }
  }

  @Test("it makes no difference how bytes arrive", arguments: [1, 2, 7, 9, 10, 100])
  func pieces(size: Int) throws {
    let client = try Self.session()
    var (sent, _) = client.exchange(Frame.settings([]).bytes[...])
    let input =
      bytes(
        .ping(7), .headers(1, Self.ok), .headers(3, Self.ok, flags: Self.open),
        .data(3, [1, 2, 3]), .headers(5, Self.ok))
    for start in stride(from: 0, to: input.count, by: size) {
      let (more, error) = client.exchange(input[start..<min(input.count, start + size)])
      #expect(error == nil)
      sent += more
    }
    #expect(client.replies.map(\.status) == [200, 200, 200])
    let frames = Self.frames(in: sent)
    #expect(frames.filter { $0.kind == Frame.Kind.headers }.map(\.stream) == [1, 3, 5])
    #expect(
      frames.contains { $0 == Frame(kind: 6, flags: 1, payload: .init(repeating: 7, count: 8)) })
  }

  @Test("bodies keep to the windows of stream and connection, and go on with new ones")
  func windows() throws {
    let client = try Self.session(makeBatch(2, body: String(repeating: "x", count: 100)))
    var data: [UInt32: [Int]] = [:]
    func exchange(_ frames: Frame...) {
      let (sent, error) = client.exchange(frames.flatMap(\.bytes)[...])
      #expect(error == nil)
      for frame in Self.frames(in: sent) where frame.kind == Frame.Kind.data {
        data[frame.stream, default: []].append(frame.payload.count)
      }
    }
    exchange(.settings([(4, 30)]))
    #expect(data == [1: [30], 3: [30]])
    exchange(.windowUpdate(1, 10))
    #expect(data == [1: [30, 10], 3: [30]])
    // Below zero: 40 of 20, 30 of 20.
    exchange(.settings([(4, 20)]))
    exchange(.windowUpdate(3, 5))
    #expect(data == [1: [30, 10], 3: [30]])
    exchange(.windowUpdate(3, 6))
    #expect(data == [1: [30, 10], 3: [30, 1]])
    exchange(.settings([(4, 1000)]))
    #expect(data == [1: [30, 10, 60], 3: [30, 1, 69]])
  }

  @Test("HEADERS are sent to a server that grants windows stream by stream")
  func noStreamWindow() throws {
    let client = try Self.session(makeBatch(1, body: "12345"))
    let first = Self.frames(in: client.exchange(Frame.settings([(4, 0)]).bytes[...]).sent)
    #expect(first.contains { $0.kind == Frame.Kind.headers && $0.stream == 1 })
    #expect(!first.contains { $0.kind == Frame.Kind.data })
    let more = Self.frames(in: client.exchange(Frame.windowUpdate(1, 9).bytes[...]).sent)
    #expect(more.map(\.payload) == [Array("12345".utf8)])
  }

  @Test(
    "an answer to half a request is one, and the rest is not sent", arguments: [200, 413])
  func earlyReply(status: Int) throws {
    let client = try Self.session(makeBatch(1, body: "12345"))
    _ = client.exchange(Frame.settings([(4, 2)]).bytes[...])
    let block = Frame.field(":status", "\(status)")
    let sent = Self.frames(in: client.exchange(Frame.headers(1, block).bytes[...]).sent)
    #expect(sent.first?.code == HTTP2ErrorCode.cancel.rawValue)
    #expect(client.replies[0].status == status)
    #expect(client.replies[0].failure == nil)
  }

  @Test("the connection's window holds back new requests with a body, and no others")
  func connectionWindow() throws {
    var batch = HTTP2RequestBatch(authority: "localhost")
    let fields = batch.addFieldSet([])
    let (path, body) = (
      batch.write("/"), batch.write(String(repeating: "x", count: 65_535))
    )
    batch.addRequest(path: path, fields: fields, body: body)
    batch.addRequest(path: path, fields: fields)
    batch.addRequest(path: path, fields: fields, body: body)
    let client = try Self.session(batch)
    let first = Self.frames(in: client.exchange(Frame.settings([]).bytes[...]).sent)
    #expect(first.filter { $0.kind == Frame.Kind.headers }.map(\.stream) == [1, 3])
    let more = Self.frames(in: client.exchange(Frame.windowUpdate(0, 10).bytes[...]).sent)
    #expect(more.map(\.stream) == [5, 5] && more.last?.payload.count == 10)
  }

  @Test("a peer that floods with what wants an answer, and does not read, is left")
  func unreadAnswers() throws {
    let client = try Self.session()
    _ = client.exchange(Frame.settings([]).bytes[...])
    let flood = (0..<20_000).flatMap { _ in Frame.ping(1).bytes }
    let (sent, error) = client.exchange(flood[...])
    #expect(error?.kind == .protocolViolation)
    #expect(Self.frames(in: sent).last?.code == HTTP2ErrorCode.enhanceYourCalm.rawValue)
    #expect(sent.count < 300_000)
  }

  @Test("a header block without end is left", arguments: [0, 16_384])
  func endlessBlock(size: Int) throws {
    let client = try Self.session()
    _ = client.exchange(Frame.settings([]).bytes[...])
    let part = [UInt8](repeating: 0x82, count: size)
    let flood =
      Frame.headers(1, Self.ok, flags: 0).bytes
      + (0..<100).flatMap { _ in Frame.continuation(1, part, flags: 0).bytes }
    let (sent, error) = client.exchange(flood[...])
    #expect(error?.kind == .protocolViolation)
    #expect(Self.frames(in: sent).last?.code == HTTP2ErrorCode.enhanceYourCalm.rawValue)
  }

  @Test("the windows for replies are renewed as they are used")
  func renewedWindows() throws {
    let client = try Self.session()
    _ = client.exchange(Frame.settings([]).bytes[...])
    _ = client.exchange(Frame.headers(1, Self.ok, flags: Self.open).bytes[...])
    let part = [UInt8](repeating: 0, count: 16_384)
    var windows = 0
    for _ in 0..<50 {
      let (sent, error) = client.exchange(Frame.data(1, part, flags: 0).bytes[...])
      #expect(error == nil)
      windows += Self.frames(in: sent).count { $0.kind == Frame.Kind.windowUpdate }
    }
    #expect(windows >= 24)
  }

  private static func frames(in bytes: [UInt8]) -> [Frame] {
    var rest = bytes[...]
    let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    if rest.starts(with: preface) { rest = rest.dropFirst(preface.count) }
    var frames: [Frame] = []
    while rest.count >= 9 {
      let head = Array(rest.prefix(9))
      let count = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
      let stream = head[5...].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      frames.append(
        Frame(
          kind: head[3], flags: head[4], stream: stream,
          payload: Array(rest.dropFirst(9).prefix(count))))
      rest = rest.dropFirst(9 + count)
    }
    #expect(rest.isEmpty, "what is sent is whole frames")
    return frames
  }
}
