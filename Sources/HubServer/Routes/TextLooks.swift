import Foundation
import HubCore
import NotificationHubs
import Synchronization

/// The texts of messages that signed-in operators were shown lately: the portal reads lists every
/// few seconds, and the activity log says once an hour who read them.
final class TextLooks: Sendable {
  private struct Look: Hashable {
    let reader: String
    let hub: Hub.ID
    /// `nil` for a list.
    let notification: NotificationID?
  }

  /// The time for which a look is remembered, in seconds.
  private static let memory: TimeInterval = 3600
  /// The maximum number of looks that are remembered; the oldest is forgotten first.
  private static let limit = 4096

  private let looks = Mutex<[Look: Date]>([:])

  /// - Returns: Whether it is the operator's first look at this in an hour.
  func isNew(
    of notification: NotificationID?, in hub: Hub.ID, by reader: String, at now: Date
  ) -> Bool {
    let look = Look(reader: reader, hub: hub, notification: notification)
    return looks.withLock { looks in
      if let last = looks[look], now.timeIntervalSince(last) < Self.memory { return false }
      if looks.count >= Self.limit {
        looks = looks.filter { now.timeIntervalSince($0.value) < Self.memory }
        if looks.count >= Self.limit, let oldest = looks.min(by: { $0.value < $1.value }) {
          looks[oldest.key] = nil
        }
      }
      looks[look] = now
      return true
    }
  }
}

extension RouteHandlers {
  /// Notes for the activity log that a reply shows a signed-in operator what messages say.
  ///
  /// - Parameters:
  ///   - isShown: Whether the reply has any text.
  ///   - notification: `nil` for a list.
  func logText(_ isShown: Bool, of notification: NotificationID? = nil, to call: HubCall) {
    guard isShown, let reader = call.signedIn?.name,
      api.textLooks.isNew(
        of: notification, in: call.hub.id, by: reader, at: service.clock.steady())
    else { return }
    call.activity?.showed(notification?.rawValue)
  }
}
