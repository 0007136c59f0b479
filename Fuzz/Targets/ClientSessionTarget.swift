@testable import HTTP2

extension FuzzTarget {
  /// What an HTTP/2 server sends inside TLS; the first byte says into how many pieces it is cut, and
  /// how large the bodies are that the client sends.
  static let clientSession = FuzzTarget(name: "http2-client") { bytes in
    let first = Int(bytes.first ?? 0)
    let input = [0, 0, 0, 4, 0, 0, 0, 0, 0] + bytes.dropFirst()
    let (pieces, bodySize) = (first % 8 + 1, first / 8 * 100)
    var configuration = HTTP2ConnectionConfiguration(host: "localhost", port: 443)
    configuration.maxConcurrentStreams = 20
    configuration.maxReplyBody = 1000
    configuration.maxReplyHeader = 1000
    configuration.monotonicClock = { 1_000_000_000 }
    guard let client = DetachedClientSession(configuration, sending: batch(bodySize)) else {
      return expect(false, "a session begins")
    }
    var windows = Windows()
    let size = max(1, (input.count + pieces - 1) / pieces)
    // Streams are open before the rest comes.
    let steps =
      [0..<9]
      + stride(from: 9, to: input.count, by: size).map { $0..<min(input.count, $0 + size) }
    var (sent, received) = (0, 0)
    for step in steps {
      windows.credit(input[step])
      let (bytes, error) = client.exchange(input[step])
      sent += bytes.count
      received += step.count
      windows.expectFrames(bytes)
      if error != nil { break }
    }
    expect(sent <= 20 * received + 20 * (bodySize + 500), "little asks for little")
    expect((0...20).contains(client.remaining), "a request ends once")
  }

  private static func batch(_ bodySize: Int) -> HTTP2RequestBatch {
    var batch = HTTP2RequestBatch(authority: "localhost", replyHeaders: ["retry-after"])
    let fields = batch.addFieldSet([
      HTTP2Field("authorization", "bearer x"), HTTP2Field("apns-topic", "com.example.app"),
    ])
    let body = batch.write { $0 += [UInt8](repeating: 0x20, count: bodySize) }
    for index in 0..<20 {
      batch.addRequest(path: batch.write("/\(index)"), fields: fields, body: body)
    }
    return batch
  }

  /// Follows what the client sends.
  private struct Windows {
    private var isStarted = false
    /// What the server might have granted: every four bytes might be a window.
    private var granted = 65_535

    mutating func credit(_ bytes: ArraySlice<UInt8>) {
      // A frame of 13 bytes grants 2^31 at most.
      if bytes.count >= 13 { granted = .max }
    }

    /// Whole frames come out, of a size that every peer takes, and DATA within the window.
    mutating func expectFrames(_ bytes: [UInt8]) {
      var next = isStarted ? 0 : 24
      isStarted = true
      while next + 9 <= bytes.count {
        let count = Int(bytes[next]) << 16 | Int(bytes[next + 1]) << 8 | Int(bytes[next + 2])
        expect(count <= 16_384, "no frame is too long")
        if bytes[next + 3] == 0, granted != .max { granted -= count }
        next += 9 + count
      }
      expect(next == bytes.count, "what is sent is whole frames")
      expect(granted >= 0, "DATA keeps to the window")
    }
  }
}
