/// The types of frames (RFC 9113, section 6).
enum FrameKind: UInt8 {
  case data, headers, priority, resetStream, settings, pushPromise, ping, goAway, windowUpdate
  case continuation

  static let headerSize = 9

  // Flags.
  static let endStream: UInt8 = 0x1
  static let acknowledges: UInt8 = 0x1
  static let endHeaders: UInt8 = 0x4
  static let padded: UInt8 = 0x8
  static let hasPriority: UInt8 = 0x20

  /// Writes the header of a frame (section 4.1).
  @inline(__always)
  func writeHeader(
    to out: UnsafeMutablePointer<UInt8>, count: Int, flags: UInt8, stream: Int32
  ) {
    out[0] = UInt8(truncatingIfNeeded: count >> 16)
    out[1] = UInt8(truncatingIfNeeded: count >> 8)
    out[2] = UInt8(truncatingIfNeeded: count)
    out[3] = rawValue
    out[4] = flags
    UnsafeMutableRawPointer(out + 5).storeBytes(of: stream.bigEndian, as: Int32.self)
  }
}

/// Error codes of RST_STREAM and GOAWAY (RFC 9113, section 7).
enum HTTP2ErrorCode: UInt32 {
  case noError, protocolError, internalError, flowControlError, settingsTimeout, streamClosed
  case frameSizeError, refusedStream, cancel, compressionError, connectError, enhanceYourCalm
}
