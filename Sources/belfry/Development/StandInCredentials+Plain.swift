import Cryptography
import Foundation
import HubCore
import NotificationHubs
import PushEmulator
import Wire

/// The services over HTTP/1.1, whose credentials are secrets.
extension StandInCredentials {
  static func ownPlain(_ emulator: EmulatorServer) throws -> [PushCredential] {
    let windows = try emulator.windowsApp()
    let amazon = try emulator.amazonApp()
    let baidu = try emulator.baiduKeys()
    let xiaomi = try emulator.xiaomiSecret()
    return [
      wns(sid: windows.packageSID, secret: windows.secret, tokenURL: windows.tokenURL),
      adm(
        client: amazon.clientID, secret: amazon.clientSecret, tokenURL: amazon.tokenURL,
        template: amazon.sendURLTemplate),
      Self.baidu(key: baidu.apiKey, secret: baidu.secretKey, endpoint: baidu.endpoint),
      Self.xiaomi(secret: xiaomi.appSecret, endpoint: xiaomi.endpoint),
    ]
  }

  /// Credentials for apps of this hub, distinguished from those of other hubs by a hash of its
  /// secret.
  static func joinedPlain(
    _ api: EmulatorControl, _ info: EmulatorControl.Info, in directory: String
  ) async throws -> [PushCredential] {
    let secret = try kept(directory + "/emulator-secret") {
      $0
    } make: {
      Base64URL.encode(try SecureRandom.bytes(32))
    } pem: {
      $0
    }
    let mark = Array(Digest.sha256(Array(secret.utf8)).prefix(12))
    let name = Hex.encode(mark)
    var credentials: [PushCredential] = []
    if let origin = info["wns"]?.http1 {
      let sid = "ms-app://s-1-15-2-" + mark.map(String.init).joined(separator: "-")
      try await api.app(
        ["pns": "wns", "packageSid": sid, "secret": secret], adding: ["secret": secret]
      ) { $0.packageSid == sid }
      credentials.append(wns(sid: sid, secret: secret, tokenURL: origin + "/accesstoken.srf"))
    }
    if let origin = info["adm"]?.http1 {
      let client = "amzn1.application-oa2-client.\(name)"
      try await api.app(
        ["pns": "adm", "clientId": client, "clientSecret": secret],
        adding: ["clientSecret": secret]
      ) { $0.clientId == client }
      credentials.append(
        adm(
          client: client, secret: secret, tokenURL: origin + "/auth/O2/token",
          template: origin + "/messaging/registrations/{0}/messages"))
    }
    if let origin = info["baidu"]?.http1 {
      try await api.app(
        ["pns": "baidu", "apiKey": name, "secretKey": secret], adding: ["secretKey": secret]
      ) { $0.apiKey == name }
      credentials.append(
        baidu(key: name, secret: secret, endpoint: origin + "/rest/2.0/channel/channel"))
    }
    if let origin = info["xiaomi"]?.http1 {
      let package = "com.example.hub\(name)"
      try await api.app(
        ["pns": "xiaomi", "packageName": package, "appSecret": secret],
        adding: ["appSecret": secret]
      ) { $0.packageName == package }
      credentials.append(xiaomi(secret: secret, endpoint: origin))
    }
    return credentials
  }

  private static func wns(sid: String, secret: String, tokenURL: String) -> PushCredential {
    credential(
      .wns, ["PackageSid": sid, "SecretKey": secret, "WindowsLiveEndpoint": tokenURL])
  }

  private static func adm(
    client: String, secret: String, tokenURL: String, template: String
  ) -> PushCredential {
    credential(
      .adm,
      [
        "ClientId": client, "ClientSecret": secret, "AuthTokenUrl": tokenURL,
        "SendUrlTemplate": template,
      ])
  }

  private static func baidu(key: String, secret: String, endpoint: String) -> PushCredential {
    credential(
      .baidu, ["BaiduApiKey": key, "BaiduSecretKey": secret, "BaiduEndPoint": endpoint])
  }

  private static func xiaomi(secret: String, endpoint: String) -> PushCredential {
    credential(.xiaomi, ["AppSecret": secret, "Endpoint": endpoint])
  }

  private static func credential(
    _ platform: PushPlatform, _ properties: [String: String]
  ) -> PushCredential {
    PushCredential(platform: platform, properties: properties, modifiedAt: Date())
  }
}
