import Foundation
import Synchronization

/// Counts the test sends of each hub, so that a slow synchronous call is not made a way of sending
/// (docs/protocol/rest.md, section 5.7). In memory: after a restart it starts afresh.
final class TestSendMeter: Sendable {
  private let perMinute: Int
  /// The times of each hub's calls in the last minute, the oldest first.
  private let calls = Mutex<[Hub.ID: [Date]]>([:])

  init(perMinute: Int) { self.perMinute = perMinute }

  /// Takes note of a call.
  /// - Throws: ``HubFailure`` with 429 and the seconds after which the next one is free.
  func take(_ hub: Hub.ID, at now: Date) throws {
    let wait: Double? = calls.withLock { calls in
      // A clock that was set back must not lock anyone out for longer than a minute.
      var recent = (calls[hub] ?? []).filter { abs(now.timeIntervalSince($0)) < 60 }
      defer { calls[hub] = recent }
      if recent.count >= perMinute, let oldest = recent.first {
        return max(1, oldest.timeIntervalSince(now) + 60)
      }
      recent.append(now)
      return nil
    }
    guard let wait else { return }
    throw HubFailure(
      status: 429,
      message: "A hub takes \(perMinute) test sends a minute; leave ?test out to send for real",
      retryAfter: Int(min(wait, 60).rounded(.up)))
  }
}
