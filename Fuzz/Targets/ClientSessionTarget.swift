@testable import HTTP2

extension FuzzTarget {
  /// The bytes of an HTTP/2 server inside TLS; the first byte says into how many pieces it is cut, and
  /// how large the bodies are that the client sends.
  static let clientSession = FuzzTarget(name: "http2-client") { bytes in
    let first = Int(bytes.first ?? 0)
    let input = [0, 0, 0, 4, 0, 0, 0, 0, 0] + bytes.dropFirst()
    let (pieces, bodySize) = (first % 8 + 1, first / 8 * 500)
    var configuration = HTTP2ConnectionConfiguration(host: "localhost", port: 443)
    configuration.maxConcurrentStreams = requests
    configuration.maxReplyBody = 1000
    configuration.maxReplyHeader = 1000
    configuration.monotonicClock = { 1_000_000_000 }
    guard let client = DetachedClientSession(configuration, sending: batch(bodySize)) else {
      return expect(false, "a session begins")
    }
    var window = Window()
    let size = max(1, (input.count + pieces - 1) / pieces)
    // Streams are open before the rest comes.
    let steps =
      [0..<9]
      + stride(from: 9, to: input.count, by: size).map { $0..<min(input.count, $0 + size) }
    var sent = 0
    for step in steps {
      window.grant(input[..<step.upperBound])
      let (bytes, error) = client.exchange(input[step])
      sent += bytes.count
      window.use(bytes)
      if error != nil { break }
    }
    expect(sent <= 20 * input.count + requests * (bodySize + 500), "little asks for little")
    let ended = client.replies.count { $0.failure != nil || $0.wasSent }
    expect(ended == requests - client.remaining, "a request ends once, with an outcome")
  }

  private static let requests = 20

  private static func batch(_ bodySize: Int) -> HTTP2RequestBatch {
    var batch = HTTP2RequestBatch(authority: "localhost", replyHeaders: ["retry-after"])
    let fields = batch.addFieldSet([
      HTTP2Field("authorization", "bearer x"), HTTP2Field("apns-topic", "com.example.app"),
    ])
    let body = batch.write { $0 += [UInt8](repeating: 0x20, count: bodySize) }
    for index in 0..<requests {
      batch.addRequest(path: batch.write("/\(index)"), fields: fields, body: body)
    }
    return batch
  }

  /// The window of the connection, as the frames say that go either way.
  private struct Window {
    private var granted = 65_535
    private var used = 0
    private var read = 0
    private var isStarted = false

    /// - Parameter input: All that the server has sent so far.
    mutating func grant(_ input: ArraySlice<UInt8>) {
      while let frame = Frame(input.dropFirst(read)) {
        read += frame.size
        if frame.kind == 8, frame.stream == 0, let increment = frame.word {
          granted += increment & 0x7FFF_FFFF
        }
      }
    }

    /// Whole frames come out, of a size that every peer takes, and DATA within the window.
    mutating func use(_ bytes: [UInt8]) {
      var rest = bytes.dropFirst(isStarted ? 0 : 24)
      isStarted = true
      while let frame = Frame(rest) {
        expect(frame.count <= 16_384, "no frame is too long")
        if frame.kind == 0 { used += frame.count }
        rest = rest.dropFirst(frame.size)
      }
      expect(rest.isEmpty, "what is sent is whole frames")
      expect(used <= granted, "DATA keeps to the window")
    }
  }

  /// A frame at the beginning of some bytes, if it is whole.
  private struct Frame {
    let count: Int
    let kind: UInt8
    let stream: Int
    /// The first four bytes of the payload.
    let word: Int?
    var size: Int { 9 + count }

    init?(_ bytes: ArraySlice<UInt8>) {
      func number(_ start: Int, _ count: Int) -> Int {
        bytes.dropFirst(start).prefix(count).reduce(0) { $0 << 8 | Int($1) }
      }
      guard bytes.count >= 9 else { return nil }
      count = number(0, 3)
      guard bytes.count >= 9 + count else { return nil }
      kind = bytes[bytes.startIndex + 3]
      stream = number(5, 4) & 0x7FFF_FFFF
      word = count >= 4 ? number(9, 4) : nil
    }
  }
}
