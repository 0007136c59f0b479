import Cryptography
import Foundation
import HTTP2
import Wire

/// APNs' state of one connection, against which the provider token of each request is checked
/// (docs/protocol/emulator.md, section 4.2).
final class APNsConnection {
  let environment: APNsEnvironment
  /// Whether the address is for managing channels, not for pushes and broadcasts.
  let managesChannels: Bool
  /// The client's certificate in the handshake; `nil` for a connection that uses provider tokens.
  let certificate: ClientCertificate?

  /// The team of the first accepted token; other teams are refused from then on.
  private(set) var team: String?
  private(set) var scope: APNsKeyScope?
  /// The token in use, as sent, with its claims.
  private(set) var current: ProviderToken?
  /// The time when `current` was accepted, in ms.
  private var changedAt: Int64 = 0
  /// The time until which every request is refused, in ms, because the token changed too often.
  private var refusingUntil: Int64 = 0
  /// Times of the latest BadDeviceToken answers, in ms.
  private var badTokens: [Int64] = []
  /// The last topic that was found allowed.
  var topic: TopicMemory?

  init(at listener: EmulatorListener, certificate: ClientCertificate?) {
    environment =
      [.apnsProduction, .apnsChannelsProduction].contains(listener) ? .production : .sandbox
    managesChannels = [.apnsChannelsProduction, .apnsChannelsSandbox].contains(listener)
    self.certificate = certificate
  }

  /// The stream limit is 1 until a token has been accepted.
  var isOpen: Bool { certificate != nil || team != nil }

  /// The accepted result of the last topic check, valid while the accounts do not change.
  struct TopicMemory: Sendable {
    let topic: ArraySlice<UInt8>
    let pushType: APNsPushType?
    let kid: String?
    let epoch: Int
    let target: TopicTarget
  }

  /// Checks the `authorization` field.
  ///
  /// - Parameter now: In ms.
  /// - Returns: The token, or the reason to refuse. The connection's team, scope and current token
  ///   are set by a request that passes.
  ///
  /// The window between two changes of the token starts with every accepted token, the first one
  /// included: Apple asks for at most one new token in 20 minutes.
  func judge(
    authorization: ArraySlice<UInt8>?, by apns: APNsStandIn, now: Int64
  ) throws(APNsRefusal) -> ProviderToken {
    guard let bytes = ProviderToken.bearer(authorization) else {
      throw .init(.missingProviderToken)
    }
    let token: ProviderToken
    if let current, current.epoch == apns.accounts.epoch, current.isWritten(bytes) {
      token = current
    } else {
      token = try ProviderToken(
        bytes, accounts: apns.accounts, team: team, acceptsAny: apns.acceptsAnyCredential, now: now)
      guard token.environment.allows(environment) else { throw .init(.badEnvironmentKeyID) }
      if let scope, scope != token.scope { throw .init(.unrelatedKeyID) }
    }
    if token.isExpired(at: now) { throw .init(.expiredProviderToken) }
    if now < refusingUntil { throw .init(.tooManyProviderTokenUpdates) }
    if let current, current.bytes != token.bytes {
      let next = changedAt + apns.options.tokenUpdateInterval * 1000
      guard now >= next else {
        refusingUntil = next
        throw .init(.tooManyProviderTokenUpdates)
      }
      changedAt = now
    } else if current == nil {
      changedAt = now
    }
    if current !== token { current = token }
    if team == nil { (team, scope) = (token.teamID, token.scope) }
    return token
  }

  /// Counts a BadDeviceToken answer.
  /// - Returns: Whether there were more than 50 in the last 10 s.
  func countBadToken(now: Int64) -> Bool {
    badTokens.append(now)
    badTokens.removeAll { now - $0 > 10_000 }
    return badTokens.count > 50
  }
}

/// A verified provider token: its claims and the key that signed it.
final class ProviderToken: Sendable {
  /// As sent, without the scheme.
  let bytes: [UInt8]
  let kid: String
  /// Empty for a token of any team, see `isAny`.
  let teamID: String
  /// Whether the key is not known, and the token is good for every app.
  let isAny: Bool
  /// Unix seconds.
  let issuedAt: Int64
  let scope: APNsKeyScope
  let environment: APNsEnvironmentScope
  /// The epoch of the accounts when it was verified.
  let epoch: Int
  /// Deviations from a standard that Apple accepts; for the journal.
  let warnings: [String]

  /// Seconds a token's `iat` may lie ahead of the clock.
  static let skew: Int64 = 5 * 60
  /// Seconds from `iat` during which a token is valid.
  static let lifetime: Int64 = 3600

  /// Whether these are the token's bytes; called for every request.
  func isWritten(_ other: ArraySlice<UInt8>) -> Bool {
    guard other.count == bytes.count else { return false }
    return bytes.withUnsafeBytes { left in
      other.withUnsafeBytes { right in
        guard let left = left.baseAddress, let right = right.baseAddress else { return true }
        return memcmp(left, right, other.count) == 0
      }
    }
  }

  /// Whether the token is older than an hour at `now`, in ms.
  func isExpired(at now: Int64) -> Bool {
    let seconds = now / 1000
    if issuedAt < seconds - Self.lifetime - 1 { return true }
    return now - issuedAt * 1000 > Self.lifetime * 1000
  }

