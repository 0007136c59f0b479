import Foundation
package import HubCore

/// Lines on their way to a stream whose reader may stop reading: a stuck `journald`, `| less`, a
/// full pipe of a container runtime. Whoever has a line leaves it here and goes on; a thread of the
/// queue's own writes. What does not fit is dropped and counted, and a line in its place says how
/// many there were.
package final class LogQueue: @unchecked Sendable {
  // `condition` guards all that varies here.
  private let condition = NSCondition()
  private var waiting: [String] = []
  /// Of what waits and of what is being written.
  private var bytes = 0
  /// Lines that were dropped since the last one was taken; while there are any, more are dropped
  /// until half of the room is free: not every other line.
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

  /// What a line costs beside its text.
  private static let overhead = 64
  /// How long the reader may take for a line before that is worth a word.
  private static let patience = Duration.seconds(5)

  /// - Parameters:
  ///   - limit: Of the lines that wait, in bytes.
  ///   - write: Writes a line, however long that takes; called by one thread.
  package init(limit: Int = 1 << 20, write: @escaping @Sendable (String) -> Void) {
    self.limit = limit
    self.write = write
    let thread = Thread { self.run() }
    thread.name = "belfry-log"
    thread.start()
  }

  /// Takes a line and returns at once.
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

  /// How lines that were dropped are told of, from their number.
  package func tells(_ telling: @escaping @Sendable (Int) -> String) {
    condition.lock()
    defer { condition.unlock() }
    self.telling = telling
  }

  /// How it goes.
  package var state: LogState {
    condition.lock()
    defer { condition.unlock() }
    let isSlow = beganWriting.map { $0.duration(to: .now) > Self.patience } ?? false
    return LogState(dropped: dropped, isStuck: isSlow || missed > 0)
  }

  /// Takes nothing more, and waits until what was taken is written, or the limit is over.
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

  /// Lets lines in again once there is room, behind one that says how many are missing.
  private func tellMissed() {
    guard missed > 0, bytes <= limit / 2 else { return }
    let line = telling(missed)
    missed = 0
    waiting.append(line)
    bytes += line.utf8.count + Self.overhead
  }
}
