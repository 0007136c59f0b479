package import NotificationHubs
import Synchronization

/// Counts events for `/metrics`. Cheap: the hot path calls it once per page, not once per push.
package final class HubMetrics: Sendable {
  package struct OutcomeLabel: Hashable, Sendable {
    package let platform: PushPlatform
    package let outcome: NotificationOutcome
  }

  package struct Snapshot: Sendable {
    /// Notifications accepted by kind: `audience`, `direct`, `scheduled`.
    package fileprivate(set) var accepted: [String: Int] = [:]
    package fileprivate(set) var finished = 0
    package fileprivate(set) var outcomes: [OutcomeLabel: Int] = [:]
    /// Handles removed or replaced because of a push service's report.
    package fileprivate(set) var removed: [LaneKey: Int] = [:]
    /// Registrations restored afterwards.
    package fileprivate(set) var restored: [LaneKey: Int] = [:]
    /// Time from acceptance, or release, to the recorded outcome, in seconds.
    package fileprivate(set) var delivery = Histogram.delivery
    /// Replies by the first digit of their status.
    package fileprivate(set) var requests: [Int: Int] = [:]
    package fileprivate(set) var requestSeconds = Histogram.quick
    /// Devices per second of the last notification that had enough of them for a meaningful rate.
    package fileprivate(set) var rate: Double?
  }

  /// Minimum number of devices for a meaningful rate.
  private static let rateSample = 1_000

  private let state = Mutex(Snapshot())

  package init() {}

  package var snapshot: Snapshot { state.withLock { $0 } }

  package func accepted(kind: String) { state.withLock { $0.accepted[kind, default: 0] += 1 } }

  package func replied(status: Int, seconds: Double) {
    state.withLock {
      $0.requests[status / 100, default: 0] += 1
      $0.requestSeconds.observe(seconds)
    }
  }

  package func handles(removed: Int = 0, restored: Int = 0, of lane: LaneKey) {
    state.withLock {
      $0.removed[lane, default: 0] += removed
      $0.restored[lane, default: 0] += restored
    }
  }

  /// Records that a page of outcomes is in the store.
  /// - Parameter seconds: Time since the notification was accepted.
  func recorded(_ counts: [OutcomeKey: Int], seconds: Double) {
    guard !counts.isEmpty else { return }
    state.withLock { state in
      for (key, count) in counts {
        let label = OutcomeLabel(platform: key.platform, outcome: key.outcome)
        state.outcomes[label, default: 0] += count
        state.delivery.observe(max(0, seconds), weight: count)
      }
    }
  }

  /// - Parameters:
  ///   - devices: Number of devices that this process has processed.
  ///   - seconds: Time since it took the notification over.
  func finished(devices: Int, seconds: Double) {
    state.withLock { state in
      state.finished += 1
      if devices >= Self.rateSample, seconds > 0 { state.rate = Double(devices) / seconds }
    }
  }
}

/// Counts of values between bounds.
package struct Histogram: Hashable, Sendable {
  /// The upper bounds, rising; values above the last are counted too.
  package let bounds: [Double]
  /// One for each bound, and one for values above the last: not cumulative.
  package private(set) var counts: [Int]
  package private(set) var sum = 0.0
  package private(set) var count = 0

  package init(bounds: [Double]) {
    self.bounds = bounds
    counts = Array(repeating: 0, count: bounds.count + 1)
  }

  /// - Parameter weight: Number of equal values.
  package mutating func observe(_ value: Double, weight: Int = 1) {
    guard weight > 0, value.isFinite else { return }
    counts[bounds.firstIndex { value <= $0 } ?? bounds.count] += weight
    sum += value * Double(weight)
    count += weight
  }

  /// From half a millisecond to ten seconds.
  package static let quick = Histogram(
    bounds: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10])
  /// From a millisecond to half an hour, the lifetime of a notification.
  package static let delivery = Histogram(
    bounds: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 1800])
  /// Number of units of work in a transaction.
  package static let batches = Histogram(bounds: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
}
