import HTTPClient

/// The HTTP/1.1 clients that all gateways share. A client without work costs nothing.
package final class GatewaySessions: Sendable {
  /// For addresses that the operator chose: the services' own, token services, and hosts that the
  /// configuration allows by name.
  let trusted: HTTPSession
  /// For addresses that devices gave: never to a private network.
  let fromDevices: HTTPSession

  package init(_ configuration: PushGatewaysConfiguration) {
    var session = HTTPSessionConfiguration()
    session.extraAnchorsPEM = configuration.extraAnchorsPEM
    trusted = HTTPSession(session)
    session.allowsAddress = { $0.isPublic }
    fromDevices = HTTPSession(session)
  }

  deinit {
    trusted.close()
    fromDevices.close()
  }
}
