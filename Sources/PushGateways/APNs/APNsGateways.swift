import Cryptography
import HTTP2
package import HubCore

/// Makes APNs gateways, which share connections and tokens as Apple wants them shared: one set of
/// connections per endpoint and key or certificate, one token per key, whichever hubs and apps of a
/// team use them (spec `pns/apns.md` 2.1, "connection binding").
package final class APNsGateways: PlatformGateways {
  private struct TokenKey: Hashable {
    let team: String
    let key: String
    /// The public key: another key under the same name is another credential.
    let point: [UInt8]
  }

  private enum Identity: Hashable {
    case token(TokenKey)
    /// SHA-256 of the certificate.
    case certificate([UInt8])
  }

  private struct PoolKey: Hashable {
    let endpoint: APNsEndpoint
    let identity: Identity
  }

  private let configuration: PushGatewaysConfiguration
  private let clock: HubClock
  private let tokens = SharedObjects<TokenKey, ProviderToken>()
  private let pools = SharedObjects<PoolKey, HTTP2Pool>()

  package init(_ configuration: PushGatewaysConfiguration, clock: HubClock) {
    self.configuration = configuration
    self.clock = clock
  }

  /// - Throws: ``CredentialError`` when the credential cannot work.
  package func gateway(
    for credential: PushCredential
  ) throws(CredentialError) -> APNsGateway {
    let checked = try APNsCredential(credential, at: clock.now())
    do {
      let identity: Identity
      var token: ProviderToken?
      var certificate: (chain: [UInt8], key: [UInt8])?
      switch checked.proof {
      case .token(let key):
        let name = TokenKey(team: key.team, key: key.id, point: try key.key.publicKey().point)
        token = tokens.object(for: name) { ProviderToken(key: key, clock: clock) }
        identity = .token(name)
      case .certificate(let shown):
        certificate = (
          Array(shown.certificatePEM.utf8), Array(try shown.privateKeyPEM().utf8)
        )
        identity = .certificate(shown.certificate.sha256Thumbprint)
      }
      func pool(_ endpoint: APNsEndpoint) -> HTTP2Pool {
        pools.object(for: PoolKey(endpoint: endpoint, identity: identity)) {
          var connection = configuration.apns.connection(
            to: endpoint.host, port: endpoint.port,
            extraAnchorsPEM: configuration.extraAnchorsPEM)
          if let certificate {
            connection.clientCertificatePEM = certificate.chain
            connection.clientKeyPEM = certificate.key
          }
          return HTTP2Pool(connection, configuration: configuration.apns, clock: clock)
        }
      }
      return APNsGateway(
        checked, own: pool(checked.endpoint), other: checked.otherEndpoint.map(pool),
        token: token, clock: clock)
    } catch {
      throw CredentialError("The credential cannot be used: \(error.message)")
    }
  }
}
