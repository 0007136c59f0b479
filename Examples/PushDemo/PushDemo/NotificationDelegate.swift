import Foundation
import PushDemo
import UserNotifications

/// What the notification centre tells of notifications that arrive or are tapped.
final class NotificationDelegate: NSObject, UNUserNotificationCenterDelegate, @unchecked Sendable {
  // Set once, on the main thread, before the centre knows this object.
  var app: DemoApp?

  func userNotificationCenter(
    _ center: UNUserNotificationCenter, willPresent notification: UNNotification
  ) async -> UNNotificationPresentationOptions {
    guard let app, let payload = Payload.json(notification.request.content.userInfo) else {
      return [.banner, .sound]
    }
    // In the foreground the app shows it in its own way, as in the tutorial.
    await app.willPresent(payload)
    return []
  }

  func userNotificationCenter(
    _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse
  ) async {
    guard let app, let payload = Payload.json(response.notification.request.content.userInfo)
    else { return }
    await app.didOpen(payload)
  }
}
