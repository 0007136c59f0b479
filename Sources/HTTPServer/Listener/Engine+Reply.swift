import CMicrohttpd
import HTTP2
import Synchronization

extension Engine {
  /// Queues a reply; called on the connection's thread.
  ///
  /// - Returns: `.NO`, which cuts the connection, if libmicrohttpd will not take the reply.
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
        sleep: { MHD_suspend_connection(handle) }, wake: { MHD_resume_connection(handle) })
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
      || connection.daemon?.isRetired.load(ordering: .relaxed) == true
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
      // `stop` looks at the streams after it has set the phase, so one of the two sees the other.
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
      // libmicrohttpd leaves the header out for these; `.bytes` asks for it.
      mhd_allow_content_length(response)
      MHD_add_response_header(response, "Content-Length", "0")
    }
    return response
  }

  /// How much of a stream is taken at once; must fit the connection's pool.
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
  /// Lends each field as two C strings with their lengths.
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
