/// A frame as it stands on the wire (RFC 9113, section 4.1), right or wrong.
struct Frame: Equatable, Sendable {
  enum Kind {
    static let data: UInt8 = 0
    static let headers: UInt8 = 1
    static let priority: UInt8 = 2
    static let reset: UInt8 = 3
    static let settings: UInt8 = 4
    static let pushPromise: UInt8 = 5
    static let ping: UInt8 = 6
    static let goAway: UInt8 = 7
    static let windowUpdate: UInt8 = 8
    static let continuation: UInt8 = 9
  }

  static let endStream: UInt8 = 1
  static let ack: UInt8 = 1
  static let endHeaders: UInt8 = 4
  static let padded: UInt8 = 8
  static let prioritized: UInt8 = 0x20

  var kind: UInt8
  var flags: UInt8 = 0
  var stream: UInt32 = 0
  var payload: [UInt8] = []

  var bytes: [UInt8] {
    let count = payload.count
    return [UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), kind, flags]
      + big(stream) + payload
  }

  /// The error code of RST_STREAM and GOAWAY.
  var code: UInt32? {
    let start = kind == Kind.reset ? 0 : kind == Kind.goAway ? 4 : -1
    guard start >= 0, payload.count >= start + 4 else { return nil }
    return payload[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }

  // MARK: Frames for requests

  /// The client's preface and an empty SETTINGS.
  static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + settings([]).bytes

  /// Identifiers and values.
  static func settings(_ entries: [(UInt16, UInt32)]) -> Frame {
    Frame(
      kind: Kind.settings,
      payload: entries.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] + big($1) })
  }

  static func ping(_ mark: UInt8) -> Frame {
    Frame(kind: Kind.ping, payload: [UInt8](repeating: mark, count: 8))
  }

  static func headers(
    _ stream: UInt32, _ block: [UInt8] = request(), flags: UInt8 = endHeaders | endStream
  ) -> Frame {
    Frame(kind: Kind.headers, flags: flags, stream: stream, payload: block)
  }

  static func continuation(
    _ stream: UInt32, _ block: [UInt8] = [], flags: UInt8 = endHeaders
  ) -> Frame {
    Frame(kind: Kind.continuation, flags: flags, stream: stream, payload: block)
  }

  static func data(_ stream: UInt32, _ bytes: [UInt8], flags: UInt8 = endStream) -> Frame {
    Frame(kind: Kind.data, flags: flags, stream: stream, payload: bytes)
  }

  static func reset(_ stream: UInt32, code: UInt32 = 8) -> Frame {
    Frame(kind: Kind.reset, stream: stream, payload: big(code))
  }

  static func windowUpdate(_ stream: UInt32, _ increment: UInt32) -> Frame {
    Frame(kind: Kind.windowUpdate, stream: stream, payload: big(increment))
  }

  static func priority(_ stream: UInt32, on other: UInt32 = 0) -> Frame {
    Frame(kind: Kind.priority, stream: stream, payload: big(other) + [15])
  }

  // MARK: HPACK, literals without Huffman's code

  /// A whole request's block.
  static func request(
    _ method: String = "POST", _ path: String = "/", _ fields: [(String, String)] = []
  ) -> [UInt8] {
    field(":method", method) + [0x87] + [0x41] + text("localhost") + field(":path", path)
      + fields.flatMap { field($0.0, $0.1) }
  }

  /// A field without indexing.
  static func field(_ name: String, _ value: String) -> [UInt8] { [0] + text(name) + text(value) }

  /// A string's length and bytes.
  static func text(_ text: String) -> [UInt8] { integer(text.utf8.count, prefix: 7) + text.utf8 }

  /// An integer whose first byte has so many bits for it, the others 0 (RFC 7541, section 5.1).
  static func integer(_ value: Int, prefix: Int) -> [UInt8] {
    let most = 1 << prefix - 1
    guard value >= most else { return [UInt8(value)] }
    var bytes = [UInt8(most)]
    var rest = value - most
    while rest >= 128 {
      bytes.append(UInt8(rest & 127 | 128))
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }
}

private func big(_ value: UInt32) -> [UInt8] {
  [UInt8(value >> 24), UInt8(value >> 16 & 0xFF), UInt8(value >> 8 & 0xFF), UInt8(value & 0xFF)]
}

/// Many frames one after the other.
func bytes(_ frames: Frame...) -> [UInt8] { frames.flatMap(\.bytes) }
