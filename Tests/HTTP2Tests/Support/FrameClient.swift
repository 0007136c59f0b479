import Foundation

@testable import HTTP2

/// A client over TLS that writes frames of the test's making and reads what the server makes of
/// them. Blocking: for a thread of its own, see ``onThread(_:)``.
final class FrameClient {
  private let raw: RawClient
  private var unread: [UInt8] = []
  /// All that the server sent so far.
  private(set) var frames: [Frame] = []
  /// Whether the server closed the connection.
  private(set) var isClosed = false

  struct NoConnection: Error {}

  init(_ harness: Harness, sending bytes: [UInt8] = Frame.preface) throws {
    guard let raw = RawClient(port: harness.server.port),
      try raw.startTLS(offering: "h2", anchors: harness.material.authorityPEM) == 0
    else { throw NoConnection() }
    self.raw = raw
    send(bytes)
  }

  func send(_ bytes: [UInt8]) { raw.send(bytes) }

  func send(_ frames: Frame...) { raw.send(frames.flatMap(\.bytes)) }

  /// Reads until a frame is what is waited for.
  ///
  /// - Returns: That frame, also one that came before; nil when the server closed first.
  @discardableResult
  func wait(for isMeant: (Frame) -> Bool) -> Frame? {
    var looked = 0
    while true {
      if let found = frames[looked...].first(where: isMeant) { return found }
      looked = frames.count
      guard let bytes = raw.readSome() else {
        isClosed = true
        return nil
      }
      unread += bytes
      while let frame = takeFrame() { frames.append(frame) }
    }
  }

  /// Reads to the server's end of the connection; the code of its GOAWAY, if there was one.
  func readToEnd() -> UInt32? {
    wait { _ in false }
    return frames.last { $0.kind == Frame.Kind.goAway }?.code
  }

  /// Sends a PING and waits for its answer; false when the server closed instead.
  func isAlive(_ mark: UInt8 = 0x5A) -> Bool {
    send(.ping(mark))
    return wait { $0.kind == Frame.Kind.ping && $0.flags == Frame.ack && $0.payload[0] == mark }
      != nil
  }

  private func takeFrame() -> Frame? {
    guard unread.count >= 9 else { return nil }
    let length = Int(unread[0]) << 16 | Int(unread[1]) << 8 | Int(unread[2])
    guard unread.count >= 9 + length else { return nil }
    let stream = unread[5..<9].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
    defer { unread.removeFirst(9 + length) }
    return Frame(
      kind: unread[3], flags: unread[4], stream: stream, payload: Array(unread[9..<9 + length]))
  }
}

/// Runs what blocks on a thread of its own, so that the tests' threads stay free.
func onThread<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
  try await withCheckedThrowingContinuation { continuation in
    let thread = Thread {
      blockBrokenPipeSignal()
      continuation.resume(with: Result { try body() })
    }
    thread.name = "http2-test-client"
    thread.start()
  }
}
