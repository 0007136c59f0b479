#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The frames that a client sends (RFC 9113, section 6).
extension ClientSession {
  /// The window of a connection and of its streams until the peer says otherwise (section 6.9.2).
  static let initialWindow = 65_535

  /// The preface, and SETTINGS: no table for the fields of replies, so that each block is read by
  /// itself; no pushes; no priorities (RFC 9218, section 2.1).
  func sendPreface() {
    let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    output.append(preface.count) { out in
      out.update(from: preface, count: preface.count)
      return preface.count
    }
    sendFrame(.settings, payload: [0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1])
  }

  func sendFrame(_ kind: FrameKind, flags: UInt8 = 0, stream: Int32 = 0, payload: [UInt8] = []) {
    output.append(FrameKind.headerSize + payload.count) { out in
      kind.writeHeader(to: out, count: payload.count, flags: flags, stream: stream)
      (out + FrameKind.headerSize).update(from: payload, count: payload.count)
      return FrameKind.headerSize + payload.count
    }
  }

  func sendPing() {
    sendFrame(.ping, payload: [UInt8](repeating: 0, count: 8))
  }

  func sendReset(_ stream: Int32, _ code: HTTP2ErrorCode) {
    sendFrame(.resetStream, stream: stream, payload: Self.bytes(code.rawValue))
  }

  func sendWindow(_ count: Int, stream: Int32 = 0) {
    sendFrame(
      .windowUpdate, stream: stream, payload: Self.bytes(UInt32(truncatingIfNeeded: count)))
  }

  /// GOAWAY: no stream of the peer has been acted on.
  func endConnection(_ code: HTTP2ErrorCode) {
    sendFrame(.goAway, payload: Self.bytes(0) + Self.bytes(code.rawValue))
  }

  private static func bytes(_ word: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) }
  }

  // MARK: Requests

  /// `:path` differs from request to request, and may name a device.
  static let pathName = FieldEncoder.literalName(Array(":path".utf8), .never)

  /// HEADERS, with CONTINUATION where one frame does not hold the fields.
  func sendHeaders(
    of request: HTTP2RequestBatch.Request, _ job: BatchJob.Pointer, _ stream: Int32
  ) {
    var announcement: [UInt8] = []
    let set = Int(request.fieldSet)
    if !encoder.isValid(job.pointee.blocks[set]) {
      encoder.begin(&announcement)
      job.pointee.blocks[set] = encoder.block(job.pointee.fieldSets[set])
    }
    let endsStream = request.body.isEmpty ? FrameKind.endStream : 0
    let room = announcement.count + job.pointee.mostBlockBytes(of: request)
    if room <= FrameReader.mostPayload {
      output.append(FrameKind.headerSize + room) { out in
        let block = out + FrameKind.headerSize
        let count = Self.write(announcement, request, job, to: block)
        FrameKind.headers.writeHeader(
          to: out, count: count, flags: FrameKind.endHeaders | endsStream, stream: stream)
        return FrameKind.headerSize + count
      }
      return
    }
    let block = [UInt8](unsafeUninitializedCapacity: room) { out, count in
      if let base = out.baseAddress { count = Self.write(announcement, request, job, to: base) }
    }
    var (rest, kind, flags) = (block[...], FrameKind.headers, endsStream)
    while !rest.isEmpty {
      let part = rest.prefix(FrameReader.mostPayload)
      rest = rest.dropFirst(part.count)
      if rest.isEmpty { flags |= FrameKind.endHeaders }
      sendFrame(kind, flags: flags, stream: stream, payload: Array(part))
      (kind, flags) = (.continuation, 0)
    }
  }

  /// - Returns: The number of bytes written.
  @inline(__always)
  private static func write(
    _ announcement: [UInt8], _ request: HTTP2RequestBatch.Request, _ job: BatchJob.Pointer,
    to out: UnsafeMutablePointer<UInt8>
  ) -> Int {
    var at = out
    func copy(_ bytes: UnsafeBufferPointer<UInt8>) {
      guard let base = bytes.baseAddress else { return }
      at.update(from: base, count: bytes.count)
      at += bytes.count
    }
    func write(_ text: HTTP2ByteRange) {
      at += FieldEncoder.write(
        job.pointee.bytes + Int(text.offset), Int(text.count), to: at)
    }
    if !announcement.isEmpty { announcement.withUnsafeBufferPointer(copy) }
    job.pointee.blocks[Int(request.fieldSet)].withParts { head, tail in
      copy(head)
      pathName.withUnsafeBufferPointer(copy)
      write(request.path)
      copy(tail)
    }
    for extra in 0..<Int(request.extraCount) {
      let field = job.pointee.extras[Int(request.firstExtra) + extra]
      job.pointee.names[Int(field.name)].withUnsafeBufferPointer(copy)
      write(field.value)
    }
    return at - out
  }

  // MARK: Bodies

  /// Whether a body can go on.
  var canSendBody: Bool { window > 0 && !waitingBodies.isEmpty }

  /// Goes on with the bodies that a window or a full buffer has held up.
  func sendBodies() {
    while !output.isFull, canSendBody, let position = waitingBodies.popFirst() {
      guard streams.slots[position].isWaiting else { continue }
      streams.slots[position].isWaiting = false
      sendBody(position)
    }
  }

  /// Sends as much of a body as windows and buffer take.
  @inline(__always)
  func sendBody(_ position: Int) {
    let slot = streams.slots + position
    guard let job = slot.pointee.job else { return }
    while slot.pointee.hasBodyLeft {
      let left = Int(slot.pointee.bodyEnd - slot.pointee.bodyNext)
      let count = min(left, window, slot.pointee.window, FrameReader.mostPayload)
      // With a new window of its own the stream stands in the list again.
      guard slot.pointee.window > 0 else { return }
      guard count > 0, !output.isFull else { return continueLater(position) }
      output.append(FrameKind.headerSize + count) { out in
        FrameKind.data.writeHeader(
          to: out, count: count, flags: count == left ? FrameKind.endStream : 0,
          stream: slot.pointee.stream)
        memcpy(
          out + FrameKind.headerSize, job.pointee.bytes + Int(slot.pointee.bodyNext), count)
        return FrameKind.headerSize + count
      }
      slot.pointee.bodyNext += UInt32(truncatingIfNeeded: count)
      slot.pointee.window -= count
      window -= count
    }
  }

  func continueLater(_ position: Int) {
    guard !streams.slots[position].isWaiting else { return }
    streams.slots[position].isWaiting = true
    waitingBodies.append(position)
  }
}
