package import Cryptography
package import HTTPClient
package import HTTPServer
import Synchronization

/// A handler made of a closure.
package struct ClosureHandler: HTTPHandler {
  private let answer: @Sendable (HTTPRequest) async -> HTTPResponse

  package init(answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse) {
    self.answer = answer
  }

  package func respond(to request: HTTPRequest) async -> HTTPResponse { await answer(request) }
}

/// An HTTP/1.1 server over TLS that a test answers for, and a session that trusts it.
package struct SecureServer: Sendable {
  package let listener: HTTPListener
  package let session: HTTPSession
  /// PEM of the authority that signed its certificate.
  package let anchors: [UInt8]

  package var authority: String { "localhost:\(listener.port)" }

  package func url(_ path: String) -> String { "https://\(authority)\(path)" }

  package func answer(_ path: String) async -> Result<HTTPReply, HTTPFailure> {
    await session.send([HTTPCall(url: url(path))], lane: HTTPLane(limit: 1))[0]
  }
}

/// Starts a server on a free port, runs `body` and stops it.
///
/// - Parameters:
///   - leaf: What its certificate says; `nil` for localhost.
///   - configure: Changes the session.
package func withSecureServer(
  leaf: CertificateAuthority.LeafRequest? = nil,
  configure: (inout HTTPSessionConfiguration) -> Void = { _ in },
  answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse,
  body: (SecureServer) async throws -> Void
) async throws {
  let authority = try CertificateAuthority(commonName: "Test")
  let identity = try leaf.map { try authority.issue($0) } ?? authority.issueForLocalhost()
  var server = HTTPConfiguration()
  server.tls = TLSIdentity(
    certificatePEM: identity.certificatePEM, privateKeyPEM: try identity.privateKeyPEM())
  let anchors = Array(authority.certificate.pem.utf8)
  var configuration = HTTPSessionConfiguration()
  configuration.extraAnchorsPEM = anchors
  configure(&configuration)
  let listener = try HTTPListener(server, handler: ClosureHandler(answer: answer))
  do {
    try await body(
      SecureServer(listener: listener, session: HTTPSession(configuration), anchors: anchors))
    await listener.stop(within: .zero)
  } catch {
    await listener.stop(within: .zero)
    throw error
  }
}

/// A gate at which any number of tasks wait until one opens it.
package final class Gate: Sendable {
  private let state = Mutex((isOpen: false, waiting: [CheckedContinuation<Void, Never>]()))

  package init() {}

  package func open() {
    let waiting = state.withLock { state in
      defer { state = (true, []) }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  package func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }
}
