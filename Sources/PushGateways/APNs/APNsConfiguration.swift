/// How the hub talks to APNs, whatever the credential.
package struct APNsConfiguration: Sendable {
  /// PEM certificates trusted beside the system's store: an emulator's authority.
  package var extraAnchorsPEM: [UInt8] = []
  /// Most connections per credential and endpoint, from 1. More than one is opened only when the
  /// peer's stream limit has held back for ``growAfter``.
  package var maxConnections = 4
  /// How long all connections must have been full before another is opened.
  package var growAfter: Duration = .seconds(1)
  /// Name look-up, TCP, TLS and the first SETTINGS together.
  package var connectTimeout: Duration = .seconds(10)
  /// From opening a stream to the end of its reply.
  package var replyTimeout: Duration = .seconds(30)
  /// How long nothing may arrive before a PING asks whether the peer is alive.
  package var pingInterval: Duration = .seconds(60)
  /// How long the PING's answer may take.
  package var pingTimeout: Duration = .seconds(15)
  /// How long a connection without pushes stays; Apple ends one after about an hour.
  package var idleTimeout: Duration = .seconds(45 * 60)

  package init() {}
}
