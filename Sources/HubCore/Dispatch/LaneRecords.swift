import Foundation
import NotificationHubs

/// What push services have said, lane by lane: with which credential, why a lane rests, and whether
/// what they say of handles is to be believed.
struct LaneRecords {
  /// A push service that is down, as one lane has met it.
  private struct Outage {
    /// What was said, or why nothing was.
    var reason: String?
    /// When the log was told; `nil` while the failure may still be a passing one.
    var reportedAt: Date?
  }

  /// An outage that lasts is logged this often, in seconds.
  private static let outagePeriod = 600.0

  private let deadHandleShare: Double
  /// The credential each lane was last used with.
  private var credentials: [LaneKey: Date] = [:]
  /// What was said to the credential of a lane that rests.
  private var refusals: [LaneKey: PushResult] = [:]
  private var outages: [LaneKey: Outage] = [:]
  private var guards: [LaneKey: DeadHandleGuard] = [:]
  /// Alarms of other nodes.
  private var told: [LaneKey: Alarm] = [:]
  /// The words of other nodes as of the last look, of whichever credential.
  private var heard: [LaneWord] = []
  /// When a push last succeeded, where nodes share the work.
  private var successes: [LaneKey: Date] = [:]

  init(deadHandleShare: Double) { self.deadHandleShare = deadHandleShare }

  // MARK: Credentials

  /// Notes which credential a lane is used with; `nil` when it has none.
  /// - Returns: Whether it is another than before: what was said to the old one does not count.
  mutating func use(_ credential: Date?, for lane: LaneKey) -> Bool {
    guard credentials[lane] != credential else { return false }
    credentials[lane] = credential
    successes[lane] = nil
    replaced(lane)
    return true
  }

  func isCurrent(_ credential: Date, of lane: LaneKey) -> Bool { credentials[lane] == credential }

  /// A lane has another credential, which starts without trust and without a refusal.
  mutating func replaced(_ lane: LaneKey) {
    guards[lane] = nil
    refusals[lane] = nil
  }

  func credential(of lane: LaneKey) -> Date? { credentials[lane] }

  func refusal(of lane: LaneKey) -> PushResult? { refusals[lane] }
  var hasRefusals: Bool { !refusals.isEmpty }

  mutating func refuse(_ lane: LaneKey, _ answer: PushResult) { refusals[lane] = answer }

  /// A push has succeeded.
  mutating func succeed(_ lane: LaneKey) { refusals[lane] = nil }

  // MARK: Outages

  /// A lane rests because its push service is down.
  /// - Parameters:
  ///   - failures: Of the lane, in a row.
  ///   - reason: What was said, or why nothing was.
  /// - Returns: Whether the log is to be told.
  mutating func noteOutage(
    _ lane: LaneKey, failures: Int, reason: String?, at now: Date
  ) -> Bool {
    outages[lane, default: Outage()].reason = reason
    // The first failure may be a connection that had to be made again.
    guard failures > 1,
      outages[lane]?.reportedAt.map({ now.timeIntervalSince($0) >= Self.outagePeriod }) ?? true
    else { return false }
    outages[lane]?.reportedAt = now
    return true
  }

  /// A lane's push service has answered.
  /// - Returns: Whether the log was told that it was down.
  mutating func noteRecovery(_ lane: LaneKey) -> Bool {
    outages.removeValue(forKey: lane)?.reportedAt != nil
  }

  func isDown(_ lane: LaneKey) -> Bool { outages[lane] != nil }

  /// What the push service said to the credential, or why it counts as down.
  func reason(of lane: LaneKey) -> String? {
    refusals[lane]?.reason ?? outages[lane]?.reason
  }

  // MARK: Dead handles

  /// Removal has stopped for a lane.
  struct Alarm: Equatable {
    /// Of the last answers so many called a handle dead.
    let condemned: Int
    let judged: Int
    /// What was removed since then is in doubt.
    let since: Date
  }

