/// The frames that a client receives (RFC 9113, sections 5 and 6). A peer that breaks the rules is sent
/// GOAWAY, and the connection ends.
extension ClientSession {
  /// A header block in several frames.
  struct PartialBlock {
    let stream: Int32
    let endsStream: Bool
    var bytes: [UInt8]
    var frames = 1
  }

  /// A header block of more bytes, or in more frames, ends the connection.
  private static let mostBlockBytes = 256 * 1024
  private static let mostBlockFrames = 64
  /// The same when as many bytes wait for a peer that does not read while it wants answers.
  private static let mostWaiting = 256 * 1024

  func handleFrames() throws(HTTP2ConnectionError) {
    while true {
      switch reader.next() {
      case .incomplete: return
      case .tooLong: throw broken(.frameSizeError, "a frame is too long")
      case .frame(let frame): try handle(frame)
      }
    }
  }

  private func broken(_ code: HTTP2ErrorCode, _ reason: String) -> HTTP2ConnectionError {
    endConnection(code)
    return HTTP2ConnectionError(.protocolViolation, "\(endpoint) broke HTTP/2: \(reason)")
  }

  private func handle(_ frame: FrameReader.Frame) throws(HTTP2ConnectionError) {
    let kind = FrameKind(rawValue: frame.kind)
    guard block == nil || kind == .continuation && frame.stream == block?.stream else {
      throw broken(.protocolError, "a header block is interrupted")
    }
    guard status.state != .connecting || kind == .settings else {
      throw broken(.protocolError, "the first frame is not SETTINGS")
    }
    switch kind {
    case .headers: try handleHeaders(frame)
    case .data: try handleData(frame)
    case .resetStream: try handleReset(frame)
    case .windowUpdate: try handleWindowUpdate(frame)
    case .settings: try handleSettings(frame)
    case .ping: try handlePing(frame)
    case .goAway: try handleGoAway(frame)
    case .continuation: try handleContinuation(frame)
    case .pushPromise: throw broken(.protocolError, "PUSH_PROMISE, which we have forbidden")
    case .priority, nil: break
    }
  }

  /// Requires that a frame is for a stream that we have opened.
  private func requireOpened(_ frame: FrameReader.Frame) throws(HTTP2ConnectionError) {
    let isOurs = frame.stream & 1 == 1 && (nextStream < 0 || frame.stream < nextStream)
    guard isOurs, frame.stream >= configuration.firstStreamID else {
      throw broken(.protocolError, "a frame for a stream that was never opened")
    }
  }

  private func requireConnection(_ frame: FrameReader.Frame) throws(HTTP2ConnectionError) {
    guard frame.stream == 0 else {
      throw broken(.protocolError, "a frame of the connection names a stream")
    }
  }

  private func requireLength(_ isRight: Bool) throws(HTTP2ConnectionError) {
    guard isRight else { throw broken(.frameSizeError, "a frame has a wrong length") }
  }

  /// The payload without its padding.
  @inline(__always)
  private func content(
    of frame: FrameReader.Frame
  ) throws(HTTP2ConnectionError) -> UnsafeBufferPointer<UInt8> {
    guard frame.flags & FrameKind.padded != 0 else { return frame.payload }
    try requireLength(!frame.payload.isEmpty)
    let padding = Int(frame.payload[0])
    guard padding < frame.payload.count else {
      throw broken(.protocolError, "a frame is all padding")
    }
    return UnsafeBufferPointer(rebasing: frame.payload[1..<(frame.payload.count - padding)])
  }

  // MARK: Replies

  private func handleHeaders(_ frame: FrameReader.Frame) throws(HTTP2ConnectionError) {
    try requireOpened(frame)
    var bytes = try content(of: frame)
    if frame.flags & FrameKind.hasPriority != 0 {
      try requireLength(bytes.count >= 5)
      bytes = UnsafeBufferPointer(rebasing: bytes[5...])
    }
    let endsStream = frame.flags & FrameKind.endStream != 0
    guard frame.flags & FrameKind.endHeaders == 0 else {
      return try handleBlock(bytes, frame.stream, endsStream)
    }
    block = PartialBlock(stream: frame.stream, endsStream: endsStream, bytes: Array(bytes))
  }

  private func handleContinuation(_ frame: FrameReader.Frame) throws(HTTP2ConnectionError) {
    guard var known = block else {
      throw broken(.protocolError, "CONTINUATION without HEADERS")
    }
    known.bytes.append(contentsOf: frame.payload)
    known.frames += 1
    guard known.bytes.count <= Self.mostBlockBytes, known.frames <= Self.mostBlockFrames else {
      throw broken(.enhanceYourCalm, "a header block is too long")
    }
    guard frame.flags & FrameKind.endHeaders != 0 else {
      block = known
      return
    }
    block = nil
    try known.bytes.withUnsafeBufferPointer { bytes throws(HTTP2ConnectionError) in
      try handleBlock(bytes, known.stream, known.endsStream)
    }
  }

