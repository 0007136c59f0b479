import CNghttp2

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Gathers a session's frames and writes them 16 KiB at a time, one TLS record each, which makes
/// many small frames cheap. For one thread.
final class FrameOutput {
  /// A SETTINGS identifier that stands for MAX_CONCURRENT_STREAMS until the frame is gathered.
  ///
  /// nghttp2 answers a stream above the announced limit by ending the connection; a server that
  /// wants to refuse just the stream keeps the limit from nghttp2 by announcing it so.
  static let maskedStreamLimit: UInt16 = 0xF003

  private static let target = 16 * 1024
  /// Room for the target and one more frame.
  private static let capacity = 48 * 1024

  private var base: UnsafeMutableRawPointer?
  private var start = 0
  private var end = 0
  /// Whether the last write waits for the socket.
  private(set) var isBlocked = false
  /// Bytes written so far.
  private(set) var written: UInt64 = 0
  /// The highest stream whose HEADERS were gathered.
  private(set) var lastHeadersStream: Int32 = 0
  /// The error code of a GOAWAY gathered, other than NO_ERROR.
  private(set) var goAwayCode: UInt32?

  enum Outcome {
    /// Everything was written.
    case drained
    /// The target was reached and written; there may be more.
    case more
    case blocked
    /// See the channel's `failure`.
    case failed
  }

  deinit { base?.deallocate() }

  var isEmpty: Bool { start == end }

  /// Frees the buffer while there is nothing to send.
  func release() {
    guard isEmpty, let buffer = base else { return }
    buffer.deallocate()
    base = nil
  }

  /// Gathers frames until the target is reached.
  ///
  /// - Returns: Whether nghttp2 could.
  func gather(from session: OpaquePointer?) -> Bool {
    var frame: UnsafePointer<UInt8>?
    while end < Self.target {
      let count = nghttp2_session_mem_send(session, &frame)
      guard count > 0, let frame else { return count == 0 }
      guard count <= Self.capacity - end else { return false }
      let buffer = base ?? allocate()
      memcpy(buffer + end, frame, count)
      if count >= 9 {
        inspect((buffer + end).assumingMemoryBound(to: UInt8.self), count)
      }
      end += count
    }
    return true
  }

  /// Writes what was gathered.
  func flush(to channel: TLSChannel) -> Outcome {
    guard let buffer = base, start < end else { return .drained }
    let isFull = end >= Self.target
    while start < end {
      let written = channel.write(buffer + start, count: min(end - start, Self.target))
      guard written > 0 else {
        isBlocked = written == 0
        return written == 0 ? .blocked : .failed
      }
      start += written
      self.written &+= UInt64(written)
    }
    start = 0
    end = 0
    isBlocked = false
    return isFull ? .more : .drained
  }

  /// Takes what was gathered, without writing it.
  func take() -> [UInt8] {
    defer { (start, end) = (0, 0) }
    guard let base else { return [] }
    return Array(UnsafeRawBufferPointer(start: base + start, count: end - start))
  }

  private func allocate() -> UnsafeMutableRawPointer {
    let buffer = UnsafeMutableRawPointer.allocate(byteCount: Self.capacity, alignment: 64)
    base = buffer
    return buffer
  }

  /// Each chunk that nghttp2 hands out starts with a frame header (RFC 9113, section 4.1).
  @inline(__always)
  private func inspect(_ frame: UnsafeMutablePointer<UInt8>, _ count: Int) {
    switch frame[3] {
    case 1:  // HEADERS
      lastHeadersStream = Int32(bitPattern: Self.word(frame + 5) & 0x7FFF_FFFF)
    case 4:  // SETTINGS: entries of two bytes identifier, four bytes value
      for entry in stride(from: 9, to: count - 5, by: 6)
      where frame[entry] == 0xF0 && frame[entry + 1] == 0x03 {
        frame[entry] = 0
      }
    case 7 where count >= 17:  // GOAWAY
      let code = Self.word(frame + 13)
      if code != 0 { goAwayCode = code }
    default: break
    }
  }

  @inline(__always)
  private static func word(_ bytes: UnsafePointer<UInt8>) -> UInt32 {
    UInt32(bytes[0]) << 24 | UInt32(bytes[1]) << 16 | UInt32(bytes[2]) << 8 | UInt32(bytes[3])
  }
}
