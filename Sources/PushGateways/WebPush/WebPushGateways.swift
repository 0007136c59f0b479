import Cryptography
package import HubCore

/// Makes Web Push gateways, which share the connections to each origin: a push service takes
/// messages of any application server on one.
package final class WebPushGateways: PlatformGateways {
  private let origins: WebPushOrigins
  private let clock: HubClock

  package init(
    _ configuration: PushGatewaysConfiguration, sessions: GatewaySessions, clock: HubClock
  ) {
    origins = WebPushOrigins(configuration, sessions: sessions, clock: clock)
    self.clock = clock
  }

  /// - Throws: ``CredentialError`` when the credential cannot work.
  package func gateway(
    for credential: PushCredential
  ) throws(CredentialError) -> WebPushGateway {
    let checked = try WebPushCredential(credential)
    return WebPushGateway(
      origins: origins, tokens: VAPIDTokens(checked, clock: clock), clock: clock)
  }
}
