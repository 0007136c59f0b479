// The sheet of platforms. A new one is a case of `PushPlatform`, a line in each of the two switches,
// and a row. The portal gets the sheet as JSON (`Sources/HubServer/Portal/PlatformsFile.swift`).

extension PushPlatform {
  /// The order for people; others follow.
  package static let sheetOrder: [PushPlatform] = {
    let first: [PushPlatform] = [.apns, .fcmv1, .browser, .wns]
    let rest = allCases.filter { !first.contains($0) }
    return first + rest.filter { $0.traits.successor == nil }
      + rest.filter { $0.traits.successor != nil }
  }()

  /// The traits of this platform.
  package var traits: PlatformTraits {
    switch self {
    case .apns: .apns
    case .wns: .wns
    case .mpns: .mpns
    case .gcm: .gcm
    case .fcmv1: .fcmv1
    case .adm: .adm
    case .baidu: .baidu
    case .browser: .browser
    case .xiaomi: .xiaomi
    }
  }

  /// The code in the hub's database, from 1 without gaps; never reassign one. It is separate from
  /// the traits because it is needed for every target of a send.
  package var storedCode: Int64 {
    switch self {
    case .apns: 1
    case .wns: 2
    case .mpns: 3
    case .gcm: 4
    case .fcmv1: 5
    case .adm: 6
    case .baidu: 7
    case .browser: 8
    case .xiaomi: 9
    }
  }
}

extension PlatformTraits {
  private typealias Field = CredentialTraits.Field

  private static let clientID = Field("ClientId", "clientId", "--client-id", help: "the client id")
  private static let clientSecret = Field(
    "ClientSecret", "clientSecret", "--client-secret", "--secret", kind: .secret,
    help: "the client's secret")

  private static let password = Field(
    certificatePassword, "password", "--password", kind: .secret)

