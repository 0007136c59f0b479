import Cryptography
package import Foundation
package import HubCore
import NotificationHubs
import Wire

extension PushGatewayDirectory {
  /// The end of a certificate. Keys, secrets and service accounts do not say when they end, or do not.
  package func end(of credential: PushCredential) -> Date? {
    let name: String? =
      switch credential.platform {
      case .apns: "ApnsCertificate"
      // Kept for their owners; nothing is sent with them.
      case .wns: "WnsCertificate"
      case .mpns: "MpnsCertificate"
      case .fcmv1, .browser, .adm, .baidu, .xiaomi, .gcm: nil
      }
    guard let name, let text = credential[name], let archive = Base64.decode(text) else {
      return nil
    }
    let password = credential["CertificateKey"] ?? ""
    return (try? PKCS12.open(archive, password: password))?.certificate.notAfter
  }
}
