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
  /// Hosts that credentials may name as the address of a push service or of its token service beside
  /// the vendors' own, in the same form. These may have a private or loopback address, too.
  package var serviceHosts: [String] = []
  /// Apple ends an idle connection after about an hour.
  package var apns = HTTP2PoolConfiguration(idleTimeout: .seconds(45 * 60))
  /// "Reuse connections", says the vendor, and names no number.
  package var wns = HTTP1PoolConfiguration(maxConnections: 64)
  package var adm = HTTP1PoolConfiguration(maxConnections: 50)
  package var baidu = HTTP1PoolConfiguration(maxConnections: 32)
  package var xiaomi = HTTP1PoolConfiguration(maxConnections: 32)
  package var fcm = FCMConfiguration()
  package var webPush = WebPushConfiguration()

  package init() {}

  /// Lets credentials name stand-ins on this machine.
  package static var forStandIns: PushGatewaysConfiguration {
    var configuration = PushGatewaysConfiguration()
    configuration.serviceHosts = ["localhost", "127.0.0.1", "::1"]
    return configuration
  }

  /// Sets the bound of every service with HTTP/1.1.
  package mutating func limitConnections(to connections: Int) {
    for path in [\Self.wns, \.adm, \.baidu, \.xiaomi] {
      self[keyPath: path].maxConnections = connections
    }
  }
}

/// How a push service with HTTP/1.1 is called: one request at a time on each connection.
package struct HTTP1PoolConfiguration: Sendable {
  /// The most connections of one credential at a time, from 1.
  package var maxConnections: Int

  package init(maxConnections: Int) { self.maxConnections = maxConnections }
}
