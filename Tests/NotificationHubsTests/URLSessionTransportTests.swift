import Foundation
import Testing

@testable import NotificationHubs

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("URLSession as transport")
struct URLSessionTransportTests {
  @Test("requests keep one connection open, and replies arrive whole", .timeLimit(.minutes(5)))
  func keepAlive() async throws {
    let server = try LoopbackServer(connections: 1) { received, round in
      guard received.hasSuffix("\r\n\r\nbody") else { return nil }
      return "HTTP/1.1 201 Created\r\nlocation: https://h/messages/\(round)\r\n"
        + "Content-Length: \(received.utf8.count)\r\n\r\n\(received)"
    }
    let transport = URLSessionTransport()
    let url = try #require(
      URL(string: "http://127.0.0.1:\(server.port)/hub1/x?api-version=2020-06"))
    for round in 1...3 {
      let reply = try await transport.send(
        TransportRequest(
          method: "PATCH", url: url, headers: ["X-Round": "\(round)"], body: Data("body".utf8)))
      #expect(reply.status == 201)
      #expect(reply.header("LOCATION") == "https://h/messages/\(round)")
      let text = String(decoding: reply.body, as: UTF8.self)
      #expect(text.hasPrefix("PATCH /hub1/x?api-version=2020-06 HTTP/1.1\r\n"))
      #expect(text.lowercased().contains("x-round: \(round)\r\n"))
      #expect(text.hasSuffix("\r\n\r\nbody"))
    }
  }

  @Test(
    "a reply that asks for credentials is a reply like any other", .timeLimit(.minutes(5)),
    arguments: [
      "Basic realm=\"proxy\"", "Digest realm=\"proxy\", nonce=\"n\", qop=\"auth\"",
      "SharedAccessSignature", "Bearer realm=\"proxy\"",
    ], [401, 407])
  func challenge(scheme: String, status: Int) async throws {
    let body = "<Error><Code>\(status)</Code><Detail>who are you</Detail></Error>"
    let name = status == 401 ? "WWW-Authenticate" : "Proxy-Authenticate"
    let server = try LoopbackServer { received, _ in
      guard received.hasSuffix("\r\n\r\n") else { return nil }
      return "HTTP/1.1 \(status) No\r\n\(name): \(scheme)\r\nTrackingId: t\r\n"
        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }
    let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/hub1/x"))
    let reply = try await URLSessionTransport().send(TransportRequest(method: "GET", url: url))
    #expect(reply.status == status)
    #expect(reply.header("trackingid") == "t")
    #expect(String(decoding: reply.body, as: UTF8.self) == body)
  }

  @Test(
    "a redirect is a reply, and carries neither token nor body to another host",
    .timeLimit(.minutes(5)), arguments: [301, 302, 303, 307, 308], [false, true])
  func redirect(status: Int, isImage: Bool) async throws {
    let (heard, hears) = AsyncStream.makeStream(of: String.self)
    let other = try LoopbackServer { received, _ in
      hears.yield(received)
      return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    }
    let server = try LoopbackServer { received, _ in
      guard received.contains("\r\n\r\n") else { return nil }
      return "HTTP/1.1 \(status) Moved\r\nLocation: http://127.0.0.1:\(other.port)/there\r\n"
        + "Retry-After: 5\r\nContent-Length: 0\r\n\r\n"
    }
    var request = TransportRequest(
      method: isImage ? "GET" : "PUT",
      url: try #require(URL(string: "http://127.0.0.1:\(server.port)/hub1/x")),
      headers: ["Authorization": "Bearer secret"], body: isImage ? nil : Data("body".utf8))
    // An image's redirects are followed to addresses with https only.
    request.followsRedirects = isImage
    let transport = URLSessionTransport()
    let reply = try await transport.send(request)
    #expect(reply.status == status)
    #expect(reply.header("Retry-After") == "5")
    let streamed = try await transport.stream(request) { _ in hears.yield("a piece") }
    #expect(streamed.status == status)
    hears.finish()
    for await received in heard { Issue.record("the other host heard \(received)") }
  }

  @Test("a body in one line is passed on in pieces, and an error's body has a limit")
  func largeBodies() async throws {
    let large = String(repeating: "x", count: 33 << 20)
    let server = try LoopbackServer { received, _ in
      guard received.hasSuffix("\r\n\r\n") else { return nil }
      let status = received.contains("/image") ? "200 OK" : "400 No"
      return "HTTP/1.1 \(status)\r\nContent-Length: \(large.utf8.count)\r\n\r\n\(large)"
    }
    func request(_ path: String) throws -> TransportRequest {
      TransportRequest(
        method: "GET", url: try #require(URL(string: "http://127.0.0.1:\(server.port)\(path)")))
    }
    let sizes = Locked<[Int]>([])
    let reply = try await URLSessionTransport().stream(try request("/image")) { piece in
      sizes.withLock { $0.append(piece.count) }
    }
    #expect(reply.status == 200 && reply.body.isEmpty)
    #expect(sizes.withLock { $0.reduce(0, +) } == large.utf8.count)
    #expect(sizes.withLock { $0.max() ?? 0 } < 4 << 20)
    await #expect(throws: URLError(.dataLengthExceedsMaximum)) {
      try await URLSessionTransport().send(try request("/error"))
    }
    await #expect(throws: URLError(.dataLengthExceedsMaximum)) {
      try await URLSessionTransport().stream(try request("/error")) { _ in }
    }
  }

  @Test(
    "Retry-After is a number or a date, which counts from that of the reply",
    arguments: [
      ("30", nil, 30), ("Wed, 21 Oct 2037 07:28:00 GMT", "Wed, 21 Oct 2037 07:27:30 GMT", 30),
      ("Wed, 21 Oct 2037 07:28:00 GMT", "Wed, 21 Oct 2037 08:00:00 GMT", 0), ("soon", nil, nil),
    ] as [(String, String?, Int?)])
  func retryAfter(value: String, date: String?, seconds: Int?) {
    var headers = ["Retry-After": value]
    headers["Date"] = date
    #expect(TransportReply(status: 503, headers: headers).retryAfter == seconds)
    #expect(
      NotificationHubError(reply: TransportReply(status: 503, headers: headers)).retryAfter
        == seconds)
  }

  @Test("a request whose task is cancelled ends", .timeLimit(.minutes(5)))
  func cancelled() async throws {
    let (heard, hears) = AsyncStream.makeStream(of: Void.self)
    let server = try LoopbackServer { _, _ in
      hears.finish()
      return nil
    }
    let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/hub1/x"))
    let request = Task {
      try await URLSessionTransport().send(TransportRequest(method: "GET", url: url))
    }
    for await _ in heard {}
    request.cancel()
    await #expect(throws: (any Error).self) { try await request.value }
  }
}

