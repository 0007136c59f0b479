package import Foundation
package import NotificationHubs

/// How the backend behaves; the hub, the store and the sign-in are given apart.
package struct BackendConfiguration: Sendable {
  /// How long a message waits for its reader when its sender does not say, in seconds.
  package var lifetime: TimeInterval = 7 * 86_400
  /// The longest that a sender may ask for, in seconds.
  package var longestLifetime: TimeInterval = 30 * 86_400
  /// The largest payload, in bytes of UTF-8.
  package var payloadLimit = 32 * 1024
  /// The most messages that wait for one user.
  package var messagesPerUser = 1000
  /// The most devices of one user: ten times what people have, reinstalled apps included.
  package var devicesPerUser = 100
  /// Seals payloads for devices that have registered a public key, so that they open them offline.
  package var sealsPayloads = true
  /// What devices without a key show of a message at once, for apps that may have no valid sign-in
  /// when the push comes; `nil` wakes them in the background, as the tutorial does.
  package var alert: String?
  /// How long a token of `POST /api/token` and a hub token live, in seconds.
  package var tokenLifetime: TimeInterval = 3600
  /// How long a sign-in lasts without being used, in seconds.
  package var sessionLifetime: TimeInterval = 90 * 86_400
  /// What hub tokens are signed with; `nil` gives none.
  package var listening: HubAccess?

  package init() {}

  /// A key of the hub that has the right Listen and no other.
  package struct HubAccess: Sendable {
    package var connectionString: ConnectionString
    package var hub: String

    package init(connectionString: ConnectionString, hub: String) {
      self.connectionString = connectionString
      self.hub = hub
    }
  }
}

/// What an operator should know; goes to the log. Without payloads, handles and passwords.
package enum BackendEvent: Sendable, CustomStringConvertible {
  /// The hub did not take the wake-up for a platform: most often it has no credential for it.
  case platformSkipped(PushPlatform, reason: String)
  /// A sealed payload did not reach one device; it can fetch it by its id.
  case sealingFailed(reason: String)
  case trouble(String)

  package var description: String {
    switch self {
    case .platformSkipped(let platform, let reason): "\(platform.rawValue) was skipped: \(reason)"
    case .sealingFailed(let reason): "a device could not be sent its sealed payload: \(reason)"
    case .trouble(let what): what
    }
  }
}
