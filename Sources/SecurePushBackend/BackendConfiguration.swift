package import Foundation
package import NotificationHubs

/// The settings of the backend; hub, store and sign-in are passed separately.
package struct BackendConfiguration: Sendable {
  /// The lifetime of a message in seconds, if its sender does not specify one.
  package var lifetime: TimeInterval = 7 * 86_400
  /// The maximum lifetime that a sender may request, in seconds.
  package var longestLifetime: TimeInterval = 30 * 86_400
  /// The maximum payload, in bytes of UTF-8.
  package var payloadLimit = 32 * 1024
  /// The maximum number of pending messages per user.
  package var messagesPerUser = 1000
  /// The maximum number of devices per user: ten times what people have, including reinstalled
  /// apps.
  package var devicesPerUser = 100
  /// Whether payloads are sealed for devices that have registered a public key, which lets them
  /// open payloads offline.
  package var sealsPayloads = true
  /// The alert that devices without a key show at once, for apps that may lack a valid sign-in when
  /// the push arrives; `nil` wakes them in the background, as the tutorial does.
  package var alert: String?
  /// The lifetime of a token of `POST /api/token` and of a hub token, in seconds.
  package var tokenLifetime: TimeInterval = 3600
  /// The lifetime of an unused sign-in, in seconds.
  package var sessionLifetime: TimeInterval = 90 * 86_400
  /// The key that signs hub tokens; `nil` disables them.
  package var listening: HubAccess?

  package init() {}

  /// A key of the hub with the Listen right only.
  package struct HubAccess: Sendable {
    package var connectionString: ConnectionString
    package var hub: String

    package init(connectionString: ConnectionString, hub: String) {
      self.connectionString = connectionString
      self.hub = hub
    }
  }
}

/// An event for the operator's log. It contains no payloads, handles or passwords.
package enum BackendEvent: Sendable, CustomStringConvertible {
  /// The hub rejected the wake-up for a platform, usually for lack of a credential.
  case platformSkipped(PushPlatform, reason: String)
  /// A sealed payload did not reach a device; the device can fetch it by its id.
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
