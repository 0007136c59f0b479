/// The example file: every setting with its default, and a hub with the credentials of each push
/// service. `belfry config --example` prints it.
enum ExampleConfiguration {
  /// The text without the end of its last line.
  static var text: String { ([head] + Setting.all.map(line) + [hubs]).joined(separator: "\n") }

  private static let head = """
    // Every setting with its default. Copy what you change to belfry.json, which `belfry serve` reads in
    // its working directory, or name the file with --config. The same names work as variables and flags:
    // "bodyLimit" is BELFRY_BODY_LIMIT and --body-limit. `belfry config` prints what is in force.
    {
    """

  private static let hubs = """

      // Created at the start if missing; anything that is not listed stays as it is.
      "hubs": [
        // { "name": "news",
        //   "registrationTTL": 7776000,   // seconds a device lives after its last write; at least a day
        //   "weight": 1,                  // share in relation to other hubs while all are busy, 1 to 100
        //   "policies": [ { "name": "backend", "rights": ["Send"] } ],   // keys are random unless given
        //   "apns": { "keyFile": "AuthKey_ABC123DEFG.p8", "teamId": "DEF123GHIJ",
        //             "bundleId": "com.example.news", "endpoint": "production",
        //             // a certificate instead: "certificateFile": "push.p12", "password", "endpoint"
        //             "otherEndpoint": null,     // for unknown tokens; "none": Apple's other one is not tried
        //             "broadcastEndpoint": null },   // where channels are managed, if not at Apple
        //   "fcm": { "serviceAccount": "service-account.json" },
        //   "webPush": { "subject": "mailto:ops@example.com", "privateKeyFile": "vapid.pem" },
        //   // A secret stands in the file, in a variable of the process, or in a file of its own.
        //   "wns": { "packageSid": "ms-app://s-1-15-2-…", "secret": { "variable": "NEWS_WNS_SECRET" } },
        //   // or "tenantId", "clientId" and "clientSecret" of an app of Microsoft Entra
        //   "adm": { "clientId": "amzn1.application-oa2-client.…", "clientSecret": { "file": "adm.secret" } },
        //   "baidu": { "apiKey": "…", "secretKey": { "variable": "NEWS_BAIDU_SECRET" } },
        //   "xiaomi": { "appSecret": { "variable": "NEWS_XIAOMI_SECRET" },
        //               "endpoint": "https://fr-api.xmpush.global.xiaomi.com" } }   // the region's host
      ]
    }
    """

  private static func line(_ setting: Setting) -> String {
    "  \"\(setting.key)\": \(value(setting)),".padded(to: 32) + " // " + setting.example
  }

  private static func value(_ setting: Setting) -> String {
    switch (setting.standard, setting.kind) {
    case (_, .list): "[]"
    case (nil, _): "null"
    case (let standard?, .integer), (let standard?, .flag): standard
    case (let standard?, .text), (let standard?, .choice), (let standard?, .time): "\"\(standard)\""
    }
  }
}
