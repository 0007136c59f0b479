#if canImport(UserNotifications) && !os(tvOS)
  import Foundation
  public import UserNotifications

  /// A notification service extension around ``ServiceExtensionWork``. The app's extension names a
  /// subclass as its principal class:
  ///
  /// ```swift
  /// final class NotificationService: PushServiceExtension {
  ///   override var work: ServiceExtensionWork { … }
  /// }
  /// ```
  open class PushServiceExtension: UNNotificationServiceExtension {
    private var once: Once<EnrichedContent?>?

    /// The work for one notification.
    open var work: ServiceExtensionWork { ServiceExtensionWork() }

    open override func didReceive(
      _ request: UNNotificationRequest,
      withContentHandler contentHandler: @escaping (UNNotificationContent) -> Void
    ) {
      let once = Once<EnrichedContent?>()
      self.once = once
      // Used by `once` a single time, and by nobody else.
      nonisolated(unsafe) let (content, handler) = (request.content, contentHandler)
      once.receive { handler($0.map { content.enriched(with: $0) } ?? content) }
      guard let message = PushMessage(userInfo: request.content.userInfo) else {
        once.call(nil)
        return
      }
      let original = NotificationText(request.content)
      Task { [work] in once.call(await work.content(for: message, showing: original)) }
    }

    /// The time is over: the notification is shown as it came.
    open override func serviceExtensionTimeWillExpire() { once?.call(nil) }
  }

  extension UNNotificationContent {
    fileprivate func enriched(with enriched: EnrichedContent) -> UNNotificationContent {
      guard let changed = mutableCopy() as? UNMutableNotificationContent else { return self }
      changed.title = enriched.text.title ?? ""
      changed.subtitle = enriched.text.subtitle ?? ""
      changed.body = enriched.text.body ?? ""
      if enriched.hidesPayload {
        // The original text is a part of it, and what the app knows by a category or a thread.
        (changed.userInfo, changed.attachments) = (enriched.userInfo, [])
        (changed.categoryIdentifier, changed.threadIdentifier) = ("", "")
      } else {
        changed.userInfo.merge(enriched.userInfo) { _, new in new }
      }
      if let image = enriched.image {
        do {
          changed.attachments = [
            try UNNotificationAttachment(identifier: "image", url: image, options: nil)
          ]
        } catch {
          try? FileManager.default.removeItem(at: image)
        }
      }
      return changed
    }
  }

  extension NotificationText {
    fileprivate init(_ content: UNNotificationContent) {
      func text(_ text: String) -> String? { text.isEmpty ? nil : text }
      self.init(
        title: text(content.title), subtitle: text(content.subtitle), body: text(content.body))
    }
  }
#endif