  /// The payload limit applies to every push type except VoIP.
  fileprivate static let apns = PlatformTraits(
    name: "APNs", sendFormat: "apple", prefix: "Apns", registrationPrefix: "Apple",
    handleElements: [RegistrationElement.deviceToken], hasTemplateHeaders: true,
    payloadLimit: 4096, headerPrefix: "apns-",
    samples: [
      PayloadSample(
        "payload.alert",
        #"{"aps":{"alert":{"title":"Goal!","body":"Oslo leads 2:1"},"sound":"default","badge":1}}"#),
      PayloadSample(
        "payload.silent", #"{"aps":{"content-available":1},"refresh":"scores"}"#,
        headers: ["apns-push-type": "background", "apns-priority": "5"]),
      PayloadSample(
        "payload.urgent",
        #"{"aps":{"alert":{"title":"Door open","body":"The front door has been open for 10 minutes."},"#
          + #""interruption-level":"time-sensitive","sound":"default"}}"#),
      PayloadSample(
        "payload.activity",
        #"{"aps":{"timestamp":1893834000,"event":"update","content-state":{"home":2,"away":1}}}"#,
        headers: ["apns-push-type": "liveactivity", "apns-priority": "10"]),
    ],
    credential: CredentialTraits(
      fields: [
        Field("ApnsCertificate", "certificateFile", "--certificate", kind: .file), password,
        Field("Endpoint", "endpoint", "--endpoint", kind: .endpoint),
        Field("Thumbprint", "thumbprint"), Field("Token", "keyFile", "--key", kind: .lines),
        Field("KeyId", "keyId", "--key-id", example: "ABC123DEFG"),
        Field("AppName", "bundleId", "--bundle-id", example: "com.example.app"),
        Field("AppId", "teamId", "--team-id", example: "DEF123GHIJ"),
        Field("OtherEndpoint", "otherEndpoint", "--other-endpoint", isExtension: true),
        Field("BroadcastEndpoint", "broadcastEndpoint", "--broadcast-endpoint", isExtension: true),
      ],
      ways: [
        .init("apnsKey", "Token", "KeyId", "AppId", "AppName", "Endpoint"),
        .init(
          "apnsCertificate", "ApnsCertificate", optional: [certificatePassword, "Endpoint"]),
      ], isCheckedByGateway: true, certificate: "ApnsCertificate", secret: "token"),
    phone: PhoneTraits(
      service: "apns", name: "iPhone", look: "ios", payload: "APNs (JSON)",
      handleName: "device token", handle: ["token"],
      template: #"{"aps":{"alert":"$(message)"}}"#, reading: .alert,
      dead: (410, "Unregistered"), probe: .push))

  fileprivate static let wns = PlatformTraits(
    name: "Windows", sendFormat: "windows", prefix: "Wns", registrationPrefix: "Windows",
    handleElements: [RegistrationElement.channelURI], hasTemplateHeaders: true, form: .xml,
    payloadLimit: 5000, headerPrefix: "x-wns-",
    samples: [
      PayloadSample(
        "payload.toast",
        """
        <toast>
          <visual>
            <binding template="ToastGeneric">
              <text>Goal!</text>
              <text>Oslo leads 2:1</text>
            </binding>
          </visual>
        </toast>
        """, headers: ["X-WNS-Type": "wns/toast"]),
      PayloadSample(
        "payload.badge", #"<badge value="3"/>"#, headers: ["X-WNS-Type": "wns/badge"]),
      PayloadSample("payload.raw", "door open", headers: ["X-WNS-Type": "wns/raw"]),
    ],
    credential: CredentialTraits(
      fields: [
        Field(
          "PackageSid", "packageSid", "--package-sid", example: "ms-app://s-1-15-2-…",
          help: "the package SID, ms-app://…"),
        Field("SecretKey", "secret", "--secret", kind: .secret),
        Field("WindowsLiveEndpoint", "tokenUrl", "--token-url"),
        Field("WnsCertificate", "certificate", kind: .file), password,
        Field(
          "TenantId", "tenantId", "--tenant-id", isExtension: true,
          help: "the tenant, for an app of Microsoft Entra"),
        clientID.asExtension, clientSecret.asExtension,
      ],
      ways: [
        .init("wnsSid", "PackageSid", "SecretKey", optional: ["WindowsLiveEndpoint"]),
        .init(nil, "WnsCertificate", certificatePassword),
        .init(
          "wnsEntra", "TenantId", "ClientId", "ClientSecret", optional: ["WindowsLiveEndpoint"]),
      ], preferredWay: 2, certificate: "WnsCertificate"),
    phone: PhoneTraits(
      service: "wns", name: "Windows", look: "windows",
      payload: "WNS (XML; plain text with --raw)", handleName: "channel URI",
      handle: ["channelUri"],
      template: #"<toast><visual><binding template="ToastGeneric"><text>PushDemo</text>"#
        + "<text>$(message)</text></binding></visual></toast>",
      templateHeaders: ["X-WNS-Type": "wns/toast"], reading: .toast, showsText: true,
      dead: (410, nil), probe: .token))

  /// MPNS accepts any `X-` header that is not another platform's.
  fileprivate static let mpns = PlatformTraits(
    name: "Windows Phone", sendFormat: "windowsphone", prefix: "Mpns",
    handleElements: [RegistrationElement.channelURI], hasTemplateHeaders: true,
    successor: "Windows Notification Services (platform wns)", form: .xml, payloadLimit: 3072,
    headerPrefix: "x-",
    samples: [
      PayloadSample(
        "payload.toast",
        """
        <wp:Notification xmlns:wp="WPNotification">
          <wp:Toast>
            <wp:Text1>Goal!</wp:Text1>
            <wp:Text2>Oslo leads 2:1</wp:Text2>
          </wp:Toast>
        </wp:Notification>
        """, headers: ["X-WindowsPhone-Target": "toast", "X-NotificationClass": "2"])
    ],
    credential: CredentialTraits(
      fields: [
        Field("MpnsCertificate", "certificate", kind: .file), password,
        Field("Thumbprint", "thumbprint"),
      ], ways: [.init(nil, "MpnsCertificate", certificatePassword)],
      certificate: "MpnsCertificate"))

  fileprivate static let gcm = PlatformTraits(
    name: "GCM", prefix: "Gcm",
    successor: "Firebase Cloud Messaging HTTP v1 (platform fcmv1)",
    samples: [PayloadSample("payload.data", #"{"data":{"message":"Oslo leads 2:1"}}"#)],
    credential: CredentialTraits(
      fields: [Field("GoogleApiKey", "apiKey", kind: .secret), Field("GcmEndpoint", "endpoint")],
      ways: [.init(nil, "GoogleApiKey")]))

  fileprivate static let fcmv1 = PlatformTraits(
    name: "FCM", word: "fcm", prefix: "FcmV1", payloadLimit: 4096,
    samples: [
      PayloadSample(
        "payload.alert",
        #"{"message":{"notification":{"title":"Goal!","body":"Oslo leads 2:1"}}}"#),
      PayloadSample(
        "payload.silent",
        #"{"message":{"data":{"refresh":"scores"},"android":{"priority":"normal"}}}"#),
      PayloadSample(
        "payload.urgent",
        #"{"message":{"notification":{"title":"Door open","body":"#
          + #""The front door has been open for 10 minutes."},"android":{"priority":"high","#
          + #""notification":{"channel_id":"alarms"}}}}"#),
    ],
    credential: CredentialTraits(
      fields: [
        Field("PrivateKey", "private_key", "private_key", kind: .lines),
        Field("ProjectId", "project_id", "project_id"),
        Field("ClientEmail", "client_email", "client_email"),
        Field("PrivateKeyId", "private_key_id", "private_key_id", isExtension: true),
        Field("Endpoint", "endpoint", "--endpoint", isExtension: true),
        Field("TokenUri", "tokenUri", "--token-url", isExtension: true),
      ],
      ways: [
        .init(
          "fcm", "PrivateKey", "ProjectId", "ClientEmail",
          optional: ["PrivateKeyId", "TokenUri", "Endpoint"])
      ], secret: "service account"),
    phone: PhoneTraits(
      service: "fcm", name: "Android", payload: "FCM v1 (JSON with message)", handleName: "token",
      handle: ["token"],
      template: #"{"message":{"notification":{"title":"PushDemo","body":"$(message)"}}}"#,
      reading: .members([
        ("notification.title", "notification.body"), ("data.title", "data.message"),
      ]), dead: (404, "UNREGISTERED"), probe: .validation))

  fileprivate static let adm = PlatformTraits(
    name: "Amazon", otherWords: ["amazon"], prefix: "Adm", payloadLimit: 6144,
    samples: [
      PayloadSample(
        "payload.data",
        #"{"data":{"title":"Goal!","message":"Oslo leads 2:1"},"consolidationKey":"scores"}"#)
    ],
    credential: CredentialTraits(
      fields: [
        clientID, clientSecret,
        // The .NET client has both; the original's Java client has no setter for either.
        Field("AuthTokenUrl", "tokenUrl", "--token-url", isExtension: true),
        Field("SendUrlTemplate", "endpoint", "--endpoint", isExtension: true),
      ],
      ways: [
        .init("adm", "ClientId", "ClientSecret", optional: ["AuthTokenUrl", "SendUrlTemplate"])
      ]),
    phone: PhoneTraits(
      service: "adm", name: "Fire", look: "tablet", payload: "ADM (JSON)",
      handleName: "registration id", handle: ["registrationId"],
      template: #"{"data":{"title":"PushDemo","message":"$(message)"}}"#,
      reading: .members([("data.title", "data.message")]), dead: (400, "Unregistered"),
      probe: .token))

  fileprivate static let baidu = PlatformTraits(
    name: "Baidu", prefix: "Baidu",
    handleElements: [RegistrationElement.baiduUserID, RegistrationElement.baiduChannelID],
    payloadLimit: 4096, headerPrefix: "x-baidu-",
    samples: [
      PayloadSample("payload.alert", #"{"title":"Goal!","description":"Oslo leads 2:1"}"#),
      PayloadSample("payload.data", #"{"refresh":"scores"}"#),
    ],
    credential: CredentialTraits(
      fields: [
        Field("BaiduApiKey", "apiKey", "--api-key", help: "the API key"),
        Field("BaiduSecretKey", "secretKey", "--secret", kind: .secret),
        Field("BaiduEndPoint", "endpoint", "--endpoint"),
      ], ways: [.init("baidu", "BaiduApiKey", "BaiduSecretKey", optional: ["BaiduEndPoint"])]),
    phone: PhoneTraits(
      service: "baidu", name: "Baidu", payload: "Baidu (JSON)", handleName: "user-channel",
      handle: ["userId", "channelId"],
      template: #"{"title":"PushDemo","description":"$(message)"}"#,
      templateHeaders: ["X-Baidu-Message-Type": "1"],
      reading: .members([("title", "description")]), showsText: true, dead: (400, "30608"),
      probe: .push))

  /// The headers are those of RFC 8030, section 5, that the sender sets.
  fileprivate static let browser = PlatformTraits(
    name: "Web push", word: "web", prefix: "Browser",
    handleElements: [
      RegistrationElement.endpoint, RegistrationElement.p256dh, RegistrationElement.auth,
    ],
    form: .json, payloadLimit: 3993, headers: ["ttl", "urgency", "topic"],
    samples: [
      PayloadSample("payload.alert", #"{"title":"Goal!","body":"Oslo leads 2:1"}"#),
      PayloadSample(
        "payload.urgent",
        #"{"title":"Door open","body":"The front door has been open for 10 minutes."}"#,
        headers: ["Urgency": "high", "TTL": "600"]),
    ],
    credential: CredentialTraits(
      fields: [
        Field("Subject", "subject", "--subject", example: "mailto:ops@example.com"),
        Field("VapidPublicKey", "publicKey", "--public-key"),
        Field("VapidPrivateKey", "privateKey", "--private-key", kind: .secret),
      ], ways: [.init("vapid", "Subject", "VapidPublicKey", "VapidPrivateKey")],
      secret: "VAPID pair"),
    phone: PhoneTraits(
      service: "webpush", name: "Browser", look: "browser",
      payload: "browsers (what the page's service worker reads)", handleName: "subscription",
      handle: ["endpoint", "p256dh", "auth"],
      template: #"{"title":"PushDemo","body":"$(message)"}"#,
      reading: .members([("title", "body")]), showsText: true, dead: (410, nil), probe: .none))

  fileprivate static let xiaomi = PlatformTraits(
    name: "Xiaomi", prefix: "Xiaomi", isOriginal: false,
    samples: [
      PayloadSample("payload.alert", #"{"title":"Goal!","description":"Oslo leads 2:1"}"#),
      PayloadSample("payload.data", #"{"pass_through":1,"payload":"refresh scores"}"#),
    ],
    credential: CredentialTraits(
      fields: [
        Field("AppSecret", "appSecret", "--secret", kind: .secret),
        Field("Endpoint", "endpoint", "--endpoint"),
      ], ways: [.init("xiaomi", "AppSecret", optional: ["Endpoint"])]),
    phone: PhoneTraits(
      service: "xiaomi", name: "Xiaomi", payload: "Xiaomi (JSON)", handleName: "registration id",
      handle: ["regId"],
      template: #"{"title":"PushDemo","description":"$(message)","payload":"$(message)"}"#,
      reading: .members([("title", "description")]), showsText: true, dead: (200, "10029"),
      probe: .push))
}

extension CredentialTraits.Field {
  fileprivate var asExtension: Self {
    var field = self
    field.isExtension = true
    return field
  }
}
