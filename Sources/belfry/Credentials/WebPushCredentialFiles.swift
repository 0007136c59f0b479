import Cryptography
import Foundation
import HubCore
import NotificationHubs
import Wire

/// A Web Push credential as people have it: a VAPID pair, written out as libraries print it or as a
/// PEM file. Becomes the properties of spec `rest-api.md` 8.1.
struct WebPushCredentialFiles: Sendable {
  /// `mailto:` and an address, or an https page.
  var subject: String
  /// Base 64 URL; `nil`: the one that belongs to the private key.
  var publicKey: String?
  /// Base 64 URL.
  var privateKey: String?
  /// A PEM file, one that holds the base 64 URL form, or the JSON of `web-push generate-vapid-keys`.
  var privateKeyFile: String?

  /// What `web-push generate-vapid-keys --json` prints.
  private struct Pair: Decodable {
    let publicKey: String
    let privateKey: String
  }

  /// - Throws: ``CredentialError`` when a file cannot be read or parts are missing.
  func credential(at now: Date) throws(CredentialError) -> PushCredential {
    var text: String
    var publicKey = publicKey
    switch (privateKey, privateKeyFile) {
    case (let key?, nil): text = key
    case (nil, let path?):
      let file = try CredentialFile(path)
      try file.require(.vapidKey)
      text = file.text
      if file.kind == .json {
        guard let pair = try? JSONDecoder().decode(Pair.self, from: file.data) else {
          throw CredentialError("\(path) is JSON without publicKey and privateKey")
        }
        text = pair.privateKey
        publicKey = publicKey ?? pair.publicKey
      }
    case (nil, nil): throw CredentialError("give the private key, or the file that holds it")
    default: throw CredentialError("give the private key or its file, not both")
    }
    var properties = ["Subject": subject, "VapidPrivateKey": text]
    let ownKey = try Self.publicKey(of: text)
    properties["VapidPublicKey"] = publicKey ?? ownKey
    return PushCredential(platform: .browser, properties: properties, modifiedAt: now)
  }

  private static func publicKey(of text: String) throws(CredentialError) -> String {
    do {
      return Base64URL.encode(try key(text).publicKey().point)
    } catch {
      throw CredentialError(
        "the private key of a VAPID pair must be of the curve P-256, as PEM or 43 characters of "
          + "base 64 URL: \(error.message)")
    }
  }

  private static func key(_ text: String) throws(CryptographyError) -> P256PrivateKey {
    if let scalar = Base64.decodeAnyAlphabet(text.utf8), scalar.count == 32 {
      return try P256PrivateKey(scalar: scalar)
    }
    return try P256PrivateKey(pem: text)
  }
}
