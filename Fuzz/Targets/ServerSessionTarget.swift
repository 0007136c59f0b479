import Cryptography
import Foundation

@testable import HTTP2

extension FuzzTarget {
  /// What an HTTP/2 client sends inside TLS after its preface; the first byte says into how many
  /// pieces the rest is cut.
  static let serverSession = FuzzTarget(name: "http2-server") { bytes in
    let pieces = Int(bytes.first ?? 0) % 8 + 1
    let input = preface + bytes.dropFirst()
    guard let server = DetachedServerSession(serverCore) else {
      return expect(false, "a session begins")
    }
    var sent: [UInt8] = []
    let size = max(1, (input.count + pieces - 1) / pieces)
    for start in stride(from: 0, to: input.count, by: size) where !server.isOver {
      sent += server.exchange(input[start..<min(input.count, start + size)])
      let session = server.session
      expect(session.openStreams <= 5, "no more streams are open than allowed")
      expect((0...2000).contains(session.heldBodies), "bodies stay within their share")
    }
    expect(sent.count <= 20 * input.count + 100_000, "little asks for little")
    expectFrames(sent)
    // How the bytes are cut makes no difference to what is counted.
    expect(
      watched(input, step: input.count) == watched(input, step: 1),
      "the verdict on frames does not hang on how they are cut")
  }

  private static let preface =
    Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]

  private static let serverCore: ServerCore = {
    do {
      let identity = try CertificateAuthority(commonName: "Fuzz").issueForLocalhost()
      var configuration = HTTP2ServerConfiguration(
        host: nil, port: 0, certificatePEM: Array(identity.certificatePEM.utf8),
        keyPEM: Array(try identity.privateKeyPEM().utf8))
      configuration.maxConcurrentStreams = 5
      configuration.maxHeldBodies = 2000
      configuration.maxBody = 1000
      configuration.maxHeader = 1000
      configuration.maxResetsPerSecond = 10
      configuration.maxControlFramesPerSecond = 20
      configuration.monotonicClock = { 1_000_000_000 }  // nothing refills
      return try ServerCore(configuration, handler: Answering())
    } catch {
      fatalError("no server: \(error)")
    }
  }()

  /// What follows in the output are whole frames.
  private static func expectFrames(_ bytes: [UInt8]) {
    var next = 0
    while next + 9 <= bytes.count {
      next += 9 + (Int(bytes[next]) << 16 | Int(bytes[next + 1]) << 8 | Int(bytes[next + 2]))
    }
    expect(next == bytes.count, "what is sent is whole frames")
  }

  private static func watched(
    _ bytes: [UInt8], step: Int
  ) -> FrameWatch.Violation? {
    var watch = FrameWatch(serverCore.configuration)
    for start in stride(from: 0, to: bytes.count, by: max(1, step)) {
      let result = bytes[start..<min(bytes.count, start + max(1, step))].withUnsafeBytes { part in
        Result<Void, FrameWatch.Violation> { () throws(FrameWatch.Violation) in
          try watch.read(part, at: 1)
        }
      }
      if case .failure(let violation) = result { return violation }
    }
    return nil
  }
}

/// Answers every other request with a few bytes, and lets the others wait.
private struct Answering: HTTP2ServerHandler {
  func received(_ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection) {
    guard request.stream % 4 == 1 else { return }
    let body = [UInt8](repeating: 0x20, count: 100)
    connection.respond(HTTP2ServerResponse(status: 200, body: body), to: request.stream)
  }
}
