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

  /// A reply of text, by default `text/plain`.
  package init(
    _ status: HTTPStatus, text: String, contentType: String = "text/plain; charset=utf-8"
  ) {
    self.init(status, headers: ["Content-Type": contentType], body: .bytes(Array(text.utf8)))
  }
}

/// What a reply carries. A reply to HEAD has the same headers and sends nothing of it; a stream is
/// then not started.
package enum HTTPBody: Sendable {
  /// No body: 204 and 304 go without `Content-Length`, any other status with `Content-Length: 0`,
  /// because without it a client would wait for more.
  case none
  /// These bytes under their `Content-Length`, which is also written when it is 0.
  case bytes([UInt8])
  /// What the closure writes, in chunks, until it returns; an error it throws cuts the connection,
  /// so that the client sees that something is missing. The task is cancelled when the client goes
  /// away, stops reading or the server stops.
  case stream(@Sendable (HTTPBodyWriter) async throws -> Void)
  /// No reply at all: the connection ends. For servers that play a broken one.
  case cut(HTTPCut)
}

/// How a connection ends before its time.
package enum HTTPCut: Sendable, Equatable {
  /// In order, by FIN; a TLS client still sees that close_notify is missing.
  case close
  /// By a TCP reset.
  case reset
}

/// A status code, 200 to 599 (RFC 9110, section 15); interim (1xx) replies are the server's own.
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
