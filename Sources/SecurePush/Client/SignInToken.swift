public import Foundation
import NotificationHubs
import Wire

/// A sign-in at the backend, to be kept in place of the password: in the keychain, as JSON.
public struct SignInToken: Codable, Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  /// The user's name, as the backend spells it.
  public let user: String
  /// Shown with each call; good for an hour unless the backend is set otherwise.
  public let token: String
  public let expiresAt: Date
  /// Gets the next ``token``. Good for months without use, until the user signs out, the password
  /// changes, or an operator revokes it.
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

  /// Without the tokens, so that they reach no log.
  public var description: String { "SignInToken(\(user), hidden)" }
  public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}

/// Holds the token of a sign-in and renews it when the backend says that it has expired.
public actor SignInSession {
  /// The token it has now.
  public private(set) var token: SignInToken
  private let save: @Sendable (SignInToken) async throws -> Void
  private var flight: Task<SignInToken, any Error>?

  /// - Parameter save: Called with each new token, to be stored. What it throws is ignored: a token
  ///   that could not be stored is renewed from the old one again.
  public init(
    _ token: SignInToken, save: @escaping @Sendable (SignInToken) async throws -> Void = { _ in }
  ) {
    self.token = token
    self.save = save
  }

  /// The token that takes the place of a refused one, fetched once however many callers wait.
  func renewed(
    after refused: SignInToken,
    fetch: @escaping @Sendable (SignInToken) async throws -> SignInToken
  ) async throws -> SignInToken {
    if token != refused { return token }
    if let flight { return try await value(of: flight) }
    // The flight keeps what it brings and ends itself: whoever began it may have been cancelled.
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
