import Foundation
import NotificationHubs

/// A hub's way to one push service: what is in flight, waits and rests is counted by it.
struct LaneKey: Hashable, Sendable {
  let hub: Hub.ID
  let platform: PushPlatform
}

/// One platform's share of a page.
struct PartKey: Hashable, Sendable {
  let page: Int
  let index: Int
}

/// Why a lane as a whole cannot go on.
enum LaneFailure: Equatable, Sendable {
  /// The push service does not accept the credential.
  case refused
  /// Not one push of a batch got an answer.
  case unreachable

  /// - Parameter failures: In a row, from 1.
  /// - Returns: Seconds.
  func rest(failures: Int) -> Double {
    switch self {
    case .refused: RetryPolicy.credentialPause(refusals: failures)
    case .unreachable: RetryPolicy.connectionPause(failures: failures)
    }
  }
}

/// The state of one lane.
struct DispatchLane {
  struct Waiting {
    let part: PartKey
    let notification: Int
    let targets: Int
    /// How many refusals the schedule had seen when the part's wait began; a later one is an answer
    /// to it as well.
    let since: Int
  }

  private(set) var queue: [Waiting] = []
  private(set) var waitingTargets = 0
  private(set) var parts = 0
  private(set) var targets = 0
  /// When a part last left or, with nothing in flight, entered it.
  private var movedAt = Date.distantPast
  private(set) var restsUntil: Date?
  /// After a failure of the lane itself, one part goes ahead alone.
  private(set) var mustProbe = false
  /// Failures of the lane in a row, one for each probe.
  private(set) var failures = 0
  /// The number of the last refusal of the credential, counted over all lanes; `nil` when there was
  /// none since the lane last recovered.
  private(set) var refusal: Int?

  mutating func wait(_ waiting: Waiting) {
    queue.append(waiting)
    waitingTargets += waiting.targets
  }

  /// Takes the parts that may start now.
  mutating func admit(limit: Int, at now: Date) -> [Waiting] {
    var admitted = 0
    while admitted < queue.count {
      let next = queue[admitted]
      if parts > 0, mustProbe || targets + next.targets > limit { break }
      if parts == 0 { movedAt = now }
      parts += 1
      targets += next.targets
      waitingTargets -= next.targets
      admitted += 1
    }
    defer { queue.removeFirst(admitted) }
    return Array(queue[..<admitted])
  }

  /// Takes everything that waits.
  mutating func clear() -> [Waiting] {
    defer {
      queue = []
      waitingTargets = 0
    }
    return queue
  }

  mutating func forget(notification: Int) {
    queue.removeAll { $0.notification == notification }
    waitingTargets = queue.reduce(0) { $0 + $1.targets }
  }

  mutating func leave(targets: Int, at now: Date) {
    parts -= 1
    self.targets -= targets
    movedAt = now
  }

  // MARK: Rest

  func isResting(at now: Date) -> Bool { restsUntil.map { now < $0 } ?? false }

  /// Whether what is in flight has not moved for so many seconds.
  func isStalled(after seconds: Double, at now: Date) -> Bool {
    parts > 0 && now.timeIntervalSince(movedAt) >= seconds
  }

  /// When it will count as stalled, if nothing moves before.
  func stalls(after seconds: Double) -> Date { movedAt.addingTimeInterval(seconds) }

  mutating func rest(until: Date) { restsUntil = max(restsUntil ?? until, until) }

  /// Whether a probe is under way: nobody follows it until it has its answer.
  var isProbing: Bool { mustProbe && parts > 0 }

  /// The lane itself failed: it rests, then probes. Failures of batches that were in flight
  /// together count once.
  /// - Returns: Until when; `nil` when it rested already.
  mutating func fail(_ failure: LaneFailure, at now: Date) -> Date? {
    guard !isResting(at: now) else { return nil }
    failures += 1
    mustProbe = true
    let until = now.addingTimeInterval(failure.rest(failures: failures))
    restsUntil = until
    return until
  }

  mutating func refuse(_ number: Int) { refusal = number }

  /// Whether what has waited since then is answered by a refusal of the credential.
  func isRefused(since: Int, at now: Date) -> Bool {
    isResting(at: now) && refusal.map { $0 > since } ?? false
  }

  /// A push succeeded, or the credential was replaced.
  mutating func recover() {
    failures = 0
    refusal = nil
    mustProbe = false
    restsUntil = nil
  }
}
