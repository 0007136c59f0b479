import Foundation
import Wire

extension NotificationHubClient {
  /// The progress of a notification: the current one, every change, and finally the terminal state.
  /// Belfry only.
  ///
  /// If the transport is a ``StreamingTransport`` and the hub supports events, the hub pushes
  /// changes, and a broken stream is reopened. Otherwise the client polls every second.
  ///
  /// ```swift
  /// for try await progress in client.updates(of: id) { print(progress.done) }
  /// ```
  /// As with every `AsyncThrowingStream`, the loop ends without an error when its task is
  /// cancelled.
  public func updates(
    of notificationID: String
  ) -> AsyncThrowingStream<NotificationProgress, any Error> {
    AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let task = Task {
        do {
          if try await !follow(notificationID, { continuation.yield($0) }) {
            try await ask(notificationID) { continuation.yield($0) }
          }
          continuation.finish()
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }

  /// Reads events until the final state.
  /// - Returns: `false` if the hub or the transport does not support events.
  private func follow(
    _ id: String, _ tell: @escaping @Sendable (NotificationProgress) -> Void
  ) async throws -> Bool {
    guard let transport = connection.transport as? any StreamingTransport else { return false }
    var failures = 0
    while true {
      let reader = EventReader(tell)
      let failure: NotificationHubError
      do {
        try await connection.stream(
          .streamEvents, hub: hub, id, over: transport
        ) { try reader.take($0) }
        if reader.hasEnded { return true }
        // The server is stopping, or ended a connection that was open for long.
        failure = NotificationHubError(
          kind: .unreachable, detail: "the stream of events ended before the notification")
      } catch let error as NotificationHubError {
        if reader.hasEnded { return true }
        // Also if there is no such notification, which polling will report, or too many clients
        // watch it.
        if [.notFound, .quotaExceeded].contains(error.kind) { return false }
        guard error.isWorthRetrying else { throw error }
        failure = error
      }
      failures = reader.hasRead ? 1 : failures + 1
      guard let pause = connection.retry.delay(afterFailures: failures, retryAfter: nil) else {
        throw failure
      }
      try await connection.retry.sleep(pause)
    }
  }

  private func ask(
    _ id: String, _ tell: @Sendable (NotificationProgress) -> Void
  ) async throws {
    var last: NotificationProgress?
    while true {
      let found = try await progress(of: id)
      if found != last { tell(found) }
      if found.state.isFinal { return }
      last = found
      try await connection.retry.sleep(.seconds(1))
    }
  }
}

/// Parses one stream of events.
private final class EventReader: Sendable {
  private struct State: Sendable {
    var parser = EventStreamParser()
    var hasRead = false
    var hasEnded = false
  }

  private let state = Locked(State())
  private let tell: @Sendable (NotificationProgress) -> Void

  init(_ tell: @escaping @Sendable (NotificationProgress) -> Void) { self.tell = tell }

  /// Whether any event has arrived.
  var hasRead: Bool { state.withLock { $0.hasRead } }
  /// Whether the final state has arrived.
  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  func take(_ bytes: Data) throws {
    do {
      for event in try state.withLock({ try $0.parser.feed(bytes) }) {
        guard [NotificationEvent.progress, NotificationEvent.end].contains(event.name) else {
          continue
        }
        let progress = try NotificationProgress(json: event.data.utf8)
        state.withLock {
          $0.hasRead = true
          if event.name == NotificationEvent.end { $0.hasEnded = true }
        }
        tell(progress)
      }
    } catch {
      throw NotificationHubError(
        kind: .unexpectedReply, detail: "the events cannot be read: \(error)")
    }
  }
}
