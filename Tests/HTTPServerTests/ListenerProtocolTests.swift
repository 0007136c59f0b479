import HTTPServer
import HubTesting
import Synchronization
import Testing

/// What a client sees of a listener, whatever it speaks.
@Suite("One contract over HTTP/1.1, HTTPS and HTTP/2", .timeLimit(.minutes(5)))
struct ListenerProtocolTests {
  private func withWire<Result>(
    _ wire: Wire, _ configuration: HTTPConfiguration = HTTPConfiguration(),
    handler: any HTTPHandler = ClosureHandler(answer: echo),
    _ body: (WireServer) async throws -> Result
  ) async throws -> Result {
    let server = try WireServer(wire, configuration, handler: handler)
    do {
      let result = try await body(server)
      await server.stop()
      return result
    } catch {
      await server.stop()
      throw error
    }
  }

  @Test("method, target, repeated headers and body arrive as sent", arguments: Wire.allCases)
  func request(wire: Wire) async throws {
    try await withWire(wire) { server in
      let reply = try await server.exchange(
        "PUT", "/a%2Fb/?$top=2&direct", headers: [("X-Test", "one"), ("x-test", "two ")],
        body: "hello")
      #expect(reply.status == 200)
      #expect(reply.body == "PUT /a%2Fb/?$top=2&direct [one+two] hello")
      #expect(reply.headers["content-type"] == "text/plain; charset=utf-8")
      #expect(reply.headers["content-length"] == "\(reply.body.utf8.count)")
      #expect(reply.headers["date"]?.hasSuffix(" GMT") == true)
    }
  }

  @Test("the handler sees host, peer and whether it is secure", arguments: Wire.allCases)
  func circumstances(wire: Wire) async throws {
    let handler = ClosureHandler { request in
      HTTPResponse(
        .ok,
        text: "\(request.headers["Host"] ?? "-") \(request.remoteAddress) \(request.isSecure)"
          + " \(request.connection)")
    }
    try await withWire(wire, handler: handler) { server in
      let body = try await server.exchange("GET", "/", headers: [("Host", "example.com")]).body
      #expect(body == "example.com 127.0.0.1 \(wire.isSecure) 1")
    }
  }

  @Test("a large body and a large reply arrive whole", arguments: Wire.allCases)
  func large(wire: Wire) async throws {
    let text = String(repeating: "0123456789", count: 90_000)
    let handler = ClosureHandler { HTTPResponse(.ok, body: .bytes($0.body)) }
    try await withWire(wire, handler: handler) { server in
      let reply = try await server.exchange("PUT", "/", body: text)
      #expect(reply.body == text)
    }
  }

  static let emptyBodies: [(HTTPStatus, HTTPBody, String?)] = [
    (.ok, .none, "0"), (.ok, .bytes([]), "0"), (.created, .none, "0"), (.noContent, .none, nil),
  ]

  @Test("an empty reply says so", arguments: Wire.allCases, emptyBodies)
  func empty(wire: Wire, reply: (HTTPStatus, HTTPBody, String?)) async throws {
    let (status, body, length) = reply
    try await withWire(wire, handler: ClosureHandler { _ in HTTPResponse(status, body: body) }) {
      let reply = try await $0.exchange("GET", "/")
      #expect(reply.status == status.rawValue)
      #expect(reply.headers["content-length"] == length)
    }
  }

  @Test("HEAD gets the headers of GET and no body", arguments: Wire.allCases)
  func head(wire: Wire) async throws {
    try await withWire(wire) { server in
      let reply = try await server.exchange("HEAD", "/h")
      #expect(reply.status == 200)
      #expect(reply.headers["content-length"] == "11")
      #expect(reply.body.isEmpty)
    }
  }

