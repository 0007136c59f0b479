/// Splits what a connection brings into frames (RFC 9113, section 4.1). For one thread;
/// `deallocate` frees it.
struct FrameReader {
  struct Frame {
    let kind: UInt8
    let flags: UInt8
    let stream: Int32
    /// Valid until the next read.
    let payload: UnsafeBufferPointer<UInt8>
  }

  /// The longest payload: we announce no other SETTINGS_MAX_FRAME_SIZE.
  static let mostPayload = 16_384
  private static let headerSize = 9
  private static let capacity = 64 * 1024 + headerSize + mostPayload

  private let base = UnsafeMutablePointer<UInt8>.allocate(capacity: FrameReader.capacity)
  private var start = 0
  private var end = 0

  func deallocate() { base.deallocate() }

  /// Room for more input; ``didRead(_:)`` tells how much of it was used.
  mutating func room() -> UnsafeMutableRawBufferPointer {
    if start > 0 {
      base.update(from: base + start, count: end - start)
      (start, end) = (0, end - start)
    }
    return UnsafeMutableRawBufferPointer(start: base + end, count: Self.capacity - end)
  }

  mutating func didRead(_ count: Int) { end += count }

  enum Next {
    case frame(Frame)
    /// The rest has not arrived yet.
    case incomplete
    case tooLong
  }

  @inline(__always)
  mutating func next() -> Next {
    guard end - start >= Self.headerSize else { return .incomplete }
    let header = base + start
    let count = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
    guard count <= Self.mostPayload else { return .tooLong }
    guard end - start >= Self.headerSize + count else { return .incomplete }
    start += Self.headerSize + count
    return .frame(
      Frame(
        kind: header[3], flags: header[4],
        stream: Int32(bitPattern: UnsafePointer(header).word(at: 5)) & .max,
        payload: UnsafeBufferPointer(start: header + Self.headerSize, count: count)))
  }
}

extension UnsafePointer<UInt8> {
  /// Four bytes, the highest first.
  @inline(__always)
  func word(at offset: Int) -> UInt32 {
    UInt32(bigEndian: UnsafeRawPointer(self + offset).loadUnaligned(as: UInt32.self))
  }
}
