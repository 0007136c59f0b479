import Testing

@testable import HTTP2

@Suite("Lost, silent and closed connections", .timeLimit(.minutes(5)))
struct LossTests {
  @Test("a TCP reset fails what is in flight; unsent requests are refused")
  func tcpReset() async throws {
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        if request.stream == 9 { connection.abort() }
      }))
    let connection = harness.connect { $0.maxConcurrentStreams = 20 }
    let replies = await connection.send(makeBatch(50))
    #expect(replies.replies[..<5].allSatisfy { $0.failure == .connectionLost })
    #expect(replies.replies[..<5].allSatisfy { $0.mayHaveBeenProcessed })
    #expect(replies.replies[20...].allSatisfy { $0.failure == .refused && !$0.wasSent })
    #expect(replies.connectionError?.kind == .lost)
    #expect(connection.status.state == .closed)
  }

  @Test("an orderly close in the middle fails what is in flight")
  func orderlyClose() async throws {
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        if request.stream == 9 {
          connection.respond(HTTP2ServerResponse(status: 200), to: 9)
          connection.close()
        }
      }))
    let replies = await harness.connect().send(makeBatch(10))
    #expect(replies.replies[4].status == 200 && replies.replies[4].failure == nil)
    #expect(replies.replies[..<4].allSatisfy { $0.failure == .connectionLost })
    #expect(replies.replies[5...].allSatisfy { $0.failure == .connectionLost })
  }

  @Test("a request without a reply times out and its stream is reset with CANCEL")
  func replyTimeout() async throws {
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        guard request.path != "/1" else { return }
        connection.respond(HTTP2ServerResponse(status: 200), to: request.stream)
      }))
    let (connection, clock) = harness.connectTimed()
    async let answers = connection.send(makeBatch(3))
    await eventually("the others are answered") { connection.status.answered == 2 }
    clock.advance(by: .seconds(29))
    #expect(connection.status.inFlight == 1)
    clock.advance(by: .seconds(2))
    let replies = await answers
    #expect(replies.replies.map(\.failure) == [nil, .timedOut, nil])
    #expect(replies.replies[1].mayHaveBeenProcessed)
    await eventually("the server sees CANCEL") {
      harness.handler.look { $0.closedStreams[3] } == 8
    }
    #expect(connection.status.state == .ready)
    #expect(!connection.status.isSilent, "others were answered meanwhile")
    let again = await connection.send(makeBatch(1))
    #expect(again.replies[0].status == 200)
  }

  @Test("requests that get no stream at all are refused unsent after their time")
  func noRoom() async throws {
    let harness = try Harness { configuration, _ in configuration.maxConcurrentStreams = 0 }
    let (connection, clock) = harness.connectTimed()
    try await connection.ready()
    async let answers = connection.send(makeBatch(3))
    await eventually("their time is over") {
      clock.advance(by: .seconds(2))
      return connection.status.isSilent
    }
    let replies = await answers
    #expect(replies.replies.allSatisfy { $0.failure == .refused && !$0.mayHaveBeenProcessed })
    #expect(connection.status.isSilent)
  }

  @Test("a peer that allows no stream for a while costs that while and nothing more")
  func roomLater() async throws {
    let harness = try Harness { configuration, _ in configuration.maxConcurrentStreams = 0 }
    let (connection, clock) = harness.connectTimed()
    try await connection.ready()
    async let answers = connection.send(makeBatch(3))
    clock.advance(by: .seconds(5))
    harness.server.connections.first?.updateSettings(maxConcurrentStreams: 10)
    #expect(await answers.replies.allSatisfy { $0.status == 200 })
    #expect(!connection.status.isSilent)
  }

  @Test("a batch that a narrow peer lets through one by one ends after its time")
  func narrowPeer() async throws {
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        guard request.path != "/2" else { return }
        connection.respond(HTTP2ServerResponse(status: 200), to: request.stream)
      })
    ) { configuration, _ in
      configuration.maxConcurrentStreams = 1
    }
    let (connection, clock) = harness.connectTimed {
      $0.replyTimeout = .seconds(100)
      $0.batchTimeout = .seconds(60)
    }
    async let answers = connection.send(makeBatch(10))
    await eventually("two are answered") { connection.status.answered == 2 }
    await eventually("the third is under way") { harness.handler.look { $0.requests.count } == 3 }
    clock.advance(by: .seconds(61))
    await eventually("nothing waits any more") { connection.status.queued == 0 }
    // What is under way has its own time.
    clock.advance(by: .seconds(40))
    let replies = await answers.replies
    #expect(replies[..<2].allSatisfy { $0.status == 200 && $0.failure == nil })
    #expect(replies[2].failure == .timedOut && replies[2].mayHaveBeenProcessed)
    #expect(replies[3...].allSatisfy { $0.failure == .refused && !$0.mayHaveBeenProcessed })
  }

  @Test("a connection is silent from a request without a reply in time to the next reply")
  func silence() async throws {
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        guard request.path != "/0" else { return }
        connection.respond(HTTP2ServerResponse(status: 200), to: request.stream)
      }))
    let (connection, clock) = harness.connectTimed()
    async let first = connection.send(makeBatch(1))
    await eventually("it is under way") { harness.handler.look { $0.requests.count } == 1 }
    clock.advance(by: .seconds(31))
    #expect(await first.replies[0].failure == .timedOut)
    #expect(connection.status.isSilent)
    async let second = connection.send(makeBatch(2))
    await eventually("one is answered") { connection.status.answered == 1 }
    #expect(!connection.status.isSilent)
    clock.advance(by: .seconds(31))
    #expect(await second.replies.map(\.failure) == [.timedOut, nil])
  }

  @Test("a stalled server costs the reply timeout, then the PING timeout")
  func stall() async throws {
    let harness = try Harness(TestHandler(answering: { _, connection in connection.stall() }))
    let (connection, clock) = harness.connectTimed()
    async let answers = connection.send(makeBatch(5))
    await eventually("it stalls") { harness.handler.look { !$0.requests.isEmpty } }
    clock.advance(by: .seconds(31))
    #expect(await answers.replies.allSatisfy { $0.failure == .timedOut })
    await eventually("no PING answer ends it") {
      clock.advance(by: .seconds(5))
      return connection.status.error?.kind == .pingTimedOut
    }
    #expect(await connection.send(makeBatch(1)).replies[0].failure == .refused)
  }

  @Test("a silent but living connection is kept by PINGs")
  func pingsAreAnswered() async throws {
    let harness = try Harness(.silent())
    // In real time: nothing but an answer keeps the connection, and nothing here waits for long.
    let connection = harness.connect {
      $0.pingInterval = .milliseconds(20)
      $0.pingTimeout = .seconds(240)
      $0.replyTimeout = .milliseconds(400)
    }
    let replies = await connection.send(makeBatch(1))
    #expect(replies.replies[0].failure == .timedOut)
    #expect(connection.status.state == .ready)
  }

  @Test("an idle connection closes after its idle time")
  func idle() async throws {
    let harness = try Harness()
    let (connection, clock) = harness.connectTimed { $0.idleTimeout = .seconds(50) }
    #expect(await connection.send(makeBatch(1)).replies[0].status == 200)
    await eventually("it is idle") { connection.status.inFlight == 0 }
    clock.advance(by: .seconds(51))
    await eventually("it closes") { connection.status.error?.kind == .idle }
    await eventually("the server hears of it") {
      harness.handler.look { $0.closedConnections } == 1
    }
    #expect(harness.server.connections.isEmpty)
  }

  @Test("closing in mid-flight resumes every caller once and ends the thread")
  func closeResumesAll() async throws {
    let harness = try Harness(.silent())
    var connection: HTTP2Connection? = harness.connect { $0.maxConcurrentStreams = 50 }
    weak let core = connection?.core
    try await connection?.ready()
    await withTaskGroup(of: HTTP2ReplyBatch?.self) { group in
      for _ in 0..<10 {
        group.addTask { [connection] in
          await connection?.send(makeBatch(100))
        }
      }
      await eventually("fifty are in flight") { connection?.status.inFlight == 50 }
      connection?.close()
      for await result in group {
        #expect(result?.replies.count == 100)
        #expect(result?.replies.allSatisfy { $0.failure == .cancelled } == true)
      }
    }
    #expect(await connection?.send(makeBatch(1)).replies[0].failure == .cancelled)
    connection = nil
    await eventually("the thread lets go") { core == nil }
  }

  @Test("dropping the connection ends its thread", arguments: [true, false])
  func dropping(afterReady: Bool) async throws {
    let harness = try Harness()
    var connection: HTTP2Connection? = harness.connect()
    weak let core = connection?.core
    if afterReady { try await connection?.ready() }
    connection = nil
    await eventually("the thread lets go") { core == nil }
  }

  @Test("cancelling the task returns at once and resets its streams alone")
  func cancellation() async throws {
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        if request.body == Array("answer".utf8) {
          connection.respond(HTTP2ServerResponse(status: 200), to: request.stream)
        }
      }))
    let connection = harness.connect { $0.maxConcurrentStreams = 10 }
    let task = Task { await connection.send(makeBatch(40)) }
    await eventually("ten are in flight") { connection.status.inFlight == 10 }
    task.cancel()
    let replies = await task.value
    #expect(replies.replies.allSatisfy { $0.failure == .cancelled })
    #expect(replies.replies.count { $0.wasSent } == 10)
    let others = await connection.send(makeBatch(40, body: "answer"))
    #expect(others.replies.allSatisfy { $0.status == 200 })

    let early = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await connection.send(makeBatch(5))
    }
    #expect(await early.value.replies.allSatisfy { $0.failure == .cancelled && !$0.wasSent })
  }

  @Test("resetting streams faster than the server allows ends the connection")
  func resetFlood() async throws {
    let harness = try Harness(.silent()) { configuration, _ in
      configuration.maxResetsPerSecond = 20
      configuration.monotonicClock = TestClock().now
    }
    let connection = harness.connect()
    let task = Task { await connection.send(makeBatch(500)) }
    await eventually("all are in flight") { harness.handler.look { $0.requests.count } == 500 }
    task.cancel()
    _ = await task.value
    await eventually("the server asks for calm") { connection.status.goAway?.code == 11 }
  }
}
