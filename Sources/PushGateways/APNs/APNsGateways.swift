import Cryptography
import Foundation
import HTTP2
package import HubCore

/// Makes APNs gateways, which share connections and tokens as Apple asks: one set of connections
/// per endpoint and key or certificate, one token per key, for all hubs and apps of a team
/// (docs/protocol/push-services/apns.md, section 2.1).
package final class APNsGateways: PlatformGateways {
  private struct TokenKey: Hashable {
    let team: String
    let key: String
    /// The identity of the key: another key with the same name is another credential.
    let identity: [UInt8]
  }

  private enum Identity: Hashable {
    case token(TokenKey)
    /// SHA-256 of the certificate, which is public, and of its key.
    case certificate([UInt8], key: [UInt8])
  }

  /// The authentication that connections share.
  private struct Access {
    let identity: Identity
    /// `nil` for a certificate credential.
    var token: ProviderToken?
    var certificate: (chain: [UInt8], key: [UInt8])?
  }

  private struct PoolKey: Hashable {
    let endpoint: APNsEndpoint
    let identity: Identity
    var managesChannels = false
  }

  /// For the list of channels, of which there can be 10 000.
  private static let longestReply = 1 << 20

  private let supplies: GatewaySupplies
  private var configuration: PushGatewaysConfiguration { supplies.configuration }
  private let clock: HubClock
  private let tokens = SharedObjects<TokenKey, ProviderToken>()
  private let pools = SharedObjects<PoolKey, HTTP2Pool>()

  package init(supplies: GatewaySupplies) {
    self.supplies = supplies
    clock = supplies.clock
  }

  static func check(_ credential: PushCredential, at now: Date) throws(CredentialError) {
    _ = try APNsCredential(credential, at: now)
  }

  /// - Throws: ``CredentialError`` when the credential cannot work.
  package func gateway(
    for credential: PushCredential
  ) throws(CredentialError) -> APNsGateway {
    let checked = try APNsCredential(credential, at: clock.now())
    let access = try access(checked)
    let own = try pool(checked.endpoint, "Endpoint", access)
    var other: HTTP2Pool?
    if let endpoint = checked.otherEndpoint {
      other = try pool(endpoint, "OtherEndpoint", access)
    }
    return APNsGateway(
      checked, own: own, other: other, token: access.token, clock: clock)
  }

  /// The gateway of the broadcast channels of the credential's app, in its own environment.
  ///
  /// - Throws: ``CredentialError`` when the credential cannot work, or does not name the endpoint
  ///   that manages channels.
  package func broadcasts(
    with credential: PushCredential
  ) throws(CredentialError) -> APNsBroadcastGateway {
    let checked = try APNsCredential(credential, at: clock.now())
    guard let management = checked.broadcastEndpoint else {
      throw CredentialError(
        """
        BroadcastEndpoint is missing: Endpoint is not Apple's, so say where broadcast channels are \
        managed.
        """)
    }
    let access = try access(checked)
    return APNsBroadcastGateway(
      bundleID: checked.topic,
      management: .init(
        endpoint: management,
        connections: try pool(management, "BroadcastEndpoint", access, managesChannels: true)),
      pushes: .init(
        endpoint: checked.endpoint,
        connections: try pool(checked.endpoint, "Endpoint", access)),
      token: access.token, clock: clock, random: supplies.random)
  }

  private func access(_ checked: APNsCredential) throws(CredentialError) -> Access {
    do {
      switch checked.proof {
      case .token(let key):
        let name = TokenKey(team: key.team, key: key.id, identity: try key.key.identity())
        return Access(
          identity: .token(name),
          token: tokens.object(for: name) {
            ProviderToken(key: key, clock: clock, random: supplies.random)
          })
      case .certificate(let shown):
        let key = Array(try shown.privateKeyPEM().utf8)
        return Access(
          identity: .certificate(
            shown.certificate.sha256Thumbprint, key: Digest.sha256(key)),
          certificate: (Array(shown.certificatePEM.utf8), key))
      }
    } catch {
      throw CredentialError("The credential cannot be used: \(error.message)")
    }
  }

  private func pool(
    _ endpoint: APNsEndpoint, _ property: String, _ access: Access, managesChannels: Bool = false
  ) throws(CredentialError) -> HTTP2Pool {
    let isPublicOnly = try ServiceHosts(configuration).isPublicOnly(
      endpoint.host, port: endpoint.port, vendor: [".push.apple.com"],
      ports: managesChannels ? [2195, 2196] : [443, 2197], property: property)
    let key = PoolKey(
      endpoint: endpoint, identity: access.identity, managesChannels: managesChannels)
    return pools.object(for: key) {
      var connection = configuration.apns.connection(
        to: endpoint.host, port: endpoint.port,
        extraAnchorsPEM: configuration.extraAnchorsPEM)
      if isPublicOnly { connection.requirePublicAddress() }
      if managesChannels { connection.maxReplyBody = Self.longestReply }
      if let certificate = access.certificate {
        connection.clientCertificatePEM = certificate.chain
        connection.clientKeyPEM = certificate.key
      }
      return HTTP2Pool(
        supplies.poolNumbers.next(), supplies.connect(connection),
        configuration: configuration.apns, clock: clock, random: supplies.random)
    }
  }
}
