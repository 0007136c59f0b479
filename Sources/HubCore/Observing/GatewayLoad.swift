package import Foundation
package import NotificationHubs

/// What one credential's way to its push service carries.
package struct GatewayLoad: Hashable, Sendable {
  package var connections: Int
  /// Pushes that wait for their answer.
  package var streams: Int
  /// When the credential stops working by itself; `nil` when it does not, or nobody knows.
  package var expiresAt: Date?

  package init(connections: Int = 0, streams: Int = 0, expiresAt: Date? = nil) {
    self.connections = connections
    self.streams = streams
    self.expiresAt = expiresAt
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
}
