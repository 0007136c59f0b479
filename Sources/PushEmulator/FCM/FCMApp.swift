/// A Firebase project with its Android app, as Google knows it; kept in the state file.
struct FCMApp: Sendable, Codable {
  /// Unique in the emulator.
  let number: UInt32
  let projectID: String
  let senderID: String
  var packageName: String
  var accounts: [Account]

  /// A key of a service account. One client may have several.
  struct Account: Sendable, Codable, Equatable {
    let clientEmail: String
    let privateKeyID: String
    let publicKeyPEM: String
    /// Of a key that the emulator made; shown once, and kept for its operator.
    var privateKeyPEM: String?
    var isDisabled = false
  }

  /// The account's file as people download it from the console.
  ///
  /// - Parameter tokenURI: The stand-in's.
  func file(_ account: Account, tokenURI: String) -> JSON? {
    guard let key = account.privateKeyPEM else { return nil }
    let name = account.clientEmail.replacing("@", with: "%40")
    return [
      "type": "service_account", "project_id": .string(projectID),
      "private_key_id": .string(account.privateKeyID), "private_key": .string(key),
      "client_email": .string(account.clientEmail), "client_id": .string(senderID),
      "auth_uri": "https://accounts.google.com/o/oauth2/auth", "token_uri": .string(tokenURI),
      "auth_provider_x509_cert_url": "https://www.googleapis.com/oauth2/v1/certs",
      "client_x509_cert_url": .string(
        "https://www.googleapis.com/robot/v1/metadata/x509/" + name),
      "universe_domain": "googleapis.com",
    ]
  }
}
