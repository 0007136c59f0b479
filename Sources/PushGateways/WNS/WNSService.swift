import Foundation
import HTTPClient
import HubCore
import NotificationHubs
import Wire

/// Windows Push Notification Services (docs/protocol/push-services/wns.md).
struct WNSService: HTTPPushService {
  /// The vendor says "Reuse connections", and names no number.
  static let connections = 64

  let kind: WNSCredential.Kind
  let hosts: ChannelHosts

  /// The hosts of the vendor's channels.
  static let vendorHosts = [".notify.windows.com", ".wns.windows.com"]

  func message(_ body: PushBody, now: Int64) throws(PushRefusal) -> WNSBody {
    try WNSBody(body, isEntra: kind == .entra, now: now)
  }

  func call(
    _ message: WNSBody, to handle: String, id: PushID, token: String?, now: Int64
  ) throws(PushRefusal) -> HTTPPushCall {
    guard let (address, isPublicOnly) = hosts.check(handle) else {
      // WNS did not say so, so the handle stays.
      throw PushRefusal(
        .badChannel,
        PushResult.refusedHere + "the channel is not an address of WNS (setting channelHosts)")
    }
    let headers = [("Authorization", "Bearer " + (token ?? ""))] + message.headers
    return HTTPPushCall(
      call: HTTPCall(url: handle, headers: headers, body: message.body),
      host: "\(address.host):\(address.port)", isPublicOnly: isPublicOnly)
  }

  func verdict(_ reply: HTTPReply, to handle: String, now: Int64) -> PushVerdict {
    WNSReply.verdict(reply, now: now)
  }
}

extension WNSService {
  /// A channel is an address of one device, so only the token service can be asked.
  var trial: ServiceTrial {
    let advice =
      switch kind {
      case .live:
        "The Package SID and the secret must be of the same app: Partner Center, the app's product "
          + "identity, then Live Services site (Application Secrets)."
      case .entra:
        "Tenant id, client id and secret must be of one app registration, and the secret not expired: "
          + "entra.microsoft.com, App registrations, Certificates & secrets (its value, not its id)."
      }
    return .token(
      ProbeReading(
        service: "Microsoft", proof: "it gave an access token",
        open: "Whether the app's channels take it shows with the first push to a device.",
        advice: [:], otherAdvice: advice))
  }
}

/// Makes WNS gateways, which share their access token with others of the same app: one is valid for
/// all of its channels.
struct WNSGateways: PlatformGateways {
  let supplies: GatewaySupplies
  private let tokens = SharedObjects<WNSCredential, AccessTokenSource>()

  static func check(_ credential: PushCredential, at now: Date) throws(CredentialError) {
    _ = try WNSCredential(credential)
  }

  func gateway(
    for credential: PushCredential
  ) throws(CredentialError) -> HTTPPushGateway<WNSService> {
    let checked = try WNSCredential(credential)
    let service = WNSService(
      kind: checked.kind, hosts: supplies.channelHosts(vendor: WNSService.vendorHosts))
    return supplies.gateway(service, tokens: try source(checked))
  }

  /// Microsoft's token hosts, including its national clouds.
  private static let tokenHosts = [
    "login.live.com", "login.microsoftonline.com", "login.microsoftonline.us",
    "login.partner.microsoftonline.cn", "login.chinacloudapi.cn", "login.windows.net",
  ]

  private func source(_ credential: WNSCredential) throws(CredentialError) -> AccessTokenSource {
    let endpoint = try supplies.tokenEndpoint(
      credential.tokenURL, vendor: Self.tokenHosts, property: "WindowsLiveEndpoint")
    return tokens.object(for: credential) {
      AccessTokenSource(clock: supplies.clock, margin: .seconds(600)) {
        await endpoint.token(credential.tokenForm)
      }
    }
  }
}

/// The credential for WNS: an app's id and secret at one of the two token services
/// (docs/protocol/push-services/wns.md, sections 2 and 7).
struct WNSCredential: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    /// A Package SID and its secret; all kinds of notification.
    case live
    /// An application of Microsoft Entra; toast and raw only.
    case entra
  }

  let kind: Kind
  let tokenURL: String
  let clientID: String
  /// Secret.
  let clientSecret: String

  private static let liveURL = "https://login.live.com/accesstoken.srf"
  private static let sidScheme = "ms-app://"

  init(_ credential: PushCredential) throws(CredentialError) {
    let url = credential.text("WindowsLiveEndpoint")
    if let tenant = credential.text("TenantId") {
      guard tenant.utf8.allSatisfy({ Self.isNameByte($0) }) else {
        throw CredentialError(
          "TenantId is no tenant. Copy the Directory (tenant) ID of the app's registration.")
      }
      kind = .entra
      tokenURL = url ?? "https://login.microsoftonline.com/\(tenant)/oauth2/v2.0/token"
      clientID = try credential.text("ClientId", orSay: ".")
      clientSecret = try credential.text("ClientSecret", orSay: ".")
    } else {
      if credential["PackageSid"] == nil, credential["WnsCertificate"] != nil {
        throw CredentialError(
          "WnsCertificate is kept but not used: WNS takes a PackageSid with its SecretKey, or a "
            + "TenantId with ClientId and ClientSecret.")
      }
      kind = .live
      tokenURL = url ?? Self.liveURL
      clientID = try Self.packageSID(try credential.text("PackageSid", orSay: "."))
      clientSecret = try credential.text("SecretKey", orSay: ".")
    }
    guard HTTPAddress(tokenURL)?.scheme == "https" else {
      throw CredentialError(
        "WindowsLiveEndpoint is no https address. Leave it out for \(Self.liveURL).")
    }
  }

  /// With or without `ms-app://`; sent with it.
  private static func packageSID(_ text: String) throws(CredentialError) -> String {
    let sid =
      text.lowercased().hasPrefix(sidScheme) ? String(text.dropFirst(sidScheme.count)) : text
    let parts = sid.lowercased().split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count >= 5, parts.prefix(4) == ["s", "1", "15", "2"],
      parts.dropFirst(4).allSatisfy({ !$0.isEmpty && $0.allSatisfy(\.isNumber) })
    else {
      throw CredentialError(
        "PackageSid is no Package SID. It looks like ms-app://s-1-15-2-… and stands in Partner "
          + "Center under the app's identity.")
    }
    return sidScheme + sid
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    byte.isLetterOrDigit || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
  }

  /// The form of a request to the token service, in the order of the vendor's example.
  var tokenForm: [(name: String, value: String)] {
    let scope =
      switch kind {
      case .live: "notify.windows.com"
      case .entra: "https://wns.windows.com/.default"
      }
    return [
      ("grant_type", "client_credentials"), ("client_id", clientID),
      ("client_secret", clientSecret), ("scope", scope),
    ]
  }
}
