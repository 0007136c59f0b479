import Foundation
import HubCore
import NotificationHubs
import PushEmulator

extension StandInStage {
  /// A credential that the stand-in of a platform accepts, with these changes; `nil` takes a
  /// property away.
  func credential(
    _ platform: PushPlatform, _ changes: [String: String?] = [:],
    modifiedAt: Date = Date(timeIntervalSince1970: 0)
  ) throws -> PushCredential {
    var properties = try whole(platform)
    for (name, value) in changes { properties[name] = value }
    return PushCredential(platform: platform, properties: properties, modifiedAt: modifiedAt)
  }

  private func whole(_ platform: PushPlatform) throws -> [String: String] {
    switch platform {
    case .apns:
      let app = try emulator.app()
      return [
        "Token": app.p8, "KeyId": app.keyID, "AppId": app.teamID, "AppName": app.bundleID,
        "Endpoint": addresses.apnsProduction, "OtherEndpoint": addresses.apnsSandbox,
        "BroadcastEndpoint": addresses.apnsChannelsProduction,
      ]
    case .fcmv1:
      let project = try emulator.firebaseProject()
      return [
        "ProjectId": project.projectID, "ClientEmail": project.clientEmail,
        "PrivateKeyId": project.privateKeyID, "PrivateKey": project.privateKey,
        "Endpoint": project.endpoint, "TokenUri": project.tokenURI,
      ]
    case .browser:
      let web = try emulator.webApplication()
      return [
        "VapidPublicKey": web.publicKey, "VapidPrivateKey": web.privateKey,
        "Subject": "mailto:ops@example.com",
      ]
    case .wns:
      let app = try emulator.windowsApp()
      return [
        "PackageSid": app.packageSID, "SecretKey": app.secret,
        "WindowsLiveEndpoint": app.tokenURL,
      ]
    case .adm:
      let app = try emulator.amazonApp()
      return [
        "ClientId": app.clientID, "ClientSecret": app.clientSecret, "AuthTokenUrl": app.tokenURL,
        "SendUrlTemplate": app.sendURLTemplate,
      ]
    case .baidu:
      let keys = try emulator.baiduKeys()
      return [
        "BaiduApiKey": keys.apiKey, "BaiduSecretKey": keys.secretKey,
        "BaiduEndPoint": keys.endpoint,
      ]
    case .xiaomi:
      let app = try emulator.xiaomiSecret()
      return ["AppSecret": app.appSecret, "Endpoint": app.endpoint]
    case .mpns, .gcm: return [:]
    }
  }
}
