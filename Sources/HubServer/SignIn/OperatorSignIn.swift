package import Authentication
import Cryptography
package import Foundation
import HTTPServer
package import HubCore
import NotificationHubs
import Wire

/// Signs operators in at the portal, and recognizes them by their cookie.
///
/// No essential state is in the process: operators are in a file, sessions in the store. So a
/// restart signs nobody out, and an operator removed from the file loses access with the next
/// request. The counters that throttle guessing belong to the process, unless nodes share a
/// database.
package final class OperatorSignIn: Sendable {
  package struct Options: Sendable {
    /// The maximum time between two requests of a session, in seconds.
    package var idle: TimeInterval = 1800
    /// The maximum duration of a session, in seconds.
    package var lifetime: TimeInterval = 12 * 3600
    /// The time after a confirmation of their identity during which an operator may see keys and
    /// delete things, in seconds.
    package var confirmation: TimeInterval = 300
    package init() {}
  }

  /// A signed-in operator, with their present entry in the file.
  package struct Operator: Sendable {
    package let user: UserName
    package let roles: OperatorRoles
    fileprivate(set) var session: OperatorSession
    /// Whether keys may be shown and things deleted without a new confirmation.
    package let isConfirmed: Bool

    /// The operator's name in the activity log. A typed name that looks like a subject is prefixed
    /// with its kind.
    package var name: String {
      "user/\(user.kind == .name && UserName(key: user.text) == nil ? user.text : user.key)"
    }
  }

  /// The maximum number of sessions per user: browsers and devices.
  private static let sessionsPerUser = 20
  /// The precision of ``OperatorSession/seenAt``, in seconds, so that not every request writes.
  private static let touch: TimeInterval = 60
  private static let tokenCount = 32

  let operators: UserFile
  /// The OpenID provider; `nil` allows only passwords.
  let provider: OpenIDProvider?
  private let store: any OperatorSessionStore
  let clock: HubClock
  let options: Options
  private let limiter: AttemptLimiter
  private let guessKey: [UInt8]

  /// - Parameter operators: A file whose remarks are ``OperatorRoles``.
  package init(
    operators: UserFile, provider: OpenIDProvider? = nil, store: any OperatorSessionStore,
    clock: HubClock, options: Options = Options(), limiter: AttemptLimiter = AttemptLimiter()
  ) throws {
    self.operators = operators
    self.provider = provider
    self.store = store
    self.clock = clock
    self.options = options
    self.limiter = limiter
    guessKey = try SecureRandom.bytes(32)
  }

  /// The message about an operator file with errors. Its valid lines still apply, so that a removed
  /// operator stays removed.
  package static let whatCounts =
    "The operators whose lines can be read are signed in as before; those of other lines are not."

  /// The health finding for the operator file; `nil` if it is valid.
  package func finding() async -> HealthReport.Finding? {
    guard await operators.fault() != nil else { return nil }
    return .init(
      code: "operator-file",
      text: "the operator file cannot be read as a whole; the log says where. \(Self.whatCounts)")
  }

  /// The available methods of sign-in for operators.
  func ways() async -> [String] {
    (await operators.hasPasswords() ? ["password"] : []) + (provider == nil ? [] : ["oidc"])
  }

  // MARK: In and out

  /// - Returns: The session token for the browser.
  /// - Throws: ``HubFailure``: 401 for a wrong password, 429 while guessing is throttled, 503 if
  ///   too many password checks are pending.
  func signIn(
    _ name: String, password: String, from address: String, replacing old: String?
  ) async throws(HubFailure) -> (token: String, operator: Operator) {
    guard let user = UserName(typed: name) else { throw .wrongPassword }
    let fingerprint = try await check(password, of: user, from: address)
    return try await begin(
      user, fingerprint, confirmedAt: clock.now(), replacing: old.map(Self.id(of:)))
  }

  /// Begins a session with a new token: one that was planted in the browser before is useless, and
  /// a valid previous session ends.
  ///
  /// - Parameters:
  ///   - confirmedAt: The time of the last confirmation of identity.
  ///   - old: The id of the previous session.
  func begin(
    _ user: UserName, _ fingerprint: [UInt8], confirmedAt: Date, replacing old: [UInt8]?
  ) async throws(HubFailure) -> (token: String, operator: Operator) {
    guard let roles = await roles(of: user) else { throw .wrongPassword }
    return try await answering {
      let token = Base64URL.encode(try SecureRandom.bytes(Self.tokenCount))
      let now = clock.now()
      let session = OperatorSession(
        id: Self.id(of: token), user: user.key, fingerprint: fingerprint, startedAt: now,
        seenAt: now, confirmedAt: confirmedAt)
      if let old { try await store.endSession(old) }
      try await store.addSession(
        session, forgetting: now.addingTimeInterval(-options.idle), keeping: Self.sessionsPerUser)
      return (
        token,
        Operator(user: user, roles: roles, session: session, isConfirmed: isConfirmed(session))
      )
    }
  }

  func signOut(_ token: String) async throws(HubFailure) {
    try await answering { try await store.endSession(Self.id(of: token)) }
  }

  /// Confirms the operator's identity with the password.
  func confirm(
    _ one: Operator, password: String, from address: String
  ) async throws(HubFailure) {
    guard one.user.kind == .name else { throw .wrongPassword }
    _ = try await check(password, of: one.user, from: address)
    try await confirm(one)
  }

  func confirm(_ one: Operator) async throws(HubFailure) {
    var session = one.session
    session.confirmedAt = clock.now()
    let confirmed = session
    try await answering { try await store.updateSession(confirmed) }
  }

  // MARK: Who it is

  /// - Returns: `nil` for an unknown token, one that has been idle for too long, or one whose
  ///   operator is no longer in the file or has a different password now.
  func find(_ token: String) async throws(HubFailure) -> Operator? {
    guard
      token.utf8.count == Base64URL.encode([UInt8](repeating: 0, count: Self.tokenCount)).utf8.count
    else { return nil }
    return try await answering {
      let id = Self.id(of: token)
      guard let session = try await store.session(id) else { return nil }
      guard var one = await current(session) else {
        try await store.endSession(id)
        return nil
      }
      let now = clock.now()
      if abs(now.timeIntervalSince(session.seenAt)) >= Self.touch {
        one.session.seenAt = now
        try await store.updateSession(one.session)
      }
      return one
    }
  }

  /// Whether an operator is still signed in and has at least this role. This does not count as a
  /// request, so that automatic activity keeps no session alive.
  func holds(
    _ one: Operator, _ least: OperatorRole, in hub: String
  ) async -> Bool {
    guard let session = try? await store.session(one.session.id),
      let found = await current(session), let role = found.roles[hub]
    else { return false }
    return role >= least
  }

  /// The user of a session that has not ended.
  func user(ofSession id: [UInt8]) async throws(HubFailure) -> UserName? {
    try await answering {
      guard let session = try await store.session(id) else { return nil }
      return await current(session)?.user
    }
  }

  private func current(_ session: OperatorSession) async -> Operator? {
    let now = clock.now()
    guard let user = UserName(key: session.user),
      abs(now.timeIntervalSince(session.seenAt)) < options.idle,
      abs(now.timeIntervalSince(session.startedAt)) < options.lifetime,
      await fingerprint(of: user) == session.fingerprint, let roles = await roles(of: user)
    else { return nil }
    return Operator(
      user: user, roles: roles, session: session, isConfirmed: isConfirmed(session))
  }

  private func isConfirmed(_ session: OperatorSession) -> Bool {
    (0..<options.confirmation).contains(clock.now().timeIntervalSince(session.confirmedAt))
  }

  /// A value that changes with the user's password. For users of a provider it changes with the
  /// provider, since its subjects are different people from another's.
  func fingerprint(of user: UserName) async -> [UInt8]? {
    guard user.kind != .name else { return await operators.fingerprint(of: user) }
    return provider.map {
      Digest.sha256(Array("\($0.configuration.issuer)\n\($0.configuration.client)".utf8))
    }
  }

  func roles(of user: UserName) async -> OperatorRoles? {
    await operators.remark(on: user).flatMap(OperatorRoles.init)
  }

  static func id(of token: String) -> [UInt8] { Digest.sha256(Array(token.utf8)) }

  // MARK: Tries

  /// Reserves an attempt before it is checked, so that concurrent attempts count too.
  ///
  /// - Throws: 429 while guessing is throttled, 503 if attempts cannot be counted.
  func reserve(
    _ account: String, guess: String, from address: String
  ) async throws(HubFailure) -> AttemptLimiter.Ticket {
    let network = ClientNetwork(address)
    let text = Array(account.utf8) + [0] + Array(guess.utf8)
    let guess = (try? MessageAuthentication.code(of: text, key: guessKey)) ?? Digest.sha256(text)
    let answer = try await answering {
      try await limiter.reserve(
        account: account, network: network?.description ?? address, site: Self.site(of: address),
        guess: guess, at: clock.now())
    }
    switch answer {
    case .success(let ticket): return ticket
    case .failure(let wait):
      throw HubFailure(
        status: 429, message: "Too many wrong tries; try again in \(wait.seconds) seconds",
        retryAfter: wait.seconds)
    }
  }

  func finish(_ ticket: AttemptLimiter.Ticket, as outcome: AttemptLimiter.Outcome) async {
    await limiter.finish(ticket, as: outcome, at: clock.now())
  }

  private static func site(of address: String) -> String { ClientNetwork(address)?.site ?? address }

  /// - Returns: The user's fingerprint.
  private func check(
    _ password: String, of user: UserName, from address: String
  ) async throws(HubFailure) -> [UInt8] {
    let ticket = try await reserve(user.key, guess: password, from: address)
    let fingerprint: [UInt8]?
    do {
      fingerprint = try await operators.check(
        password, of: user, from: Self.site(of: address), isKnown: ticket.isKnown)
    } catch {
      await finish(ticket, as: .unknown)
      throw HubFailure(
        status: 503, message: "Too many sign-ins at once; try again later",
        retryAfter: error.retryAfter)
    }
    await finish(ticket, as: fingerprint == nil ? .wrong : .right)
    guard let fingerprint else { throw .wrongPassword }
    return fingerprint
  }

  private func answering<Value>(
    _ work: () async throws -> Value
  ) async throws(HubFailure) -> Value {
    do { return try await work() } catch let failure as HubFailure {
      throw failure
    } catch {
      throw HubFailure(status: 503, message: "Sessions cannot be read at present; try again later")
    }
  }
}

extension HubFailure {
  /// 401, the same for an unknown user.
  static let wrongPassword = HubFailure(status: 401, message: "User name or password is wrong")
  /// 401: the session of the cookie has ended.
  static let signedOut = HubFailure(
    status: 401, message: "SignedOut: The session has ended. Sign in again.")
  /// 403: a page of another origin uses the cookie.
  static let fromElsewhere = HubFailure(
    status: 403, message: "Only a page of this server may use the session.")
  /// 403: keys and deletions require a recent confirmation of identity.
  static let confirmationRequired = HubFailure(
    status: 403, message: "ConfirmationRequired: Show once more who you are, then try again.")
}
