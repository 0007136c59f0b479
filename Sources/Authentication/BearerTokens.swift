package import Cryptography
package import Foundation
package import NotificationHubs
package import Wire

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
package enum BearerRefusal: Error, Hashable, CustomStringConvertible {
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

  package var description: String {
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
package struct BearerTokens: Sendable {
  private let configuration: BearerConfiguration
  private let keys: IssuerKeys
  private let now: @Sendable () -> Date

  package init(
    _ configuration: BearerConfiguration, transport: any HTTPTransport,
    now: @escaping @Sendable () -> Date
  ) {
    self.configuration = configuration
    self.now = now
    keys = IssuerKeys(configuration.keys, transport: transport, now: now)
  }

  /// - Returns: The user whom the token names.
  /// - Throws: ``BearerRefusal``.
  package func user(of token: CompactJWS) async throws -> UserName {
    let claims = try await claims(of: token)
    guard case .string(let subject)? = claims.exactly(configuration.userClaim),
      let user = UserName(subject: subject)
    else { throw BearerRefusal.user }
    return user
  }

  /// - Returns: What the token says, signed by its issuer, for this audience and at this time.
  /// - Throws: ``BearerRefusal``.
  package func claims(of token: CompactJWS) async throws -> JSONValue {
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
    try check(claims)
    return claims
  }

  private func check(_ claims: JSONValue) throws {
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
  }
}

extension JSONValue {
  /// The member of exactly this name: claims tell letter cases apart.
  package func exactly(_ name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.name == name }?.value
  }

  package func seconds(_ name: String) -> Double? {
    guard case .number(let digits)? = exactly(name) else { return nil }
    return Double(digits)
  }
}

/// Where the public keys of a token's issuer come from.
package enum IssuerKeySource: Hashable, Sendable {
  case file(String)
  /// The issuer's `jwks_uri`.
  case url(URL)
}

/// The keys of an issuer, kept in memory: read on first use, again after an hour, and when a token
/// names a key that is not there, but not more often than every half minute.
actor IssuerKeys {
  private static let lifetime: TimeInterval = 3600
  private static let pause: TimeInterval = 30
  private static let sizeLimit = 1 << 20

  private let source: IssuerKeySource
  private let transport: any HTTPTransport
  private let now: @Sendable () -> Date
  private var current: JSONWebKeySet?
  private var readAt = Date.distantPast
  private var flight: Task<JSONWebKeySet?, Never>?

  init(
    _ source: IssuerKeySource, transport: any HTTPTransport, now: @escaping @Sendable () -> Date
  ) {
    self.source = source
    self.transport = transport
    self.now = now
  }

  /// - Returns: `nil` when the issuer has no such key.
  /// - Throws: ``BearerRefusal/keysUnavailable`` when the keys cannot be read.
  func key(named id: String?) async throws -> JSONWebKeySet.Key? {
    let age = now().timeIntervalSince(readAt)
    if let key = current?.key(named: id), (0..<Self.lifetime).contains(age) { return key }
    if current == nil || !(0..<Self.pause).contains(age) { await refresh() }
    guard let current else { throw BearerRefusal.keysUnavailable }
    return current.key(named: id)
  }

  private func refresh() async {
    let flight = flight ?? Task { [source, transport] in await Self.read(source, over: transport) }
    self.flight = flight
    let keys = await flight.value
    self.flight = nil
    readAt = now()
    // An issuer that cannot be reached leaves the keys that were there.
    if let keys { current = keys }
  }

  private static func read(
    _ source: IssuerKeySource, over transport: any HTTPTransport
  ) async -> JSONWebKeySet? {
    let json: Data?
    switch source {
    case .file(let path): json = try? Data(contentsOf: URL(filePath: path))
    case .url(let url):
      let reply = try? await transport.send(TransportRequest(method: "GET", url: url))
      json = reply?.status == 200 ? reply?.body : nil
    }
    guard let json, json.count <= sizeLimit else { return nil }
    return JSONWebKeySet(json: json)
  }
}

/// The public keys of a token's issuer (RFC 7517): those for RS256 and ES256; others are passed
/// over.
struct JSONWebKeySet: Sendable {
  enum Key: Sendable {
    case rsa(RSAPublicKey)
    case p256(P256PublicKey)
  }

  /// By key id; a key without an id stands under the empty text.
  let keys: [String: Key]

  /// - Parameter json: A key set, `{"keys":[…]}`.
  /// - Returns: `nil` when it is none, or holds no key that can be used.
  init?(json: some Collection<UInt8>) {
    guard let document = try? JSONValue.parse(json), case .array(let items)? = document["keys"]
    else { return nil }
    var keys: [String: Key] = [:]
    // An issuer has a handful.
    for item in items.prefix(100) {
      guard let key = Self.key(item) else { continue }
      keys[item["kid"]?.scalarText ?? ""] = key
    }
    guard !keys.isEmpty else { return nil }
    self.keys = keys
  }

  /// The key a token names; without a name the only one there is.
  func key(named id: String?) -> Key? {
    if let id { return keys[id] }
    return keys.count == 1 ? keys.first?.value : nil
  }

  private static func key(_ item: JSONValue) -> Key? {
    if let use = item["use"]?.scalarText, use != "sig" { return nil }
    switch item["kty"]?.scalarText {
    case "RSA":
      guard let modulus = number(item, "n"), let exponent = number(item, "e"),
        let key = try? RSAPublicKey(modulus: modulus, exponent: exponent)
      else { return nil }
      return .rsa(key)
    case "EC":
      guard item["crv"]?.scalarText == "P-256", let x = number(item, "x"), x.count == 32,
        let y = number(item, "y"), y.count == 32, let key = try? P256PublicKey(point: [4] + x + y)
      else { return nil }
      return .p256(key)
    default: return nil
    }
  }

  private static func number(_ item: JSONValue, _ name: String) -> [UInt8]? {
    item[name]?.scalarText.flatMap { Base64URL.decode($0) }
  }
}
