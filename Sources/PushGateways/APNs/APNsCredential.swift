package import Cryptography
package import Foundation
import HTTP2
package import HubCore
import Wire

/// A parsed and validated APNs credential (docs/protocol/rest.md, section 8.1,
/// docs/protocol/push-services/apns.md, section 2).
package struct APNsCredential: Sendable {
  /// The means of authentication.
  package enum Proof: Sendable {
    case token(SigningKey)
    case certificate(CertificateIdentity)
  }

  /// A provider token's key.
  package struct SigningKey: Sendable {
    /// The key's name at Apple (`kid`), ten characters.
    package let id: String
    /// The id of the team (`iss`), ten characters.
    package let team: String
    package let key: P256PrivateKey
  }

  package let endpoint: APNsEndpoint
  /// The endpoint at which a handle is tried that the first one does not know: Apple's other
  /// environment, or the value of the property `OtherEndpoint`; `nil` when that says `none` or a
  /// certificate is for one environment only.
  package let otherEndpoint: APNsEndpoint?
  /// The endpoint that manages broadcast channels: known for Apple's hosts, otherwise the value of
  /// the property `BroadcastEndpoint`; `nil` when that is missing.
  package let broadcastEndpoint: APNsEndpoint?
  package let proof: Proof
  /// The app's bundle id.
  package let topic: String

  /// The properties' names, which compare without regard to letter case.
  enum Property {
    static let endpoint = "Endpoint"
    static let otherEndpoint = "OtherEndpoint"
    static let broadcastEndpoint = "BroadcastEndpoint"
    static let token = "Token"
    static let keyID = "KeyId"
    static let bundleID = "AppName"
    static let teamID = "AppId"
    static let certificate = "ApnsCertificate"
    static let password = "CertificateKey"
    static let thumbprint = "Thumbprint"
    static let tokenFamily = [token, keyID, bundleID, teamID]
    static let certificateFamily = [certificate, password, thumbprint]
  }

  /// - Throws: ``CredentialError``, which names the property and says what to do.
  package init(_ credential: PushCredential, at now: Date) throws(CredentialError) {
    let tokenNames = Property.tokenFamily.filter { credential.text($0) != nil }
    let certificateNames = Property.certificateFamily.filter { credential.text($0) != nil }
    guard let endpoint = credential.text(Property.endpoint) else {
      throw CredentialError(
        """
        Endpoint is missing. Set it to https://api.push.apple.com (production) or \
        https://api.sandbox.push.apple.com (development).
        """)
    }
    let own = try APNsEndpoint(endpoint)
    self.endpoint = own
    let other =
      switch credential.text(Property.otherEndpoint) {
      case nil: own.counterpart
      case "none"?: APNsEndpoint?.none
      case let text?: try APNsEndpoint(text)
      }
    broadcastEndpoint =
      if let text = credential.text(Property.broadcastEndpoint) {
        try APNsEndpoint(text)
      } else {
        own.channelManagement
      }
    switch (tokenNames.first, certificateNames.first) {
    case (let name?, let other?):
      throw CredentialError(
        """
        \(name) belongs to a token credential and \(other) to a certificate credential; give the \
        properties of one of them only.
        """)
    case (nil, nil):
      throw CredentialError(
        """
        Neither Token nor ApnsCertificate is there. Give Token, KeyId, AppId and AppName for a .p8 \
        key, or ApnsCertificate and CertificateKey for a .p12 file.
        """)
    case (_?, nil):
      proof = .token(try Self.signingKey(credential))
      topic = try Self.bundleID(credential)
      otherEndpoint = other
    case (nil, _?):
      let archive = try credential.text(
        Property.certificate, orSay: ": give the .p12 file in base 64.")
      // The password is taken literally: white space may be part of it.
      let identity = try Self.identity(archive, password: credential[Property.password] ?? "")
      let permissions = try Self.check(
        identity.certificate, thumbprint: credential.text(Property.thumbprint), at: now,
        for: self.endpoint)
      proof = .certificate(identity)
      topic = permissions.bundleID
      otherEndpoint = permissions.production && permissions.development ? other : nil
    }
  }

  private static func signingKey(
    _ credential: PushCredential
  ) throws(CredentialError) -> SigningKey {
    let text = try credential.text(
      Property.token, orSay: ": give the text of the .p8 file from Apple.")
    let key: P256PrivateKey
    do {
      key = try P256PrivateKey(pem: text)
    } catch {
      throw CredentialError(
        "Token is not a signing key: \(error.message) Give the text of the .p8 file from Apple.")
    }
    return SigningKey(
      id: try tenCharacters(Property.keyID, credential, "the key's id, as in AuthKey_<KeyId>.p8"),
      team: try tenCharacters(Property.teamID, credential, "the team id of the developer account"),
      key: key)
  }

  private static func tenCharacters(
    _ name: String, _ credential: PushCredential, _ meaning: String
  ) throws(CredentialError) -> String {
    let text = try credential.text(name, orSay: ": give \(meaning).")
    guard text.utf8.count == 10, text.utf8.allSatisfy(\.isLetterOrDigit) else {
      throw CredentialError(
        "\(name) must be 10 letters and digits, it has \(text.count) characters: give \(meaning).")
    }
    return text
  }

  private static func bundleID(
    _ credential: PushCredential
  ) throws(CredentialError) -> String {
    let text = try credential.text(Property.bundleID, orSay: ": give the app's bundle id.")
    let isBundleID = text.utf8.allSatisfy {
      $0.isNameByte || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "-")
    }
    guard isBundleID, text.utf8.count <= 255, text != ".", text != ".." else {
      throw CredentialError(
        "AppName must be the app's bundle id, such as com.example.app: letters, digits, . - and _.")
    }
    return text
  }
}

