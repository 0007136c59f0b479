/// How the hub talks to FCM, whatever the credential.
package struct FCMConfiguration: Sendable {
  /// Google asks for one to four connections; idle ones cost it nothing for minutes.
  package var connections: HTTP2PoolConfiguration
  /// Messages a minute that a project may send in the end (Google's default quota); `nil` for no
  /// bound. They begin at a tenth and grow to it over a minute, as Google asks.
  package var messagesPerMinute: Double? = 600_000

  package init() {
    connections = HTTP2PoolConfiguration(idleTimeout: .seconds(5 * 60))
    connections.maxConnections = 4
  }
}
