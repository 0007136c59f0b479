import Foundation
import HTTPClient
import NotificationHubs

/// Carries requests to a hub whose certificate comes from a private authority: on Linux
/// `URLSession` trusts the system's store and nothing else.
struct AuthorityTransport: HTTPTransport {
  private let session: HTTPSession

  /// Trusts the system's store alone. Also for servers that ask for HTTP Basic: on Linux
  /// `URLSession` never ends a request that one answers with 401.
  init() {
    var configuration = HTTPSessionConfiguration()
    configuration.allowsPlainHTTP = true
    session = HTTPSession(configuration)
  }

  /// - Parameter file: PEM certificates, trusted beside the system's store.
  init(trusting file: String) throws {
    guard let pem = FileManager.default.contents(atPath: file) else {
      throw CommandFailure("--ca: \(file) cannot be read", exitCode: .usage)
    }
    guard pem.firstRange(of: Data("-----BEGIN CERTIFICATE-----".utf8)) != nil else {
      throw CommandFailure("--ca: \(file) holds no PEM block 'CERTIFICATE'", exitCode: .usage)
    }
    var configuration = HTTPSessionConfiguration()
    configuration.extraAnchorsPEM = Array(pem)
    // A page of a hundred registrations, each with a template of its own.
    configuration.maxReplyBodyBytes = 64 << 20
    session = HTTPSession(configuration)
  }

  func send(_ request: TransportRequest) async throws -> TransportReply {
    let reply = try await session.send(
      HTTPCall(
        method: request.method, url: request.url.absoluteString,
        headers: request.headers.map { (name: $0.key, value: $0.value) },
        body: Array(request.body ?? Data())))
    return TransportReply(
      status: Int(reply.status),
      headers: Dictionary(reply.headers.map { ($0.name, $0.value) }) { first, _ in first },
      body: Data(reply.body))
  }
}
