import Cryptography
import HTTP2
package import HubCore
import Synchronization

/// Makes APNs gateways, which share connections and tokens as Apple wants them shared: one set of
/// connections per endpoint and key or certificate, one token per key, whichever hubs and apps of a
/// team use them (spec `pns/apns.md` 2.1, "connection binding").
package final class APNsGateways: Sendable {
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

  private struct Shared {
    var tokens: [TokenKey: WeakReference<ProviderToken>] = [:]
    var pools: [PoolKey: WeakReference<APNsConnections>] = [:]
  }

  private let configuration: APNsConfiguration
  private let clock: HubClock
  private let shared = Mutex(Shared())

  package init(configuration: APNsConfiguration, clock: HubClock) {
    self.configuration = configuration
    self.clock = clock
  }

  /// - Throws: ``CredentialError`` when the credential cannot work.
  package func gateway(for credential: PushCredential) throws(CredentialError) -> APNsGateway {
    let checked = try APNsCredential(credential, at: clock.now())
    var connection = HTTP2ConnectionConfiguration(
      host: checked.endpoint.host, port: checked.endpoint.port)
    connection.extraAnchorsPEM = configuration.extraAnchorsPEM
    connection.connectTimeout = configuration.connectTimeout
    connection.replyTimeout = configuration.replyTimeout
    connection.pingInterval = configuration.pingInterval
    connection.pingTimeout = configuration.pingTimeout
    connection.idleTimeout = configuration.idleTimeout
    // Answers are a line of JSON.
    connection.maxReplyBody = 4096
    do {
      let identity: Identity
      var token: ProviderToken?
      switch checked.proof {
      case .token(let key):
        let name = TokenKey(team: key.team, key: key.id, point: try key.key.publicKey().point)
        token = sharedToken(name, key)
        identity = .token(name)
      case .certificate(let shown):
        connection.clientCertificatePEM = Array(shown.certificatePEM.utf8)
        connection.clientKeyPEM = Array(try shown.privateKeyPEM().utf8)
        identity = .certificate(shown.certificate.sha256Thumbprint)
      }
      let pool = sharedPool(PoolKey(endpoint: checked.endpoint, identity: identity), connection)
      return APNsGateway(checked, connections: pool, token: token, clock: clock)
    } catch {
      throw CredentialError("The credential cannot be used: \(error.message)")
    }
  }

  private func sharedToken(_ name: TokenKey, _ key: APNsCredential.SigningKey) -> ProviderToken {
    shared.withLock { shared in
      if let token = shared.tokens[name]?.object { return token }
      shared.tokens = shared.tokens.filter { $0.value.object != nil }
      let token = ProviderToken(key: key, clock: clock)
      shared.tokens[name] = WeakReference(token)
      return token
    }
  }

  private func sharedPool(
    _ key: PoolKey, _ connection: HTTP2ConnectionConfiguration
  ) -> APNsConnections {
    shared.withLock { shared in
      if let pool = shared.pools[key]?.object { return pool }
      shared.pools = shared.pools.filter { $0.value.object != nil }
      let pool = APNsConnections(
        connection, configuration: configuration, clock: clock, draw: { .random(in: 0...1) })
      shared.pools[key] = WeakReference(pool)
      return pool
    }
  }
}

/// Does not keep its object: what no gateway uses any more goes, connections included.
private struct WeakReference<Object: AnyObject> {
  weak var object: Object?
  init(_ object: Object) { self.object = object }
}