@Suite("Calls whose task is cancelled")
struct CancellationTests {
  /// How one round went against what it promises.
  private enum Ending: Equatable {
    case kept
    /// Kept, and the call had been cancelled before it began.
    case neverBegun
    case broken(String)
  }

  @Test("end with CancellationError whenever that happens, and all of them end")
  func anyTime() async throws {
    let reply =
      "<NotificationDetails><NotificationId>x</NotificationId><State>Completed</State>"
      + "</NotificationDetails>"
    let server = try LoopbackServer { received, _ in
      guard received.hasSuffix("\r\n\r\n") else { return nil }
      return "HTTP/1.1 200 OK\r\nContent-Length: \(reply.utf8.count)\r\n\r\n\(reply)"
    }
    let client = NotificationHubClient(
      connectionString: ConnectionString(
        endpoint: ServiceEndpoint(host: "127.0.0.1", port: Int(server.port), usesTLS: false),
        keyName: "Listen", key: "key"),
      hub: "hub1", transport: URLSessionTransport(), retry: .none)
    let (rounds, workers) = (10_000, 8)
    let (endings, ended) = AsyncStream.makeStream(of: (round: Int, ending: Ending).self)
    for worker in 0..<workers {
      Task {
        for round in stride(from: worker, to: rounds, by: workers) {
          ended.yield((round, await Self.ending(of: round, client)))
        }
      }
    }
    // A call that never returns is not waited for.
    let limit = Task {
      try await Task.sleep(for: .seconds(900))
      ended.finish()
    }
    var missing = Set(0..<rounds)
    var neverBegun = 0
    var broken: [String] = []
    for await (round, ending) in endings {
      missing.remove(round)
      if case .broken(let how) = ending { broken.append("round \(round): \(how)") }
      if ending == .neverBegun { neverBegun += 1 }
      if missing.isEmpty { break }
    }
    limit.cancel()
    #expect(missing.count == 0, "\(missing.count) calls have not returned")
    #expect(broken.count == 0, "\(broken.count) rounds, first \(broken.prefix(5))")
    #expect(neverBegun >= rounds / 3)
  }

  /// A third is cancelled before the call has begun; a third after 0 to 3 ms; a third after the
  /// reply.
  private static func ending(of round: Int, _ client: NotificationHubClient) async -> Ending {
    let kind = round % 3
    let call = Task {
      if kind == 0 { withUnsafeCurrentTask { $0?.cancel() } }
      return try await client.telemetry(of: "x")
    }
    if kind == 1 {
      try? await Task.sleep(for: .microseconds(Int.random(in: 0...3000)))
    } else if kind == 2 {
      _ = await call.result
    }
    call.cancel()
    switch (await call.result, kind) {
    case (.failure(is CancellationError), 0): return .neverBegun
    case (.failure(is CancellationError), 1): return .kept
    case (.success, 0): return .broken("was cancelled first, and succeeded")
    case (.success, _): return .kept
    case (.failure(let error), _): return .broken("\(type(of: error)): \(error)")
    }
  }
}

/// Answers every request on each connection.
private struct LoopbackServer {
  let port: UInt16

  /// Of what has been received and the number of the request, from 1; `nil` while it is not whole.
  typealias Answer = @Sendable (_ received: String, _ round: Int) -> String?

  /// - Parameter connections: A further one would find nobody.
  init(connections: Int = .max, answer: @escaping Answer) throws {
    #if canImport(Glibc)
      // No process that another test starts may inherit it.
      let stream = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    #else
      let stream = SOCK_STREAM
    #endif
    let listener = socket(AF_INET, stream, 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let bound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) == 0 && listen(listener, connections == 1 ? 1 : 64) == 0
          && getsockname(listener, $0, &length) == 0
      }
    }
    try #require(bound)
    port = UInt16(bigEndian: address.sin_port)
    Thread.detachNewThread {
      for _ in 0..<connections {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { break }
        Thread.detachNewThread { Self.serve(connection, answer) }
      }
      close(listener)
    }
  }

  private static func serve(_ connection: Int32, _ answer: Answer) {
    defer { close(connection) }
    var buffer = [UInt8](repeating: 0, count: 65_536)
    var received = ""
    var round = 0
    while true {
      let count = read(connection, &buffer, buffer.count)
      guard count > 0 else { return }
      received += String(decoding: buffer[..<count], as: UTF8.self)
      guard let reply = answer(received, round + 1) else { continue }
      round += 1
      received = ""
      // Who has left must not end the process.
      #if canImport(Darwin)
        _ = reply.withCString { write(connection, $0, strlen($0)) }
      #else
        _ = reply.withCString { send(connection, $0, strlen($0), Int32(MSG_NOSIGNAL)) }
      #endif
    }
  }
}
