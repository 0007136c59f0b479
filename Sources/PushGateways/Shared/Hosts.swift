import HTTP2
import HTTPClient
import HubCore

/// The hosts that the properties of a credential may name. Anyone with a hub's Manage key sets
/// these, so they must not lead into the operator's network.
struct ServiceHosts: Sendable {
  /// From the configuration: ``PushGatewaysConfiguration/serviceHosts``.
  private let allowed: [String]

  init(_ configuration: PushGatewaysConfiguration) {
    allowed = configuration.serviceHosts.map { $0.lowercased() }
  }

  /// - Parameters:
  ///   - vendor: The service's own hosts, as in ``HTTPAddress/isHost(in:)``.
  ///   - ports: The service's ports there.
  /// - Returns: Whether it may lead to a public address only.
  /// - Throws: ``CredentialError`` for a host that is neither the vendor's nor the operator's, and
  ///   for another port of the vendor's.
  func isPublicOnly(
    _ host: String, port: UInt16, vendor: [String], ports: [UInt16] = [443], property: String
  ) throws(CredentialError) -> Bool {
    if HTTPAddress.isHost(host, in: allowed) { return false }
    guard HTTPAddress.isHost(host, in: vendor) else {
      throw CredentialError(
        """
        \(property) names the host '\(host)', which is not the service's own. The operator of this \
        server can allow it with the setting serviceHosts.
        """)
    }
    guard ports.contains(port) else {
      throw CredentialError(
        """
        \(property) names port \(port), where the service does not listen (it does at \
        \(ports.map(String.init).joined(separator: ", "))). The operator of this server can allow the \
        host at any port with the setting serviceHosts.
        """)
    }
    return true
  }

  /// As ``isPublicOnly(_:port:vendor:ports:property:)``, for an address.
  func isPublicOnly(
    url: String, vendor: [String], property: String
  ) throws(CredentialError) -> Bool {
    guard let address = HTTPAddress(url) else {
      throw CredentialError("\(property) is no address.")
    }
    return try isPublicOnly(
      address.host, port: address.port, vendor: vendor, property: property)
  }
}

extension HTTP2ConnectionConfiguration {
  /// Requires the resolved address of the host to be public, for each connection.
  mutating func requirePublicAddress() {
    allowsAddress = { IPAddress(bytes: $0)?.isPublic ?? false }
  }
}

/// The addresses given by devices that may be called (docs/protocol/push-services/README.md,
/// section 3, rule 7).
struct ChannelHosts: Sendable {
  /// The vendor's own, as in ``HTTPAddress/isHost(in:)``.
  let vendor: [String]
  /// Further hosts from the configuration; they may also have private addresses and other ports.
  let allowed: [String]

  init(vendor: [String], allowed: [String]) {
    self.vendor = vendor
    self.allowed = allowed.map { $0.lowercased() }
  }

  /// - Returns: The parts of the address and whether it must not lead into a private network; `nil`
  ///   when it must not be called at all.
  func check(_ url: String) -> (address: HTTPAddress, isPublicOnly: Bool)? {
    guard url.utf8.count <= 4096, let address = HTTPAddress(url), address.scheme == "https" else {
      return nil
    }
    if address.isHost(in: allowed) { return (address, false) }
    guard address.isHost(in: vendor), address.port == 443 else { return nil }
    return (address, true)
  }
}

/// The destination of HTTPS requests: host and port (RFC 6454, with the scheme always `https`).
struct Origin: Hashable, Sendable {
  /// The host in lower case; an IPv6 address is without brackets.
  let host: String
  let port: UInt16

  /// Host, and port unless it is 443, in the form of `:authority`.
  var authority: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == 443 ? name : "\(name):\(port)"
  }

  /// `https://` and the authority.
  var text: String { "https://" + authority }
}
