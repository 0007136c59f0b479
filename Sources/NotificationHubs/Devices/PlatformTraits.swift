/// The differences between platforms that clients, hub, command line and gateways need: names,
/// limits, formats, properties and headers. A new platform is a case of ``PushPlatform`` and, in
/// this file, its row and two lines.
package struct PlatformTraits: Sendable {
  /// The format of a native payload.
  package enum Form: Sendable {
    /// An XML document, unless a header marks it as raw.
    case xml
    /// A JSON object.
    case object
    /// Any JSON value.
    case json
  }

  /// The value of `ServiceBusNotification-Format` for a native send; `nil` for the platform's raw
  /// value.
  package var sendFormat: String?
  /// The prefix of telemetry elements and, unless ``registrationPrefix`` overrides it, of
  /// registration elements.
  package let prefix: String
  package var registrationPrefix: String?
  /// The one to three registration elements that hold the handle; `nil` for the prefix followed by
  /// `RegistrationId`.
  package var handleElements: [String]?
  /// Whether a template registration has headers.
  package var hasTemplateHeaders = false
  /// Whether the original service supports the platform. Others are shown only to clients that ask
  /// for extensions.
  package var isOriginal = true
  /// The replacement to recommend to people; `nil` if the service is still running.
  package var successor: String?

  package var form = Form.object
  /// The maximum payload in bytes that the push service documents; gateways and the services
  /// themselves decide.
  package var payloadLimit: Int?
  /// The prefix of header names that are specific to this push service.
  package var headerPrefix: String?
  /// The names of further such headers.
  package var headers: Set<String> = []

  /// The credential's properties, in the order in which they are written.
  package var properties: [String] = []
  /// The properties that the original does not have, or that break one of its clients.
  package var extensionProperties: [String] = []
  /// Groups of properties that must be present together; one complete group is enough.
  package var requiredProperties: [[String]] = []
  /// The property that holds a certificate, whose password is in ``certificatePassword``.
  package var certificate: String?
  /// A word or two for a credential without a certificate, shown to people.
  package var secret = "secret"

  /// The property with a certificate's password, which may be empty.
  package static let certificatePassword = "CertificateKey"
}

extension PushPlatform {
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
  /// The properties that Apple's credential requires depend on their values, and the gateway checks
  /// them. The payload limit applies to every push type except VoIP.
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

  /// MPNS accepts any `X-` header that is not another platform's.
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
    // The .NET client has both; the original's Java client has no setter for either.
    extensionProperties: ["AuthTokenUrl", "SendUrlTemplate"],
    requiredProperties: [["ClientId", "ClientSecret"]])

  fileprivate static let baidu = PlatformTraits(
    prefix: "Baidu",
    handleElements: [RegistrationElement.baiduUserID, RegistrationElement.baiduChannelID],
    payloadLimit: 4096, headerPrefix: "x-baidu-",
    properties: ["BaiduApiKey", "BaiduSecretKey", "BaiduEndPoint"],
    requiredProperties: [["BaiduApiKey", "BaiduSecretKey"]])

  /// The headers are those of RFC 8030, section 5, that the sender sets.
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
