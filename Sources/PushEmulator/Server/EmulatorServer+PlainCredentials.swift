/// Apps of the services over HTTP/1.1 with what a hub needs to push to them; each is the first that
/// the emulator has, or is made. They throw `ControlError` in words for people, and `EmulatorError`
/// before the start.
extension EmulatorServer {
  /// What a hub shows WNS.
  package struct WindowsApp: Sendable {
    package let appID: String
    package let packageSID: String
    package let secret: String
    /// Where access tokens come from.
    package let tokenURL: String
  }

  package func windowsApp() throws -> WindowsApp {
    try core().withState { state throws(ControlError) in
      if state.wns.apps.isEmpty {
        // The form that every real Package SID has.
        let sid = "ms-app://s-1-15-2-1234567890-1-2-3-4-5-6"
        _ = try WNSDesk().makeApp(["pns": "wns", "packageSid": .string(sid)], in: &state)
      }
      guard let app = state.wns.apps.values.min(by: { $0.number < $1.number }) else {
        throw .notFound("Windows app")
      }
      return WindowsApp(
        appID: EmulatorState.appID(app.number), packageSID: app.packageSID, secret: app.secret,
        tokenURL: state.origins.first(.wns) + WNSRequest.livePath)
    }
  }

  /// What a hub shows ADM.
  package struct AmazonApp: Sendable {
    package let appID: String
    package let clientID: String
    package let clientSecret: String
    package let tokenURL: String
    /// With `{0}` where the registration id goes.
    package let sendURLTemplate: String
  }

  package func amazonApp() throws -> AmazonApp {
    try core().withState { state throws(ControlError) in
      if state.adm.apps.isEmpty { _ = try ADMDesk().makeApp(["pns": "adm"], in: &state) }
      guard let app = state.adm.apps.values.min(by: { $0.number < $1.number }) else {
        throw .notFound("ADM client")
      }
      let origin = state.origins.first(.adm)
      return AmazonApp(
        appID: EmulatorState.appID(app.number), clientID: app.clientID,
        clientSecret: app.clientSecret, tokenURL: origin + ADMRequest.tokenPath,
        sendURLTemplate: origin + "/messaging/registrations/{0}/messages")
    }
  }

  /// What a hub shows Baidu.
  package struct BaiduKeys: Sendable {
    package let appID: String
    package let apiKey: String
    package let secretKey: String
    /// Of the older API.
    package let endpoint: String
  }

  package func baiduKeys() throws -> BaiduKeys {
    try core().withState { state throws(ControlError) in
      if state.baidu.apps.isEmpty { _ = try BaiduDesk().makeApp(["pns": "baidu"], in: &state) }
      guard let app = state.baidu.apps.values.min(by: { $0.number < $1.number }) else {
        throw .notFound("Baidu app")
      }
      return BaiduKeys(
        appID: EmulatorState.appID(app.number), apiKey: app.apiKey, secretKey: app.secretKey,
        endpoint: state.origins.first(.baidu) + BaiduRequest.path2)
    }
  }

  /// What a hub shows Xiaomi.
  package struct XiaomiSecret: Sendable {
    package let appID: String
    package let appSecret: String
    package let endpoint: String
  }

  package func xiaomiSecret() throws -> XiaomiSecret {
    try core().withState { state throws(ControlError) in
      if state.xiaomi.apps.isEmpty { _ = try XiaomiDesk().makeApp(["pns": "xiaomi"], in: &state) }
      guard let app = state.xiaomi.apps.values.min(by: { $0.number < $1.number }) else {
        throw .notFound("Xiaomi app")
      }
      return XiaomiSecret(
        appID: EmulatorState.appID(app.number), appSecret: app.appSecret,
        endpoint: state.origins.first(.xiaomi))
    }
  }
}
