/// How the hub talks to the push services of browsers, whatever the credential.
package struct WebPushConfiguration: Sendable {
  /// Per origin: one connection carries what a browser's service takes.
  package var connections: HTTP2PoolConfiguration
  /// How many origins are held connections to; beyond, those not used for longest are let go.
  package var maxOrigins = 64

  package init() {
    connections = HTTP2PoolConfiguration(idleTimeout: .seconds(5 * 60))
    connections.maxConnections = 2
  }
}
