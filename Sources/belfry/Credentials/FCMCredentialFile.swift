import Foundation
import HubCore
import NotificationHubs

/// An FCM credential as people have it: the JSON file of a service account, which Google's console
/// hands out. Becomes the properties of spec `rest-api.md` 8.1.
struct FCMCredentialFile: Sendable {
  var serviceAccount: String
  /// Where messages go, for a stand-in; `nil` is Google.
  var endpoint: String?
  /// Where access tokens come from; `nil` is what the file says.
  var tokenURI: String?

  /// The members that count.
  private struct Account: Decodable {
    let projectId: String?
    let clientEmail: String?
    let privateKey: String?
    let privateKeyId: String?
    let tokenUri: String?
  }

  /// - Throws: ``CredentialError`` when the file cannot be read or is no service account's.
  func credential(at now: Date) throws(CredentialError) -> PushCredential {
    let file = try CredentialFile(serviceAccount)
    try file.require(.serviceAccount)
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    guard let account = try? decoder.decode(Account.self, from: file.data) else {
      throw CredentialError("\(serviceAccount) is a damaged service account: make a new key")
    }
    var properties: [String: String] = [:]
    properties["ProjectId"] = account.projectId
    properties["ClientEmail"] = account.clientEmail
    properties["PrivateKey"] = account.privateKey
    properties["PrivateKeyId"] = account.privateKeyId
    properties["TokenUri"] = tokenURI ?? account.tokenUri
    properties["Endpoint"] = endpoint
    return PushCredential(platform: .fcmv1, properties: properties, modifiedAt: now)
  }
}
