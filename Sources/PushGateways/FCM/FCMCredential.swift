package import Cryptography
import Foundation
import HTTPClient
package import HubCore
import Wire

/// A parsed and validated FCM credential: a service account of a Firebase project
/// (docs/protocol/rest.md, section 8.1, docs/protocol/push-services/fcm.md, section 2).
package struct FCMCredential: Sendable {
  package let project: String
  /// The service account, `name@project.iam.gserviceaccount.com`.
  package let clientEmail: String
  package let key: RSAPrivateKey
  /// The key's name at Google (`kid`), where it is given.
  package let keyID: String?
  /// The origin of FCM's API.
  let origin: Origin
  /// The URL that issues access tokens; also the assertion's audience.
  package let tokenURI: String

  /// The properties' names, which compare without regard to letter case. The last three are this
  /// hub's own, for stand-ins and for keys whose id is known.
  enum Property {
    static let project = "ProjectId"
    static let email = "ClientEmail"
    static let key = "PrivateKey"
    static let keyID = "PrivateKeyId"
    static let endpoint = "Endpoint"
    static let tokenURI = "TokenUri"
  }

  static let googleHost = "fcm.googleapis.com"
  static let googleTokenURI = "https://oauth2.googleapis.com/token"

  /// - Throws: ``CredentialError``, which names the property and says what to do.
  package init(_ credential: PushCredential) throws(CredentialError) {
    func required(_ name: String, _ member: String) throws(CredentialError) -> String {
      try credential.text(
        name, orSay: ": give \(member) of the service account's JSON file.")
    }
    project = try required(Property.project, "project_id")
    guard Self.isProjectID(project) else {
      throw CredentialError(
        """
        ProjectId must be the id of a Firebase project, such as my-app-1a2b3: letters, digits and \
        hyphens, not the project's name or number.
        """)
    }
    clientEmail = try required(Property.email, "client_email")
    guard Self.isPlain(clientEmail), clientEmail.contains("@") else {
      throw CredentialError(
        "ClientEmail must be the address of a service account, as client_email in its JSON file.")
    }
    let text = try required(Property.key, "private_key")
    do {
      key = try RSAPrivateKey(pem: text)
    } catch {
      throw CredentialError(
        """
        PrivateKey is not the key of a service account: \(error.message) Give private_key of its \
        JSON file, from BEGIN to END.
        """)
    }
    keyID = credential.text(Property.keyID)
    guard keyID.map(Self.isPlain) ?? true else {
      throw CredentialError(
        "PrivateKeyId must be private_key_id of the service account's JSON file.")
    }
    origin = try Self.origin(credential.text(Property.endpoint))
    tokenURI = credential.text(Property.tokenURI) ?? Self.googleTokenURI
    guard Self.isPlain(tokenURI), HTTPAddress(tokenURI)?.scheme == "https" else {
      throw CredentialError(
        "TokenUri must be an https address, such as \(Self.googleTokenURI); or leave it out.")
    }
  }

  private static func origin(_ text: String?) throws(CredentialError) -> Origin {
    guard let text else { return Origin(host: googleHost, port: 443) }
    guard let address = HTTPAddress(text.contains("://") ? text : "https://" + text),
      address.scheme == "https", ["", "/"].contains(address.path), address.query == nil
    else {
      throw CredentialError(
        """
        Endpoint must be an https address without a path, such as https://\(googleHost); or leave \
        it out.
        """)
    }
    return Origin(host: address.host, port: address.port)
  }

  /// Also accepts `domain.com:project-id`, as old projects have it.
  private static func isProjectID(_ text: String) -> Bool {
    text.utf8.count <= 128 && text != "." && text != ".."
      && text.utf8.allSatisfy { $0.isLetterOrDigit || "-.:".utf8.contains($0) }
  }

  /// Whether a text needs no escaping in the assertion's JSON.
  private static func isPlain(_ text: String) -> Bool {
    text.utf8.count <= 512
      && text.utf8.allSatisfy {
        (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
      }
  }
}

extension FCMCredential {
  private static let scope = "https://www.googleapis.com/auth/firebase.messaging"
  /// Google refuses an assertion with a longer lifetime.
  private static let lifetime: Int64 = 3600
  /// Subtracted from the time of issue, so that an assertion from a slightly fast clock is not in
  /// the future.
  private static let allowance: Int64 = 10

  /// The form of a request for an access token (RFC 7523; docs/protocol/push-services/fcm.md,
  /// section 2).
  /// - Parameter now: In seconds since 1970.
  func tokenForm(at now: Int64) throws(CryptographyError) -> [(name: String, value: String)] {
    [
      ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
      ("assertion", try assertion(issuedAt: now - Self.allowance)),
    ]
  }

  func assertion(issuedAt: Int64) throws(CryptographyError) -> String {
    // All texts have been checked with the credential: nothing needs escaping.
    let name = keyID.map { #","kid":"\#($0)""# } ?? ""
    let header = #"{"alg":"RS256","typ":"JWT"\#(name)}"#
    let claims =
      #"{"iss":"\#(clientEmail)","scope":"\#(Self.scope)","aud":"\#(tokenURI)","#
      + #""iat":\#(issuedAt),"exp":\#(issuedAt + Self.lifetime)}"#
    return try CompactJWS.sign(header: Array(header.utf8), claims: Array(claims.utf8), with: key)
  }
}
