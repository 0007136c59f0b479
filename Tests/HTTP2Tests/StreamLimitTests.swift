import HTTP2
import Testing

@Suite("Stream limits, refusals and GOAWAY", .timeLimit(.minutes(5)))
struct StreamLimitTests {
  @Test("the announced stream limit is obeyed", arguments: [1, 7, 1000])
  func limitIsObeyed(limit: Int) async throws {
    let harness = try Harness { configuration, _ in configuration.maxConcurrentStreams = limit }
    let connection = harness.connect()
    let replies = await connection.send(makeBatch(500))
    #expect(replies.replies.allSatisfy { $0.status == 200 })
    #expect(harness.handler.look { $0.peakStreams } <= limit)
    #expect(connection.status.peerStreamLimit == limit)
  }

  @Test("our own limit holds even when the peer allows more")
  func ownLimit() async throws {
    let harness = try Harness()
    let replies = await harness.connect { $0.maxConcurrentStreams = 3 }.send(makeBatch(100))
    #expect(replies.replies.allSatisfy { $0.status == 200 })
    #expect(harness.handler.look { $0.peakStreams } <= 3)
  }

  @Test("a limit of 1 that is lifted after the first answer lets the rest fan out")
  func limitIsLifted() async throws {
    // As APNs does it: answers are held until all that may come has come.
    let harness = try Harness(
      TestHandler(
        opened: { $0.updateSettings(maxConcurrentStreams: 1) },
        request: { request, connection in
          if request.stream == 1 {
            connection.respond(HTTP2ServerResponse(status: 200), to: 1)
            connection.updateSettings(maxConcurrentStreams: 50)
          } else if connection.openStreams == 50 {
            for stream in 0..<50 {
              let id = request.stream - 2 * Int32(stream)
              connection.respond(HTTP2ServerResponse(status: 200), to: id)
            }
          }
        }))
    let connection = harness.connect()
    let replies = await connection.send(makeBatch(101))
    #expect(replies.replies.allSatisfy { $0.status == 200 })
    #expect(connection.status.peerStreamLimit == 50)
    #expect(harness.handler.look { $0.peakStreams } == 50)
  }

  @Test("streams above the enforced limit are refused and not shown to the handler")
  func surplusIsRefused() async throws {
    let harness = try Harness(.silent()) { configuration, _ in
      configuration.maxConcurrentStreams = 100
      configuration.enforcedStreams = 10
    }
    let connection = harness.connect()
    async let pending = connection.send(makeBatch(100))
    await eventually("ninety streams are refused") {
      connection.status.inFlight == 10 && connection.status.queued == 0
    }
    let open = harness.handler.look { $0.requests }
    #expect(open.count == 10)
    let server = try #require(harness.server.connections.first)
    for request in open { server.respond(HTTP2ServerResponse(status: 200), to: request.stream) }
    let replies = await pending
    #expect(replies.replies.count { $0.status == 200 && $0.failure == nil } == 10)
    let refused = replies.replies.filter { $0.failure == .refused }
    #expect(refused.count == 90)
    #expect(refused.allSatisfy { $0.wasSent && !$0.mayHaveBeenProcessed })
  }

  @Test("after GOAWAY streams at or below its last id complete, those above are refused")
  func goAwayInTheMiddle() async throws {
    let debugData = Array(#"{"reason":"Shutdown"}"#.utf8)
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        // The twentieth request ends it all; the first twenty are answered after the GOAWAY.
        guard request.stream == 39 else { return }
        connection.goAway(lastStreamID: 39, code: 0, debugData: debugData)
        for stream in stride(from: Int32(1), through: 39, by: 2) {
          connection.respond(HTTP2ServerResponse(status: 200), to: stream)
        }
      }))
    let connection = harness.connect { $0.maxConcurrentStreams = 50 }
    let replies = await connection.send(makeBatch(200))
    #expect(replies.replies[..<20].allSatisfy { $0.status == 200 && $0.failure == nil })
    #expect(replies.replies[20...].allSatisfy { $0.failure == .refused })
    #expect(replies.replies[20...].allSatisfy { !$0.mayHaveBeenProcessed })
    #expect(replies.goAway == HTTP2GoAway(lastStreamID: 39, code: 0, debugData: debugData))
    #expect(harness.handler.look { $0.requests.count } == 20)
    // The status follows the replies.
    await eventually("the connection is draining") { connection.status.isDraining }

    let late = await connection.send(makeBatch(2))
    #expect(late.replies.allSatisfy { $0.failure == .refused && !$0.wasSent })
    await eventually("the drained connection closes") {
      connection.status.error?.kind == .drained
    }
  }

  @Test(
    "a stream that the server resets fails alone, with the code",
    arguments: [
      (UInt32(7), HTTP2Failure.refused), (2, .reset(code: 2)), (8, .reset(code: 8)),
      (0, .reset(code: 0)),
    ])
  func reset(code: UInt32, expected: HTTP2Failure) async throws {
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        if request.path == "/5" {
          connection.reset(request.stream, code: code)
        } else {
          connection.respond(HTTP2ServerResponse(status: 200), to: request.stream)
        }
      }))
    let replies = await harness.connect().send(makeBatch(20))
    for index in 0..<20 {
      #expect(replies.replies[index].failure == (index == 5 ? expected : nil))
    }
  }

  @Test("a truncated answer is a failure that shows the status it began with")
  func truncatedAnswer() async throws {
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        connection.respond(
          HTTP2ServerResponse(status: 410, body: Array("0123456789".utf8), truncatedBody: 4),
          to: request.stream)
      }))
    let replies = await harness.connect().send(makeBatch(1))
    #expect(replies.replies[0].failure == .reset(code: 2))
    #expect(replies.replies[0].status == 410 && replies.replies[0].mayHaveBeenProcessed)
  }

  @Test("when the stream ids run out the rest is refused and the connection drains")
  func idsRunOut() async throws {
    let harness = try Harness()
    let connection = harness.connect { $0.firstStreamID = Int32.max - 8 }
    let replies = await connection.send(makeBatch(20))
    #expect(replies.replies[..<5].allSatisfy { $0.status == 200 && $0.failure == nil })
    #expect(replies.replies[5...].allSatisfy { $0.failure == .refused && !$0.wasSent })
    #expect(connection.status.isDraining)
  }
}
