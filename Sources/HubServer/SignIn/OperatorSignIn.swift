package import Authentication
import Cryptography
package import Foundation
import HTTPServer
package import HubCore
import NotificationHubs
import Wire

/// Signs operators in at the portal, and knows them again by their cookie.
///
/// Nothing that matters is in the process: operators stand in a file, sessions in the store. So a
/// restart signs nobody out, and an operator who is taken out of the file is out with the next
/// request. Only the counts that slow guessing down are the process's own.
package final class OperatorSignIn: Sendable {
  package struct Options: Sendable {
    /// How long a session lasts without a request, in seconds.
    package var idle: TimeInterval = 1800
    /// How long it lasts at most.
    package var lifetime: TimeInterval = 12 * 3600
    /// For how long somebody who has just shown who they are may see keys and delete things.
    package var confirmation: TimeInterval = 300
    package init() {}
  }

  /// Somebody who is signed in, with what the file says of them now.
  package struct Operator: Sendable {
    package let user: UserName
    package let roles: OperatorRoles
    fileprivate(set) var session: OperatorSession
    /// Keys may be shown and things deleted without asking once more.
    package let isConfirmed: Bool

    /// As the activity log names them.
    package var name: String { "user/\(user.kind == .name ? user.text : user.key)" }
  }

  /// How many sessions of a user there may be: browsers and devices.
  private static let sessionsPerUser = 20
  /// How exact ``OperatorSession/seenAt`` is: not every request should write.
  private static let touch: TimeInterval = 60
  private static let tokenCount = 32

  let operators: UserFile
  private let store: any OperatorSessionStore
  private let clock: HubClock
  let options: Options
  private let limiter: AttemptLimiter
  private let guessKey: [UInt8]

  /// - Parameter operators: A file whose remarks are ``OperatorRoles``.
  package init(
    operators: UserFile, store: any OperatorSessionStore, clock: HubClock,
    options: Options = Options(), limiter: AttemptLimiter = AttemptLimiter()
  ) throws {
    self.operators = operators
    self.store = store
    self.clock = clock
    self.options = options
    self.limiter = limiter
    guessKey = try SecureRandom.bytes(32)
  }

  /// The ways in that there are for operators.
  var ways: [String] { operators.hasPasswords ? ["password"] : [] }

  // MARK: In and out

  /// - Returns: What the browser has to show from now on.
  /// - Throws: ``HubFailure``: 401 for a wrong password, 429 while guessing is slowed down, 503 when
  ///   too many passwords wait to be hashed.
  func signIn(
    _ name: String, password: String, from address: String, replacing old: String?
  ) async throws(HubFailure) -> (token: String, operator: Operator) {
    guard let user = UserName(typed: name) else { throw .wrongPassword }
    let fingerprint = try await check(password, of: user, from: address)
    return try await begin(user, fingerprint, replacing: old)
  }

  /// A session always begins with a token of its own: one that somebody has put into the browser before
  /// is worth nothing, and one that was good there ends.
  func begin(
    _ user: UserName, _ fingerprint: [UInt8], replacing old: String?
  ) async throws(HubFailure) -> (token: String, operator: Operator) {
    guard let roles = await roles(of: user) else { throw .wrongPassword }
    return try await answering {
      let token = Base64URL.encode(try SecureRandom.bytes(Self.tokenCount))
      let now = clock.now()
      let session = OperatorSession(
        id: Self.id(of: token), user: user.key, fingerprint: fingerprint, startedAt: now,
        seenAt: now, confirmedAt: now)
      if let old { try await store.endSession(Self.id(of: old)) }
      try await store.addSession(
        session, forgetting: now.addingTimeInterval(-options.idle), keeping: Self.sessionsPerUser)
      return (
        token, Operator(user: user, roles: roles, session: session, isConfirmed: true)
      )
    }
  }

  func signOut(_ token: String) async throws(HubFailure) {
    try await answering { try await store.endSession(Self.id(of: token)) }
  }

  /// Takes the password once more.
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

  /// - Returns: `nil` for a token that is none, has not been used for long, or whose operator is not
  ///   in the file any more or has another password now.
  func find(_ token: String) async throws(HubFailure) -> Operator? {
    guard
      token.utf8.count == Base64URL.encode([UInt8](repeating: 0, count: Self.tokenCount)).utf8.count
    else { return nil }
    return try await answering {
      guard var session = try await store.session(Self.id(of: token)) else { return nil }
      let now = clock.now()
      let (idle, age) = (
        now.timeIntervalSince(session.seenAt), now.timeIntervalSince(session.startedAt)
      )
      guard let user = UserName(key: session.user), abs(idle) < options.idle,
        abs(age) < options.lifetime, await operators.fingerprint(of: user) == session.fingerprint,
        let roles = await roles(of: user)
      else {
        try await store.endSession(session.id)
        return nil
      }
      if abs(idle) >= Self.touch {
        session.seenAt = now
        try await store.updateSession(session)
      }
      let sinceConfirmed = now.timeIntervalSince(session.confirmedAt)
      return Operator(
        user: user, roles: roles, session: session,
        isConfirmed: (0..<options.confirmation).contains(sinceConfirmed))
    }
  }

  func roles(of user: UserName) async -> OperatorRoles? {
    await operators.remark(on: user).flatMap(OperatorRoles.init)
  }

  private static func id(of token: String) -> [UInt8] { Digest.sha256(Array(token.utf8)) }

  // MARK: Passwords

  /// - Returns: The user's fingerprint.
  private func check(
    _ password: String, of user: UserName, from address: String
  ) async throws(HubFailure) -> [UInt8] {
    let network = ClientNetwork(address)
    let site = network?.site ?? address
    let text = Array(user.key.utf8) + [0] + Array(password.utf8)
    let guess = (try? MessageAuthentication.code(of: text, key: guessKey)) ?? Digest.sha256(text)
    // Reserved before the password is looked at: tries at the same time count, too.
    let ticket: AttemptLimiter.Ticket
    switch limiter.reserve(
      account: user.key, network: network?.description ?? address, site: site, guess: guess,
      at: clock.now())
    {
    case .success(let taken): ticket = taken
    case .failure(let wait):
      throw HubFailure(
        status: 429, message: "Too many wrong passwords; try again in \(wait.seconds) seconds",
        retryAfter: wait.seconds)
    }
    let fingerprint: [UInt8]?
    do {
      fingerprint = try await operators.check(
        password, of: user, from: site, isKnown: ticket.isKnown)
    } catch {
      limiter.finish(ticket, as: .unknown, at: clock.now())
      throw HubFailure(
        status: 503, message: "Too many sign-ins at once; try again later",
        retryAfter: error.retryAfter)
    }
    limiter.finish(ticket, as: fingerprint == nil ? .wrong : .right, at: clock.now())
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
  /// 401, the same for a user who does not exist.
  static let wrongPassword = HubFailure(status: 401, message: "User name or password is wrong")
  /// 401: the cookie opens nothing any more.
  static let signedOut = HubFailure(
    status: 401, message: "SignedOut: The session has ended. Sign in again.")
  /// 403: a page of another origin uses the cookie.
  static let fromElsewhere = HubFailure(
    status: 403, message: "Only a page of this server may use the session.")
  /// 403: keys and deletions want the operator once more.
  static let confirmationRequired = HubFailure(
    status: 403, message: "ConfirmationRequired: Show once more who you are, then try again.")
}
