import Cryptography
package import Foundation
package import NotificationHubs
import Wire

/// An OpenID provider at which people sign in with a browser.
package struct OpenIDConfiguration: Sendable {
  /// The issuer exactly as the provider writes it; an `https` URL, or one of this machine.
  package let issuer: String
  package let client: String
  /// The client secret; `nil` for a public client.
  package var secret: String?
  /// The display name of the provider.
  package var name: String?
  /// The permitted difference between the provider's clock and ours, in seconds.
  package var clockSkew: TimeInterval = 60

  /// - Returns: `nil` if the issuer is not a valid URL.
  package init?(issuer: String, client: String) {
    guard OpenIDAddress.isAllowed(issuer, onThisMachine: true), !client.isEmpty else { return nil }
    self.issuer = issuer
    self.client = client
  }
}

/// The reason why a sign-in at a provider failed.
package enum OpenIDFault: Error, Hashable, CustomStringConvertible {
  /// The provider does not reply, or its reply is not that of an OpenID provider.
  case unreachable(String)
  /// The provider rejects our client id or its secret.
  case client(String)
  /// The code was used, has expired, or belongs to another client.
  case code(String)
  /// The provider refused with another error.
  case refused(String)
  case token(BearerRefusal)
  /// The token belongs to another sign-in.
  case nonce

  package var description: String {
    switch self {
    case .unreachable(let why): "the provider cannot be used: \(why)"
    case .client(let why): "the provider does not take the client id or its secret: \(why)"
    case .code(let why): "the provider does not take the code: \(why)"
    case .refused(let why): "the provider refuses: \(why)"
    case .token(let refusal): "the provider's token: \(refusal)"
    case .nonce: "the provider's token answers another sign-in"
    }
  }
}

/// The user whom a provider has authenticated.
package struct OpenIDIdentity: Hashable, Sendable {
  package let subject: String
  package let email: String?
  /// Whether the provider has verified that the address is the user's.
  package let isEmailVerified: Bool
  /// The time of the user's last authentication at the provider; `nil` if the provider does not
  /// report it.
  package let authenticatedAt: Date?
}

