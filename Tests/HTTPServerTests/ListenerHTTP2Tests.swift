import HTTP2
import HTTPServer
import HubTesting
import Synchronization
import Testing

/// What HTTP/2 alone has: the choice by ALPN, streams, frames.
@Suite("HTTP/2 on the HTTPS port", .timeLimit(.minutes(5)))
struct ListenerHTTP2Tests {
  static let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

  private func withSecure<Result>(
    _ configuration: HTTPConfiguration = HTTPConfiguration(),
    handler: any HTTPHandler = ClosureHandler(answer: echo),
    _ body: (WireServer) async throws -> Result
  ) async throws -> Result {
    let server = try WireServer(.http2, configuration, handler: handler)
    do {
      let result = try await body(server)
      await server.stop()
      return result
    } catch {
      await server.stop()
      throw error
    }
  }

  static let offers: [([String], String)] = [
    ([], ""), (["http/1.1"], "http/1.1"), (["h2"], "h2"), (["h2", "http/1.1"], "h2"),
    (["http/1.1", "h2"], "h2"),
  ]

  @Test("a client gets HTTP/2 if it offers that, else HTTP/1.1", arguments: offers)
  func choice(protocols: [String], chosen: String) async throws {
    let pem = try TestIdentity.shared.get().authorityPEM
    try await withSecure { server in
      let port = server.port
      try await onThread {
        let client = try RawClient(port: port, trusting: pem, offering: protocols)
        #expect(client.chosenProtocol == chosen)
        if chosen == "h2" {
          let peer = try RawHTTP2(client)
          try peer.request("GET", "/")
          #expect(try peer.read(RawHTTP2.Kind.data, stream: 1).payload == Array("GET / [] ".utf8))
        } else {
          #expect(try client.exchange(Self.get).body == "GET / [] ")
        }
      }
    }
  }

  @Test("where HTTP/2 is not offered, its clients get HTTP/1.1")
  func notOffered() async throws {
    var configuration = HTTPConfiguration()
    configuration.offersHTTP2 = false
    let pem = try TestIdentity.shared.get().authorityPEM
    try await withSecure(configuration) { server in
      let port = server.port
      try await onThread {
        let client = try RawClient(port: port, trusting: pem, offering: ["h2", "http/1.1"])
        #expect(try client.exchange(Self.get).status == 200)
      }
    }
  }

  @Test("requests of one connection are answered as they are ready")
  func concurrentStreams() async throws {
    let first = Signal()
    let handler = ClosureHandler { request in
      if request.target.description == "/1" { await first.wait() } else { await first.set() }
      return await echo(request)
    }
    try await withSecure(handler: handler) { server in
      async let slow = server.exchange("GET", "/1")
      let quick = try await server.exchange("GET", "/2")
      #expect(quick.body == "GET /2 [] ")
      #expect(try await slow.body == "GET /1 [] ")
    }
  }

  @Test("a stream that its client resets cancels the handler's task")
  func cancel() async throws {
    let started = Signal()
    let cancelled = Signal()
    let handler = ClosureHandler { request in
      await started.set()
      try? await Task.sleep(for: .seconds(600))
      if Task.isCancelled { await cancelled.set() }
      return await echo(request)
    }
    try await withSecure(handler: handler) { server in
      let peer = try await onThread {
        let peer = try RawHTTP2(try server.rawClient())
        try peer.request("GET", "/")
        return Shared(peer)
      }
      await started.wait()
      try await onThread {
        try peer.value.send(RawHTTP2.Kind.reset, stream: 1, payload: RawHTTP2.bytes(8))
      }
      await cancelled.wait()
    }
  }

