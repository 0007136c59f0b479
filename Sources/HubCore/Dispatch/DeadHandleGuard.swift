import Foundation

/// Stops the removal of handles when the credential or the push service, not the handles, is likely
/// to be at fault (docs/protocol/push-services/README.md, section 3, rule 4): the share of answers
/// that condemn a handle decides, whatever succeeded before. One for each lane, in memory; after a
/// restart, and with another credential, it starts without trust.
///
/// - Without trust, that is until the first push succeeds with the credential, no handle goes: the
///   first send with a wrong topic or environment must not empty a small hub.
/// - Up to ``free`` handles within the window go whatever their share: a team's test phones after a
///   reinstall, the one dead phone of two. 50 of 60 do not.
/// - Above ``share`` nothing goes, and handles that the window had removed come back. The alarm ends when
///   the share has fallen to half of that, or with another credential.
struct DeadHandleGuard {
  /// Number of the last answers that are judged, at least.
  static let window = 1_000
  /// The longest time for which an answer counts, in seconds, by the wall clock: one that is set
  /// makes the window shorter or longer, and lets no more than ``free`` handles go.
  static let span = 3_600.0
  static let free = 10

  enum Verdict: Equatable {
    /// The handles may go.
    case remove
    /// They stay.
    case spare
    /// They stay, and the alarm begins.
    case alarm
  }

  /// Neighbouring answers, counted together.
  private struct Stretch {
    let start: Date
    var judged: Int
    var condemned: Int
  }

  private(set) var isAlarmed = false
  /// Handles that were condemned since then are in doubt while the alarm lasts.
  private(set) var doubtsSince = Date.distantPast
  private(set) var judged = 0
  private(set) var condemned = 0
  private var isTrusted = false
  private var stretches: ArraySlice<Stretch> = []
  private let credential: Date
  private let share: Double

  init(credential: Date, share: Double = 0.3) {
    self.credential = credential
    self.share = share
  }

  /// Decides over the handles of one batch.
  /// - Parameters:
  ///   - judged: Answers that say something about a handle.
  ///   - condemned: The answers that call it dead or replaced.
  ///   - credential: The one that the batch was sent with.
  mutating func judge(
    _ judged: Int, condemned: Int, hadSuccess: Bool, credential: Date, at now: Date
  ) -> Verdict {
    if credential != self.credential { self = Self(credential: credential, share: share) }
    if hadSuccess { isTrusted = true }
    guard judged > 0 else { return .spare }
    note(judged, condemned, at: now)
    let dead = Double(self.condemned)
    let all = Double(self.judged)
    if isAlarmed {
      if dead > share / 2 * all { return .spare }
      isAlarmed = false
    } else if self.condemned > Self.free, dead > share * all {
      isAlarmed = true
      doubtsSince = stretches.reduce(now) { min($0, $1.start) }
      return .alarm
    }
    return isTrusted ? .remove : .spare
  }

  private mutating func note(_ judged: Int, _ condemned: Int, at now: Date) {
    if let last = stretches.indices.last, stretches[last].judged < Self.window / 10,
      (0..<60).contains(now.timeIntervalSince(stretches[last].start))
    {
      stretches[last].judged += judged
      stretches[last].condemned += condemned
    } else {
      stretches.append(Stretch(start: now, judged: judged, condemned: condemned))
    }
    self.judged += judged
    self.condemned += condemned
    while let first = stretches.first, stretches.count > 1 {
      let isOld = !isAlarmed && now.timeIntervalSince(first.start) > Self.span
      guard isOld || self.judged - first.judged >= Self.window else { break }
      self.judged -= first.judged
      self.condemned -= first.condemned
      stretches.removeFirst()
    }
  }
}
