/// How the hub talks to push services, whatever the credentials. Addresses of the services are
/// properties of a credential (`Endpoint` and the like), so that a hub can use a stand-in beside
/// the real service.
package struct PushGatewaysConfiguration: Sendable {
  /// PEM certificates trusted beside the system's store, by connections to push services and to
  /// their token services: an emulator's authority.
  package var extraAnchorsPEM: [UInt8] = []
  /// Hosts that channel URLs of devices may name beside the vendors' own: `push.example.com` for
  /// that host, `.example.com` for all below it, an address to the letter. A host named here may
  /// also have a private or loopback address, which no other may.
  package var allowedHosts: [String] = []
  /// Hosts that credentials may name as the address of a push service or of its token service
  /// beside the vendors' own, in the same form. These may have a private or loopback address, too.
  package var serviceHosts: [String] = []
  /// Apple ends an idle connection after about an hour.
  package var apns = HTTP2PoolConfiguration(idleTimeout: .seconds(45 * 60))
  /// The most connections of one credential to a push service with HTTP/1.1, from 1; `nil` for each
  /// service's own number.
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
