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
  @Test("requests keep one connection open, and replies arrive whole", .timeLimit(.minutes(1)))
  func keepAlive() async throws {
    let server = try OneConnectionServer()
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
}

/// Takes a single connection and answers every request on it with what it got; a second connection
/// would find nobody.
private struct OneConnectionServer {
  let port: UInt16

  init() throws {
    #if canImport(Glibc)
      let stream = Int32(SOCK_STREAM.rawValue)
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
    Thread.detachNewThread { Self.serve(listener) }
  }

  private static func serve(_ listener: Int32) {
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
      guard received.hasSuffix("\r\n\r\nbody") else { continue }
      round += 1
      let reply =
        "HTTP/1.1 201 Created\r\nlocation: https://h/messages/\(round)\r\n"
        + "Content-Length: \(received.utf8.count)\r\n\r\n\(received)"
      received = ""
      _ = reply.withCString { write(connection, $0, strlen($0)) }
    }
  }
}