  private func handleBlock(
    _ bytes: UnsafeBufferPointer<UInt8>, _ stream: Int32, _ endsStream: Bool
  ) throws(HTTP2ConnectionError) {
    // Without a table the block of a stream that has ended leaves no trace.
    guard let position = streams.position(of: stream) else { return }
    let slot = streams.slots + position
    guard let job = slot.pointee.job else { return }
    if slot.pointee.status != 0 {
      // Trailers.
      guard endsStream else { return reset(position, .protocolError) }
      return finish(position)
    }
    let reply: ReplyDecoder.Reply
    do throws(ReplyDecoder.Failure) {
      reply = try decoder.read(
        bytes, wanted: job.pointee.wanted,
        limit: configuration.maxReplyHeader - slot.pointee.headerBytes)
    } catch {
      switch error {
      case .compression: throw broken(.compressionError, "a header block is not HPACK")
      case .malformed: return reset(position, .protocolError)
      case .tooLarge: return reset(position, .internalError)
      }
    }
    slot.pointee.headerBytes += reply.size
    if (100..<200).contains(reply.status) {
      // The reply itself follows.
      if endsStream || reply.status == 101 { reset(position, .protocolError) }
      return
    }
    slot.pointee.status = reply.status
    // A 304 tells the length of what it leaves out.
    if reply.status != 304, job.pointee.repliesHaveBodies {
      slot.pointee.contentLeft = reply.contentLength
    }
    for header in reply.headers {
      header.value.withUnsafeBufferPointer {
        job.pointee.keep($0, ofHeader: header.index, request: Int(slot.pointee.request))
      }
    }
    if endsStream { finish(position) }
  }

  private func handleData(_ frame: FrameReader.Frame) throws(HTTP2ConnectionError) {
    try requireOpened(frame)
    let bytes = try content(of: frame)
    received += frame.payload.count
    guard received <= Self.initialWindow else {
      throw broken(.flowControlError, "more DATA than the window")
    }
    guard output.waiting <= Self.mostWaiting else {
      throw broken(.enhanceYourCalm, "it sends replies and does not read")
    }
    if received > Self.initialWindow / 2 {
      sendWindow(received)
      received = 0
    }
    guard let position = streams.position(of: frame.stream) else { return }
    let slot = streams.slots + position
    guard let job = slot.pointee.job else { return }
    guard slot.pointee.status != 0 else { return reset(position, .protocolError) }
    let endsStream = frame.flags & FrameKind.endStream != 0
    if let left = slot.pointee.contentLeft { slot.pointee.contentLeft = left - bytes.count }
    slot.pointee.received += UInt32(frame.payload.count)
    guard slot.pointee.received <= Self.initialWindow else {
      return reset(position, .flowControlError)
    }
    if !endsStream, slot.pointee.received > Self.initialWindow / 2 {
      sendWindow(Int(slot.pointee.received), stream: frame.stream)
      slot.pointee.received = 0
    }
    if !(200..<300).contains(slot.pointee.status) || job.pointee.keepsSuccessBodies {
      let room = configuration.maxReplyBody - streams.bodies[position].count
      streams.bodies[position].append(contentsOf: bytes.prefix(max(0, room)))
      if bytes.count > room {
        if !endsStream || slot.pointee.hasBodyLeft { sendReset(frame.stream, .cancel) }
        return end(position, nil, isTruncated: true)
      }
    }
    if endsStream { finish(position) }
  }

  /// Ends a stream at the end of its reply, which has the length that it has told (section 8.1.1).
  private func finish(_ position: Int) {
    guard streams.slots[position].contentLeft ?? 0 == 0 else {
      return reset(position, .protocolError)
    }
    complete(position)
  }

  /// Fails a stream of whose reply something is wrong.
  private func reset(_ position: Int, _ code: HTTP2ErrorCode) {
    sendReset(streams.slots[position].stream, code)
    end(position, .reset(code: code.rawValue))
  }

  private func handleReset(_ frame: FrameReader.Frame) throws(HTTP2ConnectionError) {
    try requireOpened(frame)
    try requireLength(frame.payload.count == 4)
    guard let position = streams.position(of: frame.stream) else { return }
    let code = frame.word(at: 0)
    let isRefusal = code == HTTP2ErrorCode.refusedStream.rawValue
    end(position, isRefusal ? .refused : .reset(code: code))
  }

  // MARK: The connection

