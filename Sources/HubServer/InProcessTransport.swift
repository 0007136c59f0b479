import Foundation
package import HTTPServer
package import NotificationHubs

/// Sends the SDK's requests to a hub in the same process, without a socket. A reply that comes in
/// pieces, such as progress events, is an error: nothing here would receive them one by one.
package struct InProcessTransport: HTTPTransport {
  private let respond: @Sendable (HTTPRequest) async -> HTTPResponse

  /// Requests with a token, as over the network.
  package init(handler: any HTTPHandler) {
    respond = { await handler.respond(to: $0) }
  }

  /// Requests of the owner of a store; their tokens are not looked at.
  package init(_ api: HubAPI, as owner: HubOwner) {
    respond = { await api.respond(to: $0, as: owner) }
  }

  package func send(_ request: TransportRequest) async throws -> TransportReply {
    let url = request.url.absoluteString
    let start = url.range(of: "://").map { $0.upperBound } ?? url.startIndex
    let path = url[start...].firstIndex(of: "/").map { String(url[$0...]) } ?? "/"
    var headers = HTTPHeaders()
    headers["Host"] = request.url.host()
    for (name, value) in request.headers { headers[name] = value }
    let response = await respond(
      HTTPRequest(
        method: HTTPMethod(rawValue: request.method), target: HTTPTarget(path), headers: headers,
        body: Array(request.body ?? Data())))
    var fields: [String: String] = [:]
    for (name, value) in response.headers { fields[name] = value }
    let body: [UInt8]
    switch response.body {
    case .none: body = []
    case .bytes(let bytes): body = bytes
    case .stream, .cut:
      throw NotificationHubError(
        kind: .unexpectedReply, status: response.status.rawValue,
        detail: "the reply comes in pieces, which only a running server sends")
    }
    return TransportReply(status: response.status.rawValue, headers: fields, body: Data(body))
  }
}
