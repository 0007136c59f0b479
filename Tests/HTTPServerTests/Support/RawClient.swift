import Foundation

#if canImport(Glibc)
  import Glibc
  private let stream = Int32(SOCK_STREAM.rawValue)
#elseif canImport(Musl)
  import Musl
  private let stream = SOCK_STREAM
#elseif canImport(Darwin)
  import Darwin
  private let stream = SOCK_STREAM
#endif

/// A reply as a test wants to see it.
struct RawReply: Sendable {
  var status = 0
  /// Names in lower case.
  var headers: [String: String] = [:]
  var body = ""
  /// Whether the body's end was seen: its length reached, or its last chunk.
  var isWhole = true
}

/// A blocking HTTP client that sends exactly the bytes a test gives it.
///
/// Use it inside `onThread`: a blocked thread of the concurrency pool could be the one that the
/// server's handlers need.
final class RawClient {
  struct Failure: Error { var reason: String }

  private let socket: Int32
  private var buffer: [UInt8] = []

  /// - Parameter receiveBuffer: Bytes the system may hold back for a reader that does not read.
  init(port: UInt16, timeout seconds: Int = 10, receiveBuffer: Int32? = nil) throws {
    socket = testSocket()
    if var receiveBuffer {
      setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, 4)
    }
    var limit = timeval(tv_sec: seconds, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw Failure(reason: "connect: \(String(cString: strerror(errno)))") }
  }

  deinit { close(socket) }

  /// Sends text as it stands; lines of a request end in CR LF.
  func send(_ text: String) throws { try send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        testSend(socket, $0.baseAddress! + sent, bytes.count - sent)
      }
      guard count > 0 else { throw Failure(reason: "send: \(String(cString: strerror(errno)))") }
      sent += count
    }
  }

  /// Ends the sending side only.
  func finishSending() { _ = shutdown(socket, Int32(SHUT_WR)) }

  /// - Returns: `false` at the end of the connection.
  private func fill() throws -> Bool {
    var chunk = [UInt8](repeating: 0, count: 65536)
    let count = recv(socket, &chunk, chunk.count, 0)
    if count > 0 { buffer += chunk[..<count] }
    if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { throw Failure(reason: "timed out") }
    return count > 0
  }

  /// Waits for the end of the connection; whatever comes before is returned.
  func readToEnd() throws -> String {
    while try fill() {}
    defer { buffer = [] }
    return String(decoding: buffer, as: UTF8.self)
  }

  func readLine() throws -> String {
    while true {
      if let end = buffer.firstIndex(of: 10) {
        let line = buffer[..<end]
        buffer.removeFirst(end + 1)
        return String(decoding: line.last == 13 ? line.dropLast() : line, as: UTF8.self)
      }
      guard try fill() else { throw Failure(reason: "connection closed") }
    }
  }

  private func readBytes(_ count: Int) throws -> [UInt8] {
    while buffer.count < count {
      guard try fill() else { throw Failure(reason: "connection closed inside a body") }
    }
    defer { buffer.removeFirst(count) }
    return Array(buffer[..<count])
  }

  /// Reads status line and headers.
  func readHead() throws -> RawReply {
    var reply = RawReply()
    let words = try readLine().split(separator: " ")
    guard words.count >= 2, let status = Int(words[1]) else { throw Failure(reason: "no status") }
    reply.status = status
    while case let line = try readLine(), !line.isEmpty {
      guard let colon = line.firstIndex(of: ":") else { throw Failure(reason: "bad header") }
      reply.headers[line[..<colon].lowercased()] = line[line.index(after: colon)...]
        .trimmingCharacters(in: .whitespaces)
    }
    return reply
  }

  /// Reads one chunk of a chunked body; `nil` for the last.
  func readChunk() throws -> String? {
    guard let size = Int(try readLine(), radix: 16) else { throw Failure(reason: "bad chunk") }
    let bytes = try readBytes(size)
    _ = try readLine()
    return size == 0 ? nil : String(decoding: bytes, as: UTF8.self)
  }

  /// Reads one reply with its body.
  func readReply(toHead: Bool = false) throws -> RawReply {
    var reply = try readHead()
    if toHead { return reply }
    if reply.headers["transfer-encoding"] == "chunked" {
      while let chunk = try readChunk() { reply.body += chunk }
    } else if let length = reply.headers["content-length"].flatMap({ Int($0) }) {
      reply.body = String(decoding: try readBytes(length), as: UTF8.self)
    }
    return reply
  }

  /// Sends a request and reads its reply.
  func exchange(_ request: String) throws -> RawReply {
    try send(request)
    return try readReply()
  }
}

private func testSocket() -> Int32 { socket(AF_INET, stream, 0) }

private func testSend(_ socket: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
  #if canImport(Darwin)
    send(socket, bytes, count, 0)
  #else
    send(socket, bytes, count, Int32(MSG_NOSIGNAL))
  #endif
}

/// Runs blocking work on a thread of its own.
func onThread<Result: Sendable>(
  _ work: @escaping @Sendable () throws -> Result
) async throws -> Result {
  try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread {
      continuation.resume(with: .init(catching: work))
    }
  }
}

/// Paces a client that is slow on purpose; not for waiting on the server.
func usleepMilliseconds(_ count: UInt32) { usleep(count * 1000) }
