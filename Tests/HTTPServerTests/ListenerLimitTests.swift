import Foundation
import HTTP2
import HTTPServer
import HubTesting
import Synchronization
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

  /// Counts how often the time is asked for.
  private final class Looks: Sendable {
    private let count = Atomic<Int>(0)
    var now: Int { count.load(ordering: .relaxed) }
    func clock() -> HTTPClock {
      HTTPClock { [self] in
        count.add(1, ordering: .relaxed)
        return HTTPClock.system.now()
      }
    }
  }

  /// Holds the thread that starts a handler until it is opened.
  private final class Gate: @unchecked Sendable {  // guarded by `condition`
    private let condition = NSCondition()
    private var isHolding = false
    private var isOpen = false

    func pass() {
      condition.withLock {
        isHolding = true
        condition.broadcast()
        while !isOpen { condition.wait() }
      }
    }
    func close() { condition.withLock { (isHolding, isOpen) = (false, false) } }
    func awaitHolding() { condition.withLock { while !isHolding { condition.wait() } } }
    func open() {
      condition.withLock {
        isOpen = true
        condition.broadcast()
      }
    }
  }

  @Test("connections that become ready together are all served, however many they are")
  func readyTogether() async throws {
    var configuration = HTTPConfiguration()
    configuration.threads = 2
    let gate = Gate()
    try await withServer(
      configuration,
      answer: { request in
        if "\(request.target)" == "/hold" { gate.pass() }
        return await echo(request)
      },
      body: { server in
        let port = server.port
        try await onThread {
          let holder = try RawClient(port: port)
          // On one thread or two: libmicrohttpd takes 128 at a time.
          let clients = try (0..<270).map { _ in try RawClient(port: port) }
          for count in 100...270 {
            gate.close()
            try holder.send("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n")
            gate.awaitHolding()
            for client in clients[..<count] { try client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n") }
            gate.open()
            for client in clients[..<count] { #expect(try client.readReply().status == 200) }
            #expect(try holder.readReply().status == 200)
          }
        }
      })
  }

  @Test("a listener without connections looks at nothing, and at the first one that comes")
  func atRest() async throws {
    var configuration = Self.configuration
    let looks = Looks()
    configuration.clock = looks.clock()
    configuration.idleTimeout = .milliseconds(100)
    let server = try HTTPListener(configuration, handler: Handler())
    let port = server.port
    func rest() async throws {
      try await withLimit(.seconds(60), "a whole second without a look") {
        var before = -1
        while before != looks.now {
          before = looks.now
          try await Task.sleep(for: .seconds(1))
        }
      }
    }
    for _ in 0..<3 {
      try await rest()
      // It is cut for being idle, by a watchdog that has woken.
      let ended = try await onThread {
        let client = try RawClient(port: port)
        return try client.readToEnd()
      }
      #expect(ended.isEmpty)
    }
    try await rest()
    await server.stop()
  }

  @Test("a body that has no room beside those of others is 429, and small ones always have")
  func sharedBodies() async throws {
    var configuration = Self.configuration
    configuration.maxBodyBytes = 100_000
    configuration.bodyBudget = BodyBudget(limit: 1)
    let other = BodyBudget.Claim(on: configuration.bodyBudget)
    for (count, status) in [(16_000, 200), (17_000, 429)] {
      let body = String(repeating: "x", count: count)
      let reply = try await reply(
        to: "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: \(count)\r\n\r\n\(body)",
        configuration)
      #expect(reply.status == status)
    }
    #expect(configuration.bodyBudget.holderCount == 1)
    withExtendedLifetime(other) {}
  }

  @Test("a client that has gone is not worked for; one that has only ended its sending is answered")
  func leavers() async throws {
    var configuration = Self.configuration
    let hand = HandClock()
    configuration.clock = hand.clock
    let started = Signal()
    let finish = Signal()
    let cancelled = Signal()
    try await withServer(
      configuration,
      answer: { request in
        await started.set()
        await withTaskCancellationHandler {
          await finish.wait()
        } onCancel: {
          Task { await cancelled.set() }
        }
        return await echo(request)
      },
      body: { server in
        let port = server.port
        let head = "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx"
        let client = try await onThread {
          let client = try RawClient(port: port)
          try client.send(head)
          return Shared(client)
        }
        await started.wait()
        // The system does not tell who reads on from who is gone: for a while it is the former.
        let reply = try await onThread {
          client.value.finishSending()
          hand.awaitRound()
          hand.advance(by: .milliseconds(900))
          hand.awaitRound()
          Task { await finish.set() }
          return try client.value.readReply()
        }
        #expect(reply.status == 200)
      })
    let second = Signal()
    let gone = Signal()
    try await withServer(
      configuration,
      answer: { request in
        await second.set()
        try? await Task.sleep(for: .seconds(600))
        if Task.isCancelled { await gone.set() }
        return await echo(request)
      },
      body: { server in
        let port = server.port
        let client = try await onThread {
          let client = try RawClient(port: port)
          try client.send("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
          return Shared(client)
        }
        await second.wait()
        try await onThread {
          client.value.close()
          hand.awaitRound()
          hand.advance(by: .seconds(2))
        }
        await gone.wait()
      })
  }

  /// Turns every body down by the head of its request.
  private struct Doorkeeper: HTTPHandler {
    func respond(to request: HTTPRequest) async -> HTTPResponse { await echo(request) }
    func look(atHead head: HTTPRequest) -> HTTPHeadLook {
      .refused(HTTPResponse(.unauthorized, text: "no \(head.target) \(head.body.count)"))
    }
  }

  @Test("what a handler refuses by its head is answered without the body; a small one is served")
  func refusedHead() async throws {
    var configuration = Self.configuration
    configuration.maxBodyBytes = 10_000
    let server = try HTTPListener(configuration, handler: Doorkeeper())
    let port = server.port
    let large = String(repeating: "x", count: 4097)
    let (waiting, sent, chunked, small, plain) = try await onThread {
      (
        try RawClient(port: port).exchange(
          "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"),
        try RawClient(port: port).exchange(
          "PUT /b HTTP/1.1\r\nHost: h\r\nContent-Length: 4097\r\n\r\n\(large)"),
        try RawClient(port: port).exchange(
          "PUT /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        ),
        try RawClient(port: port).exchange(
          "PUT /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"),
        try RawClient(port: port).exchange("GET /c HTTP/1.1\r\nHost: h\r\n\r\n")
      )
    }
    #expect(waiting.status == 401 && waiting.body == "no /a 0")
    for reply in [sent, chunked] { #expect(reply.status == 401 && reply.body == "no /b 0") }
    #expect(small.status == 200 && small.body == "PUT /b [] abc")
    #expect(plain.status == 200)
    await server.stop()
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

  @Test("a chunked body over the limit is 413")
  func chunkedTooLarge() async throws {
    let chunk = "400\r\n" + String(repeating: "y", count: 1024) + "\r\n"
    let reply = try await reply(
      to:
        "PUT /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\(chunk)\(chunk)0\r\n\r\n")
    #expect(reply.status == 413)
    #expect(reply.body == "own 413 /b 0")
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
    // Input that never becomes a request ends by timeout; some of it counts as the start of one.
    configuration.idleTimeout = .milliseconds(200)
    configuration.requestReadTimeout = .seconds(2)
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

  static let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

  /// Runs `body` with a client whose first request has been answered, and with the server's clock.
  private func withClient<Result: Sendable>(
    _ configuration: HTTPConfiguration = Self.configuration,
    handler: any HTTPHandler = Handler(), receiveBuffer: Int32? = nil,
    _ body: @escaping @Sendable (RawClient, HandClock) throws -> Result
  ) async throws -> Result {
    let clock = HandClock()
    var configuration = configuration
    configuration.clock = clock.clock
    let server = try HTTPListener(configuration, handler: handler)
    let port = server.port
    let result = try await onThread {
      let client = try RawClient(port: port, receiveBuffer: receiveBuffer)
      try client.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
      _ = try client.readReply(toHead: true)
      clock.awaitRound()
      return try body(client, clock)
    }
    await server.stop()
    return result
  }

  static let slowStarts = [
    "G", "GET / HTTP/1.1\r\nHost: h\r\nX-Slow: x",
    "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nx",
  ]

  @Test(
    "head and body together must come within the request's time, however long idling is allowed",
    arguments: slowStarts)
  func slowRequest(start: String) async throws {
    var configuration = Self.configuration
    configuration.idleTimeout = .seconds(600)
    configuration.requestReadTimeout = .seconds(30)
    let rest = try await withClient(configuration) { client, clock in
      try client.send(start)
      clock.awaitRound()
      clock.advance(by: .seconds(29))
      clock.awaitRound()
      try client.send("x")
      clock.advance(by: .seconds(2))
      return try client.readToEnd()
    }
    #expect(rest.isEmpty)
  }

  @Test("a slow head leaves its body only the rest of the time")
  func slowHeadThenBody() async throws {
    let rest = try await withClient { client, clock in
      try client.send("PUT / HTTP/1.1\r\nHost: h\r\n")
      clock.awaitRound()
      clock.advance(by: .seconds(20))
      try client.send("Content-Length: 5\r\n\r\n")
      clock.awaitRound()
      clock.advance(by: .seconds(11))
      return try client.readToEnd()
    }
    #expect(rest.isEmpty)
  }

  @Test("an idle connection lives on between requests for longer than a request may take")
  func idleBetweenRequests() async throws {
    let statuses = try await withClient { client, clock in
      try (0..<3).map { _ in
        clock.advance(by: .seconds(45))
        clock.awaitRound()
        return try client.exchange(Self.request).status
      }
    }
    #expect(statuses == [200, 200, 200])
  }

  @Test("a silent connection is closed after the idle timeout")
  func silence() async throws {
    let rest = try await withClient { client, clock in
      clock.advance(by: .seconds(61))
      return try client.readToEnd()
    }
    #expect(rest.isEmpty)
  }

  @Test("a client that does not read its reply is cut off")
  func slowReader() async throws {
    let size = 32 << 20
    let handler = ClosureHandler { request in
      guard request.method == .get else { return HTTPResponse(.ok) }
      return HTTPResponse(.ok, body: .bytes([UInt8](repeating: 120, count: size)))
    }
    let read = try await withClient(handler: handler, receiveBuffer: 4096) { client, clock in
      try client.send(Self.request)
      _ = try client.readLine()
      clock.awaitRound()
      clock.advance(by: .seconds(61))
      // Otherwise a fast client could have read all of it first.
      clock.awaitRound(looks: 1)
      return try client.readToEnd().utf8.count
    }
    #expect(read < size)
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

  static let openings = ["", "G", "GET / HTTP/1.1\r\nX-Slow: "]

  @Test(
    "connections with nothing or half a request make room for one that has a whole one",
    arguments: openings)
  func halfRequestsMakeRoom(opening: String) async throws {
    var configuration = Self.configuration
    configuration.maxConnections = 20
    let server = try HTTPListener(configuration, handler: Handler())
    let port = server.port
    let statuses = try await onThread {
      var waiting: [RawClient] = []
      return try (0..<100).compactMap { number -> Int? in
        guard number % 10 == 9 else {
          let client = try RawClient(port: port)
          try? client.send(opening)
          waiting.append(client)
          return nil
        }
        return try RawClient(port: port).exchange(Self.request).status
      }
    }
    #expect(statuses == [Int](repeating: 200, count: 10))
    await server.stop()
  }

  @Test("half hellos of TLS make room for a client that speaks", arguments: [0, 1, 20])
  func halfHellosMakeRoom(count: Int) async throws {
    var configuration = Self.configuration
    configuration.maxConnections = 20
    let server = try WireServer(.https1, configuration, handler: Handler())
    let port = server.port
    let hello = Array(ClientHelloTests.record(ClientHelloTests.message(["h2"])).prefix(count))
    for _ in 0..<5 {
      let waiting = try await onThread {
        try (0..<20).map { _ in
          let client = try RawClient(port: port)
          try? client.send(hello)
          return Shared(client)
        }
      }
      let reply = try await server.exchange("GET", "/")
      #expect(reply.status == 200)
      withExtendedLifetime(waiting) {}
    }
    await server.stop()
  }

  #if os(Linux)  // elsewhere this machine has one loopback address
    @Test("connections of a trusted proxy are not given up while others can be")
    func proxiesStay() async throws {
      var configuration = Self.configuration
      configuration.maxConnections = 6
      // On a busy machine the others take long.
      configuration.idleTimeout = .seconds(3600)
      configuration.trustedProxies = try TrustedProxies(["127.0.0.1"])
      let server = try HTTPListener(configuration, handler: Handler())
      let port = server.port
      let statuses = try await onThread {
        let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
        let proxies = try (0..<4).map { _ in try RawClient(port: port) }
        for proxy in proxies { _ = try proxy.exchange(request) }
        var others: [RawClient] = []
        for _ in 0..<12 {
          let other = try RawClient(port: port, from: "127.0.0.2")
          _ = try? other.exchange(request)
          others.append(other)
        }
        return proxies.map { (try? $0.exchange(request).status) ?? 0 }
      }
      #expect(statuses == [200, 200, 200, 200])
      await server.stop()
    }
  #endif

  @Test("a request under way is not given up for a newcomer")
  func servedConnectionsStay() async throws {
    let entered = Signal()
    let leave = Signal()
    var configuration = Self.configuration
    configuration.maxConnections = 4
    let handler = ClosureHandler { request in
      if request.target.description == "/slow" {
        await entered.set()
        await leave.wait()
      }
      return await echo(request)
    }
    let server = try HTTPListener(configuration, handler: handler)
    let port = server.port
    async let slow = onThread {
      try RawClient(port: port).exchange("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n").status
    }
    await entered.wait()
    try await onThread {
      let others = try (0..<12).map { _ in
        let client = try RawClient(port: port)
        _ = try client.exchange(Self.request)
        return client
      }
      withExtendedLifetime(others) {}
    }
    await leave.set()
    #expect(try await slow == 200)
    await server.stop()
  }

  @Test("two listeners may share one budget of connections")
  func sharedBudget() async throws {
    var configuration = Self.configuration
    configuration.maxConnections = 4
    configuration.connections = HTTPConnections()
    let plain = try HTTPListener(configuration, handler: Handler())
    let secure = try WireServer(.https1, configuration, handler: Handler())
    let port = plain.port
    let idle = try await onThread {
      try (0..<4).map { _ in
        let client = try RawClient(port: port)
        _ = try client.exchange(Self.request)
        return Shared(client)
      }
    }
    let reply = try await secure.exchange("GET", "/")
    #expect(reply.status == 200)
    // One of the four had to go: it sees its end.
    try await onThread {
      for client in idle {
        if (try? client.value.exchange(Self.request)) == nil { return }
      }
      Issue.record("all four live on")
    }
    await plain.stop()
    await secure.stop()
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
