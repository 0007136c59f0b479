import CMicrohttpd
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

// What libmicrohttpd calls, on its own threads. For one request, in this order: `targetSeen` once
// the request line is read; `access` with the head, with each piece of the body, at the body's end,
// and again after the connection was suspended and woken; `completed`, whatever became of it.
// `connectionChanged` frames all of a connection's requests.
extension Engine {
  /// The objects lent to libmicrohttpd, back from their opaque pointers.
  private static func daemon(_ pointer: UnsafeMutableRawPointer?) -> Daemon? {
    pointer.map { Unmanaged<Daemon>.fromOpaque($0).takeUnretainedValue() }
  }

  static func engine(_ pointer: UnsafeMutableRawPointer?) -> Engine? {
    daemon(pointer)?.engine
  }

  private static func connection(_ handle: OpaquePointer?) -> Connection? {
    guard let handle, let pointer = mhd_socket_context(handle) else { return nil }
    return Unmanaged<Connection>.fromOpaque(pointer).takeUnretainedValue()
  }

  static let connectionChanged: MHD_NotifyConnectionCallback = { cls, handle, context, code in
    guard let daemon = daemon(cls), let handle, let context else { return }
    let engine = daemon.engine
    switch code {
    case .CONNECTION_NOTIFY_STARTED:
      let socket = mhd_socket(handle)
      guard let connection = engine.inTransit.withLock({ $0.removeValue(forKey: socket) }) else {
        return
      }
      connection.handle = handle
      context.pointee = Unmanaged.passRetained(connection).toOpaque()
      engine.connections.setInTransit(false, connection)
    default:
      guard let pointer = context.pointee else { return }
      context.pointee = nil
      let connection = Unmanaged<Connection>.fromOpaque(pointer).takeRetainedValue()
      engine.forget(connection)
      connection.clear()
      daemon.openConnections.subtract(1, ordering: .sequentiallyConsistent)
    }
  }

  /// - Returns: The new exchange, retained; `completed` releases it.
  static let targetSeen:
    @convention(c) (
      UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?
    ) -> UnsafeMutableRawPointer? = { cls, target, handle in
      guard let engine = engine(cls), let target, let connection = connection(handle) else {
        return nil
      }
      let bytes = UnsafeRawBufferPointer(start: target, count: strlen(target))
      let exchange = Exchange(target: Array(bytes), connection: connection)
      connection.exchange = exchange
      connection.requestBegins(until: engine.deadline(engine.configuration.requestReadTimeout))
      engine.activeRequests.add(1, ordering: .sequentiallyConsistent)
      return Unmanaged.passRetained(exchange).toOpaque()
    }

  static let completed: MHD_RequestCompletedCallback = { cls, _, context, _ in
    guard let engine = engine(cls), let context, let pointer = context.pointee else { return }
    context.pointee = nil
    let exchange = Unmanaged<Exchange>.fromOpaque(pointer).takeRetainedValue()
    exchange.end()
    let connection = exchange.connection
    connection.stream?.release()
    connection.clear()
    connection.serving.store(0, ordering: .relaxed)
    connection.idle(until: engine.idleDeadline, since: engine.now.load(ordering: .relaxed))
    let active = engine.activeRequests.subtract(1, ordering: .sequentiallyConsistent).newValue
    if active == 0, engine.phase.load(ordering: .sequentiallyConsistent) == .draining {
      engine.endDrainIfDone()
    }
  }

  static let access: MHD_AccessHandlerCallback = {
    cls, handle, _, method, version, data, size, context in
    guard let engine = engine(cls), let handle, let size, let pointer = context?.pointee else {
      return .NO
    }
    let exchange = Unmanaged<Exchange>.fromOpaque(pointer).takeUnretainedValue()
    if !exchange.intake.headSeen {
      if let method { exchange.intake.method = HTTPMethod(rawValue: String(cString: method)) }
      let isVersion10 = version.map { strcmp($0, "HTTP/1.0") == 0 } ?? true
      return engine.headArrived(exchange, handle, isVersion10: isVersion10)
    }
    if size.pointee > 0 {
      defer { size.pointee = 0 }
      return engine.bodyArrived(exchange, UnsafeRawBufferPointer(start: data, count: size.pointee))
    }
    return engine.requestArrived(exchange, handle)
  }

