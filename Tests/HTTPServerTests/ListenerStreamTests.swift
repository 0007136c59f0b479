import HTTPServer
import HubTesting
import Synchronization
import Testing

@Suite("Streamed replies", .timeLimit(.minutes(5)))
struct ListenerStreamTests {
  static let request = "GET /s HTTP/1.1\r\nHost: h\r\n\r\n"

  @Test("what the stream writes arrives while it is still open, and the connection lives on")
  func events() async throws {
    let next = Signal()
    try await withServer { _ in
      HTTPResponse(
        .ok, headers: ServerSentEvent.headers,
        body: .stream { writer in
          try await writer.write(ServerSentEvent(event: "push", id: "1", data: "a\nb").bytes)
          await next.wait()
          try await writer.write(ServerSentEvent.comment("still here"))
        })
    } body: { server in
      let port = server.port
      let client = try await onThread { Shared(try RawClient(port: port)) }
      let first = try await onThread {
        try client.value.send(Self.request)
        let head = try client.value.readHead()
        return (head.headers["content-type"], try client.value.readChunk())
      }
      #expect(first.0 == "text/event-stream")
      #expect(first.1 == "event: push\nid: 1\ndata: a\ndata: b\n\n")
      await next.set()
      let rest = try await onThread {
        let chunks = [try client.value.readChunk(), try client.value.readChunk()]
        try client.value.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
        return (chunks, try client.value.readReply(toHead: true).status)
      }
      #expect(rest.0 == [": still here\n\n", nil])
      #expect(rest.1 == 200)
    }
  }

  @Test("a long stream arrives whole and in order")
  func longStream() async throws {
    try await withServer { _ in
      HTTPResponse(
        .ok,
        body: .stream { writer in
          for number in 0..<2000 {
            try await writer.write(
              String(repeating: "\(number % 10)", count: 1 + number * 37 % 9000))
          }
        })
    } body: { server in
      let port = server.port
      let body = try await onThread { try RawClient(port: port).exchange(Self.request).body }
      let expected = (0..<2000).map {
        String(repeating: "\($0 % 10)", count: 1 + $0 * 37 % 9000)
      }
      #expect(body == expected.joined())
    }
  }

  @Test("a reader that stops reading stops its writer, which is then told so")
  func stalledReader() async throws {
    var configuration = HTTPConfiguration()
    configuration.streamStallTimeout = .milliseconds(200)
    let written = Mutex(0)
    let (failure, report) = AsyncStream.makeStream(of: HTTPWriteError?.self)
    try await withServer(configuration) { _ in
      HTTPResponse(
        .ok,
        body: .stream { writer in
          let chunk = [UInt8](repeating: 120, count: 100_000)
          do {
            while !Task.isCancelled {
              try await writer.write(chunk)
              written.withLock { $0 += chunk.count }
            }
            report.yield(nil)
          } catch {
            report.yield(error as? HTTPWriteError)
            throw error
          }
        })
    } body: { server in
      let port = server.port
      let client = try await onThread {
        let client = try RawClient(port: port, receiveBuffer: 4096)
        try client.send(Self.request)
        return Shared(client)
      }
      let error = await failure.first { _ in true }
      #expect(error == .stalled)
      // The sockets' buffers, not the server's memory, bound what was taken.
      #expect(written.withLock { $0 } < 32 << 20)
      withExtendedLifetime(client) {}
    }
  }

  @Test("a client that leaves cancels the task of its quiet stream")
  func disconnect() async throws {
    let started = Signal()
    let cancelled = Signal()
    try await withServer { _ in
      HTTPResponse(
        .ok,
        body: .stream { writer in
          try await writer.write("hello")
          await started.set()
          try? await Task.sleep(for: .seconds(600))
          if Task.isCancelled { await cancelled.set() }
          await #expect(throws: HTTPWriteError.clientGone) { try await writer.write("more") }
        })
    } body: { server in
      let port = server.port
      try await onThread {
        let client = try RawClient(port: port)
        try client.send(Self.request)
        _ = try client.readHead()
        _ = try client.readChunk()
      }
      await started.wait()
      await cancelled.wait()
    }
  }

  @Test("a stream that fails cuts the connection: its end never comes")
  func failingStream() async throws {
    struct Broken: Error {}
    try await withServer { _ in
      HTTPResponse(
        .ok,
        body: .stream { writer in
          try await writer.write("part")
          throw Broken()
        })
    } body: { server in
      let port = server.port
      let (part, isCut) = try await onThread {
        let client = try RawClient(port: port)
        try client.send(Self.request)
        _ = try client.readHead()
        let part = try client.readChunk()
        return (part, try client.readToEnd().isEmpty)
      }
      #expect(part == "part")
      #expect(isCut)
    }
  }

  @Test("HEAD does not start the stream")
  func head() async throws {
    let started = Mutex(false)
    try await withServer { _ in
      HTTPResponse(.ok, body: .stream { _ in started.withLock { $0 = true } })
    } body: { server in
      let port = server.port
      let status = try await onThread {
        let client = try RawClient(port: port)
        try client.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
        return try client.readReply(toHead: true).status
      }
      #expect(status == 200)
    }
    #expect(!started.withLock { $0 })
  }

  @Test("stop ends open streams")
  func stopEndsStreams() async throws {
    let started = Signal()
    let ended = Signal()
    let server = try HTTPListener(
      handler: ClosureHandler { _ in
        HTTPResponse(
          .ok,
          body: .stream { writer in
            try await writer.write("hello")
            await started.set()
            try? await Task.sleep(for: .seconds(600))
            await #expect(throws: HTTPWriteError.stopping) { try await writer.write("more") }
            await ended.set()
          })
      })
    let port = server.port
    async let body = onThread { try RawClient(port: port).exchange(Self.request).body }
    await started.wait()
    await server.stop(within: .seconds(30))
    await ended.wait()
    #expect(try await body == "hello")
  }
}
