/// What answers requests. Called from many tasks at once.
package protocol HTTPHandler: Sendable {
  /// Answers one request. Never throws: a failure is a reply too.
  ///
  /// It starts on a thread that serves other connections too, so it must never block; where it
  /// suspends it goes on elsewhere.
  func respond(to request: HTTPRequest) async -> HTTPResponse

  /// Words the refusal of a request that the server turns down before `respond(to:)`: 400 for a
  /// head that can be read in two ways, 413 for a body over the limit, 431 for headers over it, 503
  /// while the server stops. The body of
  /// `request` is empty.
  ///
  /// Requests that are not HTTP at all, or whose head exceeds even the connection's buffer, are
  /// answered by libmicrohttpd in its own words.
  func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse
}

extension HTTPHandler {
  package func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    switch status {
    case .badRequest: HTTPResponse(status, text: "The request is not well-formed HTTP.\n")
    case .contentTooLarge: HTTPResponse(status, text: "The request body is too large.\n")
    case .headerFieldsTooLarge: HTTPResponse(status, text: "The request headers are too large.\n")
    case .serviceUnavailable: HTTPResponse(status, text: "The server is stopping.\n")
    default: HTTPResponse(status)
    }
  }
}
