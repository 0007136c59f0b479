import Foundation
import NotificationHubs

/// Something that happened to a notification.
public enum PushEvent: Hashable, Sendable {
  /// The user tapped it.
  case opened(PushMessage)
  /// The user chose an action.
  /// - Parameter text: What they typed, if the action takes text.
  case action(String, PushMessage, text: String?)
  /// The user removed it.
  case dismissed(PushMessage)
  /// A push with `content-available` woke the app; the system may have shown it, too.
  case background(PushMessage)
}

extension PushEvent {
  /// The message that it happened to.
  public var message: PushMessage {
    switch self {
    case .opened(let message), .action(_, let message, _), .dismissed(let message),
      .background(let message):
      message
    }
  }
}

/// The app's events. Those that come before somebody listens, as the tap that launched the app
/// does, wait for the first listener. Those of another user's messages are dropped.
public actor PushEvents {
  /// The number of ids by which duplicates are recognized. Push services deliver at least once.
  static let memory = 200
  /// The number of events that wait for a listener; the oldest give way.
  static let waitingLimit = 100

  private let listeners = Listeners<[PushEvent], PushEvent>([])
  private let storage: (any DeviceStorage)?
  private var seen: [String] = []

  /// - Parameter storage: The installation's: tells who is signed in, and keeps the ids of duplicates
  ///   over launches.
  public init(storage: (any DeviceStorage)? = nil) { self.storage = storage }

  /// Called with each event, by the adaptors.
  public nonisolated func deliver(_ event: PushEvent) {
    guard isForThisDevice(event.message) else { return }
    listeners.withLock { listeners in
      if listeners.isEmpty {
        listeners.state = (listeners.state + [event]).suffix(Self.waitingLimit)
      }
      listeners.yield(event)
    }
  }

  /// The events from now on, for the first listener also those that waited.
  public nonisolated var events: AsyncStream<PushEvent> {
    listeners.stream { waiting in
      defer { waiting = [] }
      return waiting
    }
  }

  /// Whether a message is for the user who is signed in, or for the device.
  public nonisolated func isForThisDevice(_ message: PushMessage) -> Bool {
    storage.map { message.isForUser(in: $0) } ?? true
  }

  /// Whether the message has not been asked about before. A message without id is always new.
  public func isNew(_ message: PushMessage) -> Bool {
    guard let id = message.notificationID else { return true }
    var isNew = note(id, in: &seen)
    // While the storage is locked, what this process has seen must do.
    try? storage?.update(.seenNotifications) { data in
      var stored = data.flatMap { try? JSONDecoder().decode([String].self, from: $0) } ?? []
      let isNewThere = note(id, in: &stored)
      isNew = isNew && isNewThere
      if isNewThere { data = try? JSONEncoder().encode(stored) }
    }
    return isNew
  }

  private nonisolated func note(_ id: String, in ids: inout [String]) -> Bool {
    guard !ids.contains(id) else { return false }
    ids = (ids + [id]).suffix(Self.memory)
    return true
  }
}
