public import Foundation
import NotificationHubs

/// Opens the content of a push that does not travel in the clear; `PushDeviceSecure` has the one
/// for secure push.
public protocol MessageOpening: Sendable {
  /// Opens it on the device, without a request.
  /// - Returns: `nil` if that is not possible.
  func open(_ message: PushMessage) -> NotificationText?
  /// Fetches it.
  /// - Returns: `nil` if it cannot be had.
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
  public var text: NotificationText
  /// A file for the notification's attachment.
  public var image: URL?
  /// Members to add to the notification's `userInfo`.
  public var userInfo: [String: String] = [:]
}

/// The work of a notification service extension: opens the content, attaches the image, and ends in
/// time, with what it has by then.
///
/// The system ends an extension after about 30 seconds and shows the notification unchanged then.
public struct ServiceExtensionWork: Sendable {
  /// The longest time for opening, fetching and the image.
  static let limits = (open: 1.0, fetch: 12.0, image: 10.0)

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
    storage: (any DeviceStorage)? = nil, generalText: String = "You have a message",
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
      return EnrichedContent(text: NotificationText(body: generalText))
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

  /// Before the first unlock nobody knows who is signed in: then the message is not shown either.
  private func isForThisUser(_ message: PushMessage) -> Bool {
    guard let user = message.userID, let storage else { return true }
    return (try? DeviceRecord.userID(in: storage)) == user
  }

  /// Returns the result of a step, or `nil` when its time is over. The step is cancelled then, but
  /// not waited for.
  private func before<Success: Sendable>(
    _ end: Date, within limit: TimeInterval, _ step: @escaping @Sendable () async -> Success?
  ) async -> Success? {
    let once = Once<Success?>()
    let timer = clock.call(at: min(end, clock.now.addingTimeInterval(limit))) { once.call(nil) }
    let task = Task { once.call(await step()) }
    let result = await withCheckedContinuation { continuation in
      once.receive { continuation.resume(returning: $0) }
    }
    timer.cancel()
    task.cancel()
    return result
  }
}

/// Passes on the first of several values, once. The handler of a service extension is called from
/// two places, and must be called once.
final class Once<Value: Sendable>: Sendable {
  private enum State {
    case waiting
    case value(Value)
    case handler(@Sendable (Value) -> Void)
    case done
  }

  private let state = Locked(State.waiting)

  init() {}

  /// Sets what is called with the value.
  func receive(_ handler: @escaping @Sendable (Value) -> Void) {
    let value: Value? = state.withLock { state in
      guard case .value(let value) = state else {
        state = .handler(handler)
        return nil
      }
      state = .done
      return value
    }
    if let value { handler(value) }
  }

  /// - Returns: Whether it is the first value.
  @discardableResult
  func call(_ value: Value) -> Bool {
    let (isFirst, handler) = state.withLock { state -> (Bool, (@Sendable (Value) -> Void)?) in
      switch state {
      case .waiting:
        state = .value(value)
        return (true, nil)
      case .handler(let handler):
        state = .done
        return (true, handler)
      case .value, .done: return (false, nil)
      }
    }
    handler?(value)
    return isFirst
  }
}
