import Foundation
package import HubCore

/// A queue of log lines for a stream whose reader may stall: a stuck `journald`, `| less`, a full
/// pipe of a container runtime. Callers append a line and continue; the queue's own thread writes.
/// Lines that do not fit are dropped and counted, and a line in their place reports their number.
package final class LogQueue: @unchecked Sendable {
  // `condition` guards all mutable state.
  private let condition = NSCondition()
  private var waiting: [String] = []
  /// The size of the waiting lines and the one being written.
  private var bytes = 0
  /// The number of lines dropped since the last accepted one. While there are any, lines are
  /// dropped until half of the room is free, so that gaps stay contiguous.
  private var missed = 0
  private var dropped = 0
  private var isIdle = false
  private var isClosed = false
  private var beganWriting: ContinuousClock.Instant?
  private var telling: @Sendable (Int) -> String = {
    "belfry: \($0) lines are missing here: nobody read them in time"
  }

  private let limit: Int
  private let write: @Sendable (String) -> Void

  /// The cost of a line in addition to its text, in bytes.
  private static let overhead = 64
  /// The time that the reader may take for a line before that is reported.
  private static let patience = Duration.seconds(5)

  /// - Parameters:
  ///   - limit: The maximum size of waiting lines, in bytes.
  ///   - write: Writes a line, for any length of time; called by one thread.
  package init(limit: Int = 1 << 20, write: @escaping @Sendable (String) -> Void) {
    self.limit = limit
    self.write = write
    let thread = Thread { self.run() }
    thread.name = "belfry-log"
    thread.start()
  }

  /// Appends a line and returns at once.
  package func add(_ line: String) {
    let cost = line.utf8.count + Self.overhead
    condition.lock()
    defer { condition.unlock() }
    if missed > 0 || bytes + cost > limit || isClosed {
      missed += 1
      dropped += 1
    } else {
      waiting.append(line)
      bytes += cost
    }
    if isIdle { condition.broadcast() }
  }

  /// Sets the function that words the report of dropped lines, from their number.
  package func tells(_ telling: @escaping @Sendable (Int) -> String) {
    condition.lock()
    defer { condition.unlock() }
    self.telling = telling
  }

  /// The present state of the queue.
  package var state: LogState {
    condition.lock()
    defer { condition.unlock() }
    let isSlow = beganWriting.map { $0.duration(to: .now) > Self.patience } ?? false
    return LogState(dropped: dropped, isStuck: isSlow || missed > 0)
  }

  /// Accepts no further lines, and waits until the accepted ones are written, or the time limit.
  package func close(within limit: Duration) {
    let end = Date(timeIntervalSinceNow: limit / .seconds(1))
    condition.lock()
    defer { condition.unlock() }
    isClosed = true
    condition.broadcast()
    while bytes > 0 || missed > 0, condition.wait(until: end) {}
  }

  private func run() {
    condition.lock()
    while true {
      tellMissed()
      if waiting.isEmpty {
        if isClosed { break }
        isIdle = true
        condition.wait()
        isIdle = false
        continue
      }
      let lines = waiting
      waiting = []
      for line in lines {
        beganWriting = .now
        condition.unlock()
        write(line)
        condition.lock()
        beganWriting = nil
        bytes -= line.utf8.count + Self.overhead
        tellMissed()
      }
      if bytes == 0 { condition.broadcast() }
    }
    condition.unlock()
  }

  /// Accepts lines again once there is room, after one that reports how many are missing.
  private func tellMissed() {
    guard missed > 0, bytes <= limit / 2 else { return }
    let line = telling(missed)
    missed = 0
    waiting.append(line)
    bytes += line.utf8.count + Self.overhead
  }
}
