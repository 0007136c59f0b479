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
      let delivery = Delivery(content: request.content, handler: contentHandler)
      once.receive { delivery.finish($0) }
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

  /// A content and its handler.
  ///
  /// `@unchecked Sendable`: ``Once`` calls ``finish(_:)`` a single time, and nobody else uses them.
  private final class Delivery: @unchecked Sendable {
    private let content: UNNotificationContent
    private let handler: (UNNotificationContent) -> Void

    init(content: UNNotificationContent, handler: @escaping (UNNotificationContent) -> Void) {
      self.content = content
      self.handler = handler
    }

    /// - Parameter enriched: `nil` leaves the notification as it came.
    func finish(_ enriched: EnrichedContent?) {
      guard let enriched, let changed = content.mutableCopy() as? UNMutableNotificationContent
      else { return handler(content) }
      changed.title = enriched.text.title ?? ""
      changed.subtitle = enriched.text.subtitle ?? ""
      changed.body = enriched.text.body ?? ""
      changed.userInfo.merge(enriched.userInfo) { _, new in new }
      if let image = enriched.image,
        let attachment = try? UNNotificationAttachment(
          identifier: "image", url: image, options: nil)
      {
        changed.attachments = [attachment]
      }
      handler(changed)
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
