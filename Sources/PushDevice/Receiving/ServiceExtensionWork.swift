public import Foundation
import NotificationHubs

/// Opens the content of a push that does not travel in the clear; `PushDeviceSecure` has the one
/// for secure push.
public protocol MessageOpening: Sendable {
  /// Opens it on the device, without a request.
  /// - Returns: `nil` if that is not possible.
  func open(_ message: PushMessage) -> NotificationText?
  /// Fetches it.
  /// - Returns: `nil` if it is not available.
  func fetch(_ message: PushMessage) async -> NotificationText?
  /// Whether there is something to open; other messages are shown as they are.
  func isSealed(_ message: PushMessage) -> Bool
  /// Members to add to the notification's `userInfo`, with which a tap finds the text again.
  func userInfo(showing text: NotificationText) -> [String: String]
}

extension MessageOpening {
  public func userInfo(showing text: NotificationText) -> [String: String] { [:] }
}

/// A notification as it is shown.
public struct EnrichedContent: Hashable, Sendable {
  /// Title, subtitle and body.
  public var text: NotificationText
  /// A file for the notification's attachment.
  public var image: URL?
  /// Members to add to the notification's `userInfo`.
  public var userInfo: [String: String] = [:]
  /// Whether ``userInfo`` takes the place of the push's members, which are for another user.
  public var hidesPayload = false
}

/// The work of a notification service extension: opens the content, attaches the image, and ends in
/// time, with what it has by then.
///
/// The system ends an extension after about 30 seconds and shows the notification unchanged then.
public struct ServiceExtensionWork: Sendable {
  /// The longest time for opening, fetching and the image.
  static let limits = (open: 1.0, fetch: 12.0, image: 10.0)

  /// The text of a notification whose content is not shown, which servers send, too.
  public static let generalText = "You have a message"

  private let opener: (any MessageOpening)?
  private let images: (any ImageFetching)?
  private let storage: (any DeviceStorage)?
  private let generalText: String
  private let budget: Duration
  private let clock: any DeviceClock

  /// - Parameters:
  ///   - opener: `nil` for an app without sealed pushes.
  ///   - images: `nil` for an app without images.
  ///   - storage: The app's storage, which tells who is signed in.
  ///   - generalText: Shown in place of what cannot be opened or is for another user.
  public init(
    opener: (any MessageOpening)? = nil, images: (any ImageFetching)? = ImageDownload(),
    storage: (any DeviceStorage)? = nil, generalText: String = Self.generalText,
    budget: Duration = .seconds(25), clock: any DeviceClock = SystemDeviceClock()
  ) {
    self.opener = opener
    self.images = images
    self.storage = storage
    self.generalText = generalText
    self.budget = budget
    self.clock = clock
  }

  /// - Parameter original: The text that the push has.
  public func content(
    for message: PushMessage, showing original: NotificationText
  ) async -> EnrichedContent {
    let end = clock.now.addingTimeInterval(budget.seconds)
    // The system cannot be told to show nothing (Apple's filtering entitlement aside).
    guard isForThisUser(message) else {
      // The app drops a tap on it for the same reason, by the user's name.
      return EnrichedContent(
        text: NotificationText(body: generalText),
        userInfo: message.userID.map { ["user": $0] } ?? [:], hidesPayload: true)
    }
    var content = EnrichedContent(text: original)
    if let opener, opener.isSealed(message) {
      var found = await before(end, within: Self.limits.open) { opener.open(message) }
      if found == nil {
        found = await before(end, within: Self.limits.fetch) { await opener.fetch(message) }
      }
      content.text = found ?? NotificationText(body: generalText)
      content.userInfo = found.map(opener.userInfo(showing:)) ?? [:]
    }
    if let images, let url = message.image {
      content.image = await before(end, within: Self.limits.image) { try? await images.fetch(url) }
    }
    return content
  }

  private func isForThisUser(_ message: PushMessage) -> Bool {
    storage.map { message.isForUser(in: $0) } ?? true
  }

  private func before<Success: Sendable>(
    _ end: Date, within limit: TimeInterval, _ step: @escaping @Sendable () async -> Success?
  ) async -> Success? {
    await clock.result(before: min(end, clock.now.addingTimeInterval(limit)), of: step)
  }
}
