import Foundation
import HubCore
import NotificationHubs

/// An APNs credential as people have it: in files and a few ids. Becomes the properties of
/// spec `rest-api.md` 8.1.
struct APNsCredentialFiles: Sendable {
  /// The `.p8` of Apple's developer portal.
  var keyFile: String?
  var keyID: String?
  var teamID: String?
  var bundleID: String?
  /// A `.p12` with certificate and key.
  var certificateFile: String?
  var password: String?
  /// `production`, `sandbox`, or a URL.
  var endpoint: String?
  /// A URL, or `none`; without it Apple's other environment.
  var otherEndpoint: String?

  /// - Throws: ``CredentialError`` when a file cannot be read or parts are missing.
  func credential(at now: Date) throws(CredentialError) -> PushCredential {
    var properties: [String: String] = [:]
    switch (keyFile, certificateFile) {
    case (let keyFile?, nil):
      properties["Token"] = String(decoding: try read(keyFile), as: UTF8.self)
      properties["KeyId"] = keyID ?? Self.keyID(inName: keyFile)
      properties["AppId"] = teamID
      properties["AppName"] = bundleID
    case (nil, let certificateFile?):
      properties["ApnsCertificate"] = Data(try read(certificateFile)).base64EncodedString()
      properties["CertificateKey"] = password ?? ""
    case (nil, nil):
      throw CredentialError("give either a .p8 key or a .p12 certificate")
    default:
      throw CredentialError("give a .p8 key or a .p12 certificate, not both")
    }
    switch endpoint?.lowercased() {
    case nil, "production": properties["Endpoint"] = "https://api.push.apple.com:443/3/device"
    case "sandbox", "development":
      properties["Endpoint"] = "https://api.development.push.apple.com:443/3/device"
    default: properties["Endpoint"] = endpoint
    }
    properties["OtherEndpoint"] = otherEndpoint
    return PushCredential(platform: .apns, properties: properties, modifiedAt: now)
  }

  private func read(_ path: String) throws(CredentialError) -> Data {
    do {
      return try Data(contentsOf: URL(fileURLWithPath: path))
    } catch {
      throw CredentialError("\(path) cannot be read: \(Configuration.reason(error))")
    }
  }

  /// Apple names the file `AuthKey_{key id}.p8`.
  private static func keyID(inName path: String) -> String? {
    let name = URL(fileURLWithPath: path).deletingPathExtension().lastPathComponent
    guard name.hasPrefix("AuthKey_") else { return nil }
    return String(name.dropFirst("AuthKey_".count))
  }
}
