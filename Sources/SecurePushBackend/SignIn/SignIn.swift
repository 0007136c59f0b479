package import Authentication
import Cryptography
import Foundation
import HTTPServer
import NotificationHubs
import Synchronization
import Wire

/// The authentication of users: HTTP Basic against a directory of passwords, bearer tokens of an
/// OpenID provider, or either. The backend's own tokens can replace passwords.
package struct SignIn: Sendable {
  /// The directory of passwords; `nil` disables HTTP Basic.
  package var passwords: (any PasswordDirectory)?
  /// The provider of bearer tokens; `nil` disables them.
  package var bearer: BearerConfiguration?
  /// The users who may send to others.
  package var operators: Set<UserName> = []
  /// Whether every user may send to others, as in the tutorials.
  package var everyoneSends = false

  package init(
    passwords: (any PasswordDirectory)? = nil, bearer: BearerConfiguration? = nil,
    operators: Set<UserName> = []
  ) {
    self.passwords = passwords
    self.bearer = bearer
    self.operators = operators
  }

  /// The kinds of users that can sign in.
  package var kinds: Set<UserName.Kind> {
    var kinds: Set<UserName.Kind> = []
    if passwords != nil { kinds.insert(.name) }
    if bearer != nil { kinds.insert(.subject) }
    return kinds
  }
}

/// Authenticates each request by its `Authorization` header.
final class Authenticator: Sendable {
  /// The maximum number of audit lines per minute about refused sign-ins; further ones are only
  /// counted.
  private static let linesPerMinute = 60

  private let signIn: SignIn
  private let provider: BearerTokens?
  private let sessions: SessionTokens
  private let store: BackendStore
  private let limiter: AttemptLimiter
  private let guessKey: [UInt8]
  private let now: @Sendable () -> Date
  private let refusals = Mutex((minute: Int64(0), count: 0))

  init(
    _ signIn: SignIn, sessions: SessionTokens, store: BackendStore, transport: any HTTPTransport,
    now: @escaping @Sendable () -> Date
  ) {
    self.signIn = signIn
    self.sessions = sessions
    self.store = store
    limiter = AttemptLimiter(in: store.isShared ? store : nil)
    self.now = now
    // Without a random key (only if OpenSSL fails) digests still distinguish passwords.
    guessKey = (try? SecureRandom.bytes(32)) ?? []
    provider = signIn.bearer.map { BearerTokens($0, transport: transport, now: now) }
  }

  /// - Parameter takesRefreshTokens: Whether refresh tokens are accepted, which only one route
  ///   does.
  /// - Throws: ``APIFailure`` 401 with the accepted schemes, 429 while password attempts are
  ///   throttled, 503 if too many password checks are pending or the issuer's keys cannot be read.
  func identify(
    _ request: HTTPRequest, takesRefreshTokens: Bool = false
  ) async throws -> Identity {
    guard let header = request.headers["Authorization"], let blank = header.firstIndex(of: " ")
    else { throw refusal("sign in: this needs an Authorization header") }
    let credentials = header[blank...].drop { $0 == " " }
    switch header[..<blank].lowercased() {
    case "basic": return try await basic(credentials, request)
    case "bearer": return try await bearer(credentials, request, takesRefreshTokens)
    default: throw refusal("the Authorization scheme is not one that is taken here")
    }
  }

  // MARK: Passwords

  private func basic(_ credentials: Substring, _ request: HTTPRequest) async throws -> Identity {
    guard let passwords = signIn.passwords else {
      throw refusal("user name and password are not taken here")
    }
    guard let decoded = Base64.decode(credentials),
      let text = String(validating: decoded, as: UTF8.self), let colon = text.firstIndex(of: ":"),
      let user = UserName(typed: String(text[..<colon]))
    else { throw refusal("the Authorization header does not hold a user name and password") }
    let password = String(text[text.index(after: colon)...])
    let address = request.remoteAddress
    let network = ClientNetwork(address)
    let site = network?.site ?? address
    // Reserved before the password is checked, so that concurrent requests count too.
    let ticket: AttemptLimiter.Ticket
    switch try await limiter.reserve(
      account: user.key, network: network?.description ?? address, site: site,
      guess: digest(password, user), at: now())
    {
    case .success(let taken): ticket = taken
    case .failure(let wait):
      throw Self.later(
        .tooManyRequests, "too many wrong passwords; try again in \(wait.seconds) seconds",
        after: wait.seconds)
    }
    let fingerprint: [UInt8]?
    do {
      fingerprint = try await passwords.check(
        password, of: user, from: site, isKnown: ticket.isKnown)
    } catch {
      await limiter.finish(ticket, as: .unknown, at: now())
      throw Self.later(
        .serviceUnavailable, "too many sign-ins at once; try again later", after: error.retryAfter)
    }
    await limiter.finish(ticket, as: fingerprint == nil ? .wrong : .right, at: now())
    guard let fingerprint else {
      // An unknown name may be a password typed into the wrong field.
      let exists = await passwords.fingerprint(of: user) != nil
      await note(exists ? user.key : "unknown user", "wrong password", request)
      throw refusal("user name or password is wrong")
    }
    var identity = identity(user)
    identity.fingerprint = fingerprint
    return identity
  }