  /// Leaves handles alone when the push service's word about them is in doubt.
  /// - Returns: The alarm, when it begins.
  mutating func judge(
    _ outcome: inout PageOutcome, of lane: LaneKey, _ settlement: PartSettlement, at now: Date
  ) -> Alarm? {
    // What a credential has brought that was replaced meanwhile says nothing about the lane.
    guard isCurrent(settlement.credential, of: lane) else {
      outcome.spare(lane.platform)
      return nil
    }
    let unknown = DeadHandleGuard(credential: settlement.credential, share: deadHandleShare)
    let verdict = guards[lane, default: unknown].judge(
      settlement.judged, condemned: outcome.dead.count + outcome.replaced.count,
      hadSuccess: settlement.hadSuccess, credential: settlement.credential, at: now)
    if verdict != .remove || told[lane] != nil { outcome.spare(lane.platform) }
    return verdict == .alarm ? alarm(of: lane) : nil
  }

  /// `nil` while handles go as they should.
  func alarm(of lane: LaneKey) -> Alarm? { ownAlarm(of: lane) ?? told[lane] }

  private func ownAlarm(of lane: LaneKey) -> Alarm? {
    guard let found = guards[lane], found.isAlarmed else { return nil }
    return Alarm(condemned: found.condemned, judged: found.judged, since: found.doubtsSince)
  }

  /// By this node's own answers.
  var ownAlarms: [LaneKey: Alarm] {
    var alarms: [LaneKey: Alarm] = [:]
    for lane in guards.keys { alarms[lane] = ownAlarm(of: lane) }
    return alarms
  }

  var alarmed: [LaneKey] {
    guards.filter { $0.value.isAlarmed }.map(\.key) + told.keys
  }

  /// A hub may be gone, and its alarms with it.
  mutating func forgetHandles(of hub: Hub.ID) {
    guards = guards.filter { $0.key.hub != hub }
    told = told.filter { $0.key.hub != hub }
  }

  /// The alarm may have come after a page was judged and before it is recorded.
  func sparingDoubted(_ taken: Checkpoint) -> Checkpoint {
    guard !taken.deadHandles.isEmpty || !taken.replacedHandles.isEmpty else { return taken }
    var checkpoint = taken
    func isDoubted(_ handle: Checkpoint.Condemned) -> Bool {
      alarm(of: LaneKey(hub: taken.hub, platform: handle.platform)) != nil
    }
    let spared = checkpoint.deadHandles.filter(isDoubted)
    checkpoint.spared.formUnion(spared.map(\.registration))
    checkpoint.deadHandles.removeAll(where: isDoubted)
    checkpoint.replacedHandles.removeAll(where: isDoubted)
    return checkpoint
  }
}

extension LaneRecords {
  /// So long a push that has succeeded here counts more than what other nodes say of the
  /// credential, in seconds: the fault may be theirs, such as a clock that is wrong.
  private static let trust = 60.0

  mutating func noteSuccess(_ lane: LaneKey, at now: Date) { successes[lane] = now }

  /// Whether another node's word about a lane counts here.
  mutating func believes(_ word: LaneWord, at now: Date) -> Bool {
    if credentials[word.lane] == nil { _ = use(word.credential, for: word.lane) }
    guard isCurrent(word.credential, of: word.lane) else { return false }
    guard word.kind == .refused, let success = successes[word.lane] else { return true }
    return now.timeIntervalSince(success) >= Self.trust
  }

  /// Takes the words of other nodes in the place of those before.
  /// - Returns: Those that count here.
  mutating func hear(_ words: [LaneWord], at now: Date) -> [LaneWord] {
    heard = words
    return words.filter { believes($0, at: now) }
  }

  /// The words of other nodes about the credential that a lane has now. They may have come before
  /// this node knew of that credential, and did not count then.
  mutating func heard(of lane: LaneKey, at now: Date) -> [LaneWord] {
    heard.filter { $0.lane == lane && believes($0, at: now) }
  }

  /// Takes the alarms of other nodes in the place of those before.
  /// - Returns: Those that are new.
  mutating func take(alarms: [LaneWord]) -> [LaneKey: Date] {
    let before = told
    told = [:]
    for word in alarms {
      told[word.lane] = Alarm(condemned: word.count, judged: word.judged, since: word.time)
    }
    return told.filter { before[$0.key] == nil }.mapValues(\.since)
  }
}

extension NotificationOutcome {
  /// Whether it speaks of the service or the way to it, not of the push.
  var isFaultOfService: Bool {
    switch self {
    case .pnsUnreachable, .pnsServerError, .pnsUnavailable, .tokenProviderUnreachable,
      .tokenProviderInterfaceError:
      true
    default: false
    }
  }
}
