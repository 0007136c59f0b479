import HTTP2
import HTTPClient
import HubCore

/// Which hosts the properties of a credential may name. Anyone with a hub's Manage key sets these, and
/// the hub is to call nobody in its operator's network for them.
struct ServiceHosts: Sendable {
  /// From the configuration: ``PushGatewaysConfiguration/serviceHosts``.
  private let allowed: [String]

  init(_ configuration: PushGatewaysConfiguration) {
    allowed = configuration.serviceHosts.map { $0.lowercased() }
  }

  /// - Parameter vendor: The service's own, as in ``HTTPAddress/isHost(in:)``.
  /// - Returns: Whether it may lead to a public address only.
  /// - Throws: ``CredentialError`` for a host that is neither the vendor's nor the operator's.
  func isPublicOnly(
    _ host: String, vendor: [String], property: String
  ) throws(CredentialError) -> Bool {
    if HTTPAddress.isHost(host, in: allowed) { return false }
    guard HTTPAddress.isHost(host, in: vendor) else {
      throw CredentialError(
        """
        \(property) names the host '\(host)', which is not the service's own. The operator of this \
        server can allow it with the setting serviceHosts.
        """)
    }
    return true
  }

  /// As ``isPublicOnly(_:vendor:property:)``, for an address.
  func isPublicOnly(
    url: String, vendor: [String], property: String
  ) throws(CredentialError) -> Bool {
    guard let address = HTTPAddress(url) else {
      throw CredentialError("\(property) is no address.")
    }
    return try isPublicOnly(address.host, vendor: vendor, property: property)
  }
}

extension HTTP2ConnectionConfiguration {
  /// Looks at what the host's name leads to, for each connection.
  mutating func requirePublicAddress() {
    allowsAddress = { IPAddress(bytes: $0)?.isPublic ?? false }
  }
}