  private func digest(_ password: String, _ user: UserName) -> [UInt8] {
    let text = Array(user.key.utf8) + [0] + Array(password.utf8)
    return (try? MessageAuthentication.code(of: text, key: guessKey)) ?? Digest.sha256(text)
  }

  // MARK: Tokens

  /// Invalid tokens are not counted: a signature cannot be guessed, and counting would only lock
  /// out others.
  private func bearer(
    _ credentials: Substring, _ request: HTTPRequest, _ takesRefreshTokens: Bool
  ) async throws -> Identity {
    guard provider != nil || signIn.passwords != nil else {
      throw refusal("bearer tokens are not taken here")
    }
    do {
      guard let token = try? CompactJWS(String(credentials)) else { throw BearerRefusal.malformed }
      if let kind = SessionTokens.kind(of: token), let passwords = signIn.passwords {
        return try await session(token, kind, passwords, takesRefreshTokens)
      }
      guard let provider else { throw BearerRefusal.unknownKey }
      return identity(try await provider.user(of: token))
    } catch BearerRefusal.keysUnavailable {
      throw APIFailure(.serviceUnavailable, BearerRefusal.keysUnavailable.description)
    } catch let reason as BearerRefusal {
      // Tokens expire daily, which is not worth a line.
      if reason != .expired { await note("unknown user", reason.description, request) }
      throw refusal(reason.description, isToken: true)
    }
  }

  private func session(
    _ token: CompactJWS, _ kind: SessionTokens.Kind, _ passwords: any PasswordDirectory,
    _ takesRefreshTokens: Bool
  ) async throws -> Identity {
    let claims = try await sessions.claims(of: token, at: now())
    guard kind == .access || takesRefreshTokens else { throw BearerRefusal.refreshToken }
    guard let session = try await store.session(claims.session, at: now()),
      session.owner == claims.user,
      await passwords.fingerprint(of: claims.user) == session.fingerprint
    else { throw BearerRefusal.revoked }
    var identity = identity(claims.user)
    identity.session = claims.session
    identity.isRefreshing = kind == .refresh
    return identity
  }

  private func identity(_ user: UserName) -> Identity {
    Identity(user: user, isOperator: signIn.operators.contains(user))
  }

  // MARK: Refusals

  /// Adds an audit line about a refused sign-in. Anyone can cause them, so the number per minute is
  /// limited, and the next minute reports how many were omitted.
  private func note(_ actor: String, _ outcome: String, _ request: HTTPRequest) async {
    let now = now()
    let minute = Int64(now.timeIntervalSince1970 / 60)
    let (isKept, missing) = refusals.withLock { refusals in
      let missing =
        refusals.minute == minute ? 0 : max(0, refusals.count - Self.linesPerMinute)
      if refusals.minute != minute { refusals = (minute, 0) }
      refusals.count += 1
      return (refusals.count <= Self.linesPerMinute, missing)
    }
    func add(_ actor: String, _ outcome: String) async {
      // A refused sign-in stays refused even if the line cannot be written.
      try? await store.note(
        AuditLine(
          at: now, actor: actor, action: "sign in", subject: "", outcome: outcome,
          address: request.remoteAddress))
    }
    if missing > 0 { await add("unknown user", "and \(missing) refused sign-ins more") }
    if isKept { await add(actor, outcome) }
  }

  private static func later(
    _ status: HTTPStatus, _ reason: String, after seconds: Int
  ) -> APIFailure {
    var failure = APIFailure(status, reason)
    failure.headers.append(("Retry-After", String(seconds)))
    return failure
  }

  private func refusal(_ reason: String, isToken: Bool = false) -> APIFailure {
    var failure = APIFailure(.unauthorized, reason)
    if signIn.passwords != nil {
      failure.headers.append(("WWW-Authenticate", #"Basic realm="Belfry", charset="UTF-8""#))
    }
    if signIn.bearer != nil || isToken {
      let detail = isToken ? #", error="invalid_token", error_description="\#(reason)""# : ""
      failure.headers.append(("WWW-Authenticate", #"Bearer realm="Belfry"\#(detail)"#))
    }
    return failure
  }
}

/// The tutorials' rule: a user's name is also the password. For demonstrations only.
package struct DemoUsers: PasswordDirectory {
  package init() {}

  package func check(
    _ password: String, of user: UserName, from site: String, isKnown: Bool
  ) async throws(PasswordsBusy) -> [UInt8]? {
    !password.isEmpty && password.lowercased() == user.text ? Array("demo".utf8) : nil
  }

  package func fingerprint(of user: UserName) async -> [UInt8]? { Array("demo".utf8) }
}

/// An authenticated user.
package struct Identity: Hashable, Sendable {
  package let user: UserName
  /// Whether the user may send to any user.
  package var isOperator = false
  /// The sign-in that the caller's token belongs to; `nil` for a password or a provider's token.
  var session: String?
  /// Whether the caller presented a refresh token.
  var isRefreshing = false
  /// The fingerprint of the password that was given; `nil` if there was none.
  var fingerprint: [UInt8]?
}
