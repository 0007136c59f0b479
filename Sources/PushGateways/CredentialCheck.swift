package import Foundation
package import HubCore
import NotificationHubs

/// Looks at credentials without making gateways of them.
package enum CredentialCheck {
  /// - Throws: ``CredentialError``, which names the property and says what to do.
  package static func check(
    _ credential: PushCredential, at now: Date
  ) throws(CredentialError) {
    switch credential.platform {
    case .apns: _ = try APNsCredential(credential, at: now)
    case .fcmv1: _ = try FCMCredential(credential)
    case .browser: _ = try WebPushCredential(credential)
    case .wns: _ = try WNSCredential(credential)
    case .adm: _ = try ADMCredential(credential)
    case .baidu: _ = try BaiduCredential(credential)
    case .xiaomi: _ = try XiaomiService(credential)
    // What has ended is kept as it is.
    case .mpns, .gcm: break
    }
  }
}
