import CMicrohttpd
import HTTP2
import Synchronization
import Wire

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

// The callbacks of libmicrohttpd, on the threads of its daemons. For a request, in this order:
// `targetSeen` once the request line is read; `access` with the head, with each piece of the body, at
// the end of the body, and again after the connection was suspended and woken; `completed` in any case.
// `connectionChanged` encloses all requests of a connection.
extension Engine {
  /// The objects lent to libmicrohttpd, recovered from their opaque pointers.
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

  /// Reads the headers, and immediately refuses requests that they show to be too large.
  private func headArrived(
    _ exchange: Exchange, _ handle: OpaquePointer, isVersion10: Bool
  ) -> MHD_Result {
    readHeaders(exchange, handle)
    let headers = exchange.intake.headers
    let isTargetWhole = exchange.intake.target.allSatisfy { $0 > ASCII.blank && $0 != 127 }
    exchange.intake.isChunked = headers.contains("Transfer-Encoding")
    // Every byte of the head must be accounted for: a NUL ends libmicrohttpd's strings early, and
    // it accepts a lone line feed as a line end.
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
    let announced = headers.bytes("Content-Length")
    // A number that libmicrohttpd can hold but `Int` cannot is too large.
    let length = announced.map { Int(String(decoding: $0, as: UTF8.self)) ?? .max }
    // The handler checks the token in any case; without one, only a small body is kept for that.
    if exchange.intake.isChunked || length.map({ $0 > Self.maxUnprovenBody }) ?? false
      || headers.contains("Expect")
    {
      switch handler.look(atHead: exchange.takeRequest()) {
      case .refused(let refusal):
        // A client that waits for 100 (Continue) gets the reply at once; others read it after
        // writing.
        if headers.contains("Expect") { return reply(refusal, to: exchange, handle) }
        exchange.intake.refusal = refusal
      case .passed(let sender): exchange.intake.sender = sender
      }
    }
    guard let length, !exchange.intake.isChunked else { return .YES }
    if length > configuration.maxBodyBytes {
      let waits = headers.contains("Expect")
      if waits || length - configuration.maxBodyBytes > configuration.maxDiscardedBytes {
        return reply(rejection(.contentTooLarge, exchange), to: exchange, handle)
      }
      exchange.intake.rejection = .contentTooLarge
    } else {
      // More only as it arrives, since a length is easily claimed.
      exchange.intake.body.reserveCapacity(min(length, BodyBudget.least))
    }
    return .YES
  }

  /// The maximum announced size in bytes of a body that is received before anything is known of its
  /// sender.
  private static let maxUnprovenBody = 4 * 1024

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

