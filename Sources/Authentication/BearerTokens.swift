package import Cryptography
package import Foundation
package import NotificationHubs
package import Wire

/// The requirements for the tokens of an OpenID provider.
package struct BearerConfiguration: Sendable {
  /// The exact `iss`.
  package var issuer: String
  /// The value that `aud` must equal or contain.
  package var audience: String
  package var keys: IssuerKeySource
  /// The permitted difference between the issuer's clock and ours, in seconds.
  package var clockSkew: TimeInterval = 60
  /// The claim with the name of the user.
  package var userClaim = "sub"

  package init(issuer: String, audience: String, keys: IssuerKeySource) {
    self.issuer = issuer
    self.audience = audience
    self.keys = keys
  }
}

/// The reason why a token is refused; the text may be shown to its bearer.
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
  /// The header requires an unsupported extension (RFC 7515, section 4.1.11).
  case critical
  /// The session of one of the backend's own tokens has ended.
  case revoked
  case refreshToken
  /// The issuer's keys cannot be read, which is not the bearer's fault.
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

/// Verifies the JWTs of an OpenID provider (RFC 7519; OpenID Connect Core, section 3.1.3.7).
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

  /// - Returns: The user named in the token.
  /// - Throws: ``BearerRefusal``.
  package func user(of token: CompactJWS) async throws -> UserName {
    let claims = try await claims(of: token)
    guard case .string(let subject)? = claims.exactly(configuration.userClaim),
      let user = UserName(subject: subject)
    else { throw BearerRefusal.user }
    return user
  }

  /// - Returns: The claims of the token, if it is signed by its issuer, and valid for this audience
  ///   and time.
  /// - Throws: ``BearerRefusal``.
  package func claims(of token: CompactJWS) async throws -> JSONValue {
    guard !token.header.contains("crit") else { throw BearerRefusal.critical }
    let algorithm = token.header.string("alg")
    guard algorithm == "RS256" || algorithm == "ES256" else { throw BearerRefusal.algorithm }
    guard let key = try await keys.key(named: token.header.string("kid")) else {
      throw BearerRefusal.unknownKey
    }
    // The key determines the algorithm, not the token.
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
  /// The member with exactly this name: claims are case-sensitive.
  package func exactly(_ name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.name == name }?.value
  }

  package func seconds(_ name: String) -> Double? {
    guard case .number(let digits)? = exactly(name) else { return nil }
    return Double(digits)
  }
}

/// The source of an issuer's public keys.
package enum IssuerKeySource: Hashable, Sendable {
  case file(String)
  /// The issuer's `jwks_uri`.
  case url(URL)
}

/// The cached keys of an issuer: read on first use, again after an hour, and when a token names an
/// unknown key, but at most every half minute.
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

  /// - Returns: `nil` if the issuer has no such key.
  /// - Throws: ``BearerRefusal/keysUnavailable`` if the keys cannot be read.
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
    // If the issuer is unreachable, the present keys stay.
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

/// The public keys of a token's issuer (RFC 7517): those for RS256 and ES256; others are ignored.
struct JSONWebKeySet: Sendable {
  enum Key: Sendable {
    case rsa(RSAPublicKey)
    case p256(P256PublicKey)
  }

  /// The keys by key id; a key without an id has the empty text.
  let keys: [String: Key]

  /// - Parameter json: A key set, `{"keys":[…]}`.
  /// - Returns: `nil` if it is not a key set, or has no usable key.
  init?(json: some Collection<UInt8>) {
    guard let document = try? JSONValue.parse(json), case .array(let items)? = document["keys"]
    else { return nil }
    var keys: [String: Key] = [:]
    // A limit far above the handful of keys that issuers have.
    for item in items.prefix(100) {
      guard let key = Self.key(item) else { continue }
      keys[item["kid"]?.scalarText ?? ""] = key
    }
    guard !keys.isEmpty else { return nil }
    self.keys = keys
  }

  /// The key with this id; for `nil` the only key, if there is just one.
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
