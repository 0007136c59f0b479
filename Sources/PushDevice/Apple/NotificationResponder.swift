#if canImport(UserNotifications) && !os(tvOS)
  public import Foundation
  public import UserNotifications

  /// The notification center's delegate: turns taps and actions into ``PushEvent``s.
  ///
  /// With completion handlers, not `async`: the concurrency form of these calls may complete off the
  /// main thread, where the system takes its snapshot and the app ends. The center holds its delegate
  /// weakly, and has only one: an app with another one calls these methods from there.
  public final class NotificationResponder: NSObject, UNUserNotificationCenterDelegate {
    private let events: PushEvents
    private let presentation:
      @MainActor @Sendable (PushMessage) -> UNNotificationPresentationOptions

    /// - Parameters:
    ///   - events: Tells who is signed in: a push for another user is neither shown nor delivered.
    ///   - presentation: The way to show what arrives while the app is in the foreground.
    public init(
      events: PushEvents,
      presentation:
        @escaping @MainActor @Sendable (PushMessage) ->
        UNNotificationPresentationOptions
    ) {
      self.events = events
      self.presentation = presentation
    }

    public func userNotificationCenter(
      _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
      withCompletionHandler completionHandler:
        @escaping (UNNotificationPresentationOptions) -> Void
    ) {
      let message = PushMessage(userInfo: notification.request.content.userInfo)
      // Used on the main actor only, where this is called.
      nonisolated(unsafe) let complete = completionHandler
      Task { @MainActor [presentation, events] in
        guard let message else { return complete([.banner, .list, .sound]) }
        complete(events.isForThisDevice(message) ? presentation(message) : [])
      }
    }

    public func userNotificationCenter(
      _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
      withCompletionHandler completionHandler: @escaping () -> Void
    ) {
      if let message = PushMessage(userInfo: response.notification.request.content.userInfo) {
        let text = (response as? UNTextInputNotificationResponse)?.userText
        switch response.actionIdentifier {
        case UNNotificationDefaultActionIdentifier: events.deliver(.opened(message))
        case UNNotificationDismissActionIdentifier: events.deliver(.dismissed(message))
        case let action: events.deliver(.action(action, message, text: text))
        }
      }
      // Used on the main actor only, where this is called.
      nonisolated(unsafe) let complete = completionHandler
      Task { @MainActor in complete() }
    }
  }
#endif
