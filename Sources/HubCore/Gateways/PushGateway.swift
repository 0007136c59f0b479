package import Foundation
package import NotificationHubs

/// A client of one push service under one credential.
package protocol PushGateway: Sendable {
  /// Delivers every request of the batch and returns their results, in order. Never throws: every
  /// failure is a result. Several batches may be in flight at once.
  func deliver(_ batch: PushBatch) async -> [PushResult]
  /// The current load of its connections; `nil` when it has none of its own.
  func load() async -> GatewayLoad?
  /// Closes the connections; pushes in flight get unreachable as their result.
  func close() async
  /// The pool of its connections; `nil` when they impose no limit.
  var pool: GatewayPool? { get }
}

extension PushGateway {
  package func load() async -> GatewayLoad? { nil }
  package var pool: GatewayPool? { nil }
}

/// Finds the gateway for a hub's notifications of a platform.
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
  /// - Returns: A gateway of FCM v1 that accepts messages of Google Cloud Messaging.
  func legacy(_ gateway: any PushGateway) -> any PushGateway
  /// The current load of all gateways in use.
  func loads() async -> [PlacedLoad]
  /// The time when a credential expires; `nil` when it does not, or the time is unknown.
  func end(of credential: PushCredential) -> Date?
  /// - Returns: The hosts of a credential's pushes, with non-standard ports; empty for a push
  ///   service with one environment only.
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

/// The load of one credential's connections to its push service.
package struct GatewayLoad: Hashable, Sendable {
  package var connections: Int
  /// Number of pushes that wait for their reply.
  package var streams: Int
  /// Maximum number of concurrent pushes; `nil` for no limit.
  package var limit: Int?

  package init(connections: Int = 0, streams: Int = 0, limit: Int? = nil) {
    self.connections = connections
    self.streams = streams
    self.limit = limit
  }

  /// The sum of both loads.
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

/// The reason that a push credential cannot work.
package struct CredentialError: Error, Hashable, CustomStringConvertible {
  /// Names the property and gives advice; never contains a secret.
  package let description: String
  /// Whether it was valid until it expired.
  package let isExpiry: Bool

  package init(_ description: String, isExpiry: Bool = false) {
    self.description = description
    self.isExpiry = isExpiry
  }
}

/// The connections that a gateway shares with others under the same credential, and their capacity:
/// pushes on them are sent, throttled and paused together.
package struct GatewayPool: Sendable {
  /// The same for gateways that share connections; a counter, because an address would give
  /// dictionaries another order in each run.
  package let id: Int
  /// Maximum number of concurrent pushes on the connections; changes with them.
  package let capacity: Int

  package init(id: Int, capacity: Int) {
    self.id = id
    self.capacity = capacity
  }
}

/// Tries a credential at its push service without any effect on devices.
package protocol CredentialProber: Sendable {
  /// - Throws: ``CredentialError`` when the credential cannot work, regardless of the service.
  func probe(_ credential: PushCredential) async throws(CredentialError) -> CredentialProbe
}
