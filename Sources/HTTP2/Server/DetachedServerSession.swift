import CNghttp2

/// A server's session without socket and TLS, for the fuzz target: what a client sends goes in, what
/// the server sends comes out. For one thread.
final class DetachedServerSession {
  private let runner: ServerRunner
  let session: ServerSession

  /// Nil when TLS cannot start.
  init?(_ core: ServerCore) {
    runner = ServerRunner(core, 0)
    let accepted = ServerLoop.Accepted(
      id: 1, descriptor: -1, peer: "", decision: .proceed, isAdopted: true)
    guard let session = ServerSession(runner, accepted) else { return nil }
    self.session = session
    // Answers of the handler are taken at once.
    runner.loop.enter()
    session.open(peerCertificate: nil)
  }

  deinit {
    session.end(isReset: false)
    runner.loop.leave()
  }

  /// Whether the server would close the connection after what it has sent.
  var isOver: Bool {
    session.isDeaf
      || nghttp2_session_want_read(session.session) == 0
        && nghttp2_session_want_write(session.session) == 0
  }

  /// Takes bytes and returns the server's frames.
  func exchange(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    bytes.withUnsafeBytes { if !session.isDeaf, !$0.isEmpty { session.read($0) } }
    var sent: [UInt8] = []
    while session.output.gather(from: session.session), !session.output.isEmpty {
      sent += session.output.take()
    }
    return sent
  }
}
