import Foundation
import PushDemo
import UserNotifications

/// What the notification center reports of notifications that arrive or are tapped.
///
/// With completion handlers, not `async`: the system may abort an app that completes off the main thread,
/// as the concurrency form of these calls does.
@MainActor
final class NotificationDelegate: NSObject, UNUserNotificationCenterDelegate {
  var app: DemoApp?

  nonisolated func userNotificationCenter(
    _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
    withCompletionHandler completionHandler: @escaping (UNNotificationPresentationOptions) -> Void
  ) {
    let payload = Payload.json(notification.request.content.userInfo)
    // Used on the main actor only, where this is called.
    nonisolated(unsafe) let complete = completionHandler
    Task { @MainActor in
      guard let app, let payload, await app.willPresent(payload) else {
        return complete([.banner, .sound])
      }
      complete([])
    }
  }

  nonisolated func userNotificationCenter(
    _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
    withCompletionHandler completionHandler: @escaping () -> Void
  ) {
    let payload = Payload.json(response.notification.request.content.userInfo)
    // Used on the main actor only, where this is called.
    nonisolated(unsafe) let complete = completionHandler
    Task { @MainActor in
      if let app, let payload { await app.didOpen(payload) }
      complete()
    }
  }
}
