import Cryptography
import Foundation
import HTTPServer
import NotificationHubs

/// How users prove who they are: HTTP Basic against a directory of passwords, bearer tokens of an
/// OpenID provider, or either.
package struct SignIn: Sendable {
  /// Where passwords are looked up; `nil` takes no HTTP Basic.
  package var passwords: (any PasswordDirectory)?
  /// `nil` takes no bearer tokens.
  package var bearer: BearerConfiguration?
  /// Who may send to others.
  package var operators: Set<UserName> = []

  package init(
    passwords: (any PasswordDirectory)? = nil, bearer: BearerConfiguration? = nil,
    operators: Set<UserName> = []
  ) {
    self.passwords = passwords
    self.bearer = bearer
    self.operators = operators
  }
}

/// Looks at the `Authorization` header of each request.
final class Authenticator: Sendable {
  private let signIn: SignIn
  private let tokens: BearerTokens?
  private let limiter = FailureLimiter()
  private let now: @Sendable () -> Date

  init(
    _ signIn: SignIn, transport: any HTTPTransport, now: @escaping @Sendable () -> Date
  ) {
    self.signIn = signIn
    self.now = now
    tokens = signIn.bearer.map { BearerTokens($0, transport: transport, now: now) }
  }

  /// - Throws: ``APIFailure`` 401 with what is asked for, 429 after too many failures, 503 when the
  ///   issuer's keys cannot be read.
  func identify(_ request: HTTPRequest) async throws -> Identity {
    guard let header = request.headers["Authorization"], let blank = header.firstIndex(of: " ")
    else { throw refusal("sign in: this needs an Authorization header") }
    let credentials = header[blank...].drop { $0 == " " }
    switch header[..<blank].lowercased() {
    case "basic": return try await basic(credentials, request)
    case "bearer": return try await bearer(credentials, request)
    default: throw refusal("the Authorization scheme is not one that is taken here")
    }
  }

  private func basic(_ credentials: Substring, _ request: HTTPRequest) async throws -> Identity {
    guard let passwords = signIn.passwords else {
      throw refusal("user name and password are not taken here")
    }
    guard let decoded = Base64.decode(credentials),
      let text = String(validating: decoded, as: UTF8.self), let colon = text.firstIndex(of: ":"),
      let user = UserName(typed: String(text[..<colon]))
    else { throw refusal("the Authorization header does not hold a user name and password") }
    try admit(user.text, request)
    guard await passwords.accepts(String(text[text.index(after: colon)...]), of: user) else {
      limiter.failed(user: user.text, address: request.remoteAddress, at: now())
      throw refusal("user name or password is wrong")
    }
    limiter.succeeded(user: user.text, address: request.remoteAddress)
    return identity(user)
  }

  private func bearer(_ credentials: Substring, _ request: HTTPRequest) async throws -> Identity {
    guard let tokens else { throw refusal("bearer tokens are not taken here") }
    try admit("", request)
    do {
      return identity(try await tokens.user(of: String(credentials)))
    } catch BearerRefusal.keysUnavailable {
      throw APIFailure(.serviceUnavailable, BearerRefusal.keysUnavailable.description)
    } catch let reason as BearerRefusal {
      // Expired tokens are everyday life, not guesses.
      if reason != .expired {
        limiter.failed(user: "", address: request.remoteAddress, at: now())
      }
      throw refusal(reason.description, isToken: true)
    }
  }

  private func identity(_ user: UserName) -> Identity {
    Identity(user: user, isOperator: signIn.operators.contains(user))
  }

  private func admit(_ user: String, _ request: HTTPRequest) throws {
    guard
      let seconds = limiter.wait(user: user, address: request.remoteAddress, at: now())
    else { return }
    var failure = APIFailure(
      .tooManyRequests, "too many failed tries; try again in \(seconds) seconds")
    failure.headers.append(("Retry-After", String(seconds)))
    throw failure
  }

  private func refusal(_ reason: String, isToken: Bool = false) -> APIFailure {
    var failure = APIFailure(.unauthorized, reason)
    if signIn.passwords != nil {
      failure.headers.append(("WWW-Authenticate", #"Basic realm="Belfry", charset="UTF-8""#))
    }
    if signIn.bearer != nil {
      let detail = isToken ? #", error="invalid_token", error_description="\#(reason)""# : ""
      failure.headers.append(("WWW-Authenticate", #"Bearer realm="Belfry"\#(detail)"#))
    }
    return failure
  }
}
