/// A reply. The server adds `Date`, `Content-Length` or `Transfer-Encoding`, and `Connection`.
package struct HTTPResponse: Sendable {
  package var status: HTTPStatus
  package var headers: HTTPHeaders
  package var body: HTTPBody

  package init(_ status: HTTPStatus, headers: HTTPHeaders = [:], body: HTTPBody = .none) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Creates a text reply, by default `text/plain`.
  package init(
    _ status: HTTPStatus, text: String, contentType: String = "text/plain; charset=utf-8"
  ) {
    self.init(status, headers: ["Content-Type": contentType], body: .bytes(Array(text.utf8)))
  }
}

/// The body of a reply. A reply to HEAD has the same headers and no body; a stream is then not
/// started.
package enum HTTPBody: Sendable {
  /// No body: 204 and 304 are sent without `Content-Length`, any other status with `Content-Length:
  /// 0`, because otherwise a client would wait for more.
  case none
  /// These bytes with their `Content-Length`, which is also sent if it is 0.
  case bytes([UInt8])
  /// The output of the closure, in chunks, until it returns; an error that it throws cuts the
  /// connection, so that the client detects the truncation. The task is cancelled if the client
  /// disconnects or stops reading, or the server stops.
  case stream(@Sendable (HTTPBodyWriter) async throws -> Void)
  /// No reply: the connection is cut. For servers that simulate a broken one.
  case cut(HTTPCut)
}

/// The way in which a connection is cut.
package enum HTTPCut: Sendable, Equatable {
  /// An orderly close by FIN; a TLS client still sees that close_notify is missing.
  case close
  /// A TCP reset.
  case reset
}

/// A status code, 200 to 599 (RFC 9110, section 15); interim (1xx) replies are sent by the server
/// itself.
package struct HTTPStatus: RawRepresentable, Hashable, Sendable, ExpressibleByIntegerLiteral {
  package let rawValue: Int

  package init(rawValue: Int) { self.rawValue = rawValue }
  package init(integerLiteral value: Int) { rawValue = value }

  package static let ok: Self = 200
  package static let created: Self = 201
  package static let noContent: Self = 204
  package static let notModified: Self = 304
  package static let badRequest: Self = 400
  package static let unauthorized: Self = 401
  package static let forbidden: Self = 403
  package static let notFound: Self = 404
  package static let methodNotAllowed: Self = 405
  package static let conflict: Self = 409
  package static let gone: Self = 410
  package static let contentTooLarge: Self = 413
  package static let tooManyRequests: Self = 429
  package static let headerFieldsTooLarge: Self = 431
  package static let serviceUnavailable: Self = 503
}
