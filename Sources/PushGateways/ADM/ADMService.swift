import HTTPClient
import HubCore
import NotificationHubs
import Wire

/// Amazon Device Messaging (spec `pns/adm.md`).
struct ADMService: HTTPPushService {
  let credential: ADMCredential
  let isPublicOnly: Bool

  /// Amazon's, by region.
  static let vendorHosts = [
    "api.amazon.com", "api.amazon.co.uk", "api.amazon.co.jp", "api.amazon.cn",
  ]

  func message(_ body: PushBody, now: Int64) throws(PushRefusal) -> ADMMessage {
    try ADMMessage(body, now: now)
  }

  func call(
    _ message: ADMMessage, to handle: String, id: PushID, token: String?, now: Int64
  ) throws(PushRefusal) -> HTTPPushCall {
    let url = credential.sendURL.joined(separator: handle.percentEncoded)
    guard (1...4096).contains(handle.utf8.count), let address = HTTPAddress(url) else {
      throw PushRefusal(.badChannel, "the registration id is empty or too long")
    }
    let type = "com.amazon.device.messaging.ADM"
    return HTTPPushCall(
      call: HTTPCall(
        url: url,
        headers: [
          ("Authorization", "Bearer " + (token ?? "")), ("Content-Type", "application/json"),
          ("Accept", "application/json"), ("X-Amzn-Type-Version", type + "Message@1.0"),
          ("X-Amzn-Accept-Type", type + "SendResult@1.0"),
        ], body: message.body),
      host: "\(address.host):\(address.port)", isPublicOnly: isPublicOnly)
  }

  func verdict(_ reply: HTTPReply, to handle: String, now: Int64) -> PushVerdict {
    ADMReply.verdict(reply, to: handle, now: now)
  }
}

/// Makes ADM gateways, which share their access token with others of the same client.
struct ADMGateways: PlatformGateways {
  private let configuration: PushGatewaysConfiguration
  private let sessions: GatewaySessions
  private let clock: HubClock
  private let tokens = SharedObjects<ADMCredential, AccessTokenSource>()

  init(_ configuration: PushGatewaysConfiguration, sessions: GatewaySessions, clock: HubClock) {
    self.configuration = configuration
    self.sessions = sessions
    self.clock = clock
  }

  func gateway(
    for credential: PushCredential
  ) throws(CredentialError) -> HTTPPushGateway<ADMService> {
    let checked = try ADMCredential(credential)
    let hosts = ServiceHosts(configuration)
    let isPublicOnly = try hosts.isPublicOnly(
      url: checked.sendURL.joined(separator: "x"), vendor: ADMService.vendorHosts,
      property: "SendUrlTemplate")
    let session = sessions.session(
      isPublicOnly: try hosts.isPublicOnly(
        url: checked.tokenURL, vendor: ADMService.vendorHosts, property: "AuthTokenUrl"))
    let endpoint = TokenService(url: checked.tokenURL, session: session, clock: clock)
    let source = tokens.object(for: checked) {
      AccessTokenSource(clock: clock, margin: .seconds(60)) {
        await endpoint.token(checked.tokenForm)
      }
    }
    return HTTPPushGateway(
      ADMService(credential: checked, isPublicOnly: isPublicOnly), sessions: sessions,
      tokens: source,
      connections: configuration.adm.maxConnections, clock: clock)
  }
}
