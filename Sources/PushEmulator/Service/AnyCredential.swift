import Cryptography
import Wire

/// The form of credentials that the emulator did not issue (`EmulatorOptions.acceptsAnyCredential`).
///
/// Their keys are not known, so that a signature has its length and nothing more. In the journal
/// and for connections each of them is called by the same name.
enum AnyCredential {
  /// In place of the name of a key, an account or a client.
  static let name = "any credential"

  /// Whether it is an assertion as a service account's key file signs it: the account's address,
  /// the id of a key, and the signature of an RSA key of 2048 or 4096 bits.
  static func isServiceAccount(_ assertion: CompactJWS) -> Bool {
    guard let account = assertion.claims.string("iss") else { return false }
    let parts = account.split(separator: "@", omittingEmptySubsequences: false)
    let keyID = assertion.header.string("kid")
    return parts.count == 2 && !parts[0].isEmpty && account.utf8.count <= 320
      && parts[1].hasSuffix(".gserviceaccount.com")
      && keyID.map { !$0.isEmpty && $0.utf8.count <= 64 } ?? true
      && [256, 512].contains(assertion.signature.count)
  }

  /// Whether it is a provider token of APNs: key and team have ten letters or digits, and the
  /// signature is one of P-256.
  static func isProviderToken(_ token: CompactJWS) -> Bool {
    func isID(_ text: String?) -> Bool {
      text.map { $0.utf8.count == 10 && $0.utf8.allSatisfy(\.isLetterOrDigit) } ?? false
    }
    return isID(token.header.string("kid")) && isID(token.claims.string("iss"))
      && (token.signature.count == 64 || ECDSASignature.raw(der: token.signature) != nil)
  }

  /// Whether it has the form of a client of WNS: a Package SID, or for Microsoft Entra a GUID.
  static func isClient(_ id: String, ofEntra: Bool) -> Bool {
    guard ofEntra else { return id.lowercased().hasPrefix("ms-app://s-1-15-2-") }
    let parts = id.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    return parts.map(\.count) == [8, 4, 4, 4, 12]
      && parts.allSatisfy { Hex.decode(String(decoding: $0, as: UTF8.self)) != nil }
  }
}
