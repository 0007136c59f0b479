package import Cryptography
import Foundation
package import HubCore
import Synchronization
import Wire

/// A parsed and validated Web Push credential: the application server's key pair (RFC 8292;
/// docs/protocol/rest.md, section 8.1, docs/protocol/push-services/web-push.md, section 2).
package struct WebPushCredential: Sendable {
  /// The contact for the push service: a `mailto:` or `https:` URI.
  package let subject: String
  package let key: P256PrivateKey
  /// The key that browsers subscribed with: an uncompressed point, 65 bytes.
  package let point: [UInt8]

  /// The properties' names, which compare without regard to letter case.
  enum Property {
    static let subject = "Subject"
    static let publicKey = "VapidPublicKey"
    static let privateKey = "VapidPrivateKey"
  }

  /// - Throws: ``CredentialError``, which names the property and says what to do.
  package init(_ credential: PushCredential) throws(CredentialError) {
    let publicText = try credential.text(
      Property.publicKey,
      orSay: ": give the key that pages subscribe with (applicationServerKey).")
    let privateText = try credential.text(
      Property.privateKey, orSay: ": give the private key of that pair.")
    subject = try credential.text(
      Property.subject, orSay: ": give mailto: and an address that is read.")
    guard Self.isUsable(subject) else {
      throw CredentialError(
        """
        Subject must be mailto: and an address, or an https address, without blanks and angle \
        brackets and not of localhost: push services refuse others.
        """)
    }
    key = try Self.privateKey(privateText)
    guard let point = Base64.decodeAnyAlphabet(publicText.utf8), point.count == 65,
      point[0] == 0x04
    else {
      throw CredentialError(
        "VapidPublicKey must be the public key in base 64 URL: 65 bytes, 87 characters.")
    }
    self.point = point
    let own: [UInt8]
    do { own = try key.publicKey().point } catch {
      throw CredentialError("VapidPrivateKey cannot be used: \(error.message)")
    }
    guard own == point else {
      throw CredentialError(
        "VapidPublicKey does not belong to VapidPrivateKey: give both halves of one pair.")
    }
  }

  /// 32 bytes in base 64, or PEM text.
  private static func privateKey(_ text: String) throws(CredentialError) -> P256PrivateKey {
    do {
      if let scalar = Base64.decodeAnyAlphabet(text.utf8), scalar.count == 32 {
        return try P256PrivateKey(scalar: scalar)
      }
      return try P256PrivateKey(pem: text)
    } catch {
      throw CredentialError(
        """
        VapidPrivateKey must be the private key in base 64 URL: 32 bytes, 43 characters; or PEM \
        text of a P-256 key.
        """)
    }
  }

  /// Whether a subject is accepted by Apple and Mozilla, and needs no escaping in the token's JSON.
  private static func isUsable(_ subject: String) -> Bool {
    guard subject.utf8.count <= 512,
      subject.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
      !subject.contains(where: { "<>\"\\".contains($0) })
    else { return false }
    let text = subject.lowercased()
    if text.hasPrefix("mailto:") {
      let parts = text.dropFirst(7).split(separator: "@", omittingEmptySubsequences: false)
      return parts.count == 2 && !parts[0].isEmpty && !parts[1].isEmpty && parts[1] != "localhost"
    }
    guard text.hasPrefix("https://") else { return false }
    let authority = text.dropFirst(8).prefix { !"/?#".contains($0) }
    let host = authority.prefix { $0 != ":" }
    return !host.isEmpty && host != "localhost"
  }
}

/// The authorization of an application server's key for each push service (RFC 8292): one token per
/// origin, renewed after half its life.
final class VAPIDTokens: Sendable {
  private struct Entry {
    let authorization: String
    /// In seconds since 1970.
    let renewAt: Int64
    let issuedAt: Int64
  }

  /// Half of the maximum that the standard allows.
  private static let lifetime: Int64 = 12 * 3600
  /// More origins than there are push services; beyond, all are made again.
  private static let capacity = 1024

  private let credential: WebPushCredential
  private let clock: HubClock
  private let entries = Mutex<[Origin: Entry]>([:])

  init(_ credential: WebPushCredential, clock: HubClock) {
    self.credential = credential
    self.clock = clock
  }

  /// The value of the header `Authorization` for requests to an origin.
  func authorization(for origin: Origin) throws(CryptographyError) -> String {
    let now = Int64(clock.now().timeIntervalSince1970)
    // Signing takes microseconds and may happen under the lock.
    return try entries.withLock { entries throws(CryptographyError) in
      if let entry = entries[origin], (entry.issuedAt..<entry.renewAt).contains(now) {
        return entry.authorization
      }
      // Origin and subject have been checked: nothing needs escaping.
      let claims =
        #"{"aud":"\#(origin.text)","exp":\#(now + Self.lifetime),"sub":"\#(credential.subject)"}"#
      let token = try CompactJWS.sign(
        header: Array(#"{"typ":"JWT","alg":"ES256"}"#.utf8), claims: Array(claims.utf8),
        with: credential.key)
      let authorization = "vapid t=\(token), k=\(Base64URL.encode(credential.point))"
      if entries.count >= Self.capacity { entries = [:] }
      entries[origin] = Entry(
        authorization: authorization, renewAt: now + Self.lifetime / 2, issuedAt: now)
      return authorization
    }
  }
}