  /// Whether only blanks separate a field's value from its name, as received.
  ///
  /// libmicrohttpd 0.9.75 turns a continuation line into a field with another name elsewhere in
  /// memory; a proxy in front may have read a length or a coding there (RFC 9112, section 5.2).
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
    guard exchange.intake.rejection == nil, exchange.intake.refusal == nil else { return .YES }
    let size = exchange.intake.body.count + bytes.count
    if size > BodyBudget.least {
      let claim =
        exchange.intake.claim
        ?? BodyBudget.Claim(on: configuration.bodyBudget, of: exchange.intake.sender)
      guard size <= claim.share else {
        exchange.intake.rejection = .tooManyRequests
        exchange.intake.body = []
        exchange.intake.claim = nil
        return .YES
      }
      exchange.intake.claim = claim
    }
    exchange.intake.body.append(contentsOf: bytes)
    return .YES
  }

  /// Passes the whole request to a handler, or the handler's reply to libmicrohttpd.
  private func requestArrived(_ exchange: Exchange, _ handle: OpaquePointer) -> MHD_Result {
    if let response = exchange.takeAnswer() { return reply(response, to: exchange, handle) }
    if let refusal = exchange.intake.refusal { return reply(refusal, to: exchange, handle) }
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

extension Engine {
  /// Queues a reply. Call on the connection's thread.
  ///
  /// - Returns: `.NO`, which cuts the connection, if libmicrohttpd does not accept the reply.
  func reply(
    _ response: HTTPResponse, to exchange: Exchange, _ handle: OpaquePointer
  ) -> MHD_Result {
    let connection = exchange.connection
    let created: OpaquePointer?
    var stream: (BodyChannel, @Sendable (HTTPBodyWriter) async throws -> Void)?
    switch response.body {
    case .none: created = MHD_create_response_from_buffer(0, nil, .RESPMEM_PERSISTENT)
    case .bytes(let bytes): created = Self.response(bytes, status: response.status)
    case .cut(let cut):
      connection.end(cut)
      return .NO
    case .stream(let body):
      nonisolated(unsafe) let handle = handle  // the channel's lock guards it from here on
      let sleeper = BodyChannel.Sleeper(
        sleep: { MHD_suspend_connection(handle) }, wake: { connection.worker?.resume(handle) })
      let channel = BodyChannel(sleeper) { [self] in
        deadline(configuration.streamStallTimeout)
      }
      created = MHD_create_response_from_callback(
        UInt64.max, Self.blockSize, Self.bytesWanted,
        Unmanaged.passRetained(channel).toOpaque(), Self.streamReleased)
      if exchange.intake.method != .head { stream = (channel, body) }
    }
    guard let created else { return .NO }
    defer { MHD_destroy_response(created) }

    response.headers.withFields { name, value, _, _ in
      _ = MHD_add_response_header(created, name, value)
    }
    if phase.load(ordering: .sequentiallyConsistent) != .running || exchange.intake.isAmbiguous
      || exchange.intake.isChunked
      || connection.worker?.daemon.isRetired.load(ordering: .relaxed) == true
    {
      MHD_add_response_header(created, "Connection", "close")
    }
    if let (channel, _) = stream {
      connection.deadline.store(.max, ordering: .relaxed)
      connection.stream = channel
    } else {
      connection.deadline.store(deadline(configuration.responseWriteTimeout), ordering: .relaxed)
    }
    let result = MHD_queue_response(handle, UInt32(clamping: response.status.rawValue), created)
    if let (channel, body) = stream, result == .YES {
      channel.start(body)
      // `stop` checks the streams after setting the phase, so one of the two sees the other.
      if phase.load(ordering: .sequentiallyConsistent) != .running { channel.fail(.stopping) }
    }
    return result
  }

  private static func response(_ bytes: [UInt8], status: HTTPStatus) -> OpaquePointer? {
    let carriesNone = status == .noContent || status == .notModified
    let response = bytes.withUnsafeBytes { bytes in
      MHD_create_response_from_buffer(
        carriesNone ? 0 : bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress),
        .RESPMEM_MUST_COPY)
    }
    if carriesNone, let response {
      // libmicrohttpd omits the header for these, but `.bytes` requires it.
      mhd_allow_content_length(response)
      MHD_add_response_header(response, "Content-Length", "0")
    }
    return response
  }

  /// The maximum number of bytes read from a stream at once; must fit into the connection's pool.
  private static let blockSize = 16 * 1024

  private static let bytesWanted: MHD_ContentReaderCallback = { context, _, buffer, size in
    guard let context, let buffer else { return -2 }
    let channel = Unmanaged<BodyChannel>.fromOpaque(context).takeUnretainedValue()
    switch channel.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: size)) {
    case .bytes(let count): return count
    case .later: return 0
    case .end: return -1  // MHD_CONTENT_READER_END_OF_STREAM
    case .failed: return -2  // MHD_CONTENT_READER_END_WITH_ERROR
    }
  }

  private static let streamReleased: MHD_ContentReaderFreeCallback = { context in
    guard let context else { return }
    Unmanaged<BodyChannel>.fromOpaque(context).takeRetainedValue().release()
  }
}

extension HTTPHeaders {
  /// Passes each field as two C strings with their lengths.
  func withFields(_ body: (UnsafePointer<CChar>, UnsafePointer<CChar>, Int, Int) -> Void) {
    storage.withUnsafeBytes { bytes in
      guard let base = bytes.assumingMemoryBound(to: CChar.self).baseAddress else { return }
      for field in fields {
        body(
          base + field.name, base + field.value, field.value - 1 - field.name,
          field.end - field.value)
      }
    }
  }
}

// libmicrohttpd itself refuses a `Content-Length` that it cannot parse, before we see the request.
// Version 0.9.75 then continues as if it had not, and sends its status line and headers twice. It
// logs this in advance, on the connection's thread, which lets us reply first.
extension Engine {
  /// Called with every log message of libmicrohttpd.
  static let libraryComplains: MHD_LogCallback = { cls, _, _ in
    guard let engine = engine(cls), let connection = engine.connectionWithUnseenHead,
      let exchange = connection.exchange
    else { return }
    engine.answerInPlaceOfLibrary(exchange, connection)
  }

  /// The connection of this thread with a complete request head that was not passed to us. A thread
  /// reads one head at a time, so there is only one.
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

  /// Sends the refusal and shuts down the connection's sending side, so that libmicrohttpd's own
  /// reply is not sent. A TLS connection just ends, because only libmicrohttpd can write to it.
  private func answerInPlaceOfLibrary(_ exchange: Exchange, _ connection: Connection) {
    if let handle = connection.handle { readHeaders(exchange, handle) }
    if !isSecure {
      let length = exchange.intake.headers.bytes("Content-Length") ?? []
      let isNumber = !length.isEmpty && length.allSatisfy(\.isDigit)
      // It does not accept a blank after a number either.
      let size = Int(String(decoding: length, as: UTF8.self)) ?? .max
      let isTooLarge = isNumber && size > configuration.maxBodyBytes
      let reply = lastReply(rejection(isTooLarge ? .contentTooLarge : .badRequest, exchange))
      _ = reply.withUnsafeBytes { bytes in
        // Bytes beyond the socket's buffer are lost, but the buffer is otherwise empty.
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

  /// The wire form of a reply after which the connection closes; streams are not supported.
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