extension APNsCredential {
  /// Opens the archive of a certificate credential.
  static func identity(_ archive: String, password: String) throws(CredentialError)
    -> CertificateIdentity
  {
    guard let bytes = Base64.decode(archive) else {
      throw CredentialError("ApnsCertificate is not base 64: give the .p12 file in base 64.")
    }
    do {
      return try PKCS12.open(bytes, password: password)
    } catch  where error.kind == .wrongPassword {
      throw CredentialError(
        "CertificateKey is wrong: the .p12 file in ApnsCertificate does not open with it.")
    } catch {
      throw CredentialError("ApnsCertificate cannot be used: \(error.message)")
    }
  }

  /// Validates a certificate credential, so that a bad one is refused when it is set and not when
  /// the first push fails (docs/protocol/push-services/apns.md, section 2.2).
  static func check(
    _ certificate: Certificate, thumbprint: String?, at now: Date, for endpoint: APNsEndpoint
  ) throws(CredentialError) -> Certificate.APNsPermissions {
    guard let permissions = certificate.apnsPermissions else {
      throw CredentialError(
        """
        ApnsCertificate is not an APNs certificate: it names no app (UID) or no environment. \
        Create an Apple Push Notification certificate for the app.
        """)
    }
    guard let end = certificate.notAfter, end > now else {
      throw CredentialError(
        "ApnsCertificate has expired\(dated(certificate.notAfter)): renew it with Apple.",
        isExpiry: true)
    }
    if let start = certificate.notBefore, start > now {
      throw CredentialError(
        "ApnsCertificate is not valid yet\(dated(start)): check this machine's clock.")
    }
    switch endpoint.environment {
    case .production? where !permissions.production:
      throw CredentialError(
        """
        ApnsCertificate is for development only, Endpoint for production: use a production \
        certificate or https://api.sandbox.push.apple.com.
        """)
    case .development? where !permissions.development:
      throw CredentialError(
        """
        ApnsCertificate is for production only, Endpoint for development: use a development \
        certificate or https://api.push.apple.com.
        """)
    default: break
    }
    if let thumbprint {
      let given = thumbprint.lowercased().filter { $0 != ":" && !$0.isWhitespace }
      guard given == Hex.encode(certificate.sha1Thumbprint) else {
        throw CredentialError(
          """
          Thumbprint is not that of the certificate in ApnsCertificate (its SHA-1 in hexadecimal); \
          correct it or leave it out.
          """)
      }
    }
    return permissions
  }

