import Cryptography
import Foundation
import HubCore
import NotificationHubs
import PushEmulator
import Wire

/// The credentials of a development hub for the stand-ins, except APNs' key: one for each platform
/// that the emulator stands in for.
enum StandInCredentials {
  /// The Firebase project of the virtual phones.
  static let project = "demo-project"
  private static let subject = "mailto:dev@example.com"

  /// The credentials for an emulator in this process.
  static func own(_ emulator: EmulatorServer) throws -> [PushCredential] {
    let project = try emulator.firebaseProject(project)
    let web = try emulator.webApplication()
    return [
      fcm(
        email: project.clientEmail, keyID: project.privateKeyID, key: project.privateKey,
        endpoint: project.endpoint, tokenURI: project.tokenURI),
      browser(publicKey: web.publicKey, privateKey: web.privateKey),
    ] + (try ownPlain(emulator))
  }

  /// The credentials for an emulator elsewhere. It is given keys of ours, which are stored in the
  /// directory.
  static func joined(
    _ api: EmulatorControl, _ info: EmulatorControl.Info, in directory: String
  ) async throws -> [PushCredential] {
    var credentials: [PushCredential] = []
    if let endpoint = info["fcm"]?.http2 ?? info["fcm"]?.http1 {
      let key = try kept(directory + "/emulator-fcm.pem") {
        try RSAPrivateKey(pem: $0)
      } make: {
        try RSAPrivateKey()
      } pem: {
        try $0.pem()
      }
      let publicPEM = try key.publicKey().pem
      let keyID = Hex.encode(Digest.sha256(Array(publicPEM.utf8))).prefix(40)
      let email = "hub-\(keyID.prefix(8))@\(project).iam.gserviceaccount.com"
      let accounts = [
        EmulatorControl.ServiceAccount(
          clientEmail: email, privateKeyId: String(keyID), publicKeyPem: publicPEM)
      ]
      let app = try await api.app(
        EmulatorControl.Members(pns: "fcm", projectId: project, serviceAccounts: accounts),
        adding: .init(serviceAccounts: accounts)
      ) {
        $0.projectId == project
      } unless: {
        $0.serviceAccounts?.contains { $0.privateKeyId == keyID } == true
      }
      credentials.append(
        fcm(
          email: email, keyID: String(keyID), key: try key.pem(), endpoint: endpoint,
          tokenURI: app.tokenUri ?? endpoint + "/token"))
    }
    if info["webpush"] != nil {
      let key = try kept(directory + "/emulator-vapid.pem") {
        try P256PrivateKey(pem: $0)
      } make: {
        try P256PrivateKey()
      } pem: {
        try $0.pem()
      }
      let publicKey = Base64URL.encode(try key.publicKey().point)
      _ = try await api.webApp(vapidPublicKey: publicKey)
      credentials.append(
        browser(publicKey: publicKey, privateKey: Base64URL.encode(try key.scalar())))
    }
    credentials += try await joinedPlain(api, info, in: directory)
    return credentials
  }

  /// Reads a key from its file, or creates and stores a new one.
  static func kept<Key>(
    _ file: String, read: (String) throws -> Key, make: () throws -> Key,
    pem: (Key) throws -> String
  ) throws -> Key {
    if let text = try? String(contentsOfFile: file, encoding: .utf8) { return try read(text) }
    let key = try make()
    try OutputFile.write(try pem(key), to: file)
    return key
  }

  private static func fcm(
    email: String, keyID: String, key: String, endpoint: String, tokenURI: String
  ) -> PushCredential {
    PushCredential(
      platform: .fcmv1,
      properties: [
        "ProjectId": project, "ClientEmail": email, "PrivateKeyId": keyID, "PrivateKey": key,
        "Endpoint": endpoint, "TokenUri": tokenURI,
      ], modifiedAt: Date())
  }

  private static func browser(publicKey: String, privateKey: String) -> PushCredential {
    PushCredential(
      platform: .browser,
      properties: [
        "VapidPublicKey": publicKey, "VapidPrivateKey": privateKey, "Subject": subject,
      ], modifiedAt: Date())
  }
}
