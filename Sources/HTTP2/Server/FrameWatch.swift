import CNghttp2

/// Follows the frames of a client ahead of nghttp2, and counts those that cause work without
/// advancing a request. A pure value: its input is bytes and a time, its output a verdict; how the
/// bytes are split makes no difference.
struct FrameWatch: Sendable {
  /// The reason that a connection is ended by GOAWAY.
  enum Violation: String, Error, Sendable {
    /// PING, SETTINGS, PRIORITY, WINDOW_UPDATE, CONTINUATION, frames of unknown types, DATA with
    /// next to nothing in it, streams above the limit.
    case controlFrames = "too many control frames or empty frames"
    /// Streams opened and reset, or used so that the server has to reset them.
    case resets = "too many streams that were reset"
    case headerBlock = "a header block far over the limit"
    /// A frame that nghttp2 ignores, because it need not process priorities.
    case priorityOfConnection = "PRIORITY on the connection"
    /// A frame that nghttp2 ignores, because it does not remember closed streams.
    case closedStream = "HEADERS on a stream that has ended"

    /// The code of GOAWAY (RFC 9113, section 7).
    var code: UInt32 {
      switch self {
      case .controlFrames, .resets, .headerBlock: NGHTTP2_ENHANCE_YOUR_CALM.rawValue
      case .priorityOfConnection: NGHTTP2_PROTOCOL_ERROR.rawValue
      case .closedStream: NGHTTP2_STREAM_CLOSED.rawValue
      }
    }
  }

  /// The length of the client's preface ahead of its first frame (RFC 9113, section 3.4); nghttp2
  /// verifies it.
  private static let prefaceLength = 24
  /// DATA with less content than this counts as empty unless it ends the request.
  private static let smallContent = 64
  /// Number of overhead frames that a request and its reply may cause: acknowledgements,
  /// WINDOW_UPDATEs for stream and connection, a PING, a PRIORITY.
  private static let creditPerRequest = 4

  private let maxBlock: Int
  private let maxCredit: Int
  private var controlFrames: RateMeter
  private var resets: RateMeter
  private var credit = 0

  /// Bytes to skip until the next frame's header.
  private var left = FrameWatch.prefaceLength
  private var headerCount = 0
  /// Length, type and flags of the frame whose header is being read, and its stream.
  private var header: UInt64 = 0
  private var stream: UInt32 = 0
  private var blockBytes = 0
  private var isInBlock = false

  /// The time when the incomplete frame or header block began to arrive.
  private(set) var incompleteSince: UInt64?
  /// Whether the client's first SETTINGS arrived, which end its preface.
  private(set) var hasSettings = false

  init(_ configuration: HTTP2ServerConfiguration) {
    // Compressed, a block within the limit is rarely longer than its fields.
    maxBlock = 2 * configuration.maxHeader + 1024
    maxCredit = max(1, configuration.maxControlFramesPerSecond)
    controlFrames = RateMeter(perSecond: configuration.maxControlFramesPerSecond)
    resets = RateMeter(perSecond: configuration.maxResetsPerSecond)
  }

  /// Reads the next bytes from the client.
  mutating func read(_ bytes: UnsafeRawBufferPointer, at now: UInt64) throws(Violation) {
    var next = 0
    while next < bytes.count {
      if incompleteSince == nil { incompleteSince = now }
      if left == 0 {
        if headerCount < 5 {
          header = header << 8 | UInt64(bytes[next])
        } else {
          stream = stream << 8 | UInt32(bytes[next])
        }
        headerCount += 1
        next += 1
        guard headerCount == 9 else { continue }
        left = Int(header >> 16)
        try count(at: now)
      } else {
        let step = min(left, bytes.count - next)
        left -= step
        next += step
      }
      guard left == 0 else { continue }
      // The end of a frame, or of the preface.
      if headerCount == 9, UInt8(truncatingIfNeeded: header >> 8) == 4 { hasSettings = true }
      headerCount = 0
      (header, stream) = (0, 0)
      if !isInBlock { incompleteSince = nil }
    }
  }

  /// Counts a frame whose header is complete.
  private mutating func count(at now: UInt64) throws(Violation) {
    let length = Int(header >> 16)
    let flags = UInt32(header & 0xFF)
    func has(_ flag: nghttp2_flag) -> Bool { flags & flag.rawValue != 0 }
    switch UInt32(header >> 8 & 0xFF) {
    case NGHTTP2_DATA.rawValue:
      // Padding is at most 255 bytes and their number.
      let content = has(NGHTTP2_FLAG_PADDED) ? length - 256 : length
      if content < Self.smallContent, !has(NGHTTP2_FLAG_END_STREAM) {
        try countControlFrame(at: now)
      }
    case NGHTTP2_HEADERS.rawValue:
      blockBytes = length
      isInBlock = !has(NGHTTP2_FLAG_END_HEADERS)
    case NGHTTP2_CONTINUATION.rawValue:
      blockBytes += length
      isInBlock = !has(NGHTTP2_FLAG_END_HEADERS)
      guard blockBytes <= maxBlock else { throw .headerBlock }
      try countControlFrame(at: now)
    case NGHTTP2_RST_STREAM.rawValue: try countReset(at: now)
    case NGHTTP2_PRIORITY.rawValue:
      guard stream & 0x7FFF_FFFF != 0 else { throw .priorityOfConnection }
      try countControlFrame(at: now)
    default: try countControlFrame(at: now)
    }
  }

  /// Counts a frame that did not advance any request.
  mutating func countControlFrame(at now: UInt64) throws(Violation) {
    if credit > 0 {
      credit -= 1
    } else if !controlFrames.allows(at: now) {
      throw .controlFrames
    }
  }

  /// Counts a stream that the client reset or made the server reset.
  mutating func countReset(at now: UInt64) throws(Violation) {
    guard resets.allows(at: now) else { throw .resets }
  }

  /// Notes that a request is complete.
  mutating func noteRequest() { credit = min(maxCredit, credit + Self.creditPerRequest) }

  /// Notes that DATA was sent, to which the client may reply with WINDOW_UPDATEs for stream and
  /// connection. A client that admits only a few bytes at a time gets no credit for that.
  mutating func noteSent(dataLength: Int) {
    if dataLength >= 256 { credit = min(maxCredit, credit + 2) }
  }
}

/// A rate limit: a burst, and the same number in each second on average. A pure value; the caller
/// passes the time.
struct RateMeter: Sendable {
  private let interval: UInt64
  private let burst: UInt64
  /// The time when everything counted so far will have been paid for, in the caller's nanoseconds.
  private var paidAt: UInt64 = 0

  /// - Parameter perSecond: From 1; also the burst.
  init(perSecond: Int) {
    let count = UInt64(max(1, min(perSecond, 1_000_000_000)))
    interval = 1_000_000_000 / count
    burst = interval * count
  }

  /// Counts one more; returns false when it exceeds the limit.
  mutating func allows(at now: UInt64) -> Bool {
    let paid = max(paidAt, now) + interval
    guard paid - now <= burst else { return false }
    paidAt = paid
    return true
  }
}
