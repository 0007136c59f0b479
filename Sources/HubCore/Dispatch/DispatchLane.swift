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

/// The state of one lane.
struct DispatchLane {
  struct Waiting {
    let part: PartKey
    let notification: Int
    let targets: Int
  }

  private(set) var queue: [Waiting] = []
  private(set) var waitingTargets = 0
  private(set) var parts = 0
  private(set) var targets = 0
  /// When a part last left or, with nothing in flight, entered it.
  private var movedAt = Date.distantPast
  private(set) var restsUntil: Date?
  /// After a refused credential, one part goes ahead alone.
  private(set) var mustProbe = false
  /// Refused probes in a row.
  private(set) var refusals = 0

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

  /// The credential was refused: rests, then probes. Refusals of batches that were in flight
  /// together count once.
  /// - Returns: Until when; `nil` when it rested already.
  mutating func refuse(at now: Date) -> Date? {
    guard !isResting(at: now) else { return nil }
    refusals += 1
    mustProbe = true
    let until = now.addingTimeInterval(RetryPolicy.credentialPause(refusals: refusals))
    restsUntil = until
    return until
  }

  /// A push succeeded, or the credential was replaced.
  mutating func recover() {
    refusals = 0
    mustProbe = false
    restsUntil = nil
  }
}
