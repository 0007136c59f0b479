/// The proxy that leads clients of push services to the stand-ins by the services' real names.
package struct ProxyOptions: Sendable {
  /// 0 picks a free port.
  package var port: UInt16 = 0
  /// Hosts that are let through to the internet, at port 443. A name must not resolve to an address
  /// of this machine or a private network; such an address must be named itself.
  package var allowedHosts: Set<ProxyHost> = []
  /// Maximum number of connections; the next one gets 503.
  package var maxConnections = 1024
  /// Limit from a connection's start to its tunnel's.
  package var setupTimeout = Duration.seconds(10)
  /// Time after which a tunnel without traffic is closed.
  package var idleTimeout = Duration.seconds(3600)
  /// Called once for each host that was refused, the first hundred.
  package var onForbiddenHost: @Sendable (ProxyHost) -> Void = { _ in }

  package init() {}
}