  private static func dated(_ date: Date?) -> String {
    date.map { " (\($0.formatted(.iso8601.year().month().day())))" } ?? ""
  }
}

/// The destination of a credential's pushes.
package struct APNsEndpoint: Hashable, Sendable {
  package enum Environment: Sendable {
    case development
    case production
  }

  package let host: String
  package let port: UInt16
  /// `nil` for a host that is not Apple's: an emulator may be either.
  package let environment: Environment?

  /// Host, and port unless it is 443, in the form of `:authority`.
  var authority: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == 443 ? name : "\(name):\(port)"
  }

  /// The field with a provider token. Apple's own header table may keep it, which saves most of a
  /// push's bytes; any other host is told not to, nor to let others on the way (RFC 7541, section
  /// 7.1.3).
  func authorization(_ token: String) -> HTTP2Field {
    HTTP2Field(
      "authorization", "bearer " + token, indexing: environment == nil ? .never : .allowed)
  }

  private static let hosts: [String: Environment] = [
    "api.push.apple.com": .production,
    "api.sandbox.push.apple.com": .development,
    "api.development.push.apple.com": .development,
  ]

  /// The hosts of the binary protocol, which ended in 2021; stored credentials still name them.
  private static let retired: [String: String] = [
    "gateway.push.apple.com": "api.push.apple.com",
    "feedback.push.apple.com": "api.push.apple.com",
    "gateway.sandbox.push.apple.com": "api.sandbox.push.apple.com",
    "feedback.sandbox.push.apple.com": "api.sandbox.push.apple.com",
  ]

  /// The same service's other environment; `nil` for a host that is not Apple's.
  var counterpart: APNsEndpoint? {
    switch environment {
    case .production: APNsEndpoint(host: "api.sandbox.push.apple.com", port: port)
    case .development: APNsEndpoint(host: "api.push.apple.com", port: port)
    case nil: nil
    }
  }

  /// The endpoint that manages the channels of this environment
  /// (https://developer.apple.com/documentation/usernotifications/sending-channel-management-requests-to-apns);
  /// `nil` for a host that is not Apple's.
  var channelManagement: APNsEndpoint? {
    switch environment {
    case .production: APNsEndpoint(host: "api-manage-broadcast.push.apple.com", port: 2196)
    case .development:
      APNsEndpoint(host: "api-manage-broadcast.sandbox.push.apple.com", port: 2195)
    case nil: nil
    }
  }

  private init(host: String, port: UInt16) {
    self.host = host
    self.port = port
    environment = Self.hosts[host]
  }

  /// Reads the property `Endpoint`: a host with or without `https://`, port and `/3/device`.
  package init(_ text: String) throws(CredentialError) {
    let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
    let url = trimmed.contains("://") ? trimmed : "https://" + trimmed
    guard let parts = URLComponents(string: url), let name = parts.host?.lowercased(),
      !name.isEmpty, parts.user == nil, parts.query == nil, parts.fragment == nil
    else { throw Self.error("is not an address") }
    guard parts.scheme?.lowercased() == "https" else {
      throw Self.error("must begin with https://, because APNs speaks TLS only")
    }
    guard ["", "/", "/3/device", "/3/device/"].contains(parts.path) else {
      throw Self.error("may have no path other than /3/device")
    }
    let host = name.hasPrefix("[") ? String(name.dropFirst().dropLast()) : name
    if let successor = Self.retired[host] {
      (self.host, port) = (successor, 443)
    } else {
      guard let port = UInt16(exactly: parts.port ?? 443), port > 0 else {
        throw Self.error("has no possible port")
      }
      (self.host, self.port) = (host, port)
    }
    environment = Self.hosts[self.host]
  }

  private static func error(_ what: String) -> CredentialError {
    CredentialError(
      """
      Endpoint \(what). Set it to https://api.push.apple.com (production) or \
      https://api.sandbox.push.apple.com (development).
      """)
  }
}
