import Cryptography
package import Foundation
import HTTP2
package import HubCore
import NotificationHubs
import Synchronization
import Wire

/// Makes the gateways of one platform, and holds their shared objects.
protocol PlatformGateways: Sendable {
  associatedtype Gateway: PushGateway

  init(supplies: GatewaySupplies)

  /// Validates a credential without making a gateway of it.
  /// - Throws: ``CredentialError``, which names the property and says what to do.
  static func check(_ credential: PushCredential, at now: Date) throws(CredentialError)

  /// - Throws: ``CredentialError`` when the credential cannot work.
  func gateway(for credential: PushCredential) throws(CredentialError) -> Gateway
}

/// The dependencies of gateways, for all services.
package struct GatewaySupplies: Sendable {
  let configuration: PushGatewaysConfiguration
  let transport: PushTransport
  let sessions: GatewaySessions
  /// The number of nodes that send under the same credentials.
  let nodes: NodeCount
  let clock: HubClock
  let random: HubRandom
  let poolNumbers = PoolNumbers()

  package init(
    _ configuration: PushGatewaysConfiguration, transport: PushTransport = .network,
    nodes: NodeCount = NodeCount(), clock: HubClock, random: HubRandom
  ) {
    self.configuration = configuration
    self.transport = transport
    self.nodes = nodes
    sessions = GatewaySessions(configuration, transport: transport)
    self.clock = clock
    self.random = random
  }

  /// Returns a closure that makes HTTP/2 connections to the configuration's host.
  func connect(
    _ configuration: HTTP2ConnectionConfiguration
  ) -> @Sendable () -> any PushConnection {
    { [transport] in transport.connect(configuration) }
  }

  /// The hosts that credentials may name.
  var hosts: ServiceHosts { ServiceHosts(configuration) }

  /// The hosts that addresses from devices may name.
  func channelHosts(vendor: [String]) -> ChannelHosts {
    ChannelHosts(vendor: vendor, allowed: configuration.allowedHosts)
  }

  /// The token service that a credential's property names.
  func tokenEndpoint(
    _ url: String, vendor: [String], property: String
  ) throws(CredentialError) -> TokenEndpoint {
    let isPublicOnly = try hosts.isPublicOnly(url: url, vendor: vendor, property: property)
    return TokenEndpoint(
      url: url, session: sessions.session(isPublicOnly: isPublicOnly), clock: clock)
  }

  /// A gateway over HTTP/1.1.
  func gateway<Service: HTTPPushService>(
    _ service: Service, tokens: AccessTokenSource? = nil
  ) -> HTTPPushGateway<Service> {
    HTTPPushGateway(
      service, sessions: sessions, tokens: tokens,
      connections: configuration.connections ?? Service.connections, clock: clock)
  }
}

/// Numbers sets of connections.
final class PoolNumbers: Sendable {
  private let last = Atomic(0)

  func next() -> Int { last.add(1, ordering: .relaxed).newValue }
}