  @Test("a client that leaves cancels the task of its quiet stream")
  func disconnect() async throws {
    let cancelled = Signal()
    let handler = ClosureHandler { _ in
      HTTPResponse(
        .ok,
        body: .stream { writer in
          try await writer.write("hello")
          try? await Task.sleep(for: .seconds(600))
          await #expect(throws: HTTPWriteError.clientGone) { try await writer.write("more") }
          await cancelled.set()
        })
    }
    try await withSecure(handler: handler) { server in
      try await onThread {
        let peer = try RawHTTP2(try server.rawClient())
        try peer.request("GET", "/")
        #expect(try peer.read(RawHTTP2.Kind.data, stream: 1).payload == Array("hello".utf8))
      }
      await cancelled.wait()
    }
  }

  @Test("a stream that fails is reset, and the connection lives on")
  func failingStream() async throws {
    struct Broken: Error {}
    let handler = ClosureHandler { request in
      guard request.target.description == "/s" else { return await echo(request) }
      return HTTPResponse(
        .ok,
        body: .stream { writer in
          try await writer.write("part")
          throw Broken()
        })
    }
    try await withSecure(handler: handler) { server in
      try await onThread {
        let peer = try RawHTTP2(try server.rawClient())
        try peer.request("GET", "/s")
        #expect(
          try peer.read(RawHTTP2.Kind.reset, stream: 1).payload == RawHTTP2.bytes(2))
        try peer.request("GET", "/n", stream: 3)
        #expect(try peer.read(RawHTTP2.Kind.data, stream: 3).payload == Array("GET /n [] ".utf8))
      }
    }
  }

  @Test("a reader that opens no window stops its writer, and its stream alone")
  func stalledReader() async throws {
    let clock = HandClock()
    var configuration = HTTPConfiguration()
    configuration.clock = clock.clock
    let (failure, report) = AsyncStream.makeStream(of: HTTPWriteError?.self)
    let handler = ClosureHandler { request in
      guard request.target.description == "/s" else { return await echo(request) }
      return HTTPResponse(
        .ok,
        body: .stream { writer in
          do {
            while true { try await writer.write([UInt8](repeating: 120, count: 10_000)) }
          } catch {
            report.yield(error as? HTTPWriteError)
            throw error
          }
        })
    }
    try await withSecure(configuration, handler: handler) { server in
      let peer = try await onThread {
        let peer = try RawHTTP2(try server.rawClient(), window: 5000)
        try peer.request("GET", "/s")
        #expect(try peer.read(RawHTTP2.Kind.data, stream: 1).payload.count == 5000)
        return Shared(peer)
      }
      clock.advance(by: .seconds(6))
      #expect(await failure.first { _ in true } == .stalled)
      try await onThread {
        _ = try peer.value.read(RawHTTP2.Kind.reset, stream: 1)
        try peer.value.request("GET", "/n", stream: 3)
        _ = try peer.value.read(RawHTTP2.Kind.data, stream: 3)
      }
    }
  }

  @Test("a reply that is not read is given up in time")
  func slowReader() async throws {
    let clock = HandClock()
    var configuration = HTTPConfiguration()
    configuration.clock = clock.clock
    let handler = ClosureHandler { _ in
      HTTPResponse(.ok, body: .bytes([UInt8](repeating: 120, count: 1 << 20)))
    }
    try await withSecure(configuration, handler: handler) { server in
      try await onThread {
        let peer = try RawHTTP2(try server.rawClient(), window: 5000)
        try peer.request("GET", "/")
        _ = try peer.read(RawHTTP2.Kind.data, stream: 1)
        clock.advance(by: .seconds(61))
        _ = try peer.read(RawHTTP2.Kind.reset, stream: 1)
      }
    }
  }

  @Test("a body that does not come is given up in time, and the connection lives on")
  func slowBody() async throws {
    let clock = HandClock()
    var configuration = HTTPConfiguration()
    configuration.clock = clock.clock
    try await withSecure(configuration) { server in
      try await onThread {
        let peer = try RawHTTP2(try server.rawClient())
        try peer.request("PUT", "/slow", flags: RawHTTP2.endHeaders)
        try peer.send(RawHTTP2.Kind.data, stream: 1, payload: [120])
        // Its reply shows that what stands before it has been read.
        try peer.request("GET", "/1", stream: 3)
        _ = try peer.read(RawHTTP2.Kind.data, stream: 3)
        clock.advance(by: .seconds(31))
        _ = try peer.read(RawHTTP2.Kind.reset, stream: 1)
        try peer.request("GET", "/2", stream: 5)
        _ = try peer.read(RawHTTP2.Kind.data, stream: 5)
      }
    }
  }

  /// Small limits, under which a client overruns the body's limit and then goes on.
  private static var refusing: HTTPConfiguration {
    var configuration = HTTPConfiguration()
    configuration.maxBodyBytes = 1000
    configuration.maxDiscardedBytes = 100_000
    return configuration
  }

  /// Sends more than the body's limit, then reads the whole 413.
  private static func refused(_ server: WireServer) throws -> RawHTTP2 {
    let peer = try RawHTTP2(try server.rawClient())
    try peer.request("PUT", "/large", flags: RawHTTP2.endHeaders)
    for _ in 0..<4 { try send(10_000, on: peer) }
    let head = try peer.read(RawHTTP2.Kind.headers, stream: 1)
    if head.flags & RawHTTP2.endStream == 0 {
      while try peer.read(RawHTTP2.Kind.data, stream: 1).flags & RawHTTP2.endStream == 0 {}
    }
    return peer
  }

  private static func send(_ count: Int, on peer: RawHTTP2, flags: UInt8 = 0) throws {
    try peer.send(
      RawHTTP2.Kind.data, flags: flags, stream: 1, payload: [UInt8](repeating: 120, count: count))
  }

  /// What comes on the stream up to the reply to another request.
  private static func frames(_ peer: RawHTTP2, before stream: UInt32) throws -> [RawHTTP2.Frame] {
    try peer.request("GET", "/next", stream: stream)
    var frames: [RawHTTP2.Frame] = []
    while true {
      let frame = try peer.read()
      if frame.stream == stream, frame.flags & RawHTTP2.endStream != 0 { return frames }
      if frame.stream == 1 { frames.append(frame) }
    }
  }

  @Test("a body that was refused is read to its end, so that its client sees the reply")
  func refusedBodyIsDiscarded() async throws {
    try await withSecure(Self.refusing) { server in
      try await onThread {
        let peer = try Self.refused(server)
        // In all more than the first window lets through: the server has to open it.
        var kinds: [UInt8] = []
        for stream in [UInt32(3), 5] {
          for _ in 0..<2 { try Self.send(10_000, on: peer) }
          kinds += try Self.frames(peer, before: stream).map(\.type)
        }
        try Self.send(10, on: peer, flags: RawHTTP2.endStream)
        kinds += try Self.frames(peer, before: 7).map(\.type)
        #expect(!kinds.contains(RawHTTP2.Kind.reset) && !kinds.contains(RawHTTP2.Kind.goAway))
      }
    }
  }

  @Test("of a refused body only so many bytes are read, then its stream is reset")
  func refusedBodyHasLimit() async throws {
    try await withSecure(Self.refusing) { server in
      try await onThread {
        let peer = try Self.refused(server)
        var sent = 40_000
        var reset: RawHTTP2.Frame?
        while reset == nil, sent < 1_000_000 {
          try Self.send(10_000, on: peer)
          sent += 10_000
          reset = try Self.frames(peer, before: UInt32(sent / 10_000) * 2 + 1)
            .first { $0.type == RawHTTP2.Kind.reset }
        }
        #expect(reset?.payload == RawHTTP2.bytes(0))
        #expect((100_000...120_000).contains(sent))
      }
    }
  }

  @Test("the rest of a refused body has the time of a request, then its stream is reset")
  func refusedBodyHasDeadline() async throws {
    let clock = HandClock()
    var configuration = Self.refusing
    configuration.clock = clock.clock
    try await withSecure(configuration) { server in
      try await onThread {
        let peer = try Self.refused(server)
        #expect(try Self.frames(peer, before: 3).allSatisfy { $0.type != RawHTTP2.Kind.reset })
        clock.advance(by: .seconds(31))
        _ = try peer.read(RawHTTP2.Kind.reset, stream: 1)
        #expect(try Self.frames(peer, before: 5).isEmpty)
      }
    }
  }

  @Test("a connection without requests is sent away in time")
  func idle() async throws {
    let clock = HandClock()
    var configuration = HTTPConfiguration()
    configuration.clock = clock.clock
    try await withSecure(configuration) { server in
      try await onThread {
        let client = try server.rawClient()
        let peer = try RawHTTP2(client)
        try peer.request("GET", "/")
        _ = try peer.read(RawHTTP2.Kind.data, stream: 1)
        clock.advance(by: .seconds(61))
        let last = try peer.read(RawHTTP2.Kind.goAway)
        #expect(last.payload == RawHTTP2.bytes(1) + RawHTTP2.bytes(0))
        _ = try client.readToEnd()
      }
    }
  }

  @Test("a client that expects 100 gets it before it sends its body")
  func expectContinue() async throws {
    try await withSecure { server in
      try await onThread {
        let peer = try RawHTTP2(try server.rawClient())
        try peer.request(
          "PUT", "/e", fields: [("expect", "100-continue"), ("content-length", "4")],
          flags: RawHTTP2.endHeaders)
        let interim = try peer.read(RawHTTP2.Kind.headers, stream: 1)
        #expect(interim.flags & RawHTTP2.endStream == 0)
        try peer.send(
          RawHTTP2.Kind.data, flags: RawHTTP2.endStream, stream: 1, payload: Array("body".utf8))
        #expect(
          try peer.read(RawHTTP2.Kind.data, stream: 1).payload == Array("PUT /e [] body".utf8))
      }
    }
  }

  @Test("trailers do not pass for headers")
  func trailers() async throws {
    try await withSecure { server in
      try await onThread {
        let peer = try RawHTTP2(try server.rawClient())
        try peer.request("PUT", "/t", flags: RawHTTP2.endHeaders)
        try peer.send(RawHTTP2.Kind.data, stream: 1, payload: Array("b".utf8))
        try peer.send(
          RawHTTP2.Kind.headers, flags: RawHTTP2.endHeaders | RawHTTP2.endStream, stream: 1,
          payload: RawHTTP2.block([("x-test", "trailer")]))
        #expect(try peer.read(RawHTTP2.Kind.data, stream: 1).payload == Array("PUT /t [] b".utf8))
      }
    }
  }

  static let badHeads: [[(String, String)]] = [
    [(":method", "GET"), (":path", "/"), (":scheme", "https")],
    [(":method", "GET"), (":path", "/"), (":scheme", "https"), (":authority", "a"), ("host", "b")],
    [(":method", "GET"), (":path", "*"), (":scheme", "https"), (":authority", "a")],
    [(":method", "CONNECT"), (":authority", "a:1")],
  ]

  @Test("a head that names no host, two, or no target is refused", arguments: badHeads)
  func badHead(fields: [(String, String)]) async throws {
    let seen = Mutex(0)
    let handler = ClosureHandler { request in
      seen.withLock { $0 += 1 }
      return await echo(request)
    }
    try await withSecure(handler: handler) { server in
      try await onThread {
        let peer = try RawHTTP2(try server.rawClient())
        try peer.send(
          RawHTTP2.Kind.headers, flags: RawHTTP2.endHeaders | RawHTTP2.endStream, stream: 1,
          payload: RawHTTP2.block(fields))
        try peer.request("GET", "/n", stream: 3)
        _ = try peer.read(RawHTTP2.Kind.data, stream: 3)
      }
    }
    #expect(seen.withLock { $0 } == 1)
  }

  @Test("stop sends GOAWAY with the last request that is answered, and ends streams in order")
  func goAway() async throws {
    let started = Signal()
    let handler = ClosureHandler { _ in
      HTTPResponse(
        .ok,
        body: .stream { writer in
          try await writer.write("hello")
          await started.set()
          try? await Task.sleep(for: .seconds(600))
          await #expect(throws: HTTPWriteError.stopping) { try await writer.write("more") }
        })
    }
    let server = try WireServer(.http2, handler: handler)
    let peer = try await onThread {
      let peer = try RawHTTP2(try server.rawClient())
      try peer.request("GET", "/")
      return Shared(peer)
    }
    await started.wait()
    async let frames = onThread {
      var frames: [RawHTTP2.Frame] = []
      while let frame = try? peer.value.read() { frames.append(frame) }
      return frames
    }
    await server.listener.stop(within: .seconds(60))
    let seen = try await frames
    let goAway = seen.first { $0.type == RawHTTP2.Kind.goAway }
    #expect(goAway?.payload == RawHTTP2.bytes(1) + RawHTTP2.bytes(0))
    let last = seen.last { $0.type == RawHTTP2.Kind.data }
    #expect(last.map { $0.flags & RawHTTP2.endStream } == RawHTTP2.endStream)
    #expect(!seen.contains { $0.type == RawHTTP2.Kind.reset })
    await server.stop()
  }

  @Test("the certificate changes for new clients of both protocols")
  func replaceIdentity() async throws {
    try await withSecure { server in
      let before = try await server.exchange("GET", "/1").status
      let next = try TestIdentity.another()
      try server.listener.replaceIdentity(next.tls)
      let port = server.port
      let shown = try await onThread {
        try [["h2"], []].map { protocols in
          try RawClient(port: port, trusting: next.authorityPEM, offering: protocols)
            .peerCertificate
        }
      }
      #expect(shown == [next.certificate, next.certificate])
      #expect(before == 200)
      // The connection that was there goes on.
      let reply = try await server.exchange("GET", "/2")
      #expect(reply.status == 200)
    }
  }

  @Test("a half hello is waited for, and the rest of it decides", arguments: [["h2"], []])
  func halfHello(protocols: [String]) async throws {
    let clock = HandClock()
    var configuration = HTTPConfiguration()
    configuration.clock = clock.clock
    try await withSecure(configuration) { server in
      let port = server.port
      let rest = try await onThread {
        let client = try RawClient(port: port)
        let hello = ClientHelloTests.record(ClientHelloTests.message(protocols))
        try client.send(Array(hello[..<20]))
        // Other clients are served meanwhile.
        _ = try server.rawClient()
        clock.advance(by: .seconds(31))
        return try client.readToEnd()
      }
      #expect(rest.isEmpty)
    }
  }

  @Test("the observer sees each connection and its end, whatever it speaks")
  func observer() async throws {
    final class Observer: HTTPConnectionObserver {
      let open = Mutex<(Set<UInt64>, all: Int)>(([], 0))
      let ended = Signal()
      func connectionOpened(_ number: UInt64) -> HTTPCut? {
        open.withLock {
          $0.0.insert(number)
          $0.all += 1
        }
        return nil
      }
      func connectionClosed(_ number: UInt64) {
        let isLast = open.withLock {
          $0.0.remove(number)
          return $0.all == 4 && $0.0.isEmpty
        }
        if isLast { Task { await ended.set() } }
      }
    }
    let observer = Observer()
    var configuration = HTTPConfiguration()
    configuration.observer = observer
    let pem = try TestIdentity.shared.get().authorityPEM
    try await withSecure(configuration) { server in
      let port = server.port
      try await onThread {
        let http2 = try RawHTTP2(try server.rawClient())
        try http2.request("GET", "/")
        _ = try http2.read(RawHTTP2.Kind.data, stream: 1)
        _ = try RawClient(port: port, trusting: pem).exchange(Self.get)
        let silent = try RawClient(port: port)
        silent.close()
      }
      // The client of `WireServer` is the fourth.
      server.closeClient()
      await observer.ended.wait()
    }
  }
}
