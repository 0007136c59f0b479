import Cryptography
import HTTPClient
import HTTPServer
import Synchronization

/// A handler made of a closure.
struct ClosureHandler: HTTPHandler {
  let answer: @Sendable (HTTPRequest) async -> HTTPResponse

  func respond(to request: HTTPRequest) async -> HTTPResponse { await answer(request) }
}

/// A server over TLS, and a session that trusts it.
struct Peer: Sendable {
  let listener: HTTPListener
  let session: HTTPSession

  func url(_ path: String) -> String { "https://localhost:\(listener.port)\(path)" }

  func answer(_ path: String) async -> Result<HTTPReply, HTTPFailure> {
    await session.send([HTTPCall(url: url(path))], lane: HTTPLane(limit: 1))[0]
  }
}

func withPeer(
  leaf: CertificateAuthority.LeafRequest? = nil,
  configure: (inout HTTPSessionConfiguration) -> Void = { _ in },
  answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse,
  body: (Peer) async throws -> Void
) async throws {
  let authority = try CertificateAuthority(commonName: "Test")
  let identity = try leaf.map { try authority.issue($0) } ?? authority.issueForLocalhost()
  var server = HTTPConfiguration()
  server.tls = TLSIdentity(
    certificatePEM: identity.certificatePEM, privateKeyPEM: try identity.privateKeyPEM())
  var configuration = HTTPSessionConfiguration()
  configuration.extraAnchorsPEM = Array(authority.certificate.pem.utf8)
  configure(&configuration)
  let listener = try HTTPListener(server, handler: ClosureHandler(answer: answer))
  let peer = Peer(listener: listener, session: HTTPSession(configuration))
  do {
    try await body(peer)
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
