/// What sets the platforms apart, where client, hub, command line and gateways ask: names, limits,
/// forms, properties and headers. A new platform is a case of ``PushPlatform`` and, in this file,
/// its row and two lines.
package struct PlatformTraits: Sendable {
  /// What a native payload has to be.
  package enum Form: Sendable {
    /// An XML document, unless a header says that it is raw.
    case xml
    /// A JSON object.
    case object
    /// Any JSON value.
    case json
  }

  /// The word of `ServiceBusNotification-Format` for a native send; `nil` for the platform's own.
  package var sendFormat: String?
  /// The prefix of telemetry elements and, unless ``registrationPrefix`` says otherwise, of those
  /// of registrations.
  package let prefix: String
  package var registrationPrefix: String?
  /// The element of a registration, or the pair or three of them, that hold the handle; `nil` for
  /// `…RegistrationId` with the prefix.
  package var handleElements: [String]?
  /// Whether a template of its own has headers in a registration.
  package var hasTemplateHeaders = false
  /// Whether the original service knows the platform. What it does not know is shown only to
  /// clients that ask for extensions.
  package var isOriginal = true
  /// What has to be used in its place, for people; `nil` for a service that lives.
  package var successor: String?

  package var form = Form.object
  /// The most bytes of payload that the push service takes, as far as its documents say; the
  /// gateways and the services themselves have the last word.
  package var payloadLimit: Int?
  /// What the names of headers begin with that are for this push service alone.
  package var headerPrefix: String?
  /// The names of such headers.
  package var headers: Set<String> = []

  /// The credential's properties, in the order in which they are written.
  package var properties: [String] = []
  /// Those of them that the original does not have, or that one of its clients fails on.
  package var extensionProperties: [String] = []
  /// The properties that must be there together; of several families one is enough.
  package var requiredProperties: [[String]] = []
  /// The property that holds a certificate, with its password in ``certificatePassword``.
  package var certificate: String?
  /// What a credential without a certificate is, in a word or two for people.
  package var secret = "secret"

  /// May be empty.
  package static let certificatePassword = "CertificateKey"
}

extension PushPlatform {
  /// The platform's row.
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

  /// The number that the hub's database holds, from 1 without gaps; never reassign one. Apart from
  /// the row because it is asked for with every target of a send.
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
  /// Which properties Apple's credential needs depends on their values, and its gateway checks
  /// both. The limit is that of every kind of push but calls.
  fileprivate static let apns = PlatformTraits(
    sendFormat: "apple", prefix: "Apns", registrationPrefix: "Apple",
    handleElements: [RegistrationElement.deviceToken], hasTemplateHeaders: true,
    payloadLimit: 4096, headerPrefix: "apns-",
    properties: [
      "ApnsCertificate", certificatePassword, "Endpoint", "Thumbprint", "Token", "KeyId", "AppName",
      "AppId", "OtherEndpoint", "BroadcastEndpoint",
    ],
    extensionProperties: ["OtherEndpoint", "BroadcastEndpoint"], certificate: "ApnsCertificate",
    secret: "token")

  fileprivate static let wns = PlatformTraits(
    sendFormat: "windows", prefix: "Wns", registrationPrefix: "Windows",
    handleElements: [RegistrationElement.channelURI], hasTemplateHeaders: true, form: .xml,
    payloadLimit: 5000, headerPrefix: "x-wns-",
    properties: [
      "PackageSid", "SecretKey", "WindowsLiveEndpoint", "WnsCertificate", certificatePassword,
      "TenantId", "ClientId", "ClientSecret",
    ],
    extensionProperties: ["TenantId", "ClientId", "ClientSecret"],
    requiredProperties: [
      ["PackageSid", "SecretKey"], ["WnsCertificate", certificatePassword],
      ["TenantId", "ClientId", "ClientSecret"],
    ],
    certificate: "WnsCertificate")

  /// It takes any `X-` header that is not another's.
  fileprivate static let mpns = PlatformTraits(
    sendFormat: "windowsphone", prefix: "Mpns",
    handleElements: [RegistrationElement.channelURI], hasTemplateHeaders: true,
    successor: "Windows Notification Services (platform wns)", form: .xml, payloadLimit: 3072,
    headerPrefix: "x-",
    properties: ["MpnsCertificate", certificatePassword, "Thumbprint"],
    requiredProperties: [["MpnsCertificate", certificatePassword]], certificate: "MpnsCertificate")

  fileprivate static let gcm = PlatformTraits(
    prefix: "Gcm",
    successor: "Firebase Cloud Messaging HTTP v1 (platform fcmv1)",
    properties: ["GoogleApiKey", "GcmEndpoint"], requiredProperties: [["GoogleApiKey"]])

  fileprivate static let fcmv1 = PlatformTraits(
    prefix: "FcmV1", payloadLimit: 4096,
    properties: ["PrivateKey", "ProjectId", "ClientEmail", "PrivateKeyId", "Endpoint", "TokenUri"],
    extensionProperties: ["PrivateKeyId", "Endpoint", "TokenUri"],
    requiredProperties: [["PrivateKey", "ProjectId", "ClientEmail"]], secret: "service account")

  fileprivate static let adm = PlatformTraits(
    prefix: "Adm", payloadLimit: 6144,
    properties: ["ClientId", "ClientSecret", "AuthTokenUrl", "SendUrlTemplate"],
    // .NET has both; the original's client in Java, a setter for neither.
    extensionProperties: ["AuthTokenUrl", "SendUrlTemplate"],
    requiredProperties: [["ClientId", "ClientSecret"]])

  fileprivate static let baidu = PlatformTraits(
    prefix: "Baidu",
    handleElements: [RegistrationElement.baiduUserID, RegistrationElement.baiduChannelID],
    payloadLimit: 4096, headerPrefix: "x-baidu-",
    properties: ["BaiduApiKey", "BaiduSecretKey", "BaiduEndPoint"],
    requiredProperties: [["BaiduApiKey", "BaiduSecretKey"]])

  /// The headers are those of RFC 8030, section 5, that a sender decides.
  fileprivate static let browser = PlatformTraits(
    prefix: "Browser",
    handleElements: [
      RegistrationElement.endpoint, RegistrationElement.p256dh, RegistrationElement.auth,
    ],
    form: .json, payloadLimit: 3993, headers: ["ttl", "urgency", "topic"],
    properties: ["Subject", "VapidPublicKey", "VapidPrivateKey"],
    requiredProperties: [["Subject", "VapidPublicKey", "VapidPrivateKey"]], secret: "VAPID pair")

  fileprivate static let xiaomi = PlatformTraits(
    prefix: "Xiaomi", isOriginal: false, properties: ["AppSecret", "Endpoint"],
    requiredProperties: [["AppSecret"]])
}
