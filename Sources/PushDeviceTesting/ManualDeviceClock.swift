public import Foundation
import NotificationHubs
public import PushDevice

/// A clock that stands still until a test moves it.
public final class ManualDeviceClock: DeviceClock {
  private struct Contents {
    var now: Date
    /// The time that passes, whatever the user sets the clock to.
    var passed: TimeInterval = 0
    var calls: [Int: (at: TimeInterval, action: @Sendable () async -> Void)] = [:]
    var next = 0
  }

  private let contents: Locked<Contents>

  /// - Parameter now: Where the clock starts; 2030-01-01T00:00:00Z unless told.
  public init(now: Date = Date(timeIntervalSince1970: 1_893_456_000)) {
    contents = Locked(Contents(now: now))
  }

  public var now: Date { contents.withLock { $0.now } }

  /// The number of calls that wait.
  public var waiting: Int { contents.withLock { $0.calls.count } }

  public func call(
    at time: Date, _ action: @escaping @Sendable () async -> Void
  ) -> ScheduledCall {
    let id = contents.withLock { contents in
      contents.next += 1
      let at = contents.passed + max(time.timeIntervalSince(contents.now), 0)
      contents.calls[contents.next] = (at, action)
      return contents.next
    }
    return ScheduledCall { [weak self] in self?.contents.withLock { $0.calls[id] = nil } }
  }

  /// Lets time pass, and makes the calls that fall due, one after the other. Returns when all of
  /// them have, and what they began.
  public func advance(by duration: Duration) async {
    let end = contents.withLock { $0.passed } + duration.seconds
    while let action = takeCall(before: end) { await action() }
  }

  /// - Returns: `nil` if there is none; the time has passed then.
  private func takeCall(before end: TimeInterval) -> (@Sendable () async -> Void)? {
    contents.withLock { contents in
      let due = contents.calls.filter { $0.value.at <= end }
        .min { ($0.value.at, $0.key) < ($1.value.at, $1.key) }
      let time = max(due?.value.at ?? end, contents.passed)
      contents.now.addTimeInterval(time - contents.passed)
      contents.passed = time
      return due.flatMap { contents.calls.removeValue(forKey: $0.key)?.action }
    }
  }

  /// Drops all calls, as the end of a process does.
  public func endProcess() { contents.withLock { $0.calls = [:] } }

  /// Sets the time of day, as a user does: no time passes.
  public func step(by seconds: TimeInterval) { contents.withLock { $0.now += seconds } }
}
