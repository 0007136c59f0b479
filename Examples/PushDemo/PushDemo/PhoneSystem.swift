import PushDemo
import UIKit
import UserNotifications

/// iOS, as far as the app needs it.
struct PhoneSystem: DemoSystem {
  let screen: SignInViewController

  func askForAuthorization() async throws -> Bool {
    try await UNUserNotificationCenter.current().requestAuthorization(
      options: [.alert, .sound, .badge])
  }

  func registerForRemoteNotifications() async {
    await MainActor.run { UIApplication.shared.registerForRemoteNotifications() }
  }

  func showAlert(_ text: String) async { await screen.showAlert(text) }

  func log(_ line: String) { print("PushDemo:", line) }

  func showNotification(_ text: String, userInfo: [String: String]) async {
    let content = UNMutableNotificationContent()
    content.title = "PushDemo"
    content.body = text
    content.userInfo = userInfo
    content.sound = .default
    let request = UNNotificationRequest(
      identifier: UUID().uuidString, content: content, trigger: nil)
    try? await UNUserNotificationCenter.current().add(request)
  }
}
