import Foundation

/// When a pool of connections opens more: when all have been full for a while, and those that were
/// opened for this reason before have made things faster.
///
/// A machine that is busy has full connections too, and more of them would only cost it more. So
/// the rate before connections were opened is compared with the rate after; unless it rose by a
/// quarter of what the new ones could bring, no others are opened for some time.
struct PoolGrowth: Sendable {
  /// A pool as it is at one moment.
  struct Load: Sendable {
    /// Whether all connections are full.
    var isFull: Bool
    var connections: Int
    /// Streams that they may have open together.
    var capacity: Int
    /// Replies so far.
    var answered: Int
  }

  private struct Trial {
    let connections: Int
    /// Replies per second before.
    let rate: Double
  }

  /// How long a trial that brought nothing keeps the next from being made at first, in seconds;
  /// it doubles up to ten minutes.
  static let patience = 30.0

  private var full: (since: Date, answered: Int)?
  private var trial: Trial?
  private var notBefore = Date.distantPast
  private var patience = Self.patience

  /// - Parameter pause: How long the connections must have been full, in seconds. They must also
  ///   have answered four times what they hold, for what comes in bursts cannot be told sooner.
  /// - Returns: Whether more are to be opened.
  mutating func isDue(_ load: Load, after pause: Double, at now: Date) -> Bool {
    guard load.isFull else {
      full = nil
      return false
    }
    // Replies are counted by connection: with one that has gone they start again.
    guard let (since, before) = full, before <= load.answered else {
      full = (now, load.answered)
      return false
    }
    let passed = now.timeIntervalSince(since)
    let answers = load.answered - before
    guard passed >= pause, answers >= 4 * load.capacity else { return false }
    let rate = Double(answers) / max(passed, 0.001)
    full = (now, load.answered)
    judge(rate, connections: load.connections, at: now)
    guard now >= notBefore else { return false }
    trial = Trial(connections: load.connections, rate: rate)
    full = nil
    return true
  }

  private mutating func judge(_ rate: Double, connections: Int, at now: Date) {
    guard let before = trial, before.connections < connections else { return }
    trial = nil
    let gain = Double(connections - before.connections) / Double(before.connections)
    if rate < before.rate * (1 + gain / 4) {
      notBefore = now + patience
      patience = min(600, patience * 2)
    } else {
      patience = Self.patience
    }
  }
}
