import Foundation
import HubCore
import NotificationHubs

/// Credentials that are a name and a secret: what each is called on the command line, in a
/// configuration, and as a property of spec `rest-api.md` 8.1.
enum PlainCredentialValues {
  struct Field: Sendable {
    let property: String
    /// Of `belfry credential set`; the first is the one to teach.
    let options: [String]
    /// Of a hub's section in a configuration.
    let key: String
    var isSecret = false
    var isOptional = false
  }

  /// The ways to prove who one is at a platform; empty for those whose credentials are files.
  static func families(of platform: PushPlatform) -> [[Field]] {
    let tokenURL = Field(
      property: "WindowsLiveEndpoint", options: ["--token-url"], key: "tokenUrl", isOptional: true)
    return switch platform {
    case .wns:
      [
        [
          Field(property: "PackageSid", options: ["--package-sid"], key: "packageSid"),
          Field(property: "SecretKey", options: ["--secret"], key: "secret", isSecret: true),
          tokenURL,
        ],
        [
          Field(property: "TenantId", options: ["--tenant-id"], key: "tenantId"),
          Field(property: "ClientId", options: ["--client-id"], key: "clientId"),
          Field(
            property: "ClientSecret", options: ["--client-secret", "--secret"],
            key: "clientSecret", isSecret: true),
          tokenURL,
        ],
      ]
    case .adm:
      [
        [
          Field(property: "ClientId", options: ["--client-id"], key: "clientId"),
          Field(
            property: "ClientSecret", options: ["--client-secret", "--secret"],
            key: "clientSecret", isSecret: true),
          Field(
            property: "AuthTokenUrl", options: ["--token-url"], key: "tokenUrl", isOptional: true),
          Field(
            property: "SendUrlTemplate", options: ["--endpoint"], key: "endpoint",
            isOptional: true),
        ]
      ]
    case .baidu:
      [
        [
          Field(property: "BaiduApiKey", options: ["--api-key"], key: "apiKey"),
          Field(
            property: "BaiduSecretKey", options: ["--secret"], key: "secretKey", isSecret: true),
          Field(
            property: "BaiduEndPoint", options: ["--endpoint"], key: "endpoint", isOptional: true),
        ]
      ]
    case .xiaomi:
      [
        [
          Field(property: "AppSecret", options: ["--secret"], key: "appSecret", isSecret: true),
          Field(property: "Endpoint", options: ["--endpoint"], key: "endpoint", isOptional: true),
        ]
      ]
    case .apns, .fcmv1, .browser, .mpns, .gcm: []
    }
  }

  /// - Parameters:
  ///   - name: What a field is called where the values come from.
  ///   - value: What was given for it.
  /// - Throws: ``CredentialError`` when something is missing, or belongs to another way.
  static func credential(
    _ platform: PushPlatform, at now: Date, name: (Field) -> String, value: (Field) -> String?
  ) throws(CredentialError) -> PushCredential {
    let families = families(of: platform)
    // Who one is tells the way; secrets may be called the same in both.
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
          "\(name(field)) is missing; a credential for \(platform.rawValue) wants "
            + ways.joined(separator: ", or "))
      }
    }
    return PushCredential(platform: platform, properties: properties, modifiedAt: now)
  }
}
