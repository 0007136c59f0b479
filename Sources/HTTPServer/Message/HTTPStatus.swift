/// A status code, 200 to 599 (RFC 9110, section 15); interim (1xx) replies are the server's own.
package struct HTTPStatus: RawRepresentable, Hashable, Sendable, ExpressibleByIntegerLiteral {
  package let rawValue: Int

  package init(rawValue: Int) { self.rawValue = rawValue }
  package init(integerLiteral value: Int) { rawValue = value }

  package static let ok: Self = 200
  package static let created: Self = 201
  package static let accepted: Self = 202
  package static let noContent: Self = 204
  package static let notModified: Self = 304
  package static let badRequest: Self = 400
  package static let unauthorized: Self = 401
  package static let forbidden: Self = 403
  package static let notFound: Self = 404
  package static let methodNotAllowed: Self = 405
  package static let conflict: Self = 409
  package static let gone: Self = 410
  package static let preconditionFailed: Self = 412
  package static let contentTooLarge: Self = 413
  package static let tooManyRequests: Self = 429
  package static let headerFieldsTooLarge: Self = 431
  package static let internalServerError: Self = 500
  package static let serviceUnavailable: Self = 503
}
