import HubCore
import NotificationHubs

/// What the properties of a credential are called where people write them, so that a fault names what
/// they wrote and not what became of it.
enum CredentialNames: Sendable {
  case options
  /// Of a hub's section in a configuration.
  case keys

  func fault(_ error: CredentialError, of platform: PushPlatform) -> CredentialError {
    let names = names(of: platform)
    var text = ""
    var word = ""
    var before: Character?
    func close() {
      // `AuthKey_<KeyId>.p8` is the name of a file.
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
