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

  private static func engine(_ pointer: UnsafeMutableRawPointer?) -> Engine? {
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
      daemon.openConnections.add(1, ordering: .sequentiallyConsistent)
      let connection = Connection(
        daemon: daemon, socket: mhd_socket(handle),
        address: mhd_peer(handle).flatMap(SocketAddress.init)?.host ?? "",
        deadline: engine.deadline(engine.configuration.idleTimeout))
      context.pointee = Unmanaged.passRetained(connection).toOpaque()
      engine.connections.add(connection)
    default:
      guard let pointer = context.pointee else { return }
      context.pointee = nil
      let connection = Unmanaged<Connection>.fromOpaque(pointer).takeRetainedValue()
      engine.connections.remove(connection)
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
    connection.deadline.store(
      engine.deadline(engine.configuration.idleTimeout), ordering: .relaxed)
    let active = engine.activeRequests.subtract(1, ordering: .sequentiallyConsistent).newValue
    if active == 0, engine.phase.load(ordering: .sequentiallyConsistent) == .draining {
      engine.endDrainIfDone(at: engine.now.load(ordering: .relaxed))
    }
  }

  static let access: MHD_AccessHandlerCallback = {
    cls, handle, _, method, _, data, size, context in
    guard let engine = engine(cls), let handle, let size, let pointer = context?.pointee else {
      return .NO
    }
    let exchange = Unmanaged<Exchange>.fromOpaque(pointer).takeUnretainedValue()
    if !exchange.intake.headSeen {
      if let method { exchange.intake.method = HTTPMethod(rawValue: String(cString: method)) }
      return engine.headArrived(exchange, handle)
    }
    if size.pointee > 0 {
      defer { size.pointee = 0 }
      return engine.bodyArrived(exchange, UnsafeRawBufferPointer(start: data, count: size.pointee))
    }
    return engine.requestArrived(exchange, handle)
  }

  /// Reads the headers and refuses at once what they show to be too large.
  private func headArrived(_ exchange: Exchange, _ handle: OpaquePointer) -> MHD_Result {
    exchange.intake.headSeen = true
    exchange.intake.headers.reserve(fields: 12, bytes: 768)
    withUnsafeMutablePointer(to: &exchange.intake.headers) { headers in
      _ = MHD_get_connection_values_n(handle, .HEADER_KIND, Self.headerSeen, headers)
    }
    exchange.connection.deadline.store(
      deadline(configuration.requestReadTimeout), ordering: .relaxed)

    let headers = exchange.intake.headers
    if headers.storage.count + exchange.intake.target.count > configuration.maxHeaderBytes {
      return reply(rejection(.headerFieldsTooLarge, exchange), to: exchange, handle)
    }
    guard let announced = headers.bytes("Content-Length"), !headers.contains("Transfer-Encoding")
    else { return .YES }
    // libmicrohttpd has refused what is not a number; one it could hold but we cannot is too large.
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

  private static let headerSeen: MHD_KeyValueIteratorN = {
    headers, _, name, nameSize, value, valueSize in
    guard let headers, let name else { return .YES }
    headers.assumingMemoryBound(to: HTTPHeaders.self).pointee.add(
      name: UnsafeRawBufferPointer(start: name, count: nameSize),
      value: UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : valueSize))
    return .YES
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
    submit(exchange)
    let isSuspended = exchange.suspend(handle) {
      phase.load(ordering: .sequentiallyConsistent) == .closing
    }
    if isSuspended { return .YES }
    let response = exchange.takeAnswer() ?? rejection(.serviceUnavailable, exchange)
    return reply(response, to: exchange, handle)
  }

  private func rejection(_ status: HTTPStatus, _ exchange: Exchange) -> HTTPResponse {
    exchange.intake.body = []
    return handler.reject(status, request: exchange.takeRequest())
  }
}
