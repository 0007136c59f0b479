import Testing

@testable import HTTP2

@Suite("Peers that break the rules", .timeLimit(.minutes(5)))
struct BadPeerTests {
  /// PRI and an empty SETTINGS frame.
  static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]

  @Test(
    "plain bytes to the server end that connection and no other",
    arguments: ["GET / HTTP/1.1\r\n\r\n", "\u{0}\u{0}\u{0}garbage", ""])
  func plainGarbage(text: String) async throws {
    let (accepted, clock) = (Signal(), TestClock())
    let harness = try Harness(
      TestHandler(accept: { _ in
        accepted.set()
        return .proceed
      })
    ) { configuration, _ in
      configuration.monotonicClock = clock.now
    }
    clock.drives(harness.server)
    let end = Task {
      try await onThread {
        let client = try #require(RawClient(port: harness.server.port))
        client.send(Array(text.utf8))
        return client.readToEnd()
      }
    }
    await accepted.wait()
    clock.advance(by: .seconds(61))
    #expect(try await end.value != nil)
    #expect(await harness.connect().send(makeBatch(1)).replies[0].status == 200)
  }

  @Test(
    "garbage inside TLS to the server ends that connection and no other",
    arguments: [
      Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8),
      // A frame longer than allowed.
      preface + [0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 1],
      // DATA on a stream that was never opened.
      preface + [0, 0, 1, 0, 0, 0, 0, 0, 1, 0],
      // HEADERS whose block is no HPACK.
      preface + [0, 0, 3, 1, 5, 0, 0, 0, 1, 0xFF, 0xFF, 0xFF],
      // HEADERS on an even stream.
      preface + [0, 0, 1, 1, 5, 0, 0, 0, 2, 0x82],
      // SETTINGS of a length that is no multiple of six.
      preface + [0, 0, 5, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0],
      // WINDOW_UPDATE of nothing on the connection.
      preface + [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ])
  func secureGarbage(bytes: [UInt8]) async throws {
    let harness = try Harness()
    let client = try #require(RawClient(port: harness.server.port))
    #expect(try client.startTLS(offering: "h2", anchors: harness.material.authorityPEM) == 0)
    client.send(bytes)
    #expect(client.readToEnd() != nil)
    #expect(harness.handler.look { $0.requests.isEmpty })
    #expect(await harness.connect().send(makeBatch(1)).replies[0].status == 200)
  }

  @Test(
    "garbage from the server ends the connection and answers every request",
    arguments: [
      Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8),
      // SETTINGS, then a frame longer than allowed.
      [0, 0, 0, 4, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 1],
      // SETTINGS, then HEADERS on a stream that we never opened.
      [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 1, 4, 0, 0, 0, 9, 0x88],
      // SETTINGS, then PUSH_PROMISE, which we forbade.
      [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5, 5, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0x88],
    ])
  func garbageFromServer(bytes: [UInt8]) async throws {
    let material = try TestKeys.material.get()
    let server = try RawServer(material.server, speaksH2: true, sending: bytes)
    var configuration = HTTP2ConnectionConfiguration(host: "127.0.0.1", port: server.port)
    configuration.extraAnchorsPEM = material.authorityPEM
    let connection = HTTP2Connection(configuration)
    let replies = await connection.send(makeBatch(10))
    #expect(replies.replies.allSatisfy { $0.failure == .connectionLost || $0.failure == .refused })
    await eventually("it is closed") {
      connection.status.error?.kind == .protocolViolation
    }
  }

  @Test("a server that never sends SETTINGS costs the connect timeout")
  func noSettings() async throws {
    let material = try TestKeys.material.get()
    let server = try RawServer(material.server, speaksH2: true, sending: [])
    var configuration = HTTP2ConnectionConfiguration(host: "127.0.0.1", port: server.port)
    configuration.extraAnchorsPEM = material.authorityPEM
    let clock = TestClock()
    configuration.monotonicClock = clock.now
    let connection = HTTP2Connection(configuration)
    clock.drives(connection)
    async let answers = connection.send(makeBatch(1))
    await server.isSecure.wait()
    clock.advance(by: .seconds(11))
    #expect(await answers.replies[0].failure == .connectFailed)
    #expect(await failure(of: connection)?.kind == .connectTimedOut)
  }

  @Test("a header block over the limit is shown as such and can be answered")
  func largeHeader() async throws {
    let harness = try Harness(Self.refusingExcess())
    let connection = harness.connect()
    var batch = HTTP2RequestBatch(authority: "localhost")
    let long = batch.addFieldSet([HTTP2Field("x-long", String(repeating: "x", count: 20_000))])
    let short = batch.addFieldSet([])
    let path = batch.write("/")
    let body = batch.write("{}")
    batch.addRequest(path: path, fields: long, body: body)
    batch.addRequest(path: path, fields: short, body: body)
    let replies = await connection.send(batch)
    #expect(replies.replies.map(\.status) == [431, 200])
    #expect(replies.replies.allSatisfy { $0.failure == nil })
  }

  @Test("a body over the limit is answered before it ends, and the rest is thrown away")
  func largeBody() async throws {
    let harness = try Harness(Self.refusingExcess())
    let connection = harness.connect()
    let body = String(repeating: "x", count: 300_000)
    let replies = await connection.send(makeBatch(3, body: body))
    #expect(replies.replies.allSatisfy { $0.status == 413 && $0.failure == nil })
    #expect(await connection.send(makeBatch(3)).replies.allSatisfy { $0.status == 200 })
  }

  @Test("an answer at the end of the headers spares the handler the request")
  func earlyAnswer() async throws {
    let harness = try Harness(
      TestHandler(headers: { request, connection in
        connection.respond(HTTP2ServerResponse(status: 403), to: request.stream)
      }))
    let replies = await harness.connect().send(makeBatch(20))
    #expect(replies.replies.allSatisfy { $0.status == 403 && $0.failure == nil })
    #expect(harness.handler.look { $0.requests.isEmpty })
  }

  private static func refusingExcess() -> TestHandler {
    TestHandler(answering: { request, connection in
      let status =
        switch request.excess {
        case .header: 431
        case .body: 413
        case nil: 200
        }
      connection.respond(HTTP2ServerResponse(status: status), to: request.stream)
    })
  }
}
