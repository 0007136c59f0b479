public import Foundation

extension APNsPayload {
  /// What becomes of the Live Activities that follow a channel. A channel starts none: that takes a
  /// push-to-start token, and ``ActivityUpdates/channel(_:)``.
  public enum BroadcastEvent: Hashable, Sendable {
    case update
    /// They stay on the Lock Screen until `dismissal`, at most four hours; `nil` leaves that to the
    /// system.
    case end(dismissal: Date? = nil)
  }

  /// The largest payload of a broadcast, in bytes: more than a push to one device may have.
  public static let broadcastLimit = 5120

  /// Changes or ends all Live Activities that follow a channel; for
  /// ``NotificationHubClient/send(_:toChannel:)``.
  ///
  /// - Parameters:
  ///   - priority: Priority 10 counts against the activities' budget, 5 does not.
  ///   - expiration: How long APNs tries; a channel that stores no message takes `once` only.
  ///
  /// The others are as in
  /// ``liveActivity(_:contentState:timestamp:alert:sound:staleDate:relevanceScore:custom:delivery:)``.
  /// - Throws: ``PayloadError``.
  /// - SeeAlso: <https://developer.apple.com/documentation/usernotifications/sending-broadcast-push-notification-requests-to-apns>
  public static func broadcast(
    _ event: BroadcastEvent, contentState: PayloadValue, timestamp: Date = Date(),
    alert: Alert? = nil, sound: Sound? = nil, staleDate: Date? = nil,
    relevanceScore: Double? = nil, custom: [String: PayloadValue] = [:],
    priority: Priority = .immediate, expiration: Expiration = .once
  ) throws(PayloadError) -> APNsPayload {
    let activityEvent: ActivityEvent =
      switch event {
      case .update: .update
      case .end(let dismissal): .end(dismissal: dismissal)
      }
    let aps = try activityMembers(
      activityEvent, contentState: contentState, timestamp: timestamp, alert: alert, sound: sound,
      staleDate: staleDate, relevanceScore: relevanceScore)
    return try APNsPayload(
      .liveactivity, aps: aps, custom: custom,
      delivery: Delivery(priority: priority, expiration: expiration), limit: broadcastLimit)
  }
}
