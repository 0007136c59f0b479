import Foundation
import HubCore
import NotificationHubs

/// Credentials that consist of a name and a secret: the names of their parts on the command line,
/// in a configuration, and as a property of docs/protocol/rest.md, section 8.1.
enum PlainCredentialValues {
  struct Field: Sendable {
    let property: String
    /// The key in a hub's section of a configuration.
    let key: String
    /// The options of `belfry credential set`, the preferred one first.
    let options: [String]
    var isSecret = false
    var isOptional = false

    init(_ property: String, _ key: String, _ options: String...) {
      (self.property, self.key, self.options) = (property, key, options)
    }

    fileprivate var secret: Field {
      var field = self
      field.isSecret = true
      return field
    }

    fileprivate var optional: Field {
      var field = self
      field.isOptional = true
      return field
    }
  }

  /// The platforms with such a credential.
  static let platforms = PushPlatform.allCases.filter { !families(of: $0).isEmpty }

  /// The platforms that have a field with this option.
  static func platforms(with option: String) -> [PushPlatform] {
    platforms.filter { families(of: $0).joined().contains { $0.options.contains(option) } }
  }

  /// The names of those platforms, for the help of the option.
  static func words(with option: String) -> String {
    platforms(with: option).map(CredentialPlatform.word).joined(separator: ", ")
  }

  /// The alternative ways to authenticate at a platform; empty for platforms whose credentials are
  /// files.
  static func families(of platform: PushPlatform) -> [[Field]] {
    let clientID = Field("ClientId", "clientId", "--client-id")
    let clientSecret = Field("ClientSecret", "clientSecret", "--client-secret", "--secret").secret
    let tokenURL = Field("WindowsLiveEndpoint", "tokenUrl", "--token-url").optional
    return switch platform {
    case .wns:
      [
        [
          Field("PackageSid", "packageSid", "--package-sid"),
          Field("SecretKey", "secret", "--secret").secret, tokenURL,
        ],
        [Field("TenantId", "tenantId", "--tenant-id"), clientID, clientSecret, tokenURL],
      ]
    case .adm:
      [
        [
          clientID, clientSecret, Field("AuthTokenUrl", "tokenUrl", "--token-url").optional,
          Field("SendUrlTemplate", "endpoint", "--endpoint").optional,
        ]
      ]
    case .baidu:
      [
        [
          Field("BaiduApiKey", "apiKey", "--api-key"),
          Field("BaiduSecretKey", "secretKey", "--secret").secret,
          Field("BaiduEndPoint", "endpoint", "--endpoint").optional,
        ]
      ]
    case .xiaomi:
      [
        [
          Field("AppSecret", "appSecret", "--secret").secret,
          Field("Endpoint", "endpoint", "--endpoint").optional,
        ]
      ]
    case .apns, .fcmv1, .browser, .mpns, .gcm: []
    }
  }

  /// - Parameters:
  ///   - name: The name of a field in the source of the values.
  ///   - value: The value that was given for it.
  /// - Throws: ``CredentialError`` if a value is missing, or belongs to another way.
  static func credential(
    _ platform: PushPlatform, at now: Date, name: (Field) -> String, value: (Field) -> String?
  ) throws(CredentialError) -> PushCredential {
    let families = families(of: platform)
    // The identifying fields select the way; secrets may have the same name in both.
    let begun = families.filter { family in
      family.contains { !$0.isSecret && !$0.isOptional && value($0) != nil }
    }
    guard begun.count < 2 else {
      throw CredentialError(
        begun.map { $0.filter { !$0.isSecret && !$0.isOptional }.map(name).joined(separator: ", ") }
          .joined(separator: " and ") + " exclude each other")
    }
    var properties: [String: String] = [:]
    for field in begun.first ?? families.first ?? [] {
      if let text = value(field), !text.isEmpty {
        properties[field.property] = text
      } else if !field.isOptional {
        let ways = families.map { $0.filter { !$0.isOptional }.map(name).joined(separator: ", ") }
        throw CredentialError(
          "\(name(field)) is missing; a credential for \(platform.rawValue) needs "
            + ways.joined(separator: ", or "))
      }
    }
    return PushCredential(platform: platform, properties: properties, modifiedAt: now)
  }
}

/// The names of a credential's properties in the user's input, so that errors use those names.
enum CredentialNames: Sendable {
  case options
  /// The keys in a hub's section of a configuration.
  case keys

  func fault(_ error: CredentialError, of platform: PushPlatform) -> CredentialError {
    let names = names(of: platform)
    var text = ""
    var word = ""
    var before: Character?
    func close() {
      // `AuthKey_<KeyId>.p8` is a file name.
      text += before == "<" ? word : names[word] ?? word
      word = ""
    }
    for character in error.description {
      if character.isLetter || character.isNumber || character == "_" {
        word.append(character)
      } else {
        close()
        text.append(character)
        before = character
      }
    }
    close()
    return CredentialError(text, isExpiry: error.isExpiry)
  }

  private func names(of platform: PushPlatform) -> [String: String] {
    var names: [String: String] = [:]
    for (property, option, key) in Self.files[platform] ?? [] {
      names[property] = self == .options ? option : key
    }
    for field in PlainCredentialValues.families(of: platform).flatMap({ $0 }) {
      names[field.property] = self == .options ? field.options[0] : field.key
    }
    return names
  }

  private static let files: [PushPlatform: [(property: String, option: String, key: String)]] = [
    .apns: [
      ("Token", "--key", "keyFile"), ("KeyId", "--key-id", "keyId"),
      ("AppId", "--team-id", "teamId"), ("AppName", "--bundle-id", "bundleId"),
      ("ApnsCertificate", "--certificate", "certificateFile"),
      ("CertificateKey", "--password", "password"), ("Endpoint", "--endpoint", "endpoint"),
      ("OtherEndpoint", "--other-endpoint", "otherEndpoint"),
      ("BroadcastEndpoint", "--broadcast-endpoint", "broadcastEndpoint"),
    ],
    .fcmv1: [
      ("ProjectId", "project_id", "project_id"), ("ClientEmail", "client_email", "client_email"),
      ("PrivateKey", "private_key", "private_key"),
      ("PrivateKeyId", "private_key_id", "private_key_id"),
      ("TokenUri", "--token-url", "tokenUri"), ("Endpoint", "--endpoint", "endpoint"),
    ],
    .browser: [
      ("Subject", "--subject", "subject"), ("VapidPublicKey", "--public-key", "publicKey"),
      ("VapidPrivateKey", "--private-key", "privateKey"),
    ],
  ]
}
