import Foundation
import HubCore

/// Makes WNS gateways, which share their access token with others of the same app: one is valid for
/// all of its channels.
struct WNSGateways: PlatformGateways {
  private let configuration: PushGatewaysConfiguration
  private let sessions: GatewaySessions
  private let clock: HubClock
  private let tokens = SharedObjects<WNSCredential, AccessTokenSource>()

  init(_ configuration: PushGatewaysConfiguration, sessions: GatewaySessions, clock: HubClock) {
    self.configuration = configuration
    self.sessions = sessions
    self.clock = clock
  }

  func gateway(
    for credential: PushCredential
  ) throws(CredentialError) -> HTTPPushGateway<WNSService> {
    let checked = try WNSCredential(credential)
    let service = WNSService(
      kind: checked.kind,
      hosts: ChannelHosts(vendor: WNSService.vendorHosts, allowed: configuration.allowedHosts))
    return HTTPPushGateway(
      service, sessions: sessions, tokens: try source(checked),
      connections: configuration.wns.maxConnections, clock: clock)
  }

  /// Microsoft's, also of its national clouds.
  private static let tokenHosts = [
    "login.live.com", "login.microsoftonline.com", "login.microsoftonline.us",
    "login.partner.microsoftonline.cn", "login.chinacloudapi.cn", "login.windows.net",
  ]

  private func source(_ credential: WNSCredential) throws(CredentialError) -> AccessTokenSource {
    let session = sessions.session(
      isPublicOnly: try ServiceHosts(configuration).isPublicOnly(
        url: credential.tokenURL, vendor: Self.tokenHosts, property: "WindowsLiveEndpoint"))
    let endpoint = TokenService(url: credential.tokenURL, session: session, clock: clock)
    return tokens.object(for: credential) {
      AccessTokenSource(clock: clock, margin: .seconds(600)) {
        await endpoint.token(credential.tokenForm)
      }
    }
  }
}
