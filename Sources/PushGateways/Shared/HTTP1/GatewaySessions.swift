import HTTPClient

/// The HTTP/1.1 clients that all gateways share. A client without work costs nothing.
package final class GatewaySessions: Sendable {
  /// For hosts that the configuration allows by name: they may be in a private network.
  private let anywhere: HTTPSession
  /// For all others, whether a credential or a device names them: what the name leads to is looked
  /// at for each connection.
  private let publicOnly: HTTPSession

  package init(_ configuration: PushGatewaysConfiguration) {
    var session = HTTPSessionConfiguration()
    session.extraAnchorsPEM = configuration.extraAnchorsPEM
    anywhere = HTTPSession(session)
    session.allowsAddress = { $0.isPublic }
    publicOnly = HTTPSession(session)
  }

  func session(isPublicOnly: Bool) -> HTTPSession { isPublicOnly ? publicOnly : anywhere }

  deinit {
    anywhere.close()
    publicOnly.close()
  }
}
