import CNghttp2

extension ServerSession {
  /// Executes a command from a handle of this connection, on the loop.
  func apply(_ command: ServerLoop.Command) {
    guard phase == .open, !isAborting else { return }
    switch command {
    case .respond(let response, let stream): respond(response, to: stream)
    case .sendContinue(let stream): sendContinue(to: stream)
    case .resume(let stream): nghttp2_session_resume_data(session, stream)
    case .reset(let id, let code): if let stream = liveStream(id) { reset(stream, code) }
    case .settings(let limit, let window):
      if let limit { announcedLimit = max(0, min(limit, Int(Int32.max))) }
      if let window { initialWindow = max(0, min(window, Int(Int32.max))) }
      if hasSentSettings { sendSettings() }
    case .goAway(let last, let code, let debugData):
      // nghttp2 requires the id of a stream that a client may open, or 0.
      let stream = last > 0 && last % 2 == 0 ? last - 1 : max(0, last)
      lastAllowedStream = min(lastAllowedStream, stream)
      nghttp2_submit_goaway(
        session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, code, debugData, debugData.count)
    case .shutDown:
      lastAllowedStream = min(
        lastAllowedStream, nghttp2_session_get_last_proc_stream_id(session))
      nghttp2_submit_goaway(
        session, UInt8(NGHTTP2_FLAG_NONE.rawValue), lastAllowedStream, NGHTTP2_NO_ERROR.rawValue,
        nil, 0)
    case .abort: isAborting = true
    case .close: isClosing = true
    case .stall: stall()
    }
    markDirty()
  }

  /// Announces the current limits. The stream limit is masked, see `FrameOutput`.
  func sendSettings() {
    var entries = [
      nghttp2_settings_entry(
        settings_id: Int32(FrameOutput.maskedStreamLimit), value: UInt32(announcedLimit)),
      nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue),
        value: UInt32(initialWindow)),
    ]
    if !hasSentSettings {
      entries.append(
        nghttp2_settings_entry(
          settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue),
          value: UInt32(clamping: runner.core.configuration.maxHeader)))
      // Spares nghttp2 the priority tree (RFC 9218, section 2.1).
      entries.append(
        nghttp2_settings_entry(
          settings_id: Int32(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES.rawValue), value: 1))
    }
    hasSentSettings = true
    nghttp2_submit_settings(
      session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
  }

  /// Streams above this are refused.
  var enforcedLimit: Int { runner.core.configuration.enforcedStreams ?? announcedLimit }

  private func liveStream(_ id: Int32) -> ServerStream? {
    let position = Int(bitPattern: nghttp2_session_get_stream_user_data(session, id)) - 1
    guard position >= 0, position < table.count else { return nil }
    let stream = table[position]
    return stream.isLive && stream.id == id ? stream : nil
  }

  /// Resets a stream for a reason of ours, for which the client is not to blame.
  func reset(_ stream: ServerStream, _ code: UInt32) {
    stream.isResetByUs = true
    nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id, code)
  }

  private func respond(_ response: HTTP2ServerResponse, to id: Int32) {
    guard let stream = liveStream(id), !stream.isAnswered else { return }
    stream.isAnswered = true
    release(stream)
    // A delivered body belongs to the handler; the rest is not needed.
    stream.body = []
    // A streamed reply has time limits of its own. The rest of the request keeps its own.
    let readBy =
      response.source == nil
      ? runner.now + runner.core.configuration.replyTimeout.nanoseconds : .max
    stream.deadline = stream.isComplete ? readBy : min(stream.deadline, readBy)
    stream.isDelivered = true
    stream.source = response.source
    stream.reply = response.body
    stream.replyNext = 0
    stream.replyCut = response.truncatedBody.map { max(0, min($0, response.body.count)) }

    var status = Self.digits(response.status)
    var length = response.body.isEmpty ? [] : Array(String(response.body.count).utf8)
    if !length.isEmpty, response.fields.firstBytes("content-length") != nil { length = [] }
    let count = 1 + response.fields.count + (length.isEmpty ? 0 : 1)
    var headers = response.fields
    headers.bytes.withUnsafeMutableBufferPointer { bytes in
      withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: count) { pairs in
        guard let base = pairs.baseAddress else { return }
        status.withUnsafeMutableBufferPointer { status in
          length.withUnsafeMutableBufferPointer { length in
            (base + 0).initialize(to: Self.pair(Self.statusName, status))
            for (index, entry) in headers.entries.enumerated() {
              guard let start = bytes.baseAddress.map({ $0 + Int(entry.offset) }) else { return }
              // Values such as apns-id differ each time and would only churn HPACK's table.
              (base + 1 + index).initialize(
                to: nghttp2_nv(
                  name: start, value: start + Int(entry.nameCount), namelen: Int(entry.nameCount),
                  valuelen: Int(entry.valueCount), flags: UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue)))
            }
            if !length.isEmpty {
              (base + count - 1).initialize(to: Self.pair(Self.lengthName, length))
            }
            submit(stream, base, count)
          }
        }
      }
    }
  }

  private func submit(_ stream: ServerStream, _ pairs: UnsafePointer<nghttp2_nv>, _ count: Int) {
    let code: Int32
    if stream.reply.isEmpty, stream.source == nil {
      code = nghttp2_submit_response(session, stream.id, pairs, count, nil)
    } else {
      var body = nghttp2_data_provider(
        source: nghttp2_data_source(fd: Int32(truncatingIfNeeded: stream.position)),
        read_callback: Self.readReply)
      code = nghttp2_submit_response(session, stream.id, pairs, count, &body)
    }
    if code != 0 {
      nghttp2_submit_rst_stream(
        session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id, NGHTTP2_INTERNAL_ERROR.rawValue)
    }
  }

  private func sendContinue(to id: Int32) {
    guard let stream = liveStream(id), !stream.isAnswered, !stream.isComplete else { return }
    var digits = Self.digits(of: 100)
    digits.withUnsafeMutableBufferPointer { digits in
      var pair = Self.pair(Self.statusName, digits)
      nghttp2_submit_headers(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, nil, &pair, 1, nil)
    }
  }

  private static let statusName: StaticString = ":status"
  private static let lengthName: StaticString = "content-length"

  private static func pair(
    _ name: StaticString, _ value: UnsafeMutableBufferPointer<UInt8>
  ) -> nghttp2_nv {
    nghttp2_nv(
      name: UnsafeMutablePointer(mutating: name.utf8Start), value: value.baseAddress,
      namelen: name.utf8CodeUnitCount, valuelen: value.count,
      flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue))
  }

  private static func digits(_ status: Int) -> [UInt8] {
    digits(of: (200...599).contains(status) ? status : 500)
  }

  private static func digits(of number: Int) -> [UInt8] {
    [UInt8(48 + number / 100), UInt8(48 + number / 10 % 10), UInt8(48 + number % 10)]
  }
}