  private func handleSettings(_ frame: FrameReader.Frame) throws(HTTP2ConnectionError) {
    try requireConnection(frame)
    if frame.flags & FrameKind.acknowledges != 0 {
      try requireLength(frame.payload.isEmpty)
      guard status.state != .connecting else {
        throw broken(.protocolError, "the first frame is not SETTINGS")
      }
      return
    }
    try requireLength(frame.payload.count % 6 == 0)
    var newWindow: UInt32?
    for entry in stride(from: 0, to: frame.payload.count, by: 6) {
      let value = frame.word(at: entry + 2)
      switch Int(frame.payload[entry]) << 8 | Int(frame.payload[entry + 1]) {
      case 1: encoder.setLimit(Int(value))
      case 2:
        guard value == 0 else { throw broken(.protocolError, "a server enables pushes") }
      case 3: status.peerStreamLimit = Int(value)
      case 4:
        guard value <= Int32.max else {
          throw broken(.flowControlError, "a window in SETTINGS is too large")
        }
        newWindow = value
      case 5:
        guard (16_384...16_777_215).contains(value) else {
          throw broken(.protocolError, "a wrong frame size in SETTINGS")
        }
      default: break
      }
    }
    if let newWindow { try setStreamWindow(newWindow) }
    // Without a word about it there is no limit (section 6.5.2).
    if status.peerStreamLimit == nil { status.peerStreamLimit = Int(UInt32.max) }
    streamLimit = min(status.peerStreamLimit ?? 0, configuration.maxConcurrentStreams)
    if status.state == .connecting {
      status.state = .ready
      lastProgress = now
    }
    try answer(.settings, [])
  }

  /// A change holds for open streams, below zero too (section 6.9.2).
  private func setStreamWindow(_ value: UInt32) throws(HTTP2ConnectionError) {
    let change = Int(value) - streamWindow
    streamWindow = Int(value)
    guard change != 0 else { return }
    for position in streams.openSlots {
      let slot = streams.slots + position
      slot.pointee.window += change
      guard slot.pointee.window <= Int32.max else {
        throw broken(.flowControlError, "a window is too large")
      }
      if slot.pointee.hasBodyLeft, slot.pointee.window > 0 { continueLater(position) }
    }
  }

  private func handlePing(_ frame: FrameReader.Frame) throws(HTTP2ConnectionError) {
    try requireConnection(frame)
    try requireLength(frame.payload.count == 8)
    guard frame.flags & FrameKind.acknowledges == 0 else {
      pingSentAt = nil
      return
    }
    try answer(.ping, Array(frame.payload))
  }

  private func answer(_ kind: FrameKind, _ payload: [UInt8]) throws(HTTP2ConnectionError) {
    guard output.waiting <= Self.mostWaiting else {
      throw broken(.enhanceYourCalm, "it asks for answers and does not read them")
    }
    sendFrame(kind, flags: FrameKind.acknowledges, payload: payload)
  }

  private func handleGoAway(_ frame: FrameReader.Frame) throws(HTTP2ConnectionError) {
    try requireConnection(frame)
    try requireLength(frame.payload.count >= 8)
    let last = Int32(bitPattern: frame.word(at: 0)) & .max
    let known = status.goAway
    if let known, last > known.lastStreamID {
      throw broken(.protocolError, "GOAWAY takes back what one before it has refused")
    }
    status.goAway = HTTP2GoAway(
      lastStreamID: last, code: frame.word(at: 4),
      debugData: Array(frame.payload.dropFirst(8).prefix(4096)))
    beginDraining()
    guard known?.lastStreamID != last else { return }
    for position in streams.openSlots where streams.slots[position].stream > last {
      end(position, .refused)
    }
  }

  private func handleWindowUpdate(_ frame: FrameReader.Frame) throws(HTTP2ConnectionError) {
    try requireLength(frame.payload.count == 4)
    let count = Int(frame.word(at: 0) & 0x7FFF_FFFF)
    guard frame.stream != 0 else {
      guard count > 0 else { throw broken(.protocolError, "WINDOW_UPDATE of nothing") }
      window += count
      guard window <= Int32.max else {
        throw broken(.flowControlError, "a window is too large")
      }
      return
    }
    try requireOpened(frame)
    guard let position = streams.position(of: frame.stream) else { return }
    let slot = streams.slots + position
    guard count > 0 else { return reset(position, .protocolError) }
    slot.pointee.window += count
    guard slot.pointee.window <= Int32.max else { return reset(position, .flowControlError) }
    if slot.pointee.hasBodyLeft, slot.pointee.window > 0 { continueLater(position) }
  }
}

extension FrameReader.Frame {
  /// Four bytes of the payload, which must have them.
  @inline(__always)
  func word(at offset: Int) -> UInt32 {
    payload.baseAddress.map { $0.word(at: offset) } ?? 0
  }
}
