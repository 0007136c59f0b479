import COpenSSL
import Cryptography
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
package struct RawReply: Sendable {
  package var status = 0
  /// Names in lower case.
  package var headers: [String: String] = [:]
  package var body = ""
  /// Whether the body's end was seen: its length reached, or its last chunk.
  package var isWhole = true
}

/// A blocking HTTP client that sends exactly the bytes a test gives it.
///
/// Use it inside `onThread`: a blocked thread of the concurrency pool could be the one that the
/// server's handlers need.
package final class RawClient {
  package struct Failure: Error {
    package var reason: String

    package init(reason: String) { self.reason = reason }
  }

  private let socket: Int32
  /// Owned; `nil` without TLS.
  private var tls: TLSConnection?
  private var buffer: [UInt8] = []

  /// - Parameters:
  ///   - receiveBuffer: Bytes the system may hold back for a reader that does not read.
  ///   - trusting: PEM of the authority that vouches for `localhost`; speaks TLS then.
  ///   - offering: The protocols that it offers by ALPN, in this order; none leaves ALPN out.
  ///   - source: The address that it calls from; on Linux any of 127.0.0.0/8.
  package init(
    port: UInt16, timeout seconds: Int = 60, receiveBuffer: Int32? = nil,
    trusting authorityPEM: String? = nil, offering protocols: [String] = [],
    from source: String? = nil
  ) throws {
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
    if let source {
      address.sin_port = 0
      inet_pton(AF_INET, source, &address.sin_addr)
      let bound = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      guard bound == 0 else { throw Failure(reason: "bind: \(String(cString: strerror(errno)))") }
      address.sin_port = port.bigEndian
    }
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw Failure(reason: "connect: \(String(cString: strerror(errno)))") }
    if let authorityPEM {
      tls = try TLSConnection(socket, trusting: authorityPEM, offering: protocols)
    }
  }

  deinit { closeSocket(socket) }

  /// Speaks TLS from here on, as behind a proxy's reply to CONNECT.
  package func startTLS(
    as name: String, trusting authorityPEM: String, offering protocols: [String] = []
  ) throws {
    tls = try TLSConnection(socket, as: name, trusting: authorityPEM, offering: protocols)
  }

  /// The DER of the certificate that the server has shown; empty without TLS.
  package var peerCertificate: [UInt8] { tls?.peerCertificate ?? [] }

  /// The protocol that the server has chosen by ALPN; empty where it has not.
  package var chosenProtocol: String { tls?.chosenProtocol ?? "" }

  /// Ends TLS and the connection in good manners.
  package func close() {
    tls?.shutDown()
    _ = shutdown(socket, Int32(SHUT_RDWR))
  }

  /// Sends text as it stands; lines of a request end in CR LF.
  package func send(_ text: String) throws { try send(Array(text.utf8)) }

  package func send(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        let rest = UnsafeRawBufferPointer(rebasing: $0[sent...])
        return tls?.write(rest) ?? testSend(socket, rest)
      }
      guard count > 0 else { throw Failure(reason: "send: \(String(cString: strerror(errno)))") }
      sent += count
    }
  }

  /// Ends the sending side only.
  package func finishSending() { _ = shutdown(socket, Int32(SHUT_WR)) }

  /// - Returns: `false` at the end of the connection.
  private func fill() throws -> Bool {
    var chunk = [UInt8](repeating: 0, count: 65536)
    let count = tls?.read(into: &chunk) ?? recv(socket, &chunk, chunk.count, 0)
    if count > 0 { buffer += chunk[..<count] }
    if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { throw Failure(reason: "timed out") }
    return count > 0
  }

  /// Waits for the end of the connection; whatever comes before is returned.
  package func readToEnd() throws -> String {
    while try fill() {}
    defer { buffer = [] }
    return String(decoding: buffer, as: UTF8.self)
  }

  package func readLine() throws -> String {
    while true {
      if let end = buffer.firstIndex(of: 10) {
        let line = buffer[..<end]
        buffer.removeFirst(end + 1)
        return String(decoding: line.last == 13 ? line.dropLast() : line, as: UTF8.self)
      }
      guard try fill() else { throw Failure(reason: "connection closed") }
    }
  }

  package func readBytes(_ count: Int) throws -> [UInt8] {
    while buffer.count < count {
      guard try fill() else { throw Failure(reason: "connection closed inside a body") }
    }
    defer { buffer.removeFirst(count) }
    return Array(buffer[..<count])
  }

  /// Reads status line and headers.
  package func readHead() throws -> RawReply {
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
  package func readChunk() throws -> String? {
    guard let size = Int(try readLine(), radix: 16) else { throw Failure(reason: "bad chunk") }
    let bytes = try readBytes(size)
    _ = try readLine()
    return size == 0 ? nil : String(decoding: bytes, as: UTF8.self)
  }

  /// Reads one reply with its body.
  package func readReply(toHead: Bool = false) throws -> RawReply {
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
  package func exchange(_ request: String) throws -> RawReply {
    try send(request)
    return try readReply()
  }
}

/// Lets a test hand one client from thread to thread: unchecked, as it uses it from one at a time.
package final class Shared<Value>: @unchecked Sendable {
  package let value: Value
  package init(_ value: Value) { self.value = value }
}

/// A process that another test starts meanwhile must not hold the connection open: a server would
/// wait for its end in vain.
private func testSocket() -> Int32 {
  #if canImport(Glibc)
    socket(AF_INET, stream | Int32(SOCK_CLOEXEC.rawValue), 0)
  #else
    let descriptor = socket(AF_INET, stream, 0)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    return descriptor
  #endif
}

private func closeSocket(_ socket: Int32) { close(socket) }

private func testSend(_ socket: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
  #if canImport(Darwin)
    send(socket, bytes.baseAddress, bytes.count, 0)
  #else
    send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
  #endif
}

/// The client's end of TLS on a blocking socket.
private final class TLSConnection {
  private let context: OpaquePointer
  private let session: OpaquePointer

  /// - Parameter name: The server's, for SNI and the check of its certificate.
  init(
    _ socket: Int32, as name: String = "localhost", trusting authorityPEM: String,
    offering protocols: [String]
  ) throws {
    let authority = try Certificate(pem: authorityPEM)
    guard let context = SSL_CTX_new(TLS_client_method()) else {
      throw RawClient.Failure(reason: "no TLS")
    }
    self.context = context
    authority.der.withUnsafeBufferPointer { der in
      var cursor = der.baseAddress
      let certificate = d2i_X509(nil, &cursor, der.count)
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate)
      X509_free(certificate)
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
    session = SSL_new(context)
    SSL_set_fd(session, socket)
    SSL_set1_host(session, name)
    _ = name.withCString {
      SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, 0, UnsafeMutableRawPointer(mutating: $0))
    }
    let offer = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
    if !offer.isEmpty { SSL_set_alpn_protos(session, offer, UInt32(offer.count)) }
    guard SSL_connect(session) == 1 else {
      let verdict = SSL_get_verify_result(session)
      ERR_clear_error()
      throw RawClient.Failure(reason: "TLS handshake: verification says \(verdict)")
    }
  }

  deinit {
    SSL_free(session)
    SSL_CTX_free(context)
  }

  var chosenProtocol: String {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(session, &name, &length)
    return String(
      decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
  }

  var peerCertificate: [UInt8] {
    guard let certificate = SSL_get1_peer_certificate(session) else { return [] }
    defer { X509_free(certificate) }
    var bytes = [UInt8](repeating: 0, count: Int(max(0, i2d_X509(certificate, nil))))
    bytes.withUnsafeMutableBufferPointer { buffer in
      var cursor = buffer.baseAddress
      _ = i2d_X509(certificate, &cursor)
    }
    return bytes
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> Int {
    Int(SSL_write(session, bytes.baseAddress, Int32(clamping: bytes.count)))
  }

  func read(into bytes: inout [UInt8]) -> Int {
    defer { ERR_clear_error() }
    return Int(SSL_read(session, &bytes, Int32(clamping: bytes.count)))
  }

  func shutDown() { SSL_shutdown(session) }
}

/// Runs blocking work on a thread of its own.
package func onThread<Result: Sendable>(
  _ work: @escaping @Sendable () throws -> Result
) async throws -> Result {
  try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread {
      continuation.resume(with: .init(catching: work))
    }
  }
}

/// Paces a client that is slow on purpose; not for waiting on the server.
package func usleepMilliseconds(_ count: UInt32) { usleep(count * 1000) }
