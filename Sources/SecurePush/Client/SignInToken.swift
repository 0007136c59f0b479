public import Foundation
import NotificationHubs
import Wire

/// A sign-in at the backend, to be stored instead of the password: in the keychain, as JSON.
public struct SignInToken: Codable, Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  /// The user's name, as the backend spells it.
  public let user: String
  /// The token sent with each call; valid for an hour unless the backend is configured otherwise.
  public let token: String
  public let expiresAt: Date
  /// The token that gets the next ``token``. Valid for months without use, until the user signs
  /// out, the password changes, or an operator revokes it.
  public let refreshToken: String
  public let refreshExpiresAt: Date

  init(_ reply: TransportReply) throws {
    guard let document = try? JSONValue.parse(reply.body),
      case .string(let user)? = document["user"], case .string(let token)? = document["token"],
      case .string(let refreshToken)? = document["refreshToken"],
      let expiresAt = document["expiresAt"]?.scalarText.flatMap(WireDate.parse),
      let refreshExpiresAt = document["refreshExpiresAt"]?.scalarText.flatMap(WireDate.parse)
    else { throw SecurePushClientError.unexpectedReply }
    self.user = user
    self.token = token
    self.expiresAt = expiresAt
    self.refreshToken = refreshToken
    self.refreshExpiresAt = refreshExpiresAt
  }

  /// The user without the tokens, so that they do not end up in logs.
  public var description: String { "SignInToken(\(user), hidden)" }
  public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}

/// Holds the token of a sign-in and renews it when the backend says that it has expired.
public actor SignInSession {
  /// The current token.
  public private(set) var token: SignInToken
  private let save: @Sendable (SignInToken) async throws -> Void
  private var flight: Task<SignInToken, any Error>?

  /// - Parameter save: Called with each new token, to be stored. Its errors are ignored: a token
  ///   that could not be stored is renewed again from the old one.
  public init(
    _ token: SignInToken, save: @escaping @Sendable (SignInToken) async throws -> Void = { _ in }
  ) {
    self.token = token
    self.save = save
  }

  /// Returns the token that replaces a refused one, fetched only once for any number of callers.
  func renewed(
    after refused: SignInToken,
    fetch: @escaping @Sendable (SignInToken) async throws -> SignInToken
  ) async throws -> SignInToken {
    if token != refused { return token }
    if let flight { return try await value(of: flight) }
    // The task stores its result and clears itself, since the caller that started it may have been
    // cancelled.
    let flight = Task {
      defer { self.flight = nil }
      let new = try await fetch(refused)
      try? await save(new)
      token = new
      return new
    }
    self.flight = flight
    return try await value(of: flight)
  }
}
