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

/// Where one side waits until the other side lets it go on.
final class Gate: Sendable {
  private let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream() }

  func open() { continuation.finish() }

  /// For any number of waiters.
  func wait() async { for await _ in stream {} }
}
