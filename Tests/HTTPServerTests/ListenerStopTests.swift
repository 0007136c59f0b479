import HTTPServer
import HubTesting
import Testing

@Suite("Start and stop of the HTTP server", .timeLimit(.minutes(5)))
struct ListenerStopTests {
  static let request = "GET /s HTTP/1.1\r\nHost: h\r\n\r\n"

  @Test("stop waits for the request in flight and closes the idle connection")
  func stopWhileBusy() async throws {
    let entered = Signal()
    let leave = Signal()
    let server = try HTTPListener(
      handler: ClosureHandler { request in
        await entered.set()
        await leave.wait()
        return await echo(request)
      })
    let port = server.port
    let idle = try await onThread { Shared(try RawClient(port: port)) }
    async let reply = onThread { try RawClient(port: port).exchange(Self.request) }
    await entered.wait()
    async let stopped: Void = server.stop(within: .seconds(60))
    // The listening socket closes first; once that shows, the stop is under way.
    try await onThread {
      while (try? RawClient(port: port)) != nil {}
    }
    await leave.set()
    #expect(try await reply.body == "GET /s [] ")
    await stopped
    #expect(try await onThread { try idle.value.readToEnd() } == "")
  }

  @Test("a request that outlives the limit is answered 503; its late reply harms nobody")
  func stopGivesUp() async throws {
    let entered = Signal()
    let leave = Signal()
    let server = try HTTPListener(
      handler: ClosureHandler { request in
        await entered.set()
        await leave.wait()
        return await echo(request)
      })
    let port = server.port
    async let reply = onThread { try? RawClient(port: port).exchange(Self.request).status }
    await entered.wait()
    await server.stop(within: .milliseconds(50))
    await leave.set()
    // The reply races with the end of the connection.
    let status = try await reply
    #expect(status == 503 || status == nil)
  }

  @Test("stop under load neither hangs nor leaks a request", arguments: 0..<5)
  func stopUnderLoad(round: Int) async throws {
    let server = try HTTPListener(handler: ClosureHandler(answer: echo))
    let port = server.port
    let warm = Signal()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          try? await onThread {
            let client = try RawClient(port: port)
            try client.send(String(repeating: Self.request, count: 20))
            while try client.readReply().status == 200 {
              try client.send(Self.request)
            }
          }
          await warm.set()
        }
      }
      group.addTask {
        _ = try? await onThread { try RawClient(port: port).exchange(Self.request) }
        await server.stop(within: .milliseconds(20 * round))
      }
    }
    await server.stop()
  }

  @Test("a released listener stops serving")
  func release() async throws {
    let port: UInt16
    do {
      let server = try HTTPListener(handler: ClosureHandler(answer: echo))
      port = server.port
      let status = try await onThread { try RawClient(port: port).exchange(Self.request).status }
      withExtendedLifetime(server) {}
      #expect(status == 200)
    }
    // Its port comes free in the background.
    try await onThread {
      while (try? RawClient(port: port)) != nil {}
    }
  }

  @Test("a port in use is an error that names address and port and says what to do")
  func portInUse() async throws {
    let first = try HTTPListener(handler: ClosureHandler(answer: echo))
    var configuration = HTTPConfiguration()
    configuration.port = first.port
    let error = #expect(throws: HTTPListenerError.self) {
      _ = try HTTPListener(configuration, handler: ClosureHandler(answer: echo))
    }
    #expect(error == .addressInUse(host: "127.0.0.1", port: first.port))
    #expect(
      error?.description
        == "cannot listen on 127.0.0.1 port \(first.port): another program uses it; "
        + "stop that program, or choose another port (0 takes a free one)")
    await first.stop()
  }

  @Test(
    "a host that is no address of this machine is an error", arguments: ["nonsense", "192.0.2.1"])
  func badHost(host: String) {
    var configuration = HTTPConfiguration()
    configuration.host = host
    #expect(throws: HTTPListenerError.badAddress(host: host)) {
      _ = try HTTPListener(configuration, handler: ClosureHandler(answer: echo))
    }
  }

  @Test("a port can be listened on again right after stop")
  func restart() async throws {
    let first = try HTTPListener(handler: ClosureHandler(answer: echo))
    let port = first.port
    _ = try await onThread { try RawClient(port: port).exchange(Self.request) }
    await first.stop()
    var configuration = HTTPConfiguration()
    configuration.port = port
    try await withServer(configuration, answer: echo) { server in
      #expect(server.port == port)
      let status = try await onThread { try RawClient(port: port).exchange(Self.request).status }
      #expect(status == 200)
    }
  }

  @Test("IPv6 is listened on where the system has it, and the address is told")
  func ipv6() async throws {
    var configuration = HTTPConfiguration()
    configuration.host = "::1"
    do {
      let server = try HTTPListener(configuration, handler: ClosureHandler(answer: echo))
      #expect(server.host == "::1")
      #expect(server.port != 0)
      await server.stop()
    } catch HTTPListenerError.badAddress {
      // A machine without IPv6.
    }
  }
}
