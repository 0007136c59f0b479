import Cryptography
import HTTPClient
import HTTPServer
import Synchronization

/// An HTTP/1.1 server over TLS that a test answers for.
struct SecureServer: Sendable {
  let listener: HTTPListener
  /// PEM of the authority that signed its certificate.
  let anchors: [UInt8]

  var authority: String { "localhost:\(listener.port)" }

  func url(_ path: String) -> String { "https://\(authority)\(path)" }

  /// A client that trusts it.
  func session() -> HTTPSession {
    var configuration = HTTPSessionConfiguration()
    configuration.extraAnchorsPEM = anchors
    return HTTPSession(configuration)
  }
}

/// A handler made of a closure.
private struct ClosureHandler: HTTPHandler {
  let answer: @Sendable (HTTPRequest) async -> HTTPResponse

  func respond(to request: HTTPRequest) async -> HTTPResponse { await answer(request) }
}

/// Starts a server on a free port, runs `body` and stops it.
func withSecureServer(
  answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse,
  body: (SecureServer) async throws -> Void
) async throws {
  let authority = try CertificateAuthority(commonName: "Test")
  let identity = try authority.issueForLocalhost()
  var configuration = HTTPConfiguration()
  configuration.tls = TLSIdentity(
    certificatePEM: identity.certificatePEM, privateKeyPEM: try identity.privateKeyPEM())
  let listener = try HTTPListener(configuration, handler: ClosureHandler(answer: answer))
  do {
    try await body(
      SecureServer(listener: listener, anchors: Array(authority.certificate.pem.utf8)))
    await listener.stop(within: .zero)
  } catch {
    await listener.stop(within: .zero)
    throw error
  }
}

/// Where any number of tasks wait until one opens it.
final class Gate: Sendable {
  private let state = Mutex((isOpen: false, waiting: [CheckedContinuation<Void, Never>]()))

  func open() {
    let waiting = state.withLock { state in
      defer { state = (true, []) }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }
}