/// The gateways of this build, made on first use and shared by hubs with the same credential.
package final class PushGatewayDirectory: GatewayDirectory {
  private struct Place: Hashable {
    let hub: Hub.ID
    let platform: PushPlatform
  }

  private struct Entry {
    let credential: PushCredential
    let gateway: any PushGateway
  }

  private struct BroadcastEntry {
    let credential: PushCredential
    let gateway: any BroadcastGateway
  }

  /// The services of this build; add a new one here.
  private static let services: [PushPlatform: any PlatformGateways.Type] = [
    .apns: APNsGateways.self,
    .wns: WNSGateways.self,
    .adm: ADMGateways.self,
    .baidu: BaiduGateways.self,
    .xiaomi: XiaomiGateways.self,
    .mpns: MPNSGateways.self,
    .gcm: GCMGateways.self,
    .fcmv1: FCMGateways.self,
    .browser: WebPushGateways.self,
  ]

  private let clock: HubClock
  private let platforms: [PushPlatform: any PlatformGateways]
  private let apns: APNsGateways
  private let entries = Mutex<[Place: Entry]>([:])
  private let broadcasts = Mutex<[Hub.ID: BroadcastEntry]>([:])

  /// - Parameter clock: The store's clock: provider tokens are judged by the push service's time,
  ///   and one node with a wrong clock would have the credential refused for all.
  package init(
    _ configuration: PushGatewaysConfiguration = PushGatewaysConfiguration(),
    transport: PushTransport = .network,
    nodes: NodeCount = NodeCount(), clock: HubClock, random: HubRandom
  ) {
    self.clock = clock
    let supplies = GatewaySupplies(
      configuration, transport: transport, nodes: nodes, clock: clock, random: random)
    let apns = APNsGateways(supplies: supplies)
    self.apns = apns
    platforms = Self.services.mapValues { service in
      service is APNsGateways.Type ? apns : service.init(supplies: supplies)
    }
  }

  package func gateway(
    for credential: PushCredential, hub: Hub.ID
  ) async throws -> (any PushGateway)? {
    guard let platform = platforms[credential.platform] else { return nil }
    let place = Place(hub: hub, platform: credential.platform)
    return try entries.withLock { entries in
      if let entry = entries[place], entry.credential == credential { return entry.gateway }
      // An unusable credential leaves the previous one in place: it may be a mere trial.
      let gateway = try platform.gateway(for: credential)
      // The replaced gateway is released, not closed: its pushes in flight are completed.
      entries[place] = Entry(credential: credential, gateway: gateway)
      return gateway
    }
  }

  package func broadcasts(
    with credential: PushCredential, hub: Hub.ID
  ) async throws -> (any BroadcastGateway)? {
    guard credential.platform == .apns else { return nil }
    return try broadcasts.withLock { broadcasts in
      if let entry = broadcasts[hub], entry.credential == credential { return entry.gateway }
      let gateway = try apns.broadcasts(with: credential)
      broadcasts[hub] = BroadcastEntry(credential: credential, gateway: gateway)
      return gateway
    }
  }

  package func legacy(_ gateway: any PushGateway) -> any PushGateway {
    LegacyFCMGateway(base: gateway)
  }

  /// A gateway that nothing else uses, though it may share connections and tokens with others.
  /// - Returns: `nil` when this build has none for the platform.
  func makeGateway(
    for credential: PushCredential
  ) throws(CredentialError) -> (any PushGateway)? {
    try platforms[credential.platform]?.gateway(for: credential)
  }

  /// Validates a credential without making a gateway of it.
  /// - Throws: ``CredentialError``, which names the property and says what to do.
  package static func check(
    _ credential: PushCredential, at now: Date
  ) throws(CredentialError) {
    try services[credential.platform]?.check(credential, at: now)
  }

  /// The expiry of a certificate. Keys, secrets and service accounts do not expire, or do not say
  /// when.
  package func end(of credential: PushCredential) -> Date? {
    guard let name = credential.platform.traits.certificate, let text = credential[name],
      let archive = Base64.decode(text)
    else { return nil }
    let password = credential[PlatformTraits.certificatePassword] ?? ""
    return (try? PKCS12.open(archive, password: password))?.certificate.notAfter
  }

  package func hosts(of credential: PushCredential) -> [PushEnvironment: String] {
    guard credential.platform == .apns,
      let apns = try? APNsCredential(credential, at: clock.now())
    else { return [:] }
    var hosts = [PushEnvironment.own: apns.endpoint.authority]
    hosts[.other] = apns.otherEndpoint?.authority
    return hosts
  }

  package func loads() async -> [PlacedLoad] {
    let all = entries.withLock { $0 }.sorted {
      ($0.key.hub, $0.key.platform.rawValue) < ($1.key.hub, $1.key.platform.rawValue)
    }
    var loads: [PlacedLoad] = []
    for (place, entry) in all {
      guard let load = await entry.gateway.load() else { continue }
      loads.append(PlacedLoad(hub: place.hub, platform: place.platform, load: load))
    }
    return loads
  }

  /// Forgets a hub's gateways; their connections end when the last push on them has a reply.
  package func forget(hub: Hub.ID) {
    entries.withLock { entries in entries = entries.filter { $0.key.hub != hub } }
    broadcasts.withLock { $0[hub] = nil }
  }

  /// Closes all connections now.
  package func close() async {
    let all = entries.withLock { entries in
      defer { entries = [:] }
      return entries.values.map(\.gateway)
    }
    for gateway in all { await gateway.close() }
    let channels = broadcasts.withLock { broadcasts in
      defer { broadcasts = [:] }
      return broadcasts.values.map(\.gateway)
    }
    for gateway in channels { await gateway.close() }
  }
}

/// Objects shared by gateways of the same origin, key or account, such as connections and tokens:
/// made once per key, released when no gateway uses them any more, connections included.
final class SharedObjects<Key: Hashable & Sendable, Object: AnyObject & Sendable>: Sendable {
  private struct Reference {
    weak var object: Object?
  }

  private let references = Mutex<[Key: Reference]>([:])

  /// The object of this key, which is made now if nobody holds one.
  func object<Failure: Error>(
    for key: Key, make: () throws(Failure) -> Object
  ) throws(Failure) -> Object {
    try references.withLock { references throws(Failure) in
      if let object = references[key]?.object { return object }
      references = references.filter { $0.value.object != nil }
      let object = try make()
      references[key] = Reference(object: object)
      return object
    }
  }
}
