package import Foundation
package import NotificationHubs

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

extension PushGateway {
  package func load() async -> GatewayLoad? { nil }
}

extension GatewayDirectory {
  package func loads() async -> [PlacedLoad] { [] }
  package func end(of credential: PushCredential) -> Date? { nil }
}
