import Foundation

/// The earliest of the moments that lie ahead.
struct EarliestMoment {
  private let now: Date
  private(set) var moment: Date?

  init(after now: Date) { self.now = now }

  mutating func add(_ other: Date?) {
    guard let other, other > now else { return }
    moment = moment.map { min($0, other) } ?? other
  }
}

/// When to ask the store for scheduled notifications whose time has come.
struct ReleaseTimer {
  /// `nil` when there are none. By the machine's clock.
  private(set) var due: Date?
  private var isReleasing = false
  /// The earliest that came while the store was being asked, which its answer may lack.
  private var submittedMeanwhile: Date?

  mutating func add(_ moment: Date?) {
    guard let moment else { return }
    due = min(due ?? moment, moment)
    if isReleasing { submittedMeanwhile = min(submittedMeanwhile ?? moment, moment) }
  }

  /// Whether to ask now.
  mutating func start(at now: Date) -> Bool {
    guard !isReleasing, let due, due <= now else { return false }
    isReleasing = true
    return true
  }

  /// - Parameter next: When the next is due, as the store has it.
  mutating func finish(next: Date?) {
    isReleasing = false
    due = [next, submittedMeanwhile].compactMap { $0 }.min()
    submittedMeanwhile = nil
  }
}

extension Date {
  /// Whether the moment of a look has come that is made once a period. One that is far ahead was set
  /// by a clock that has gone back since: a node that has just come, or come back, learns the time
  /// that nodes share only from them (``NodeLease/isSettled``).
  func isLook(due now: Date, every period: Double) -> Bool {
    let left = timeIntervalSince(now)
    return left <= 0 || left > 4 * period
  }
}

/// When to look for work that no other node has, where nodes share it.
struct ClaimTimer {
  /// Between two looks when nothing tells of work, in seconds; each node adds up to as much again,
  /// so that they do not all look at once.
  static let period = 0.5

  /// `nil` before the first look, and where one process does all the work.
  private(set) var due: Date?
  private var isClaiming = false
  private var isWantedMeanwhile = false

  /// There may be work.
  mutating func want(at now: Date) {
    due = now
    isWantedMeanwhile = isClaiming
  }

  /// Whether it is time to ask.
  func isDue(at now: Date) -> Bool {
    !isClaiming && due.map { $0.isLook(due: now, every: Self.period) } ?? false
  }

  /// Whether to ask now.
  mutating func start(at now: Date) -> Bool {
    guard isDue(at: now) else { return false }
    isClaiming = true
    isWantedMeanwhile = false
    return true
  }

  /// - Parameters:
  ///   - hasMore: The answer may not have been all.
  ///   - jitter: Evenly 0 up to 1.
  mutating func finish(hasMore: Bool, jitter: Double, at now: Date) {
    isClaiming = false
    due =
      hasMore || isWantedMeanwhile ? now : now.addingTimeInterval(Self.period * (1 + jitter))
  }
}

/// When to look whether another process has replaced a credential that makes notifications wait.
struct CredentialTimer {
  /// Between two looks, in seconds.
  static let period = 1.0

  /// `nil` when none makes anybody wait.
  private(set) var due: Date?
  private var isLooking = false

  /// Whether to look now.
  mutating func start(isNeeded: Bool, at now: Date) -> Bool {
    guard isNeeded else {
      due = nil
      return false
    }
    let next = due ?? now.addingTimeInterval(Self.period)
    guard next.isLook(due: now, every: Self.period), !isLooking else {
      due = next
      return false
    }
    due = now.addingTimeInterval(Self.period)
    isLooking = true
    return true
  }

  mutating func finish() { isLooking = false }
}
