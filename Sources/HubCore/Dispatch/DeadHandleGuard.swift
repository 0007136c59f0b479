import Foundation

/// Stops the removal of handles when the credential, not the handles, is likely to be at fault
/// (spec `pns/README.md` 3, rule 4): with more than 50 removals in a row and no success in the last
/// ten minutes nothing more is removed until a push succeeds. One for each lane, in memory: after a
/// restart it starts afresh.
struct DeadHandleGuard {
  static let limit = 50
  static let memory = 600.0

  private var run = 0
  private var lastSuccess: Date?
  private(set) var isAlarmed = false

  /// Decides over the handles of one batch.
  /// - Parameters:
  ///   - dead: Handles reported dead, in the order of the replies.
  ///   - sinceSuccess: How many of them came after the batch's last success.
  /// - Returns: How many, from the start, may be removed, and whether the alarm has just begun.
  mutating func admit(
    dead: Int, hadSuccess: Bool, sinceSuccess: Int, at now: Date
  ) -> (removable: Int, alarm: Bool) {
    if hadSuccess {
      run = sinceSuccess
      lastSuccess = now
      isAlarmed = false
      return (dead, false)
    }
    let before = run
    run = min(run + dead, 1_000_000)
    if let lastSuccess, now.timeIntervalSince(lastSuccess) < Self.memory { return (dead, false) }
    let begins = run > Self.limit && !isAlarmed && dead > 0
    if run > Self.limit { isAlarmed = true }
    return (max(0, min(dead, Self.limit - before)), begins)
  }
}
