/// Settings of connections to push services, for all credentials. Addresses of the services are
/// properties of a credential (`Endpoint` and the like), so that a hub can use a stand-in beside
/// the real service.
package struct PushGatewaysConfiguration: Sendable {
  /// PEM certificates trusted in addition to the system's store, by connections to push services
  /// and to their token services: for example an emulator's CA.
  package var extraAnchorsPEM: [UInt8] = []
  /// Hosts that channel URLs of devices may name in addition to the vendors' own:
  /// `push.example.com` for that host, `.example.com` for its subdomains, an IP address literally.
  /// Only a host named here may have a private or loopback address.
  package var allowedHosts: [String] = []
  /// Hosts that credentials may name as the address of a push service or of its token service in
  /// addition to the vendors' own, in the same form. These may also have a private or loopback
  /// address.
  package var serviceHosts: [String] = []
  /// Apple closes an idle connection after about an hour.
  package var apns = HTTP2PoolConfiguration(idleTimeout: .seconds(45 * 60))
  /// Maximum number of connections of one credential to a push service with HTTP/1.1, from 1; `nil`
  /// for each service's own default.
  package var connections: Int?
  package var fcm = FCMConfiguration()
  package var webPush = WebPushConfiguration()

  package init() {}

  /// Lets credentials name stand-ins on this machine.
  package static var forStandIns: PushGatewaysConfiguration {
    var configuration = PushGatewaysConfiguration()
    configuration.serviceHosts = ["localhost", "127.0.0.1", "::1"]
    return configuration
  }
}