  @Test("a streamed reply arrives whole and in order", arguments: Wire.allCases)
  func stream(wire: Wire) async throws {
    let handler = ClosureHandler { _ in
      HTTPResponse(
        .ok,
        body: .stream { writer in
          for number in 0..<500 {
            try await writer.write(
              String(repeating: "\(number % 10)", count: 1 + number * 37 % 900))
          }
        })
    }
    try await withWire(wire, handler: handler) { server in
      let expected = (0..<500).map { String(repeating: "\($0 % 10)", count: 1 + $0 * 37 % 900) }
      let reply = try await server.exchange("GET", "/s")
      #expect(reply.body == expected.joined())
    }
  }

  @Test("HEAD does not start the stream", arguments: Wire.allCases)
  func streamHead(wire: Wire) async throws {
    let started = Mutex(false)
    let handler = ClosureHandler { _ in
      HTTPResponse(.ok, body: .stream { _ in started.withLock { $0 = true } })
    }
    try await withWire(wire, handler: handler) { server in
      let reply = try await server.exchange("HEAD", "/")
      #expect(reply.status == 200)
    }
    #expect(!started.withLock { $0 })
  }

  @Test("a body over the limit is 413 in the handler's words", arguments: Wire.allCases)
  func bodyTooLarge(wire: Wire) async throws {
    try await withWire(
      wire, ListenerLimitTests.configuration, handler: ListenerLimitTests.Handler()
    ) { server in
      let body = String(repeating: "x", count: 1001)
      let reply = try await server.exchange("PUT", "/b", body: body)
      #expect(reply.status == 413)
      #expect(reply.body == "own 413 /b 0")
      let next = try await server.exchange("PUT", "/c", body: String(body.dropLast()))
      #expect(next.status == 200)
    }
  }

  @Test("headers over the limit are 431 in the handler's words", arguments: Wire.allCases)
  func headersTooLarge(wire: Wire) async throws {
    try await withWire(
      wire, ListenerLimitTests.configuration, handler: ListenerLimitTests.Handler()
    ) { server in
      for size in [2001, 3000] {
        let reply = try await server.exchange(
          "GET", "/h", headers: [("X-Big", String(repeating: "h", count: size))])
        #expect(reply.status == 431)
        #expect(reply.body == "own 431 /h 0")
      }
    }
  }

  @Test("no more handlers run at once than allowed; the rest wait", arguments: Wire.allCases)
  func concurrentHandlers(wire: Wire) async throws {
    var configuration = HTTPConfiguration()
    configuration.maxConcurrentRequests = 3
    let counter = Counter()
    let handler = ClosureHandler { request in
      await counter.enter()
      for _ in 0..<20 { await Task.yield() }
      await counter.leave()
      return await echo(request)
    }
    try await withWire(wire, configuration, handler: handler) { server in
      let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<30 { group.addTask { try await server.exchange("GET", "/").status } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(statuses == [Int](repeating: 200, count: 30))
      #expect(await counter.most <= 3)
    }
  }

  @Test("stop waits for the request in flight", arguments: Wire.allCases)
  func stop(wire: Wire) async throws {
    let entered = Signal()
    let leave = Signal()
    let server = try WireServer(
      wire,
      handler: ClosureHandler { request in
        await entered.set()
        await leave.wait()
        return await echo(request)
      })
    let port = server.port
    async let reply = server.exchange("GET", "/s")
    await entered.wait()
    async let stopped: Void = server.listener.stop(within: .seconds(60))
    try await onThread {
      while (try? RawClient(port: port)) != nil {}
    }
    await leave.set()
    #expect(try await reply.body == "GET /s [] ")
    await stopped
    await server.stop()
  }

  @Test("a request that outlives the limit of stop does not hold it up", arguments: Wire.allCases)
  func stopGivesUp(wire: Wire) async throws {
    let entered = Signal()
    let leave = Signal()
    let server = try WireServer(
      wire,
      handler: ClosureHandler { request in
        await entered.set()
        await leave.wait()
        return await echo(request)
      })
    async let status = try? server.exchange("GET", "/s").status
    await entered.wait()
    await server.listener.stop(within: .milliseconds(50))
    await leave.set()
    // The reply races with the end of the connection.
    let seen = await status
    #expect(seen == 503 || seen == nil)
    await server.stop()
  }
}
