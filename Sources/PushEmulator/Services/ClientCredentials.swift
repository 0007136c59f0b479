/// The request for an access token with a client's own credentials (RFC 6749, section 4.4), as WNS
/// and ADM take it.
struct ClientCredentials: Sendable {
  let clientID: String
  let secret: String
  let scope: String

  /// Checks form, grant type and that all fields are there; the values are the service's to judge.
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

/// The access tokens that a service has handed out.
struct AccessTokens: Sendable {
  struct Token: Sendable {
    let app: UInt32
    let clientID: String
    /// In ms since the Unix epoch.
    let expiresAt: Int64
  }

  private var tokens: [String: Token] = [:]

  /// Most that are remembered; the expired go first, then all.
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

/// A rate limit for each of many things; a new one of each is full.
struct RateTable<Key: Hashable & Sendable>: Sendable {
  private var buckets: [Key: TokenBucket] = [:]

  /// Takes one, unless the limit is off.
  /// - Parameter rate: A second; `nil` for no limit.
  mutating func take(_ key: Key, rate: Double?, now: Int64) -> Bool {
    guard let rate else { return true }
    return buckets[key, default: TokenBucket()].take(rate: rate, burst: max(1, rate), now: now)
  }
}
