import HTTP2
import Wire

/// The request for an access token with a client's own credentials (RFC 6749, section 4.4), as WNS
/// and ADM take it.
struct ClientCredentials: Sendable {
  let clientID: String
  let secret: String
  let scope: String

  /// Checks form, grant type and that all fields are present; their values are checked by the
  /// service.
  init(_ request: PlainRequest) throws(TokenRefusal) {
    guard let form = request.form else {
      throw .init(400, "invalid_request", "the request must be a form")
    }
    guard let grant = form["grant_type"] else {
      throw .init(400, "invalid_request", "grant_type is missing")
    }
    guard grant == "client_credentials" else {
      throw .init(400, "unsupported_grant_type", "grant_type must be client_credentials")
    }
    guard let clientID = form["client_id"], let secret = form["client_secret"],
      let scope = form["scope"]
    else {
      throw .init(400, "invalid_request", "client_id, client_secret or scope is missing")
    }
    self.clientID = clientID
    self.secret = secret
    self.scope = scope
  }
}

extension TokenRefusal {
  /// The client is unknown, or its secret is wrong.
  /// - Parameter status: 400 or 401; services differ.
  static func invalidClient(_ status: Int) -> TokenRefusal {
    .init(status, "invalid_client", "the client is unknown, or its secret is wrong")
  }

  static let invalidScope = TokenRefusal(
    400, "invalid_scope", "the scope is not that of this service")
}

/// The access tokens that a service has issued.
struct AccessTokens: Sendable {
  struct Token: Sendable {
    /// `nil` for every app: of a credential that the emulator did not issue.
    let app: UInt32?
    /// The client's id.
    let clientID: String
    let scopes: [String]
    /// In ms since the Unix epoch.
    let expiresAt: Int64
  }

  private var tokens: [String: Token] = [:]

  /// Maximum number of remembered tokens; beyond it the expired ones are removed first, then all.
  private static let capacity = 100_000

  mutating func remember(_ text: String, _ token: Token, now: Int64) {
    if tokens.count >= Self.capacity {
      tokens = tokens.filter { $0.value.expiresAt > now }
      if tokens.count >= Self.capacity { tokens = [:] }
    }
    tokens[text] = token
  }

  /// The token, unless it is unknown or has expired.
  func token(_ text: String, now: Int64) -> Token? {
    tokens[text].flatMap { $0.expiresAt > now ? $0 : nil }
  }

  mutating func revoke(app: UInt32) { tokens = tokens.filter { $0.value.app != app } }
}

/// The reason for which a token endpoint refuses a token (RFC 6749, section 5.2).
struct TokenRefusal: Error, Sendable, Equatable {
  let status: Int
  let error: String
  let description: String

  init(_ status: Int, _ error: String, _ description: String) {
    self.status = status
    self.error = error
    self.description = description
  }

  /// The refusal that a `reply` fault asks for; without a reason the usual one of the status.
  init(_ fault: FaultAction.Reply) {
    let usual =
      switch fault.status {
      case 400: "invalid_grant"
      case 401: "invalid_client"
      case 429: "rate_limit_exceeded"
      case 503: "temporarily_unavailable"
      default: "server_error"
      }
    self.init(fault.status, fault.reason ?? usual, "injected fault")
  }

  var answer: ServiceAnswer { ServiceAnswer(response.0, reason: error) }

  var response: (HTTP2ServerResponse, reason: String?) {
    let response = HTTP2ServerResponse.json(
      status, ["error": .string(error), "error_description": .string(description)],
      fields: [("cache-control", "no-store")])
    return (response, error)
  }
}
