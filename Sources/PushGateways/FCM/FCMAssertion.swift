import Cryptography

extension FCMCredential {
  private static let scope = "https://www.googleapis.com/auth/firebase.messaging"
  /// Google refuses an assertion for longer.
  private static let lifetime: Int64 = 3600
  /// Set back, so that a clock a little ahead does not make it one from the future.
  private static let allowance: Int64 = 10

  /// The form that asks for an access token (RFC 7523; spec `pns/fcm-v1.md` section 2).
  /// - Parameter now: In seconds since 1970.
  func tokenForm(at now: Int64) throws(CryptographyError) -> [(name: String, value: String)] {
    [
      ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
      ("assertion", try assertion(issuedAt: now - Self.allowance)),
    ]
  }

  func assertion(issuedAt: Int64) throws(CryptographyError) -> String {
    // All texts have been checked with the credential: nothing to escape.
    let name = keyID.map { #","kid":"\#($0)""# } ?? ""
    let header = #"{"alg":"RS256","typ":"JWT"\#(name)}"#
    let claims =
      #"{"iss":"\#(clientEmail)","scope":"\#(Self.scope)","aud":"\#(tokenURI)","#
      + #""iat":\#(issuedAt),"exp":\#(issuedAt + Self.lifetime)}"#
    return try CompactJWS.sign(header: Array(header.utf8), claims: Array(claims.utf8), with: key)
  }
}
