import Authentication
import Cryptography
import Foundation
import HTTPServer
import Wire

/// A sign-in in progress at the OpenID provider. Its whole state is in a cookie of the browser that
/// began it, so that it costs the server nothing, and any server on the same store can complete it.
///
/// The values sent to the provider are derived from a secret in the cookie, so that a reply to
/// another browser or an earlier attempt does not match.
struct ProviderAttempt: Sendable {
  static let cookie = (secured: "__Host-belfry-oidc", plain: "belfry-oidc")
  /// The time limit at the provider, in seconds.
  static let lifetime = 600

  /// The portal page to return to.
  let to: String
  /// Whether the user must authenticate again at the provider.
  let isFresh: Bool
  /// The id of the previous session.
  let session: [UInt8]?
  let startedAt: Date
  /// The attempt as text in the cookie.
  let text: String
  private let secret: [UInt8]

  init(to: String, isFresh: Bool, session: [UInt8]?, at now: Date) throws {
    secret = try SecureRandom.bytes(32)
    self.to = to
    self.isFresh = isFresh
    self.session = session
    startedAt = Date(timeIntervalSince1970: now.timeIntervalSince1970.rounded(.down))
    text = [
      Base64URL.encode(secret), String(Int(startedAt.timeIntervalSince1970)), isFresh ? "1" : "0",
      Base64URL.encode(session ?? []), Base64URL.encode(Array(to.utf8)),
    ].joined(separator: ".")
  }

  /// Parses ``text``.
  init?(_ text: String) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard text.utf8.count <= 4096, parts.count == 5,
      let secret = Base64URL.decode(parts[0]), secret.count == 32,
      let seconds = UInt32(parts[1]), let session = Base64URL.decode(parts[3]),
      session.isEmpty || session.count == 32, let to = Base64URL.decode(parts[4])
    else { return nil }
    self.secret = secret
    self.to = Self.place(String(decoding: to, as: UTF8.self))
    isFresh = parts[2] == "1"
    self.session = session.isEmpty ? nil : session
    startedAt = Date(timeIntervalSince1970: Double(seconds))
    self.text = text
  }

  var attempt: OpenIDProvider.Attempt {
    OpenIDProvider.Attempt(
      state: derived("state"), nonce: derived("nonce"), verifier: derived("verifier"))
  }

  /// A value derived from the whole cookie, so that no part of it can be exchanged.
  private func derived(_ purpose: String) -> String {
    Base64URL.encode(Digest.sha256(Array("\(purpose)\n\(text)".utf8)))
  }

  /// The text if it is a page of the portal, so that nobody is redirected elsewhere.
  static func place(_ text: String?) -> String {
    guard let text, text.utf8.count <= 1000, text.hasPrefix(Portal.path),
      text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") }),
      !text.contains("//"), !HTTPTarget(text).hasDotSegment
    else { return Portal.path }
    let page = text.dropFirst(Portal.path.count)
    return page.hasPrefix("oidc") || page.hasPrefix("sign-in") ? Portal.path : text
  }
}
