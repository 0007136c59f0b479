import Cryptography
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
  /// A URL; without it that of Apple's environment.
  var broadcastEndpoint: String?

  /// - Throws: ``CredentialError`` when a file cannot be read, is another than wanted, or parts are
  ///   missing or too much.
  func credential(at now: Date) throws(CredentialError) -> PushCredential {
    var properties: [String: String] = [:]
    switch (keyFile, certificateFile) {
    case (let keyFile?, nil):
      guard password == nil else {
        throw CredentialError("a password belongs to a .p12 certificate; a .p8 key has none")
      }
      let file = try CredentialFile(keyFile)
      try file.require(.signingKey)
      properties["Token"] = file.text
      properties["KeyId"] = keyID ?? Self.keyID(inName: keyFile)
      properties["AppId"] = teamID
      properties["AppName"] = bundleID
      for (name, value) in [
        ("the key id (--key-id), as Apple's list of keys shows it", properties["KeyId"]),
        ("the team id (--team-id), as Apple's membership page shows it", teamID),
        ("the bundle id of the app (--bundle-id)", bundleID),
      ] where value?.isEmpty ?? true {
        throw CredentialError("a .p8 key wants \(name)")
      }
    case (nil, let certificateFile?):
      if keyID != nil || teamID != nil || bundleID != nil {
        throw CredentialError(
          "key id, team id and bundle id belong to a .p8 key; a .p12 certificate names its app itself"
        )
      }
      let file = try CredentialFile(certificateFile)
      try file.require(.archive)
      try open(file)
      properties["ApnsCertificate"] = file.data.base64EncodedString()
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
    properties["BroadcastEndpoint"] = broadcastEndpoint
    return PushCredential(platform: .apns, properties: properties, modifiedAt: now)
  }

  /// Tells of a password in the words of who gave it.
  private func open(_ file: CredentialFile) throws(CredentialError) {
    do {
      _ = try PKCS12.open([UInt8](file.data), password: password ?? "")
    } catch {
      guard error.kind == .wrongPassword else {
        throw CredentialError("\(file.path) cannot be used: \(error.message)")
      }
      throw CredentialError(
        password == nil
          ? "\(file.path) wants its password: give --password or BELFRY_CERTIFICATE_PASSWORD"
          : "\(file.path) does not open with this password")
    }
  }

  /// Apple names the file `AuthKey_{key id}.p8`.
  private static func keyID(inName path: String) -> String? {
    let name = URL(fileURLWithPath: path).deletingPathExtension().lastPathComponent
    guard name.hasPrefix("AuthKey_") else { return nil }
    return String(name.dropFirst("AuthKey_".count))
  }
}
