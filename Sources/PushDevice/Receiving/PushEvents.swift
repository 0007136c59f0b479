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
  /// A push woke the app without showing anything.
  case background(PushMessage)
}

/// The app's events. Those that come before somebody listens, as the tap that launched the app
/// does, wait for the first listener.
public actor PushEvents {
  /// The number of ids by which duplicates are recognized. Push services deliver at least once.
  public static let memory = 200
  /// The number of events that wait for a listener; the oldest give way.
  public static let waitingLimit = 100

  private struct Audience {
    var waiting: [PushEvent] = []
    var listeners: [Int: AsyncStream<PushEvent>.Continuation] = [:]
    var next = 0
  }

  private let audience = Locked(Audience())
  private let storage: (any DeviceStorage)?
  private var seen: [String] = []

  /// - Parameter storage: Keeps the ids of duplicates over launches.
  public init(storage: (any DeviceStorage)? = nil) { self.storage = storage }

  /// Called with each event, by the adaptors.
  public nonisolated func deliver(_ event: PushEvent) {
    audience.withLock { audience in
      if audience.listeners.isEmpty {
        audience.waiting = (audience.waiting + [event]).suffix(Self.waitingLimit)
      }
      for listener in audience.listeners.values { listener.yield(event) }
    }
  }

  /// The events from now on, for the first listener also those that waited.
  public nonisolated var events: AsyncStream<PushEvent> {
    let (stream, continuation) = AsyncStream.makeStream(of: PushEvent.self)
    let id = audience.withLock { audience in
      audience.next += 1
      audience.listeners[audience.next] = continuation
      for event in audience.waiting { continuation.yield(event) }
      audience.waiting = []
      return audience.next
    }
    continuation.onTermination = { [audience] _ in
      audience.withLock { $0.listeners[id] = nil }
    }
    return stream
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
