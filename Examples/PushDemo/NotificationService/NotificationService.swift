import Foundation
import PushDemo
import UserNotifications

/// Replaces the general text of a secure push by its payload, before anybody sees it: opened on the
/// device, or fetched. The system gives it some thirty seconds.
final class NotificationService: UNNotificationServiceExtension {
  private var delivery: Delivery?

  override func didReceive(
    _ request: UNNotificationRequest,
    withContentHandler contentHandler: @escaping (UNNotificationContent) -> Void
  ) {
    let delivery = Delivery(request.content, contentHandler)
    self.delivery = delivery
    guard let payload = Payload.json(request.content.userInfo),
      let inbox = SecureInbox(secrets: Keychain.shared)
    else { return delivery.finish(nil) }
    Task {
      switch await inbox.content(of: payload) {
      case .text(let text, _):
        delivery.finish(text, userInfo: SecureInbox.userInfo(showing: text))
      case .generic(let text): delivery.finish(text)
      case .some(.none), nil: delivery.finish(nil)
      }
    }
  }

  /// The time is over: the general text is shown.
  override func serviceExtensionTimeWillExpire() { delivery?.finish(nil) }
}

/// Hands the content over once, by the first to come.
///
/// `@unchecked Sendable`: `lock` guards the handler, which is called at most once; the content is
/// changed only by who has taken the handler.
private final class Delivery: @unchecked Sendable {
  private let lock = NSLock()
  private let content: UNNotificationContent
  private var handler: ((UNNotificationContent) -> Void)?

  init(_ content: UNNotificationContent, _ handler: @escaping (UNNotificationContent) -> Void) {
    self.content = content
    self.handler = handler
  }

  /// - Parameters:
  ///   - text: `nil` leaves the notification as it came.
  ///   - userInfo: Added to the push's. The app is handed it with a tap, and then need not fetch what
  ///     can be read only once.
  func finish(_ text: String?, userInfo: [String: String] = [:]) {
    lock.lock()
    let handler = handler
    self.handler = nil
    lock.unlock()
    guard let handler else { return }
    guard let text, let changed = content.mutableCopy() as? UNMutableNotificationContent else {
      return handler(content)
    }
    changed.body = text
    changed.userInfo.merge(userInfo) { _, new in new }
    handler(changed)
  }
}
