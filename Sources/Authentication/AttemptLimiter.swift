package import Foundation
import Synchronization

/// Throttles the guessing of passwords.
///
/// Wrong passwords are counted per account and network, per account, and per network. Each count
/// permits a number of free attempts; each further attempt must wait, for twice as long each time,
/// up to a limit. Accounts are never locked.
/// - If an account must wait, sites take turns, so that persistent attempts from one site cannot
///   lock out the user.
/// - Correct passwords are not counted, and an account that has signed in from a network within a
///   month is not throttled there because of others' attempts on the account or in the network.
/// - An attempt is reserved before the password is checked, so that concurrent attempts count like
///   consecutive ones. The same password in concurrent requests counts as one attempt.
package final class AttemptLimiter: Sendable {
  /// The number of free attempts, and the first and longest wait, in seconds.
  package struct Rule: Sendable {
    package var free: Int
    package var firstWait: TimeInterval = 1
    package var longestWait: TimeInterval

    func wait(after failures: Int) -> TimeInterval {
      guard failures >= free else { return 0 }
      return min(firstWait * pow(2, Double(min(failures - free, 30))), longestWait)
    }
  }

  package struct Rules: Sendable {
    package init() {}

    /// The rule for one account from one network.
    package var pair = Rule(free: 10, longestWait: 900)
    /// The rule for one account from networks that it has not signed in from.
    package var account = Rule(free: 100, longestWait: 30)
    /// The rule for one network and accounts that have not signed in from it.
    package var network = Rule(free: 100, longestWait: 10)
    /// The longest time that a site waits for its turn with an account, in seconds.
    package var longestTurn: TimeInterval = 900
    /// The maximum number of counts in memory, beyond which the oldest are removed.
    /// ``SharedAttempts/capacity`` is that of a database.
    package var capacity = 50_000
  }

  /// A permitted attempt; ``finish(_:as:at:)`` records its outcome.
  package struct Ticket: Sendable {
    fileprivate let pair: AttemptRecords.Key
    fileprivate let keys: [AttemptRecords.Key]
    fileprivate let guess: [UInt8]
    /// Whether the account has signed in from the network before.
    package let isKnown: Bool
  }

  package enum Outcome: Sendable {
    case right
    case wrong
    /// The password was not checked.
    case unknown
  }

  /// An attempt in progress, with the number of identical ones.
  private struct Flight {
    var holders = 1
    var outcome = Outcome.unknown
    /// The reservation in the database; `nil` if the process counts by itself.
    var place: Task<Result<[AttemptRecords.Key], Wait>, any Error>?
  }

  private struct State {
    var records: AttemptRecords
    /// The attempts in progress by what was tried.
    var flights: [AttemptRecords.Key: [[UInt8]: Flight]] = [:]
    /// The number of attempts of a site that wait for the database.
    var asking: [String: Int] = [:]
  }

  private let state: Mutex<State>
  private let shared: SharedAttempts?

  /// - Parameter database: The database in which processes count together; `nil` counts in memory.
  package init(_ rules: Rules = Rules(), in database: (any AttemptDatabase)? = nil) {
    state = Mutex(State(records: AttemptRecords(rules)))
    shared = database.map { SharedAttempts(database: $0, rules: rules) }
  }

  /// - Parameters:
  ///   - site: The site that takes turns with others; `nil` uses the network.
  ///   - guess: A digest of the password.
  ///   - now: The time; ignored with a database, which has its own clock.
  /// - Returns: A ticket, or the seconds to wait.
  /// - Throws: The database's error: without counts no attempt is permitted.
  package func reserve(
    account: String, network: String, site: String? = nil, guess: [UInt8], at now: Date
  ) async throws -> Result<Ticket, Wait> {
    let pair = AttemptRecords.Key.pair(account: account, network: network)
    guard let shared else {
      return state.withLock { state in
        let keys = state.records.keys(account: account, network: network, at: now)
        let ticket = Ticket(pair: pair, keys: keys, guess: guess, isKnown: keys == [pair])
        if state.flights[pair]?[guess] != nil {
          state.flights[pair]?[guess]?.holders += 1
          return .success(ticket)
        }
        let wait = state.records.wait(
          account: account, network: network, site: site ?? network, at: now)
        if let wait {
          state.records.trim(at: now)
          return .failure(Wait(wait))
        }
        for key in keys { state.records.pending[key, default: 0] += 1 }
        state.flights[pair, default: [:]][guess] = Flight()
        return .success(ticket)
      }
    }
    let site = site ?? network
    // Concurrent identical attempts share one result.
    let found = state.withLock { state -> Task<Result<[AttemptRecords.Key], Wait>, any Error>? in
      if let place = state.flights[pair]?[guess]?.place {
        state.flights[pair]?[guess]?.holders += 1
        return place
      }
      let most = shared.database.attemptsAtOnce
      guard state.asking[site, default: 0] < max(1, most / 4),
        state.asking.values.reduce(0, +) < most
      else { return nil }
      state.asking[site, default: 0] += 1
      let place = Task {
        defer { leave(site) }
        return try await shared.reserve(account: account, network: network, site: site)
      }
      state.flights[pair, default: [:]][guess] = Flight(place: place)
      return place
    }
    guard let place = found else { return .failure(Wait(1)) }
    do {
      switch try await place.value {
      case .success(let keys):
        return .success(Ticket(pair: pair, keys: keys, guess: guess, isKnown: keys == [pair]))
      case .failure(let wait):
        _ = land(pair, guess, as: .unknown)
        return .failure(wait)
      }
    } catch {
      _ = land(pair, guess, as: .unknown)
      throw error
    }
  }

  /// Records that an attempt of the site has its result.
  private func leave(_ site: String) {
    state.withLock { state in
      let rest = state.asking[site, default: 1] - 1
      state.asking[site] = rest > 0 ? rest : nil
    }
  }

  package struct Wait: Error {
    package let seconds: Int

    init(_ seconds: TimeInterval) { self.seconds = max(1, Int(seconds.rounded(.up))) }
  }

  package func finish(_ ticket: Ticket, as outcome: Outcome, at now: Date) async {
    guard let outcome = land(ticket.pair, ticket.guess, as: outcome) else { return }
    if let shared { return await shared.finish(ticket.pair, ticket.keys, as: outcome) }
    state.withLock { state in
      for key in ticket.keys {
        state.records.pending[key, default: 1] -= 1
        if state.records.pending[key] == 0 { state.records.pending[key] = nil }
      }
      switch outcome {
      case .unknown: return
      case .right: state.records.succeed(ticket.pair, at: now)
      case .wrong: state.records.fail(ticket.keys, at: now)
      }
      state.records.trim(at: now)
    }
  }

  /// Ends an attempt. If any of several identical attempts was checked, its outcome applies to all.
  /// - Returns: The outcome once the last of them has ended.
  private func land(
    _ pair: AttemptRecords.Key, _ guess: [UInt8], as outcome: Outcome
  ) -> Outcome? {
    state.withLock { state in
      guard var flight = state.flights[pair]?[guess] else { return nil }
      flight.holders -= 1
      if outcome != .unknown { flight.outcome = outcome }
      state.flights[pair]?[guess] = flight.holders == 0 ? nil : flight
      if state.flights[pair]?.isEmpty == true { state.flights[pair] = nil }
      return flight.holders == 0 ? flight.outcome : nil
    }
  }

  /// The number of counts and known pairs in memory, for tests.
  package var size: Int {
    state.withLock { $0.records.counts.count + $0.records.known.count + $0.records.turns.count }
  }
}
