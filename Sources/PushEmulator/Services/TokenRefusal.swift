import HTTP2

/// Why a token endpoint hands nothing out (RFC 6749, section 5.2).
struct TokenRefusal: Error, Sendable, Equatable {
  let status: Int
  let error: String
  let description: String

  init(_ status: Int, _ error: String, _ description: String) {
    self.status = status
    self.error = error
    self.description = description
  }

  /// What a `reply` fault asks for; without a reason the usual one of the status.
  init(fault status: Int, reason: String?) {
    let usual =
      switch status {
      case 400: "invalid_grant"
      case 401: "invalid_client"
      case 429: "rate_limit_exceeded"
      case 503: "temporarily_unavailable"
      default: "server_error"
      }
    self.init(status, reason ?? usual, "injected fault")
  }

  var response: HTTP2ServerResponse {
    .json(
      status, ["error": .string(error), "error_description": .string(description)],
      fields: [("cache-control", "no-store")])
  }
}
