import Cryptography
import Foundation
import HTTPClient
package import HubCore

/// Makes FCM gateways, which share access tokens and connections if they use the same service
/// account, and a pace if they send for the same project.
package final class FCMGateways: PlatformGateways {
  private struct Account: Hashable {
    let email: String
    let tokenURI: String
    /// The identity of the key. Another key of the same account is another credential, so a hub
    /// that names another hub's account without its key gets none of its tokens.
    let key: [UInt8]
  }

  private struct LinkKey: Hashable {
    let origin: Origin
    let account: Account
  }

  private struct PaceKey: Hashable {
    let origin: Origin
    let project: String
  }

  /// Time before its expiry at which an access token is renewed
  /// (docs/protocol/push-services/fcm.md, section 2).
  private static let margin = Duration.seconds(5 * 60)
  /// Google's token hosts, as service accounts of all ages name them.
  private static let tokenHosts = [
    "oauth2.googleapis.com", "www.googleapis.com", "accounts.google.com",
  ]
  private static let ramp = Duration.seconds(60)

  private let supplies: GatewaySupplies
  private var configuration: PushGatewaysConfiguration { supplies.configuration }
  private var clock: HubClock { supplies.clock }
  private let tokens = SharedObjects<Account, AccessTokenSource>()
  private let links = SharedObjects<LinkKey, OriginLink>()
  private let paces = SharedObjects<PaceKey, SendPace>()

  package init(supplies: GatewaySupplies) { self.supplies = supplies }

  static func check(_ credential: PushCredential, at now: Date) throws(CredentialError) {
    _ = try FCMCredential(credential)
  }

  /// - Throws: ``CredentialError`` when the credential cannot work.
  package func gateway(
    for credential: PushCredential
  ) throws(CredentialError) -> FCMGateway {
    let checked = try FCMCredential(credential)
    let isPublicOnly = try supplies.hosts.isPublicOnly(
      checked.origin.host, port: checked.origin.port, vendor: [FCMCredential.googleHost],
      property: "Endpoint")
    let endpoint = try supplies.tokenEndpoint(
      checked.tokenURI, vendor: Self.tokenHosts, property: "TokenUri")
    let account: Account
    do {
      account = Account(
        email: checked.clientEmail, tokenURI: checked.tokenURI,
        key: try checked.key.identity())
    } catch {
      throw CredentialError("The credential cannot be used: \(error.message)")
    }
    return FCMGateway(
      project: checked.project, link: link(checked, account, isPublicOnly: isPublicOnly),
      tokens: tokens.object(for: account) { source(checked, endpoint) }, pace: pace(checked),
      sessions: supplies.sessions, clock: clock)
  }

  private func source(
    _ credential: FCMCredential, _ service: TokenEndpoint
  ) -> AccessTokenSource {
    AccessTokenSource(clock: clock, margin: Self.margin) { [clock] in
      do throws(CryptographyError) {
        let now = Int64(clock.now().timeIntervalSince1970)
        return await service.token(try credential.tokenForm(at: now))
      } catch {
        return .failure(AccessTokenFailure(.refused, "the assertion cannot be signed"))
      }
    }
  }

  private func link(
    _ credential: FCMCredential, _ account: Account, isPublicOnly: Bool
  ) -> OriginLink {
    links.object(for: LinkKey(origin: credential.origin, account: account)) {
      let origin = credential.origin
      let connections = configuration.fcm.connections
      var connection = connections.connection(
        to: origin.host, port: origin.port, extraAnchorsPEM: configuration.extraAnchorsPEM)
      if isPublicOnly { connection.requirePublicAddress() }
      return OriginLink(
        origin, poolNumber: supplies.poolNumbers.next(), connect: supplies.connect(connection),
        configuration: connections,
        session: supplies.sessions.session(isPublicOnly: isPublicOnly), clock: clock,
        random: supplies.random)
    }
  }

  private func pace(_ credential: FCMCredential) -> SendPace? {
    guard let messagesPerMinute = configuration.fcm.messagesPerMinute else { return nil }
    return paces.object(for: PaceKey(origin: credential.origin, project: credential.project)) {
      let full = max(1, messagesPerMinute / 60)
      return SendPace(
        .init(full: full, start: full / 10, ramp: Self.ramp), of: supplies.nodes, clock: clock)
    }
  }
}
