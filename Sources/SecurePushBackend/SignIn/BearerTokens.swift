import Cryptography
package import Foundation
import NotificationHubs
import Wire

/// Which tokens of an OpenID provider are taken.
package struct BearerConfiguration: Sendable {
  /// The exact `iss`.
  package var issuer: String
  /// What `aud` must be or contain.
  package var audience: String
  package var keys: IssuerKeySource
  /// How far the issuer's clock may be from ours, in seconds.
  package var clockSkew: TimeInterval = 60
  /// The claim that names the user.
  package var userClaim = "sub"

  package init(issuer: String, audience: String, keys: IssuerKeySource) {
    self.issuer = issuer
    self.audience = audience
    self.keys = keys
  }
}

/// Why a token is not taken; the text may be shown to its bearer.
enum BearerRefusal: Error, Hashable, CustomStringConvertible {
  case malformed
  case algorithm
  case unknownKey
  case signature
  case issuer
  case audience
  case expired
  case notYetValid
  case user
  /// The header asks for an extension that must be understood (RFC 7515, section 4.1.11).
  case critical
  /// Of the backend's own tokens: the sign-in has ended.
  case revoked
  case refreshToken
  /// Not the bearer's fault: the issuer's keys cannot be read.
  case keysUnavailable

  var description: String {
    switch self {
    case .malformed: "the token is not a JWT of three parts"
    case .algorithm: "the token is not signed with RS256 or ES256"
    case .unknownKey: "the token's key is not one of its issuer's"
    case .signature: "the token's signature is wrong"
    case .issuer: "the token is from another issuer"
    case .audience: "the token is for another audience"
    case .expired: "the token has expired, or has no expiry"
    case .notYetValid: "the token is not valid yet"
    case .user: "the token names no user"
    case .critical: "the token's header has 'crit', of which nothing is understood here"
    case .revoked: "the sign-in has ended, or the password has changed: sign in again"
    case .refreshToken: "a refresh token is taken at POST /api/token only"
    case .keysUnavailable: "the issuer's keys cannot be read at present"
    }
  }
}

/// Checks the JWTs of an OpenID provider (RFC 7519; OpenID Connect Core, section 3.1.3.7).
struct BearerTokens: Sendable {
  private let configuration: BearerConfiguration
  private let keys: IssuerKeys
  private let now: @Sendable () -> Date

  init(
    _ configuration: BearerConfiguration, transport: any HTTPTransport,
    now: @escaping @Sendable () -> Date
  ) {
    self.configuration = configuration
    self.now = now
    keys = IssuerKeys(configuration.keys, transport: transport, now: now)
  }

  /// - Returns: The user whom the token names.
  /// - Throws: ``BearerRefusal``.
  func user(of token: CompactJWS) async throws -> UserName {
    guard !token.header.contains("crit") else { throw BearerRefusal.critical }
    let algorithm = token.header.string("alg")
    guard algorithm == "RS256" || algorithm == "ES256" else { throw BearerRefusal.algorithm }
    guard let key = try await keys.key(named: token.header.string("kid")) else {
      throw BearerRefusal.unknownKey
    }
    // The key says which algorithm is right, not the token.
    let isSigned =
      switch key {
      case .rsa(let key): token.verifies(with: key)
      case .p256(let key): token.verifies(with: key)
      }
    guard isSigned else { throw BearerRefusal.signature }
    guard let claims = try? JSONValue.parse(token.claims.json) else {
      throw BearerRefusal.malformed
    }
    return try check(claims)
  }

  private func check(_ claims: JSONValue) throws -> UserName {
    guard claims.exactly("iss") == .string(configuration.issuer) else { throw BearerRefusal.issuer }
    switch claims.exactly("aud") {
    case .string(let audience)? where audience == configuration.audience: break
    case .array(let all)? where all.contains(.string(configuration.audience)): break
    default: throw BearerRefusal.audience
    }
    let now = now().timeIntervalSince1970
    guard let expiry = claims.seconds("exp"), now < expiry + configuration.clockSkew else {
      throw BearerRefusal.expired
    }
    for name in ["nbf", "iat"] {
      guard let start = claims.seconds(name) else { continue }
      guard start <= now + configuration.clockSkew else { throw BearerRefusal.notYetValid }
    }
    guard case .string(let subject)? = claims.exactly(configuration.userClaim),
      let user = UserName(subject: subject)
    else { throw BearerRefusal.user }
    return user
  }
}

extension JSONValue {
  /// The member of exactly this name: claims tell letter cases apart.
  fileprivate func exactly(_ name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.name == name }?.value
  }

  fileprivate func seconds(_ name: String) -> Double? {
    guard case .number(let digits)? = exactly(name) else { return nil }
    return Double(digits)
  }
}
