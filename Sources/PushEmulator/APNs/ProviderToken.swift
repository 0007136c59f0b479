import Cryptography
import Foundation

/// A provider token that has been verified: what it says and which key signed it.
final class ProviderToken: Sendable {
  /// As sent, without the scheme.
  let bytes: [UInt8]
  let kid: String
  let teamID: String
  /// Unix seconds.
  let issuedAt: Int64
  let scope: APNsKeyScope
  let environment: APNsEnvironmentScope
  /// Of the accounts when it was verified.
  let epoch: Int
  /// What Apple takes although a standard says otherwise; for the journal.
  let warnings: [String]

  private init(
    bytes: [UInt8], issuedAt: Int64, key: APNsKey, epoch: Int, warnings: [String]
  ) {
    self.bytes = bytes
    self.issuedAt = issuedAt
    self.warnings = warnings
    kid = key.kid
    teamID = key.teamID
    scope = key.scope
    environment = key.environment
    self.epoch = epoch
  }

  /// Seconds a token's `iat` may lie ahead of the clock.
  static let skew: Int64 = 5 * 60
  /// Seconds from `iat` in which a token is good.
  static let lifetime: Int64 = 3600

  /// Whether these are the token's bytes; asked for every request.
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

  /// What follows `bearer` (any case) and a blank; `nil` when there is no token.
  static func bearer(_ field: ArraySlice<UInt8>?) -> ArraySlice<UInt8>? {
    guard let field, field.count > 7 else { return nil }
    for (byte, letter) in zip(field, "bearer".utf8) where byte | 0x20 != letter { return nil }
    let rest = field.dropFirst(6)
    guard rest.first == UInt8(ascii: " ") else { return nil }
    let token = rest.drop { $0 == UInt8(ascii: " ") }
    return token.isEmpty ? nil : token
  }

  /// Checks form, algorithm, key, team, time of issue and signature (emulator.md, 4.2, check 5; the
  /// revocation of check 6 too, since it has the same answer).
  ///
  /// - Parameter team: The connection's, once it has one.
  static func verify(
    _ bytes: ArraySlice<UInt8>, accounts: APNsAccounts, team: String?, now: Int64
  ) -> Result<ProviderToken, APNsRefusal> {
    // Far more than any real token: nothing longer is worth decoding.
    guard bytes.count <= 4096,
      let token = try? CompactJWS(String(decoding: bytes, as: UTF8.self)),
      token.header.string("alg") == "ES256",
      let kid = token.header.string("kid"), let key = accounts.keys[kid],
      let issuer = token.claims.string("iss"), issuer == key.teamID,
      team == nil || team == issuer,
      let issuedAt = seconds(token.claims), issuedAt <= now / 1000 + skew,
      let isRaw = isRawSignature(token, by: key.publicKey), !key.isRevoked
    else { return .failure(.init(.invalidProviderToken)) }
    var warnings: [String] = []
    if !isRaw {
      warnings.append(
        "the signature is DER; RFC 7518, section 3.4, asks for the 64 bytes of r and s")
    }
    if token.claims.integer("iat") == nil {
      warnings.append("'iat' is no whole number of seconds, as Apple documents it")
    }
    return .success(
      ProviderToken(
        bytes: Array(bytes), issuedAt: issuedAt, key: key, epoch: accounts.epoch,
        warnings: warnings))
  }

  /// `iat` in whole seconds: a number, with a fraction in tokens of PyAPNs2, or a text of digits in
  /// those of kalyke. The real service takes all three.
  private static func seconds(_ claims: CompactJWS.Fields) -> Int64? {
    if let number = claims.integer("iat") { return number }
    var number = claims.number("iat")
    if let text = claims.string("iat"),
      text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") })
    {
      number = Double(text)
    }
    // Beyond any clock.
    guard let number, abs(number) < 1e12 else { return nil }
    return Int64(number.rounded(.down))
  }

  /// Whether the signature is r and s, as it should be, or DER, as Pushy writes it and the real
  /// service reads it, too; `nil` when it is not the key's in either form.
  private static func isRawSignature(_ token: CompactJWS, by key: P256PublicKey) -> Bool? {
    if key.verifies(token.signature, for: token.signingInput) { return true }
    guard let raw = ECDSASignature.raw(der: token.signature) else { return nil }
    return key.verifies(raw, for: token.signingInput) ? false : nil
  }
}
