import Foundation
import NotificationHubs

/// What has become of the targets of a page, or of a part of it: each has exactly one outcome or
/// one retry.
struct PageOutcome: Sendable {
  var counts: [OutcomeKey: Int] = [:]
  var failures: [Checkpoint.Failure] = []
  /// Filled only where all outcomes are kept.
  var successes: [Checkpoint.Success] = []
  var retries: [Checkpoint.Retry] = []
  /// Targets that had a retry row and have their outcome now.
  var settled: [RegistrationID] = []
  var dead: [Checkpoint.Condemned] = []
  var replaced: [Checkpoint.Condemned] = []
  /// See ``Checkpoint/spared``.
  var spared: Set<RegistrationID> = []
  /// Where pushes succeeded that were thought to live elsewhere.
  var environments: [(registration: RegistrationID, environment: PushEnvironment)] = []

  /// Nothing has become of any target.
  var isEmpty: Bool { counts.isEmpty && retries.isEmpty && settled.isEmpty }

  mutating func count(_ number: Int, _ outcome: NotificationOutcome, in group: OutcomeGroup) {
    guard number > 0 else { return }
    let key = OutcomeKey(
      platform: group.platform, isTemplate: group.isTemplate, outcome: outcome)
    counts[key, default: 0] += number
  }

  /// Records a target that no push succeeded for.
  mutating func fail(
    _ registration: RegistrationID, _ outcome: NotificationOutcome, status: UInt16 = 0,
    reason: String?, attempts: Int = 0, in group: OutcomeGroup
  ) {
    count(1, outcome, in: group)
    failures.append(
      .init(
        registration: registration, outcome: outcome, status: status, reason: reason,
        attempts: attempts))
    if group.isRetry { settled.append(registration) }
  }

  mutating func merge(_ other: PageOutcome) {
    if counts.isEmpty {
      counts = other.counts
    } else {
      counts.merge(other.counts, uniquingKeysWith: +)
    }
    failures += other.failures
    successes += other.successes
    retries += other.retries
    settled += other.settled
    dead += other.dead
    replaced += other.replaced
    spared.formUnion(other.spared)
    environments += other.environments
  }
}

extension PageOutcome {
  /// Leaves the handles of a push service as they are, whatever it has said about them.
  mutating func spare(_ platform: PushPlatform) {
    spared.formUnion(dead.lazy.filter { $0.platform == platform }.map(\.registration))
    dead.removeAll { $0.platform == platform }
    replaced.removeAll { $0.platform == platform }
  }
}

/// What targets counted together have in common.
struct OutcomeGroup: Sendable {
  let platform: PushPlatform
  let isTemplate: Bool
  /// The targets have retry rows.
  let isRetry: Bool
}
