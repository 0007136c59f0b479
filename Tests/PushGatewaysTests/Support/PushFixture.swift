// swift-format-ignore-file: AlwaysUseLowerCamelCase

// The names are those of the fixture file.
import Foundation
import HubCore
import NotificationHubs
import Testing

/// The published vectors that concern FCM and Web Push (`Fixtures/fcm-and-web-push.json`).
struct PushFixture: Decodable {
  struct RSAKey: Decodable {
    let private_pkcs8_pem: String
    let public_spki_pem: String
  }
  struct Pair: Decodable {
    let d_b64u: String
    let public_uncompressed_b64u: String
    let private_pkcs8_pem: String
  }
  struct Keys: Decodable {
    let rsa: RSAKey
    let p256, p256Other: Pair
  }
  struct Answer: Decodable, CustomTestStringConvertible {
    let status: UInt16
    let body, outcome: String
    let remove: Bool
    var testDescription: String { "\(status) \(body)" }
  }
  struct Account: Decodable { let project_id, private_key_id, client_email, token_uri: String }
  struct Assertion: Decodable {
    let service_account: Account
    let signing_input, signature_b64u, form_body: String
  }

  let keys: Keys
  let fcmRows, webPushRows: [Vectors.Row]
  let fcmReplies: [Answer]
  let oauth: Assertion

  static let all: PushFixture = {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Fixtures/fcm-and-web-push.json")
    do {
      return try JSONDecoder().decode(PushFixture.self, from: Data(contentsOf: file))
    } catch {
      fatalError("the fixture \(file.path) does not read: \(error)")
    }
  }()

  /// A credential of FCM; `nil` takes a property away.
  static func fcm(_ changes: [String: String?] = [:]) -> PushCredential {
    let account = all.oauth.service_account
    let whole: [String: String?] = [
      "ProjectId": account.project_id, "ClientEmail": account.client_email,
      "PrivateKey": all.keys.rsa.private_pkcs8_pem,
    ]
    return PushCredential(
      platform: .fcmv1,
      properties: whole.merging(changes) { $1 }.compactMapValues { $0 },
      modifiedAt: .distantPast)
  }

  /// A credential of Web Push; `nil` takes a property away.
  static func webPush(_ changes: [String: String?] = [:]) -> PushCredential {
    let whole: [String: String?] = [
      "VapidPublicKey": all.keys.p256.public_uncompressed_b64u,
      "VapidPrivateKey": all.keys.p256.d_b64u, "Subject": "mailto:ops@example.com",
    ]
    return PushCredential(
      platform: .browser,
      properties: whole.merging(changes) { $1 }.compactMapValues { $0 },
      modifiedAt: .distantPast)
  }
}
