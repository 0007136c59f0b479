import Foundation
import HubCore
import NotificationHubs
import Synchronization

/// The texts of messages that signed-in operators were shown lately: the portal reads lists every
/// few seconds, and the activity log says once an hour who read them.
final class TextLooks: Sendable {
  private struct Reader: Hashable {
    let name: String
    let hub: Hub.ID
  }

  /// The time for which a look is remembered, in seconds.
  private static let memory: TimeInterval = 3600
  /// The maximum number of looks of one operator in one hub that are remembered, and so the number
  /// of lines that they can write in an hour.
  private static let looksOfOne = 256
  /// The maximum number of operators and hubs.
  private static let readers = 1024

  /// The looks by notification, `nil` for a list.
  private let looks = Mutex<[Reader: [NotificationID?: Date]]>([:])

  /// - Returns: Whether it is the operator's first look at this in an hour. `false` also for a
  ///   notification after ``looksOfOne`` others; the line about the list then says that they read.
  func isNew(
    of notification: NotificationID?, in hub: Hub.ID, by name: String, at now: Date
  ) -> Bool {
    func isRecent(_ time: Date) -> Bool { now.timeIntervalSince(time) < Self.memory }
    return looks.withLock { looks in
      let reader = Reader(name: name, hub: hub)
      if looks[reader] == nil, looks.count >= Self.readers {
        looks = looks.filter { $0.value.values.contains(where: isRecent) }
        if looks.count >= Self.readers { looks = [:] }
      }
      var own = looks[reader] ?? [:]
      if own[notification].map(isRecent) ?? false { return false }
      if own.count >= Self.looksOfOne { own = own.filter { isRecent($0.value) } }
      guard own.count < Self.looksOfOne || notification == nil else { return false }
      own[notification] = now
      looks[reader] = own
      return true
    }
  }

  /// Forgets what an operator has read, because the log could not be written.
  func forget(of name: String, in hub: Hub.ID) {
    looks.withLock { $0[Reader(name: name, hub: hub)] = nil }
  }
}

extension RouteHandlers {
  /// Records for the activity log that a reply shows a signed-in operator what messages say.
  ///
  /// - Parameters:
  ///   - isShown: Whether the reply has any text.
  ///   - notification: `nil` for a list.
  func logText(
    _ isShown: @autoclosure () -> Bool, of notification: NotificationID? = nil, to call: HubCall
  ) {
    guard call.signedIn != nil, isShown(),
      api.textLooks.isNew(
        of: notification, in: call.hub.id, by: call.admission.caller.name,
        at: service.clock.steady())
    else { return }
    call.activity?.showed(notification?.rawValue)
  }
}
