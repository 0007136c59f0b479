import PushDevice
import PushDeviceSecure
import UIKit
import UserNotifications

/// The system's callbacks, of which the app has only its own share to do.
final class AppDelegate: PushAppDelegate {
  let demo = Demo()

  override var push: PushInstallation? { demo.push }

  override func start() async { await demo.start() }

  /// A background push: at most some thirty seconds to fetch the text and show it.
  override func received(_ message: PushMessage) async -> UIBackgroundFetchResult {
    switch await demo.content(of: message) {
    case .text(let text, _):
      let userInfo = SealedMessages.userInfo(fetching: message)
      await show(text, userInfo: userInfo.merging(demo.userInfo(showing: text)) { $1 })
    case .generic(let text):
      await show(text, userInfo: SealedMessages.userInfo(fetching: message))
      return .failed
    case nil, .some(.none): return .noData
    }
    return .newData
  }

  private func show(_ text: String, userInfo: [String: String]) async {
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
