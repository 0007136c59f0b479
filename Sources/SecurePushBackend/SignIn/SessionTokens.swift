import Authentication
import Cryptography
import Foundation
import NotificationHubs
import Wire

/// The backend's own tokens for users who have signed in with a password: JWTs signed with ES256 by
/// a key that is sealed in the store.
///
/// A token belongs to a sign-in (a session) in the store. It is invalid once the session is revoked
/// or expired, or the user's password has changed.
actor SessionTokens {
  enum Kind: String, CaseIterable {
    /// A token sent with each request.
    case access = "belfry-access+jwt"
    /// A token that gets new tokens, accepted only by `POST /api/token`.
    case refresh = "belfry-refresh+jwt"
  }

  struct Claims: Hashable, Sendable {
    let session: String
    let user: UserName
    let expiresAt: Date
  }

  private static let issuer = "belfry-backend"

  private let store: BackendStore
  private var keys: (own: P256PrivateKey, shown: P256PublicKey)?

  init(store: BackendStore) { self.store = store }

  func sign(_ claims: Claims, as kind: Kind) async throws -> String {
    let header = JSONValue.object([
      .init("alg", .string("ES256")), .init("typ", .string(kind.rawValue)),
    ])
    let body = JSONValue.object([
      .init("iss", .string(Self.issuer)), .init("sub", .string(claims.user.key)),
      .init("sid", .string(claims.session)),
      .init("exp", .number(String(Int64(claims.expiresAt.timeIntervalSince1970)))),
    ])
    return try CompactJWS.sign(
      header: header.jsonBytes, claims: body.jsonBytes, with: try await load().own)
  }

  /// The kind that a token claims to be, which only selects the verifier.
  static func kind(of token: CompactJWS) -> Kind? {
    token.header.string("typ").flatMap(Kind.init)
  }

  /// - Throws: ``BearerRefusal``, or the store's error.
  func claims(of token: CompactJWS, at now: Date) async throws -> Claims {
    guard !token.header.contains("crit") else { throw BearerRefusal.critical }
    guard token.header.string("alg") == "ES256" else { throw BearerRefusal.algorithm }
    guard token.verifies(with: try await load().shown) else { throw BearerRefusal.signature }
    guard token.claims.string("iss") == Self.issuer else { throw BearerRefusal.issuer }
    guard let session = token.claims.string("sid"),
      let user = token.claims.string("sub").flatMap(UserName.init(key:)),
      let expiry = token.claims.integer("exp")
    else { throw BearerRefusal.malformed }
    guard now.timeIntervalSince1970 < Double(expiry) else { throw BearerRefusal.expired }
    return Claims(
      session: session, user: user, expiresAt: Date(timeIntervalSince1970: Double(expiry)))
  }

  private func load() async throws -> (own: P256PrivateKey, shown: P256PublicKey) {
    if let keys { return keys }
    let own = try await store.signingKey()
    let keys = (own: own, shown: try own.publicKey())
    self.keys = keys
    return keys
  }
}
