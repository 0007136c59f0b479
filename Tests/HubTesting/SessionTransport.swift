import Foundation
import HTTPClient
package import NotificationHubs

/// Carries requests over real connections of this machine.
package struct SessionTransport: HTTPTransport {
  private let session: HTTPSession

  package init() {
    var configuration = HTTPSessionConfiguration()
    configuration.allowsPlainHTTP = true
    session = HTTPSession(configuration)
  }

  package func send(_ request: TransportRequest) async throws -> TransportReply {
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