/// Signs users in with the authorization code flow and PKCE (OpenID Connect Core, section 3.1; RFC
/// 7636).
package actor OpenIDProvider {
  /// The values that bind a sign-in to the browser that began it.
  package struct Attempt: Sendable {
    package let state: String
    package let nonce: String
    /// The PKCE verifier, of which the provider first receives the digest.
    package let verifier: String

    package init(state: String, nonce: String, verifier: String) {
      self.state = state
      self.nonce = nonce
      self.verifier = verifier
    }
  }

  /// The provider's metadata (OpenID Connect Discovery, section 3).
  private struct Document: Sendable {
    let authorization: String
    let token: URL
    let keys: URL
    let takesSecretInBody: Bool
    /// Whether its replies include the issuer (RFC 9207).
    let namesItself: Bool
  }

  private static let lifetime: TimeInterval = 3600
  /// The interval between two attempts to reach an unresponsive provider, in seconds.
  private static let pause: TimeInterval = 5
  private static let sizeLimit = 1 << 20

  package nonisolated let configuration: OpenIDConfiguration
  private let transport: any HTTPTransport
  private let now: @Sendable () -> Date
  private var document: Document?
  /// The token verifier with the URL of its keys.
  private var tokens: (keys: URL, checker: BearerTokens)?
  private var lastFault: OpenIDFault?
  private var readAt = Date.distantPast
  private var flight: Task<Result<Document, OpenIDFault>, Never>?

  package init(
    _ configuration: OpenIDConfiguration, transport: any HTTPTransport,
    now: @escaping @Sendable () -> Date
  ) {
    self.configuration = configuration
    self.transport = transport
    self.now = now
  }

  // MARK: The two steps

  /// The URL that the browser is redirected to.
  ///
  /// - Parameters:
  ///   - redirect: The URL to which the provider redirects back.
  ///   - isFresh: Whether the user must authenticate again even with an existing session.
  package func address(
    for attempt: Attempt, redirect: String, isFresh: Bool
  ) async throws(OpenIDFault) -> String {
    let document = try await current()
    var fields = [
      ("response_type", "code"), ("client_id", configuration.client), ("redirect_uri", redirect),
      ("scope", "openid email"), ("state", attempt.state), ("nonce", attempt.nonce),
      ("code_challenge", Base64URL.encode(Digest.sha256(Array(attempt.verifier.utf8)))),
      ("code_challenge_method", "S256"),
    ]
    if isFresh { fields += [("prompt", "login"), ("max_age", "0")] }
    return document.authorization + (document.authorization.contains("?") ? "&" : "?")
      + fields.map { "\($0)=\($1.percentEncoded)" }.joined(separator: "&")
  }

  /// Whether a reply may come from this provider, judging by its issuer.
  package func isMine(_ issuer: String?) async throws(OpenIDFault) -> Bool {
    if let issuer { return issuer == configuration.issuer }
    return !(try await current().namesItself)
  }

  /// Exchanges the code from the browser for a token, and returns the identity in it.
  ///
  /// - Parameter redirect: The same URL as in the first step.
  package func identity(
    code: String, _ attempt: Attempt, redirect: String
  ) async throws(OpenIDFault) -> OpenIDIdentity {
    let document = try await current()
    let text = try await token(code, attempt, redirect, document)
    guard let token = try? CompactJWS(text) else { throw .token(.malformed) }
    let claims: JSONValue
    do {
      // The provider may have moved its keys in the meantime.
      claims = try await checker(of: self.document ?? document).claims(of: token)
    } catch {
      let refusal = error as? BearerRefusal ?? .keysUnavailable
      if refusal == .keysUnavailable { throw .unreachable("its keys cannot be read") }
      throw .token(refusal)
    }
    return try identity(claims, attempt)
  }

  private func identity(
    _ claims: JSONValue, _ attempt: Attempt
  ) throws(OpenIDFault) -> OpenIDIdentity {
    guard claims.exactly("nonce") == .string(attempt.nonce) else { throw .nonce }
    // Section 3.1.3.7, steps 4 and 5: a token with several audiences names the authorized party.
    let mine = JSONValue.string(configuration.client)
    if let party = claims.exactly("azp") {
      guard party == mine else { throw .token(.audience) }
    } else if case .array(let all)? = claims.exactly("aud"), all.count > 1 {
      throw .token(.audience)
    }
    guard case .string(let subject)? = claims.exactly("sub"), !subject.isEmpty else {
      throw .token(.user)
    }
    var email: String?
    if case .string(let address)? = claims.exactly("email") { email = address }
    return OpenIDIdentity(
      subject: subject, email: email,
      isEmailVerified: claims.exactly("email_verified") == .bool(true),
      authenticatedAt: claims.seconds("auth_time").map(Date.init(timeIntervalSince1970:)))
  }

  /// - Returns: The text of the ID token.
  private func token(
    _ code: String, _ attempt: Attempt, _ redirect: String, _ document: Document
  ) async throws(OpenIDFault) -> String {
    var fields = [
      (name: "grant_type", value: "authorization_code"), (name: "code", value: code),
      (name: "redirect_uri", value: redirect), (name: "code_verifier", value: attempt.verifier),
    ]
    var headers = ["Content-Type": PercentEncoding.formType, "Accept": "application/json"]
    if let secret = configuration.secret, !document.takesSecretInBody {
      // RFC 6749, section 2.3.1: both are form-encoded first.
      let pair = [configuration.client, secret].map { text in
        var bytes: [UInt8] = []
        PercentEncoding.append(text.utf8, .form, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
      }
      headers["Authorization"] = "Basic " + Base64.encode(Array(pair.joined(separator: ":").utf8))
    } else {
      fields.append((name: "client_id", value: configuration.client))
      if let secret = configuration.secret {
        fields.append((name: "client_secret", value: secret))
      }
    }
    let reply = try await send(
      TransportRequest(
        method: "POST", url: document.token, headers: headers,
        body: Data(PercentEncoding.form(fields))))
    let json = try? JSONValue.parse(reply.body)
    if reply.status == 200, case .string(let token)? = json?.exactly("id_token") { return token }
    guard case .string(let error)? = json?.exactly("error") else {
      throw .unreachable("its token endpoint answers \(reply.status) without an ID token")
    }
    switch error {
    case "invalid_client", "unauthorized_client": throw .client(Self.word(error))
    case "invalid_grant": throw .code(Self.word(error))
    default: throw .refused(Self.word(error))
    }
  }

  /// The provider's error code, shortened to printable ASCII.
  package static func word(_ text: String) -> String {
    String(text.unicodeScalars.filter { (0x21...0x7E).contains($0.value) }.prefix(60))
  }

  // MARK: Discovery

  private func current() async throws(OpenIDFault) -> Document {
    let age = now().timeIntervalSince(readAt)
    if let document, (0..<Self.lifetime).contains(age) { return document }
    if document == nil, let lastFault, (0..<Self.pause).contains(age) { throw lastFault }
    let flight = flight ?? Task { await self.read() }
    self.flight = flight
    let result = await flight.value
    self.flight = nil
    readAt = now()
    switch result {
    case .success(let found):
      document = found
      lastFault = nil
    case .failure(let fault):
      lastFault = fault
      // The previous metadata may still be valid.
      guard document != nil else { throw fault }
    }
    guard let document else { throw .unreachable("it says nothing of itself") }
    return document
  }

  private func read() async -> Result<Document, OpenIDFault> {
    do throws(OpenIDFault) {
      var base = configuration.issuer
      while base.hasSuffix("/") { base.removeLast() }
      guard let url = URL(string: base + "/.well-known/openid-configuration") else {
        throw .unreachable("its issuer is no address")
      }
      let reply = try await send(
        TransportRequest(method: "GET", url: url, headers: ["Accept": "application/json"]))
      guard reply.status == 200, let json = try? JSONValue.parse(reply.body) else {
        throw .unreachable("\(url.path()) answers \(reply.status) without JSON")
      }
      return .success(try document(json))
    } catch {
      return .failure(error)
    }
  }

  private func document(_ json: JSONValue) throws(OpenIDFault) -> Document {
    guard json.exactly("issuer") == .string(configuration.issuer) else {
      throw .unreachable("it says that it is another issuer than \(configuration.issuer)")
    }
    // Plain HTTP only if the operator has configured it with the issuer.
    let onThisMachine = configuration.issuer.lowercased().hasPrefix("http://")
    func text(_ name: String) throws(OpenIDFault) -> String {
      guard case .string(let text)? = json.exactly(name),
        OpenIDAddress.isAllowed(text, onThisMachine: onThisMachine)
      else { throw .unreachable("its \(name) is no https address") }
      return text
    }
    func address(_ name: String) throws(OpenIDFault) -> URL {
      guard let url = URL(string: try text(name)) else {
        throw .unreachable("its \(name) is no https address")
      }
      return url
    }
    var methods: [JSONValue] = []
    if case .array(let all)? = json.exactly("token_endpoint_auth_methods_supported") {
      methods = all
    }
    return Document(
      authorization: try text("authorization_endpoint"), token: try address("token_endpoint"),
      keys: try address("jwks_uri"),
      takesSecretInBody: methods.contains(.string("client_secret_post"))
        && !methods.contains(.string("client_secret_basic")),
      namesItself: json.exactly("authorization_response_iss_parameter_supported") == .bool(true))
  }

  private func checker(of document: Document) -> BearerTokens {
    if let tokens, tokens.keys == document.keys { return tokens.checker }
    var bearer = BearerConfiguration(
      issuer: configuration.issuer, audience: configuration.client, keys: .url(document.keys))
    bearer.clockSkew = configuration.clockSkew
    let made = BearerTokens(bearer, transport: transport, now: now)
    tokens = (document.keys, made)
    return made
  }

  private func send(_ request: TransportRequest) async throws(OpenIDFault) -> TransportReply {
    let reply: TransportReply
    do { reply = try await transport.send(request) } catch {
      throw .unreachable("\(error)")
    }
    guard reply.body.count <= Self.sizeLimit else { throw .unreachable("its answer is too long") }
    return reply
  }
}

/// Validates URLs of a provider.
enum OpenIDAddress {
  /// - Parameter onThisMachine: Whether plain HTTP is permitted for an address of this machine.
  static func isAllowed(_ text: String, onThisMachine: Bool) -> Bool {
    guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"\"#<>\\^`{|}".utf8.contains($0) }),
      let url = URL(string: text), let host = url.host(), !host.isEmpty, url.user() == nil
    else { return false }
    return switch url.scheme?.lowercased() {
    case "https": true
    case "http": onThisMachine && ["localhost", "127.0.0.1", "::1", "[::1]"].contains(host)
    default: false
    }
  }
}
