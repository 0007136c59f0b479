import Cryptography
import Foundation
import HubCore
import NotificationHubs

/// A Web Push credential as people have it: a VAPID pair, written out as libraries print it or as a
/// PEM file. Becomes the properties of spec `rest-api.md` 8.1.
struct WebPushCredentialFiles: Sendable {
  /// `mailto:` and an address, or an https page.
  var subject: String
  /// Base 64 URL; `nil`: the one that belongs to the private key.
  var publicKey: String?
  /// Base 64 URL.
  var privateKey: String?
  /// A PEM file, or one that holds the base 64 URL form.
  var privateKeyFile: String?

  /// - Throws: ``CredentialError`` when a file cannot be read or parts are missing.
  func credential(at now: Date) throws(CredentialError) -> PushCredential {
    let text: String
    switch (privateKey, privateKeyFile) {
    case (let key?, nil): text = key
    case (nil, let file?):
      do {
        text = try String(contentsOfFile: file, encoding: .utf8)
          .trimmingCharacters(in: .whitespacesAndNewlines)
      } catch {
        throw CredentialError("\(file) cannot be read: \(Configuration.reason(error))")
      }
    case (nil, nil): throw CredentialError("give the private key, or the file that holds it")
    default: throw CredentialError("give the private key or its file, not both")
    }
    var properties = ["Subject": subject, "VapidPrivateKey": text]
    properties["VapidPublicKey"] = publicKey ?? Self.publicKey(of: text)
    return PushCredential(platform: .browser, properties: properties, modifiedAt: now)
  }

  /// - Returns: `nil` for what is no private key; whoever checks the credential says so.
  private static func publicKey(of text: String) -> String? {
    let scalar = Base64.decodeAnyAlphabet(text.utf8)
    let key =
      scalar?.count == 32
      ? try? P256PrivateKey(scalar: scalar ?? []) : try? P256PrivateKey(pem: text)
    return (try? key?.publicKey().point).map { Base64URL.encode($0) }
  }
}
