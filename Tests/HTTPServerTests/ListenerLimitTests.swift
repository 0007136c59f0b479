import HTTPServer
import HubTesting
import Testing

@Suite("Limits of the HTTP server", .timeLimit(.minutes(5)))
struct ListenerLimitTests {
  /// Small and quick limits.
  static var configuration: HTTPConfiguration {
    var configuration = HTTPConfiguration()
    configuration.maxBodyBytes = 1000
    configuration.maxDiscardedBytes = 5000
    configuration.maxHeaderBytes = 2000
    return configuration
  }

  /// Answers like `echo`, words refusals in its own way.
  struct Handler: HTTPHandler {
    func respond(to request: HTTPRequest) async -> HTTPResponse { await echo(request) }

    func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
      HTTPResponse(status, text: "own \(status.rawValue) \(request.target) \(request.body.count)")
    }
  }

  private func reply(
    to request: String, _ configuration: HTTPConfiguration = Self.configuration
  ) async throws -> RawReply {
    let server = try HTTPListener(configuration, handler: Handler())
    let port = server.port
    let reply = try await onThread { try RawClient(port: port).exchange(request) }
    await server.stop()
    return reply
  }

  @Test(
    "a body over the limit is 413 in the handler's words",
    arguments: [1001, 4000])
  func bodyTooLarge(size: Int) async throws {
    let body = String(repeating: "x", count: size)
    let reply = try await reply(
      to: "PUT /b HTTP/1.1\r\nHost: h\r\nContent-Length: \(size)\r\n\r\n\(body)")
    #expect(reply.status == 413)
    #expect(reply.body == "own 413 /b 0")
  }

  @Test("a body just at the limit is served")
  func bodyAtLimit() async throws {
    let body = String(repeating: "x", count: 1000)
    let reply = try await reply(
      to: "PUT /b HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n\(body)")
    #expect(reply.body == "PUT /b [] \(body)")
  }

  @Test(
    "a body announced as far too large is refused before it comes",
    arguments: ["1000000", "9223372036854775807", "18446744073709551615"])
  func announcedTooLarge(length: String) async throws {
    let reply = try await reply(
      to: "PUT /b HTTP/1.1\r\nHost: h\r\nContent-Length: \(length)\r\n\r\nxxx")
    #expect(reply.status == 413)
  }

  @Test("a client that expects 100 gets its 413 instead")
  func expectTooLarge() async throws {
    let reply = try await reply(
      to: "PUT /b HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n")
    #expect(reply.status == 413)
    #expect(reply.body == "own 413 /b 0")
  }

  @Test("a chunked body over the limit is 413, and the connection stays usable")
  func chunkedTooLarge() async throws {
    let server = try HTTPListener(Self.configuration, handler: Handler())
    let port = server.port
    let chunk = "400\r\n" + String(repeating: "y", count: 1024) + "\r\n"
    let (reply, next) = try await onThread {
      let client = try RawClient(port: port)
      return (
        try client.exchange(
          "PUT /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\(chunk)\(chunk)0\r\n\r\n"
        ),
        try client.exchange("GET /n HTTP/1.1\r\nHost: h\r\n\r\n")
      )
    }
    #expect(reply.status == 413)
    #expect(next.body == "GET /n [] ")
    await server.stop()
  }

  @Test("an endless chunked body is cut off")
  func endlessBody() async throws {
    let server = try HTTPListener(Self.configuration, handler: Handler())
    let port = server.port
    let chunk = "400\r\n" + String(repeating: "y", count: 1024) + "\r\n"
    let sent = try await onThread {
      let client = try RawClient(port: port)
      try client.send("PUT /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
      var sent = 0
      while sent < 100_000, (try? client.send(chunk)) != nil { sent += 1 }
      return sent
    }
    #expect(sent < 100_000)
    await server.stop()
  }

  @Test("headers over the limit are 431", arguments: [2001, 3000])
  func headersTooLarge(size: Int) async throws {
    let reply = try await reply(
      to: "GET /h HTTP/1.1\r\nHost: h\r\nX-Big: \(String(repeating: "h", count: size))\r\n\r\n")
    #expect(reply.status == 431)
    #expect(reply.body == "own 431 /h 0")
  }

  @Test("a reply may repeat the longest target that a request may have", arguments: [15, 60])
  func longReplyHeaders(kilobytes: Int) async throws {
    var configuration = HTTPConfiguration()
    configuration.maxHeaderBytes = (kilobytes + 1) * 1024
    let server = try HTTPListener(
      configuration,
      handler: ClosureHandler { request in
        HTTPResponse(.created, headers: ["Location": "http://h\(request.target)"])
      })
    let port = server.port
    let query = String(repeating: "q", count: kilobytes * 1024)
    let reply = try await onThread {
      try RawClient(port: port).exchange("GET /?\(query) HTTP/1.1\r\nHost: h\r\n\r\n")
    }
    #expect(reply.headers["location"] == "http://h/?\(query)")
    await server.stop()
  }

  @Test("a target or headers beyond all measure are refused by the library")
  func headersFarTooLarge() async throws {
    let long = String(repeating: "h", count: 200_000)
    let header = try await reply(to: "GET /h HTTP/1.1\r\nHost: h\r\nX-Big: \(long)\r\n\r\n")
    #expect(header.status == 431)
    let target = try await reply(to: "GET /\(long) HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(target.status == 414)
  }

  static let garbageInputs = [
    "\r\n\r\n\r\n\r\n", "GET\r\n\r\n", "\u{0}\u{1}\u{2}\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n", "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
    "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: abc\r\n\r\n",
    "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n\r\n",
    "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n\r\n",
    "GET / HTTP/1.1\r\nHost h\r\n: x\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET %zz%/%00? HTTP/1.1\r\nHost: h\r\n\r\n",
  ]

  @Test("garbage never harms the server", arguments: garbageInputs)
  func garbage(text: String) async throws {
    var configuration = Self.configuration
    configuration.idleTimeout = .milliseconds(200)  // what never becomes a request ends by time
    let server = try HTTPListener(configuration, handler: Handler())
    let port = server.port
    let (answer, next) = try await onThread {
      let client = try RawClient(port: port)
      try client.send(text)
      client.finishSending()
      let answer = try? client.readToEnd()
      return (answer, try RawClient(port: port).exchange("GET /n HTTP/1.1\r\nHost: h\r\n\r\n"))
    }
    #expect(answer.map { $0.isEmpty || $0.hasPrefix("HTTP/1.") } ?? true)
    #expect(next.body == "GET /n [] ")
    await server.stop()
  }

  /// Sends a start, then a byte now and then until the server has had enough.
  private func trickle(
    _ start: String, _ configuration: HTTPConfiguration
  ) async throws -> Duration {
    let server = try HTTPListener(configuration, handler: Handler())
    let port = server.port
    let duration = try await onThread {
      let client = try RawClient(port: port)
      try client.send(start)
      return try ContinuousClock().measure {
        for _ in 0..<1000 {
          do { try client.send("x") } catch { return }
          usleepMilliseconds(10)
        }
        throw RawClient.Failure(reason: "never cut")
      }
    }
    await server.stop()
    return duration
  }

  static let slowStarts = [
    "", "GET / HTTP/1.1\r\nX-Slow: ", "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n",
    "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n",
  ]

  static let drippedHeads = ["", "GET / HTTP/1.1\r\nHost: h\r\nX-Slow: "]

  @Test(
    "head and body together must come within the request's time, however long idling is allowed",
    arguments: drippedHeads)
  func slowHead(start: String) async throws {
    var configuration = Self.configuration
    configuration.idleTimeout = .seconds(60)
    configuration.requestReadTimeout = .milliseconds(200)
    let duration = try await trickle(start, configuration)
    #expect(duration >= .milliseconds(150))
    #expect(duration < .seconds(5))
  }

  @Test("a slow head leaves its body only the rest of the time")
  func slowHeadThenBody() async throws {
    var configuration = Self.configuration
    configuration.requestReadTimeout = .milliseconds(600)
    let server = try HTTPListener(configuration, handler: Handler())
    let port = server.port
    let duration = try await onThread {
      let client = try RawClient(port: port)
      return try ContinuousClock().measure {
        try client.send("PUT / HTTP/1.1\r\nHost: h\r\n")
        usleepMilliseconds(400)
        try client.send("Content-Length: 5\r\n\r\n")
        _ = try client.readToEnd()
      }
    }
    #expect(duration < .milliseconds(950))
    await server.stop()
  }

  @Test("an idle connection lives on between requests for longer than a request may take")
  func idleBetweenRequests() async throws {
    var configuration = Self.configuration
    configuration.requestReadTimeout = .milliseconds(100)
    let server = try HTTPListener(configuration, handler: Handler())
    let port = server.port
    let statuses = try await onThread {
      let client = try RawClient(port: port)
      return try (0..<3).map { _ in
        usleepMilliseconds(400)
        return try client.exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n").status
      }
    }
    #expect(statuses == [200, 200, 200])
    await server.stop()
  }

  @Test("idle connections make room for new ones when there may be no more")
  func idleMakesRoom() async throws {
    var configuration = Self.configuration
    configuration.maxConnections = 4
    configuration.threads = 2
    let server = try HTTPListener(configuration, handler: Handler())
    let port = server.port
    let (first, later) = try await onThread {
      let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
      var idle: [RawClient] = []
      func add(_ count: Int) throws -> [Int] {
        try (0..<count).map { _ in
          let client = try RawClient(port: port)
          idle.append(client)
          return try client.exchange(request).status
        }
      }
      return (try add(4), try add(8))
    }
    #expect(first == [200, 200, 200, 200])
    #expect(later == [Int](repeating: 200, count: 8))
    await server.stop()
  }

  @Test("a client that trickles its request is cut off", arguments: slowStarts)
  func slowRequest(start: String) async throws {
    var configuration = Self.configuration
    configuration.idleTimeout = .milliseconds(200)
    configuration.requestReadTimeout = .milliseconds(200)
    let duration = try await trickle(start, configuration)
    #expect(duration >= .milliseconds(150))
    #expect(duration < .seconds(5))
  }

  @Test("a silent connection is closed after the idle timeout")
  func silence() async throws {
    var configuration = Self.configuration
    configuration.idleTimeout = .milliseconds(100)
    let server = try HTTPListener(configuration, handler: Handler())
    let port = server.port
    let rest = try await onThread {
      let client = try RawClient(port: port)
      _ = try client.exchange("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n")
      return try client.readToEnd()
    }
    #expect(rest.isEmpty)
    await server.stop()
  }

  @Test("a client that does not read its reply is cut off")
  func slowReader() async throws {
    var configuration = Self.configuration
    configuration.responseWriteTimeout = .milliseconds(200)
    let server = try HTTPListener(
      configuration,
      handler: ClosureHandler { _ in
        HTTPResponse(.ok, body: .bytes([UInt8](repeating: 120, count: 32 << 20)))
      })
    let port = server.port
    let isCut = try await onThread {
      let client = try RawClient(port: port, receiveBuffer: 4096)
      try client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
      // What the socket takes before it notices; then the write of the next request fails.
      for _ in 0..<500 {
        usleepMilliseconds(10)
        do { try client.send("x") } catch { return true }
      }
      return false
    }
    #expect(isCut)
    await server.stop()
  }

  @Test("one address may have so many connections and no more")
  func connectionsPerAddress() async throws {
    var configuration = Self.configuration
    configuration.maxConnectionsPerAddress = 3
    let server = try HTTPListener(configuration, handler: Handler())
    let port = server.port
    let (served, refused) = try await onThread {
      let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
      let first = try (0..<3).map { _ in try RawClient(port: port) }
      let served = try first.map { try $0.exchange(request).status }
      let fourth = try RawClient(port: port)
      let refused = (try? fourth.exchange(request)) == nil
      return (served, refused)
    }
    #expect(served == [200, 200, 200])
    #expect(refused)
    await server.stop()
  }

  @Test("the limit of an address spares this machine's own where it is told to")
  func loopbackIsSpared() async throws {
    var configuration = Self.configuration
    configuration.maxConnectionsPerAddress = 3
    configuration.limitsLoopback = false
    let server = try HTTPListener(configuration, handler: Handler())
    let port = server.port
    let served = try await onThread {
      let clients = try (0..<6).map { _ in try RawClient(port: port) }
      return try clients.map { try $0.exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n").status }
    }
    #expect(served == [Int](repeating: 200, count: 6))
    await server.stop()
  }

  @Test("no more handlers run at once than allowed; the rest wait and are served")
  func concurrentHandlers() async throws {
    var configuration = Self.configuration
    configuration.maxConcurrentRequests = 3
    let counter = Counter()
    try await withServer(configuration) { request in
      await counter.enter()
      for _ in 0..<20 { await Task.yield() }
      await counter.leave()
      return await echo(request)
    } body: { server in
      let port = server.port
      let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<30 {
          group.addTask {
            try await onThread {
              try RawClient(port: port).exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n").status
            }
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(statuses == [Int](repeating: 200, count: 30))
      #expect(await counter.most <= 3)
    }
  }
}

/// Counts who is inside at once.
actor Counter {
  private var inside = 0
  private(set) var most = 0

  func enter() {
    inside += 1
    most = max(most, inside)
  }

  func leave() { inside -= 1 }
}
