import Foundation
import HubCore
import NotificationHubs

/// Credentials that are a name and a secret: options of `belfry credential set` and the properties of
/// spec `rest-api.md` 8.1 that they become.
enum PlainCredentialValues {
  /// Option and property; all are needed.
  static func names(of platform: PushPlatform) -> [(option: String, property: String)] {
    switch platform {
    case .wns: [("--package-sid", "PackageSid"), ("--secret", "SecretKey")]
    case .adm: [("--client-id", "ClientId"), ("--secret", "ClientSecret")]
    case .baidu: [("--api-key", "BaiduApiKey"), ("--secret", "BaiduSecretKey")]
    case .xiaomi: [("--secret", "AppSecret")]
    case .apns, .fcmv1, .browser, .mpns, .gcm: []
    }
  }

  /// - Parameter value: What was given for an option.
  static func credential(
    _ platform: PushPlatform, at now: Date, value: (String) -> String?
  ) throws(CredentialError) -> PushCredential {
    var properties: [String: String] = [:]
    for (option, property) in names(of: platform) {
      guard let text = value(option), !text.isEmpty else {
        throw CredentialError("a credential for \(platform.rawValue) wants \(option)")
      }
      properties[property] = text
    }
    return PushCredential(platform: platform, properties: properties, modifiedAt: now)
  }
}
