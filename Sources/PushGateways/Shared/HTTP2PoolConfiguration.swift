import HTTP2

/// How many HTTP/2 connections a gateway holds to one origin, and how long it waits for what.
package struct HTTP2PoolConfiguration: Sendable {
  /// Most connections per credential and origin, from 1. More than one is opened only when the
  /// peer's stream limit has held back for ``growAfter``.
  package var maxConnections = 8
  /// How long all connections must have been full before another is opened.
  package var growAfter: Duration = .milliseconds(250)
  /// How long fewer connections must have been enough before one is given up. Push services take
  /// opening and closing often for an attack.
  package var shrinkAfter: Duration = .seconds(5 * 60)
  /// Name look-up, TCP, TLS and the first SETTINGS together.
  package var connectTimeout: Duration = .seconds(10)
  /// From opening a stream to the end of its reply.
  package var replyTimeout: Duration = .seconds(30)
  /// How long nothing may arrive before a PING asks whether the peer is alive.
  package var pingInterval: Duration = .seconds(60)
  /// How long the PING's answer may take.
  package var pingTimeout: Duration = .seconds(15)
  /// How long a connection without pushes stays.
  package var idleTimeout: Duration

  package init(idleTimeout: Duration) { self.idleTimeout = idleTimeout }

  /// What all connections of a pool begin with.
  func connection(
    to host: String, port: UInt16, extraAnchorsPEM: [UInt8]
  ) -> HTTP2ConnectionConfiguration {
    var connection = HTTP2ConnectionConfiguration(host: host, port: port)
    connection.extraAnchorsPEM = extraAnchorsPEM
    connection.connectTimeout = connectTimeout
    connection.replyTimeout = replyTimeout
    connection.pingInterval = pingInterval
    connection.pingTimeout = pingTimeout
    connection.idleTimeout = idleTimeout
    // Answers of push services are a line or two.
    connection.maxReplyBody = 4096
    return connection
  }
}
