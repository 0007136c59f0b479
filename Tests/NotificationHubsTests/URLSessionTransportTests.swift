import Foundation
import NotificationHubs
import Testing

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
    let server = try OneConnectionServer { received, round in
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
    let server = try OneConnectionServer { received, _ in
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

  @Test("a request whose task is cancelled ends", .timeLimit(.minutes(5)))
  func cancelled() async throws {
    let (heard, hears) = AsyncStream.makeStream(of: Void.self)
    let server = try OneConnectionServer { _, _ in
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

/// Takes a single connection and answers every request on it; a second connection would find
/// nobody.
private struct OneConnectionServer {
  let port: UInt16

  /// Of what has been received and the number of the request, from 1; `nil` while it is not whole.
  typealias Answer = @Sendable (_ received: String, _ round: Int) -> String?

  init(answer: @escaping Answer) throws {
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
        bind(listener, $0, length) == 0 && listen(listener, 1) == 0
          && getsockname(listener, $0, &length) == 0
      }
    }
    try #require(bound)
    port = UInt16(bigEndian: address.sin_port)
    Thread.detachNewThread { Self.serve(listener, answer) }
  }

  private static func serve(_ listener: Int32, _ answer: Answer) {
    let connection = accept(listener, nil, nil)
    close(listener)
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
      _ = reply.withCString { write(connection, $0, strlen($0)) }
    }
  }
}
