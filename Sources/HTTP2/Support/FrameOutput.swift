import CNghttp2

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Gathers frames, those of a server's nghttp2 session or our own, and writes them 16 KiB at a time,
/// one TLS record each, which makes many small frames cheap. For one thread; accesses are not checked
/// at run time, as each frame makes several.
final class FrameOutput {
  /// A SETTINGS identifier that stands for MAX_CONCURRENT_STREAMS until the frame is gathered.
  ///
  /// nghttp2 answers a stream above the announced limit by ending the connection; a server that
  /// wants to refuse just the stream keeps the limit from nghttp2 by announcing it so.
  static let maskedStreamLimit: UInt16 = 0xF003

  private static let target = 16 * 1024
  /// Room for the target and one more frame.
  private static let usualCapacity = 48 * 1024

  @exclusivity(unchecked) private var base: UnsafeMutableRawPointer?
  @exclusivity(unchecked) private var capacity = 0
  @exclusivity(unchecked) private var start = 0
  @exclusivity(unchecked) private var end = 0
  /// Whether the last write waits for the socket.
  private(set) var isBlocked = false
  /// Bytes written so far.
  private(set) var written: UInt64 = 0

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
  /// Number of bytes that wait to be written.
  var waiting: Int { end - start }
  /// Whether a write is worth its while.
  var isFull: Bool { waiting >= Self.target }

  /// Frees the buffer while there is nothing to send.
  func release() {
    guard isEmpty, let buffer = base else { return }
    buffer.deallocate()
    base = nil
    capacity = 0
  }

  /// Appends what `write` makes, of at most `room` bytes; it returns their number.
  @inline(__always)
  func append(_ room: Int, _ write: (UnsafeMutablePointer<UInt8>) -> Int) {
    if end + room > capacity { makeRoom(room) }
    guard let base else { return }
    let written = write((base + end).assumingMemoryBound(to: UInt8.self))
    assert(written <= room, "what is appended has its room")
    end += written
  }

  /// Moves what waits to the front of the buffer, or of a larger one.
  private func makeRoom(_ room: Int) {
    var needed = max(Self.usualCapacity, waiting + room)
    if needed > capacity { needed = max(needed, 2 * capacity) }
    let old = base
    if needed > capacity {
      base = .allocate(byteCount: needed, alignment: 64)
      capacity = needed
    }
    if let base, let old { memmove(base, old + start, waiting) }
    if old != base { old?.deallocate() }
    (start, end) = (0, waiting)
  }

  /// Gathers frames until the target is reached.
  ///
  /// - Returns: Whether nghttp2 could.
  func gather(from session: OpaquePointer?) -> Bool {
    var frame: UnsafePointer<UInt8>?
    while !isFull {
      let count = nghttp2_session_mem_send(session, &frame)
      guard count > 0, let frame else { return count == 0 }
      append(count) {
        memcpy($0, frame, count)
        Self.unmask($0, count)
        return count
      }
    }
    return true
  }

  /// Writes what was gathered.
  func flush(to channel: TLSChannel) -> Outcome {
    guard let buffer = base, start < end else { return .drained }
    let wasFull = end >= Self.target
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
    return wasFull ? .more : .drained
  }

  /// Takes what was gathered, without writing it.
  func take() -> [UInt8] {
    defer { (start, end) = (0, 0) }
    guard let base else { return [] }
    return Array(UnsafeRawBufferPointer(start: base + start, count: end - start))
  }

  /// Each chunk that nghttp2 hands out starts with a frame header (RFC 9113, section 4.1). SETTINGS
  /// have entries of two bytes identifier, four bytes value.
  @inline(__always)
  private static func unmask(_ frame: UnsafeMutablePointer<UInt8>, _ count: Int) {
    guard count >= 9, frame[3] == 4 else { return }
    for entry in stride(from: 9, to: count - 5, by: 6)
    where frame[entry] == 0xF0 && frame[entry + 1] == 0x03 {
      frame[entry] = 0
    }
  }
}