  /// Reads the headers and refuses at once what they show to be too large.
  private func headArrived(
    _ exchange: Exchange, _ handle: OpaquePointer, isVersion10: Bool
  ) -> MHD_Result {
    readHeaders(exchange, handle)
    let headers = exchange.intake.headers
    let isTargetWhole = exchange.intake.target.allSatisfy { $0 > ASCII.blank && $0 != 127 }
    exchange.intake.isChunked = headers.contains("Transfer-Encoding")
    // Every byte of the head has to be accounted for: a NUL ends a text of libmicrohttpd's before
    // its time, and what it takes for a line's end may be a lone line feed.
    let size =
      exchange.intake.method.rawValue.utf8.count + 1 + exchange.intake.target.count
      + " HTTP/1.1\r\n".utf8.count + exchange.intake.fieldBytes + "\r\n".utf8.count
    guard !exchange.intake.isAmbiguous, isTargetWhole, mhd_head_size(handle) == size,
      headers.isUnambiguousHead(isVersion10: isVersion10),
      !exchange.intake.isChunked || mhd_is_chunked(handle) != 0
    else {
      exchange.intake.isAmbiguous = true
      return reply(rejection(.badRequest, exchange), to: exchange, handle)
    }
    if headers.storage.count + exchange.intake.target.count > configuration.maxHeaderBytes {
      return reply(rejection(.headerFieldsTooLarge, exchange), to: exchange, handle)
    }
    guard let announced = headers.bytes("Content-Length"), !headers.contains("Transfer-Encoding")
    else { return .YES }
    // A number that libmicrohttpd could hold but we cannot is too large.
    let length = Int(String(decoding: announced, as: UTF8.self)) ?? Int.max
    if length > configuration.maxBodyBytes {
      let waits = headers.contains("Expect")
      if waits || length - configuration.maxBodyBytes > configuration.maxDiscardedBytes {
        return reply(rejection(.contentTooLarge, exchange), to: exchange, handle)
      }
      exchange.intake.rejection = .contentTooLarge
    } else {
      exchange.intake.body.reserveCapacity(length)
    }
    return .YES
  }

  func readHeaders(_ exchange: Exchange, _ handle: OpaquePointer) {
    exchange.intake.headSeen = true
    exchange.intake.headers.reserve(fields: 12, bytes: 768)
    withUnsafeMutablePointer(to: &exchange.intake) { intake in
      _ = MHD_get_connection_values_n(handle, .HEADER_KIND, Self.headerSeen, intake)
    }
  }

  private static let headerSeen: MHD_KeyValueIteratorN = {
    intake, _, name, nameSize, value, valueSize in
    guard let intake, let name else { return .YES }
    let fields = intake.assumingMemoryBound(to: Exchange.Intake.self)
    fields.pointee.headers.add(
      name: UnsafeRawBufferPointer(start: name, count: nameSize),
      value: UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : valueSize))
    if let value, isOneLine(name: name, size: nameSize, value: value) {
      fields.pointee.fieldBytes +=
        (UnsafeRawPointer(value) - UnsafeRawPointer(name)) + valueSize + 2
    } else {
      fields.pointee.isAmbiguous = true
    }
    return .YES
  }

  /// Whether a field's value stands behind its name with nothing but blanks between, as received.
  ///
  /// Of a field that goes on in a second line, libmicrohttpd 0.9.75 makes one with another name,
  /// elsewhere; a proxy in front may have read a length or a coding there (RFC 9112, section 5.2).
  private static func isOneLine(
    name: UnsafePointer<CChar>, size: Int, value: UnsafePointer<CChar>
  ) -> Bool {
    let gap = UnsafeRawPointer(value) - UnsafeRawPointer(name) - size
    guard gap >= 1, gap <= 64 else { return false }
    return (1..<gap).allSatisfy { name[size + $0] == 32 || name[size + $0] == 9 }
  }

  private func bodyArrived(_ exchange: Exchange, _ bytes: UnsafeRawBufferPointer) -> MHD_Result {
    exchange.intake.received += bytes.count
    if exchange.intake.received > configuration.maxBodyBytes {
      exchange.intake.rejection = .contentTooLarge
      exchange.intake.body = []
      let excess = exchange.intake.received - configuration.maxBodyBytes
      if excess > configuration.maxDiscardedBytes { return .NO }
    }
    if exchange.intake.rejection == nil { exchange.intake.body.append(contentsOf: bytes) }
    return .YES
  }

  /// Hands the whole request to a handler, or the handler's reply to libmicrohttpd.
  private func requestArrived(_ exchange: Exchange, _ handle: OpaquePointer) -> MHD_Result {
    if let response = exchange.takeAnswer() { return reply(response, to: exchange, handle) }
    if let status = exchange.intake.rejection {
      return reply(rejection(status, exchange), to: exchange, handle)
    }
    exchange.connection.deadline.store(.max, ordering: .relaxed)
    exchange.connection.serving.store(1, ordering: .relaxed)
    submit(exchange.takeRequest(), of: exchange)
    let isSuspended = exchange.suspend(handle) {
      phase.load(ordering: .sequentiallyConsistent) == .closing
    }
    if isSuspended { return .YES }
    let response = exchange.takeAnswer() ?? rejection(.serviceUnavailable, exchange)
    return reply(response, to: exchange, handle)
  }

  func rejection(_ status: HTTPStatus, _ exchange: Exchange) -> HTTPResponse {
    exchange.intake.body = []
    return handler.reject(status, request: exchange.takeRequest())
  }
}
