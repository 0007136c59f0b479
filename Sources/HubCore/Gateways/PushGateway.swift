package import Foundation
package import NotificationHubs

/// Our client of one push service under one credential.
package protocol PushGateway: Sendable {
  /// Delivers every request of the batch and answers each, in order. Never throws: what goes
  /// wrong is a result. Several batches may be under way at once.
  func deliver(_ batch: PushBatch) async -> [PushResult]
  /// What its connections carry; `nil` when it keeps none of its own.
  func load() async -> GatewayLoad?
  /// Ends the connections; what is in flight is answered as unreachable.
  func close() async
  /// The connections behind it as they are now; `nil` when they bound nothing by themselves.
  var pool: GatewayPool? { get }
}

extension PushGateway {
  package func load() async -> GatewayLoad? { nil }
  package var pool: GatewayPool? { nil }
}

/// Finds the gateway that a hub's notifications of a platform go through.
package protocol GatewayDirectory: Sendable {
  /// - Returns: The gateway for this credential, the same one for the same credential, so that
  ///   connections and tokens are shared; `nil` when this build has none for the platform.
  /// - Throws: ``CredentialError`` when the credential cannot work.
  func gateway(for credential: PushCredential, hub: Hub.ID) async throws -> (any PushGateway)?
  /// - Returns: The gateway of the broadcast channels of this credential's app, the same one for
  ///   the same credential; `nil` when this build has none for the platform.
  /// - Throws: ``CredentialError`` when the credential cannot work.
  func broadcasts(
    with credential: PushCredential, hub: Hub.ID
  ) async throws -> (any BroadcastGateway)?
  /// - Returns: A gateway of FCM v1 that takes the messages of Google Cloud Messaging.
  func legacy(_ gateway: any PushGateway) -> any PushGateway
  /// What the gateways that are in use carry.
  func loads() async -> [PlacedLoad]
  /// When a credential stops working by itself; `nil` when it does not, or nobody knows.
  func end(of credential: PushCredential) -> Date?
  /// - Returns: The hosts that a credential's pushes go to, with ports where they are unusual; none
  ///   for a push service that has one world only.
  func hosts(of credential: PushCredential) -> [PushEnvironment: String]
}

extension GatewayDirectory {
  package func broadcasts(
    with credential: PushCredential, hub: Hub.ID
  ) async throws -> (any BroadcastGateway)? { nil }

  package func hosts(of credential: PushCredential) -> [PushEnvironment: String] { [:] }

  package func legacy(_ gateway: any PushGateway) -> any PushGateway { gateway }
  package func loads() async -> [PlacedLoad] { [] }
  package func end(of credential: PushCredential) -> Date? { nil }
}

/// What one credential's way to its push service carries.
package struct GatewayLoad: Hashable, Sendable {
  package var connections: Int
  /// Pushes that wait for their answer.
  package var streams: Int
  /// How many may do so at once; `nil` when nothing bounds them.
  package var limit: Int?

  package init(connections: Int = 0, streams: Int = 0, limit: Int? = nil) {
    self.connections = connections
    self.streams = streams
    self.limit = limit
  }

  /// Both ways together.
  package static func + (one: GatewayLoad, other: GatewayLoad) -> GatewayLoad {
    GatewayLoad(
      connections: one.connections + other.connections, streams: one.streams + other.streams,
      limit: [one.limit, other.limit].compactMap { $0 }.reduce(nil) { ($0 ?? 0) + $1 })
  }
}

/// The load of a hub's gateway.
package struct PlacedLoad: Sendable {
  package let hub: Hub.ID
  package let platform: PushPlatform
  package let load: GatewayLoad

  package init(hub: Hub.ID, platform: PushPlatform, load: GatewayLoad) {
    self.hub = hub
    self.platform = platform
    self.load = load
  }
}

/// Why a push credential cannot work.
package struct CredentialError: Error, Hashable, CustomStringConvertible {
  /// Names the property and says what to do; never holds a secret.
  package let description: String
  /// It was right until its time was over.
  package let isExpiry: Bool

  package init(_ description: String, isExpiry: Bool = false) {
    self.description = description
    self.isExpiry = isExpiry
  }
}

/// The connections that a gateway shares with others under the same credential, and how much they
/// carry: what is sent, slowed and paused together.
package struct GatewayPool: Sendable {
  /// The same for gateways that share connections; counted up where these are made, as an address
  /// would give dictionaries another order in each run.
  package let id: Int
  /// Pushes that the connections can have under way at once; rises and falls with them.
  package let capacity: Int

  package init(id: Int, capacity: Int) {
    self.id = id
    self.capacity = capacity
  }
}

/// Tries a credential at its push service in a way that no device notices.
package protocol CredentialProber: Sendable {
  /// - Throws: ``CredentialError`` when the credential cannot work, whatever the service says.
  func probe(_ credential: PushCredential) async throws(CredentialError) -> CredentialProbe
}
