package import Foundation
import Synchronization

/// Slows down the guessing of passwords, and nothing else.
///
/// Wrong passwords are counted for an account from one network, for an account from all networks and
/// for a network over all accounts. Each count has a number of free tries; after them the next try
/// has to wait, each time twice as long up to a limit. Nothing is ever locked.
/// - Where an account as a whole has to wait, sites take turns: who asks again and again cannot keep
///   its user out.
/// - Right passwords count for nobody, and an account that has signed in from a network within a
///   month is not slowed down there by what others do with the account or in the network.
/// - A try is reserved before the password is looked at: tries at the same time count like tries one
///   after another. The same password tried by many requests at once is one try.
package final class AttemptLimiter: Sendable {
  /// How many tries are free, and how long the longest wait is, in seconds.
  package struct Rule: Sendable {
    package var free: Int
    package var longestWait: TimeInterval

    func wait(after failures: Int) -> TimeInterval {
      guard failures >= free else { return 0 }
      return min(pow(2, Double(min(failures - free, 30))), longestWait)
    }
  }

  package struct Rules: Sendable {
    package init() {}

    /// Of one account from one network.
    package var pair = Rule(free: 10, longestWait: 900)
    /// Of one account from networks that it has not signed in from.
    package var account = Rule(free: 100, longestWait: 30)
    /// Of one network for accounts that have not signed in from it.
    package var network = Rule(free: 100, longestWait: 10)
    /// The longest that a site waits for its turn with an account, in seconds.
    package var longestTurn: TimeInterval = 900
    /// Counts that are kept; beyond it the oldest go.
    package var capacity = 50_000
  }

  /// A try that may be made; ``finish(_:as:at:)`` says what came of it.
  package struct Ticket: Sendable {
    fileprivate let pair: Key
    fileprivate let keys: [Key]
    fileprivate let guess: [UInt8]
    /// Whether the account has signed in from there before.
    package let isKnown: Bool
  }

  package enum Outcome: Sendable {
    case right
    case wrong
    /// The password was not looked at.
    case unknown
  }

  fileprivate enum Key: Hashable {
    case pair(account: String, network: String)
    case account(String)
    case network(String)
    case turn(account: String, site: String)
  }

  private struct Count {
    var failures = 0
    var last: Date
    /// From when on a turn is free, for an account.
    var nextTurn = Date.distantPast
  }

  private struct Flight {
    var holders = 1
    var outcome = Outcome.unknown
  }

  private struct State {
    var counts: [Key: Count] = [:]
    var pending: [Key: Int] = [:]
    /// Tries under way, by what was tried.
    var flights: [Key: [[UInt8]: Flight]] = [:]
    /// When a site may try an account.
    var turns: [Key: Date] = [:]
    /// Accounts and the networks that they have signed in from.
    var known: [Key: Date] = [:]
  }

  /// After so long without a failure a count is forgotten.
  private static let countLife: TimeInterval = 3600
  private static let knownLife: TimeInterval = 30 * 86_400
  /// A right password clears its count this often: somebody who shares a network with a user gains
  /// few guesses from that user's own sign-ins.
  private static let clearInterval: TimeInterval = 60
  /// How long a turn can be taken after it has come.
  private static let turnLife: TimeInterval = 300

  private let rules: Rules
  private let state = Mutex(State())

  package init(_ rules: Rules = Rules()) { self.rules = rules }

  /// - Parameters:
  ///   - site: Takes turns with others; `nil` is the network.
  ///   - guess: A digest of the password.
  /// - Returns: A ticket, or the seconds to wait.
  package func reserve(
    account: String, network: String, site: String? = nil, guess: [UInt8], at now: Date
  ) -> Result<Ticket, Wait> {
    state.withLock { state in
      let pair = Key.pair(account: account, network: network)
      let isKnown =
        state.known[pair].map { abs(now.timeIntervalSince($0)) < Self.knownLife } ?? false
      let keys = isKnown ? [pair] : [pair, .account(account), .network(network)]
      if state.flights[pair]?[guess] != nil {
        state.flights[pair]?[guess]?.holders += 1
        return .success(Ticket(pair: pair, keys: keys, guess: guess, isKnown: isKnown))
      }
      let own = [pair] + (isKnown ? [] : [.network(network)])
      var wait = own.compactMap { self.wait($0, state, now) }.max()
      // Only who could go now takes a turn.
      if wait == nil, !isKnown {
        wait = waitForTurn(of: account, for: site ?? network, &state, now)
      }
      if let wait { return .failure(Wait(seconds: max(1, Int(wait.rounded(.up))))) }
      for key in keys { state.pending[key, default: 0] += 1 }
      state.flights[pair, default: [:]][guess] = Flight()
      return .success(Ticket(pair: pair, keys: keys, guess: guess, isKnown: isKnown))
    }
  }

  package struct Wait: Error {
    package let seconds: Int
  }

  package func finish(_ ticket: Ticket, as outcome: Outcome, at now: Date) {
    state.withLock { state in
      guard var flight = state.flights[ticket.pair]?[ticket.guess] else { return }
      flight.holders -= 1
      // Of several that tried the same, one that was looked at speaks for all.
      if outcome != .unknown { flight.outcome = outcome }
      guard flight.holders == 0 else {
        state.flights[ticket.pair]?[ticket.guess] = flight
        return
      }
      state.flights[ticket.pair]?[ticket.guess] = nil
      if state.flights[ticket.pair]?.isEmpty == true { state.flights[ticket.pair] = nil }
      for key in ticket.keys {
        state.pending[key, default: 1] -= 1
        if state.pending[key] == 0 { state.pending[key] = nil }
      }
      switch flight.outcome {
      case .unknown: break
      case .right:
        let last = state.known[ticket.pair]
        if last.map({ abs(now.timeIntervalSince($0)) >= Self.clearInterval }) ?? true {
          state.counts[ticket.pair] = nil
          state.known[ticket.pair] = now
          trim(&state.known, by: { $0 }, now: now, life: Self.knownLife)
        }
      case .wrong:
        for key in ticket.keys {
          var count = state.counts[key] ?? Count(last: now)
          if now.timeIntervalSince(count.last) >= Self.countLife { count.failures = 0 }
          count.failures += 1
          count.last = now
          state.counts[key] = count
        }
        trim(&state.counts, by: \.last, now: now, life: Self.countLife)
      }
    }
  }

  /// How many counts and known pairs are kept, for tests.
  package var size: Int { state.withLock { $0.counts.count + $0.known.count + $0.turns.count } }

  /// How often it has failed of late, tries under way included, and how long ago the last time was.
  private func recent(
    _ key: Key, _ state: State, _ now: Date
  ) -> (failures: Int, pending: Int, passed: TimeInterval) {
    let pending = state.pending[key] ?? 0
    guard let count = state.counts[key] else { return (0, pending, .infinity) }
    let passed = now.timeIntervalSince(count.last)
    // A clock that was set back must not make anybody wait for it.
    if passed < 0 { return (count.failures, pending, .infinity) }
    return (passed < Self.countLife ? count.failures : 0, pending, passed)
  }

  /// The seconds that a pair or a network has to wait.
  private func wait(_ key: Key, _ state: State, _ now: Date) -> TimeInterval? {
    let rule = if case .pair = key { rules.pair } else { rules.network }
    let (failures, pending, passed) = recent(key, state, now)
    guard failures + pending >= rule.free else { return nil }
    // One try at a time from here on.
    if pending > 0 { return max(1, rule.wait(after: failures)) }
    let rest = rule.wait(after: failures) - passed
    // Times are floating-point numbers.
    return rest > 0.001 ? rest : nil
  }

  /// The seconds until a site may try an account that has been guessed at too often; `nil` for now.
  ///
  /// Each site that asks is given the next free moment, and comes back for it. So one that polls gets
  /// no more than its own, and where very many ask, none waits longer than `longestTurn`.
  private func waitForTurn(
    of account: String, for site: String, _ state: inout State, _ now: Date
  ) -> TimeInterval? {
    let key = Key.account(account)
    let (failures, pending, passed) = recent(key, state, now)
    guard failures + pending >= rules.account.free else { return nil }
    let turn = Key.turn(account: account, site: site)
    if let given = state.turns[turn] {
      let rest = given.timeIntervalSince(now)
      if rest > 0.001, rest <= rules.longestTurn { return rest }
      state.turns[turn] = nil
      if rest <= 0.001, rest > -Self.turnLife { return nil }
    }
    let latest = now.addingTimeInterval(rules.longestTurn)
    let afterLast = now.addingTimeInterval(max(0, rules.account.wait(after: failures) - passed))
    // A clock that was set back must not make anybody wait for it.
    let free = state.counts[key]?.nextTurn ?? .distantPast
    let next = min(max(now, afterLast, free), latest)
    state.counts[key]?.nextTurn = min(
      next.addingTimeInterval(rules.account.wait(after: failures + pending + 1)), latest)
    let rest = next.timeIntervalSince(now)
    guard rest > 0.001 else { return nil }
    state.turns[turn] = next
    trim(&state.turns, by: { $0 }, now: now, life: Self.turnLife)
    return rest
  }

  /// Beyond the limit the tenth that is oldest goes.
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
