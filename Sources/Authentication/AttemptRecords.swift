import Cryptography
import Foundation

/// The record of password attempts, and the rules by which it delays further ones. A pure value:
/// ``AttemptLimiter`` keeps one in memory, or builds one from the rows that an attempt concerns
/// (``SharedAttempts``).
struct AttemptRecords {
  enum Key: Hashable {
    case pair(account: String, network: String)
    case account(String)
    case network(String)
    case turn(account: String, site: String)
  }

  struct Count: Hashable {
    var failures = 0
    var last: Date
    /// The time from which the account's next turn is free.
    var nextTurn = Date.distantPast
  }

  /// The time without a failure after which a count is forgotten, in seconds.
  static let countLife: TimeInterval = 3600
  static let knownLife: TimeInterval = 30 * 86_400
  /// The time during which a turn can be taken, in seconds.
  static let turnLife: TimeInterval = 300
  /// The minimum interval in seconds at which a correct password clears its count, so that an
  /// attacker on the network of a user gains few guesses from that user's own sign-ins.
  private static let clearInterval: TimeInterval = 60

  let rules: AttemptLimiter.Rules
  var counts: [Key: Count] = [:]
  /// The number of attempts in progress.
  var pending: [Key: Int] = [:]
  /// The times at which sites may try an account.
  var turns: [Key: Date] = [:]
  /// The accounts with the networks from which they have signed in.
  var known: [Key: Date] = [:]

  init(_ rules: AttemptLimiter.Rules) { self.rules = rules }

  func isKnown(_ pair: Key, at now: Date) -> Bool {
    known[pair].map { abs(now.timeIntervalSince($0)) < Self.knownLife } ?? false
  }

  /// The counts that an attempt belongs to.
  func keys(account: String, network: String, at now: Date) -> [Key] {
    let pair = Key.pair(account: account, network: network)
    return isKnown(pair, at: now) ? [pair] : [pair, .account(account), .network(network)]
  }

  /// - Returns: The seconds until the next attempt is permitted; `nil` for now.
  mutating func wait(
    account: String, network: String, site: String, at now: Date
  ) -> TimeInterval? {
    let pair = Key.pair(account: account, network: network)
    let isKnown = isKnown(pair, at: now)
    let own = [pair] + (isKnown ? [] : [.network(network)])
    if let wait = own.compactMap({ wait($0, now) }).max() { return wait }
    // Only a site that could otherwise proceed takes a turn.
    return isKnown ? nil : waitForTurn(of: account, for: site, now)
  }

  mutating func fail(_ keys: [Key], at now: Date) {
    for key in keys {
      var count = counts[key] ?? Count(last: now)
      if now.timeIntervalSince(count.last) >= Self.countLife { count.failures = 0 }
      count.failures += 1
      count.last = now
      counts[key] = count
    }
  }

  /// Records that the account has signed in.
  mutating func succeed(_ pair: Key, at now: Date) {
    let last = known[pair]
    guard last.map({ abs(now.timeIntervalSince($0)) >= Self.clearInterval }) ?? true else { return }
    counts[pair] = nil
    known[pair] = now
  }

  /// Removes expired entries beyond the limit, and then the oldest tenth.
  mutating func trim(at now: Date) {
    trim(&counts, by: \.last, now: now, life: Self.countLife)
    trim(&turns, by: { $0 }, now: now, life: Self.turnLife)
    trim(&known, by: { $0 }, now: now, life: Self.knownLife)
  }

  /// The number of recent failures, including attempts in progress, and the seconds since the last
  /// one.
  private func recent(
    _ key: Key, _ now: Date
  ) -> (failures: Int, pending: Int, passed: TimeInterval) {
    let pending = pending[key] ?? 0
    guard let count = counts[key] else { return (0, pending, .infinity) }
    let passed = now.timeIntervalSince(count.last)
    // A clock that was set back must not cause waits.
    if passed < 0 { return (count.failures, pending, .infinity) }
    return (passed < Self.countLife ? count.failures : 0, pending, passed)
  }

  /// The seconds that a pair or a network must wait.
  private func wait(_ key: Key, _ now: Date) -> TimeInterval? {
    let rule = if case .pair = key { rules.pair } else { rules.network }
    let (failures, pending, passed) = recent(key, now)
    guard failures + pending >= rule.free else { return nil }
    // From here on one attempt at a time.
    if pending > 0 { return max(1, rule.wait(after: failures)) }
    let rest = rule.wait(after: failures) - passed
    // Times are floating-point numbers, so this allows for rounding.
    return rest > 0.001 ? rest : nil
  }

  /// The seconds until a site may try an account with too many failures; `nil` for now.
  ///
  /// Each site that asks is assigned the next free turn, and returns at that time. So a site that
  /// polls gets no more than its own turn, and even with very many sites none waits longer than
  /// `longestTurn`.
  private mutating func waitForTurn(
    of account: String, for site: String, _ now: Date
  ) -> TimeInterval? {
    let key = Key.account(account)
    let (failures, pending, passed) = recent(key, now)
    guard failures + pending >= rules.account.free else { return nil }
    let turn = Key.turn(account: account, site: site)
    if let given = turns[turn] {
      let rest = given.timeIntervalSince(now)
      if rest > 0.001, rest <= rules.longestTurn { return rest }
      turns[turn] = nil
      if rest <= 0.001, rest > -Self.turnLife { return nil }
    }
    let latest = now.addingTimeInterval(rules.longestTurn)
    let afterLast = now.addingTimeInterval(max(0, rules.account.wait(after: failures) - passed))
    // A clock that was set back must not cause waits.
    let free = counts[key]?.nextTurn ?? .distantPast
    let next = min(max(now, afterLast, free), latest)
    counts[key]?.nextTurn = min(
      next.addingTimeInterval(rules.account.wait(after: failures + pending + 1)), latest)
    let rest = next.timeIntervalSince(now)
    guard rest > 0.001 else { return nil }
    turns[turn] = next
    return rest
  }

  private func trim<Value>(
    _ entries: inout [Key: Value], by date: (Value) -> Date, now: Date, life: TimeInterval
  ) {
    guard entries.count > rules.capacity else { return }
    entries = entries.filter { now.timeIntervalSince(date($0.value)) < life }
    guard entries.count > rules.capacity else { return }
    let excess = entries.count - rules.capacity + rules.capacity / 10
    for (key, _) in entries.sorted(by: { date($0.value) < date($1.value) }).prefix(excess) {
      entries[key] = nil
    }
  }
}

extension AttemptRecords.Key {
  /// The digest that identifies the key in a database, which must not reveal what was typed: it may
  /// be a password in the wrong field.
  var digest: [UInt8] {
    let words: [String] =
      switch self {
      case .pair(let account, let network): ["pair", account, network]
      case .account(let account): ["account", account]
      case .network(let network): ["network", network]
      case .turn(let account, let site): ["turn", account, site]
      }
    return Digest.sha256(Array(words.joined(separator: "\0").utf8))
  }
}
