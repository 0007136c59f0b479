import Cryptography

/// Google's token endpoint (emulator.md, section 5.1).
extension EmulatorState {
  mutating func fcmToken(_ reading: FCMStandIn.Reading, now: Int64) -> ServiceAnswer {
    do throws(TokenRefusal) {
      let (key, scopes) = try fcmClient(reading, now: now)
      let text = "ya29." + generator.base64URL(120)
      fcm.remember(
        text,
        .init(
          app: key.app, clientEmail: key.account.clientEmail, scopes: scopes,
          expiresAt: now + settings.fcm.tokenLifetime * 1000), now: now)
      var answer = ServiceAnswer(
        .json(
          200,
          [
            "access_token": .string(text), "expires_in": .int(settings.fcm.tokenLifetime),
            "token_type": "Bearer",
          ], fields: [("cache-control", "no-store")]))
      answer.credential = Self.credential(key.account.clientEmail, scopes: scopes)
      return answer
    } catch {
      return ServiceAnswer(error.response, reason: error.error)
    }
  }

  static func credential(_ client: String, scopes: [String]) -> Journal.Credential {
    .accepted(
      keyID: client, claims: [.init(name: "scope", value: .array(scopes.map(JSON.string)))])
  }

  static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"

  /// Scopes that allow sending.
  static let sendScopes = [
    "https://www.googleapis.com/auth/firebase.messaging",
    "https://www.googleapis.com/auth/cloud-platform",
  ]

  /// The checks, in their order.
  private func fcmClient(
    _ reading: FCMStandIn.Reading, now: Int64
  ) throws(TokenRefusal) -> (FCMAccounts.Key, scopes: [String]) {
    guard reading.isPost else {
      throw .init(405, "invalid_request", "The token endpoint takes POST only.")
    }
    guard FormFields.isForm(reading.contentType) else {
      throw .init(400, "invalid_request", "The request must be a form.")
    }
    guard let grant = reading.form["grant_type"] else {
      throw .init(400, "invalid_request", "Required parameter is missing: grant_type")
    }
    guard grant == Self.grantType else {
      throw .init(400, "unsupported_grant_type", "Invalid grant_type: \(grant.prefix(100))")
    }
    guard let text = reading.form["assertion"] else {
      throw .init(400, "invalid_request", "Required parameter is missing: assertion")
    }
    guard text.split(separator: ".", omittingEmptySubsequences: false).count == 3 else {
      throw .init(400, "invalid_request", "Assertion is not a JWT")
    }
    // Far more than any real assertion: nothing longer is worth decoding.
    guard text.utf8.count <= 16_384, let assertion = try? CompactJWS(text) else {
      throw .init(400, "invalid_grant", "Invalid JWT")
    }
    let key = try fcmKey(of: assertion)
    try checkClaims(of: assertion, now: now)
    let scopes = (assertion.claims.string("scope") ?? "").split(separator: " ").map(String.init)
    guard scopes.contains(where: { Self.sendScopes.contains($0) }) else {
      throw .init(400, "invalid_scope", "Invalid OAuth scope or ID token audience provided.")
    }
    return (key, scopes)
  }

  /// The key that signed, of an account that is known and enabled.
  private func fcmKey(of assertion: CompactJWS) throws(TokenRefusal) -> FCMAccounts.Key {
    guard assertion.header.string("alg") == "RS256",
      let client = assertion.claims.string("iss")
    else { throw .init(400, "invalid_grant", "Invalid JWT Signature.") }
    let all = fcm.keys(client: client, keyID: nil)
    guard !all.isEmpty else {
      throw .init(400, "invalid_grant", "Invalid grant: account not found")
    }
    let candidates = fcm.keys(client: client, keyID: assertion.header.string("kid"))
    guard let key = candidates.first(where: { assertion.verifies(with: $0.publicKey) }) else {
      throw .init(400, "invalid_grant", "Invalid JWT Signature.")
    }
    guard !key.account.isDisabled else {
      throw .init(401, "invalid_client", "The OAuth client was disabled.")
    }
    return key
  }

  private func checkClaims(of assertion: CompactJWS, now: Int64) throws(TokenRefusal) {
    let claims = assertion.claims
    let audience = claims.string("aud") ?? ""
    let isOwn =
      audience.hasSuffix("/token") && origins.isOwn(String(audience.dropLast(6)), of: .fcm)
    guard isOwn || settings.fcm.tokenAudiences.contains(audience) else {
      throw .init(400, "invalid_grant", "Invalid JWT: Failed audience check.")
    }
    let seconds = now / 1000
    guard let issued = claims.integer("iat"), let expires = claims.integer("exp"),
      issued <= seconds + settings.fcm.oauthSkew, expires > seconds,
      case (let lifetime, false) = expires.subtractingReportingOverflow(issued), lifetime <= 3600
    else {
      throw .init(
        400, "invalid_grant",
        "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable "
          + "timeframe. Check your iat and exp values in the JWT claim.")
    }
  }
}
