import CMicrohttpd

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

// libmicrohttpd itself refuses a `Content-Length` that it cannot read, before we see the request.
// Version 0.9.75 goes on after that as if it had not, and sends its status line and headers twice.
// It says in its log that it is about to, on the connection's thread, and so we come first.
extension Engine {
  /// Called with everything that libmicrohttpd has to say.
  static let libraryComplains: MHD_LogCallback = { cls, _, _ in
    guard let engine = engine(cls), let connection = engine.connectionWithUnseenHead,
      let exchange = connection.exchange
    else { return }
    engine.answerInPlaceOfLibrary(exchange, connection)
  }

  /// The connection of this thread whose request has a complete head that we were not shown. A
  /// thread reads one head after the other, so there is but one.
  private var connectionWithUnseenHead: Connection? {
    var found: Connection?
    let thread = pthread_self()
    connections.visit(self) { connection in
      guard let exchange = connection.exchange, let handle = connection.handle,
        pthread_equal(exchange.thread, thread) != 0,
        !exchange.intake.headSeen, mhd_has_head(handle) != 0
      else { return }
      found = connection
    }
    return found
  }

  /// Sends the refusal and ends the connection's sending side, so that libmicrohttpd's own reply
  /// does not go out. A TLS connection just ends: only libmicrohttpd can write to it.
  private func answerInPlaceOfLibrary(_ exchange: Exchange, _ connection: Connection) {
    if let handle = connection.handle { readHeaders(exchange, handle) }
    if !isSecure {
      let length = exchange.intake.headers.bytes("Content-Length") ?? []
      let isNumber = !length.isEmpty && length.allSatisfy(ASCII.isDigit)
      let reply = lastReply(rejection(isNumber ? .contentTooLarge : .badRequest, exchange))
      _ = reply.withUnsafeBytes { bytes in
        // What does not fit the socket's buffer is lost; nothing else is in it.
        #if canImport(Darwin)
          send(connection.socket, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT))
        #else
          send(
            connection.socket, bytes.baseAddress, bytes.count,
            Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
        #endif
      }
    }
    _ = shutdown(connection.socket, Int32(SHUT_WR))
  }

  /// A reply in wire form after which the connection closes; streams have no place here.
  private func lastReply(_ response: HTTPResponse) -> [UInt8] {
    let status = response.status.rawValue
    let reason =
      MHD_get_reason_phrase_for(UInt32(clamping: status)).map { String(cString: $0) } ?? ""
    var body: [UInt8] = []
    if case .bytes(let bytes) = response.body { body = bytes }
    var head = "HTTP/1.1 \(status) \(reason)\r\nDate: \(date.now)\r\nConnection: close\r\n"
    for (name, value) in response.headers { head += "\(name): \(value)\r\n" }
    head += "Content-Length: \(body.count)\r\n\r\n"
    return Array(head.utf8) + body
  }
}
