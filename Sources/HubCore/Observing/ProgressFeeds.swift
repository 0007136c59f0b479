import Foundation
import NotificationHubs
import Synchronization

/// Follows notifications for their watchers: each is read once, however many watch it, and only
/// while somebody does. It reads the store, so it does not matter which process delivers.
package final class ProgressFeeds: Sendable {
  typealias Reading = @Sendable () async throws(HubFailure) -> NotificationProgress

  private struct Key: Hashable, Sendable {
    let hub: Hub.ID
    let notification: NotificationID
  }

  private struct Feed {
    var last: NotificationProgress
    var watchers: [Int: AsyncStream<NotificationProgress>.Continuation] = [:]
    var task: Task<Void, Never>?
  }

  private struct State {
    var feeds: [Key: Feed] = [:]
    /// Number of watchers, including those that are being added.
    var open: [Hub.ID: Int] = [:]
    var nextWatcher = 0
  }

  /// Maximum number of watchers of notifications of one hub.
  package static let limit = 100
  /// Pause between two reads of a notification.
  static let pause = Duration.milliseconds(500)
  /// Pause between two reads of a notification that is not due yet.
  static let longPause = Duration.seconds(5)
  /// Maximum time without a message to watchers.
  package static let silence = Duration.seconds(15)

  private let clock: HubClock
  private let state = Mutex(State())

  init(clock: HubClock) { self.clock = clock }

  /// Number of watchers of notifications of a hub.
  package func watchers(of hub: Hub.ID) -> Int { state.withLock { $0.open[hub] ?? 0 } }

  /// The current progress of a notification, then every change of it, and a repeat after
  /// ``silence``. A slow reader gets only the newest one. The stream ends after a final state, or
  /// without one when the notification or its hub is gone.
  ///
  /// - Throws: 429 when there are too many watchers, and the error of the first `read`.
  func follow(
    _ notification: NotificationID, hub: Hub.ID, read: @escaping Reading
  ) async throws(HubFailure) -> AsyncStream<NotificationProgress> {
    let key = Key(hub: hub, notification: notification)
    try reserve(hub)
    let known = state.withLock { $0.feeds[key]?.last }
    let first: NotificationProgress
    do {
      if let known { first = known } else { first = try await read() }
    } catch {
      release(hub)
      throw error
    }
    let (stream, continuation) = AsyncStream.makeStream(
      of: NotificationProgress.self, bufferingPolicy: .bufferingNewest(1))
    guard !first.state.isFinal else {
      continuation.onTermination = { [weak self] _ in self?.release(hub) }
      continuation.yield(first)
      continuation.finish()
      return stream
    }
    let number = state.withLock { state in
      state.nextWatcher += 1
      return state.nextWatcher
    }
    // Before anybody can end the stream.
    continuation.onTermination = { [weak self] _ in self?.leave(key, number) }
    state.withLock { state in
      var feed = state.feeds[key] ?? Feed(last: first)
      feed.watchers[number] = continuation
      continuation.yield(feed.last)
      if feed.task == nil {
        feed.task = Task { [weak self] in await self?.run(key, read) }
      }
      state.feeds[key] = feed
    }
    return stream
  }

  private func reserve(_ hub: Hub.ID) throws(HubFailure) {
    let isFull = state.withLock { state in
      guard state.open[hub, default: 0] < Self.limit else { return true }
      state.open[hub, default: 0] += 1
      return false
    }
    guard isFull else { return }
    throw HubFailure(
      status: 429,
      message:
        "\(Self.limit) streams of events of this hub are open, which is the most; close some, or "
        + "ask for /progress from time to time", retryAfter: 10)
  }

  private func release(_ hub: Hub.ID) {
    state.withLock { state in
      state.open[hub, default: 1] -= 1
      if state.open[hub] == 0 { state.open[hub] = nil }
    }
  }

  private func leave(_ key: Key, _ watcher: Int) {
    let task = state.withLock { state -> Task<Void, Never>? in
      state.feeds[key]?.watchers[watcher] = nil
      guard let feed = state.feeds[key], feed.watchers.isEmpty else { return nil }
      state.feeds[key] = nil
      return feed.task
    }
    task?.cancel()
    release(key.hub)
  }

  /// Reads until the notification has its final state, or is gone, or has no watchers.
  private func run(_ key: Key, _ read: Reading) async {
    var quiet = Duration.zero
    while let last = state.withLock({ $0.feeds[key]?.last }) {
      let pause = last.state == .scheduled ? Self.longPause : Self.pause
      do { try await clock.sleep(pause) } catch { return }
      quiet += pause
      var found = last
      do { found = try await read() } catch  where error.status == 404 {
        return end(key, with: nil)
      } catch {
        // The store is temporarily unavailable; watchers wait.
      }
      if found.state.isFinal { return end(key, with: found) }
      guard found != last || quiet >= Self.silence else { continue }
      quiet = .zero
      let watchers = state.withLock { state in
        state.feeds[key]?.last = found
        return state.feeds[key]?.watchers
      }
      for watcher in (watchers ?? [:]).values { watcher.yield(found) }
    }
  }

  private func end(_ key: Key, with last: NotificationProgress?) {
    let watchers = state.withLock { $0.feeds.removeValue(forKey: key)?.watchers }
    for watcher in (watchers ?? [:]).values {
      if let last { watcher.yield(last) }
      watcher.finish()
    }
  }
}
