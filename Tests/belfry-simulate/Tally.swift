import HubSimulation

/// The totals of played lives. Child processes report theirs as a line of JSON for each life.
struct Tally: Codable, Sendable {
  /// A promise that a life broke, or a process that did not survive it.
  struct Found: Codable, Hashable, Sendable {
    let promise: String
    let seed: UInt64
    let text: String
    /// The process did not come to the end of the life, so the life can be neither told nor shortened.
    let isLost: Bool
  }

  /// A plan that was two different lives.
  struct Difference: Codable, Sendable {
    let seed: UInt64
    let text: String
  }

  private(set) var lives = 0
  private(set) var livesTwice = 0
  private(set) var steps = 0
  private(set) var virtualSeconds = 0.0
  private(set) var checks: [String: Int] = [:]
  /// By fault, and by what the struck node waited for.
  private(set) var strikes: [String: [String: Int]] = [:]
  /// A sum over all lives: the same in whichever order they come.
  private(set) var digest: UInt64 = 0
  var found: [Found] = []
  var differences: [Difference] = []

  init() {}

  init(_ life: Life) {
    lives = 1
    steps = life.world.steps
    virtualSeconds = life.world.seconds
    for (promise, count) in life.checks { checks[promise.rawValue] = count }
    // Each life is a test of these.
    for promise in [Promise.ownClock, .finite] { checks[promise.rawValue, default: 0] += 1 }
    for (act, states) in life.strikes { strikes[act.rawValue] = states }
    var draw = RandomStream(life.world.digest, life.plan.seed)
    digest = draw.next()
    var promises: Set<Promise> = []
    for finding in life.findings where promises.insert(finding.promise).inserted {
      found.append(
        Found(
          promise: finding.promise.rawValue, seed: life.plan.seed, text: finding.text, isLost: false
        ))
    }
  }

  mutating func noteLivedTwice() { livesTwice += 1 }

  mutating func add(_ other: Tally) {
    lives += other.lives
    livesTwice += other.livesTwice
    steps += other.steps
    virtualSeconds += other.virtualSeconds
    checks.merge(other.checks, uniquingKeysWith: +)
    strikes.merge(other.strikes) { $0.merging($1, uniquingKeysWith: +) }
    digest &+= other.digest
    found += other.found
    differences += other.differences
  }
}