  /// The part after `bearer` (any case) and a blank; `nil` when there is no token.
  static func bearer(_ field: ArraySlice<UInt8>?) -> ArraySlice<UInt8>? {
    guard let field, field.count > 7 else { return nil }
    for (byte, letter) in zip(field, "bearer".utf8) where byte | 0x20 != letter { return nil }
    let rest = field.dropFirst(6)
    guard rest.first == UInt8(ascii: " ") else { return nil }
    let token = rest.drop { $0 == UInt8(ascii: " ") }
    return token.isEmpty ? nil : token
  }

  /// Checks form, algorithm, key, team, time of issue and signature (docs/protocol/emulator.md,
  /// section 4.2, check 5; also the revocation of check 6, because it has the same reply).
  ///
  /// - Parameters:
  ///   - team: The connection's, once it has one.
  ///   - acceptsAny: Whether a token of an unknown key is checked by its form only.
  init(
    _ bytes: ArraySlice<UInt8>, accounts: APNsAccounts, team: String?, acceptsAny: Bool, now: Int64
  ) throws(APNsRefusal) {
    // Far longer than any real token; anything longer is not decoded.
    guard bytes.count <= 4096,
      let token = try? CompactJWS(String(decoding: bytes, as: UTF8.self)),
      token.header.string("alg") == "ES256",
      let kid = token.header.string("kid"),
      let issuedAt = Self.seconds(token.claims), issuedAt <= now / 1000 + Self.skew
    else { throw .init(.invalidProviderToken) }
    let isRaw: Bool
    if let key = accounts.keys[kid] {
      guard let publicKey = try? P256PublicKey(pem: key.publicKeyPEM),
        token.claims.string("iss") == key.teamID,
        let form = Self.isRawSignature(token, by: publicKey), !key.isRevoked
      else { throw .init(.invalidProviderToken) }
      isRaw = form
      (isAny, self.kid, teamID) = (false, kid, key.teamID)
      (scope, environment) = (key.scope, key.environment)
    } else {
      guard acceptsAny, AnyCredential.isProviderToken(token) else {
        throw .init(.invalidProviderToken)
      }
      isRaw = token.signature.count == 64
      (isAny, self.kid, teamID) = (true, AnyCredential.name, "")
      (scope, environment) = (.team, .both)
    }
    guard team == nil || team == teamID else { throw .init(.invalidProviderToken) }
    var warnings: [String] = []
    if !isRaw {
      warnings.append(
        "the signature is DER; RFC 7518, section 3.4, asks for the 64 bytes of r and s")
    }
    if token.claims.integer("iat") == nil {
      warnings.append("'iat' is no whole number of seconds, as Apple documents it")
    }
    self.bytes = Array(bytes)
    self.issuedAt = issuedAt
    self.warnings = warnings
    epoch = accounts.epoch
  }

  /// `iat` in whole seconds: a number, with a fraction in tokens of PyAPNs2, or a string of digits
  /// in those of kalyke. The real service accepts all three.
  private static func seconds(_ claims: CompactJWS.Fields) -> Int64? {
    if let number = claims.integer("iat") { return number }
    var number = claims.number("iat")
    if let text = claims.string("iat"),
      text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") })
    {
      number = Double(text)
    }
    // Beyond any plausible time.
    guard let number, abs(number) < 1e12 else { return nil }
    return Int64(number.rounded(.down))
  }

  /// Whether the signature is r and s, as it should be, or DER, as Pushy writes it and the real
  /// service also reads it; `nil` when it is not the key's in either form.
  private static func isRawSignature(_ token: CompactJWS, by key: P256PublicKey) -> Bool? {
    if key.verifies(token.signature, for: token.signingInput) { return true }
    guard let raw = ECDSASignature.raw(der: token.signature) else { return nil }
    return key.verifies(raw, for: token.signingInput) ? false : nil
  }
}

/// A client certificate presented to APNs in the TLS handshake.
struct ClientCertificate: Sendable {
  /// Lower-case hex.
  let sha256: String
  /// Whether it chains to an authority that the emulator trusts, and is within its validity period.
  let isVerified: Bool
  /// The permissions that it grants; `nil` when it is not an APNs certificate.
  let permissions: Certificate.APNsPermissions?

  init(der: [UInt8], isVerified: Bool) {
    let certificate = try? Certificate(der: der)
    sha256 = Hex.encode(certificate?.sha256Thumbprint ?? [])
    self.isVerified = isVerified && certificate != nil
    permissions = certificate?.apnsPermissions
  }

  /// The app the certificate is for, or the reason to refuse every request
  /// (docs/protocol/emulator.md, section 4.1).
  func judge(
    accounts: APNsAccounts, environment: APNsEnvironment
  ) throws(APNsRefusal) -> APNsApp {
    guard isVerified, let permissions,
      let app = accounts.apps.values.first(where: {
        $0.certificates.contains(sha256) || $0.bundleID == permissions.bundleID
      })
    else { throw .init(.badCertificate) }
    let allowed = environment == .production ? permissions.production : permissions.development
    guard allowed else { throw .init(.badCertificateEnvironment) }
    return app
  }
}
