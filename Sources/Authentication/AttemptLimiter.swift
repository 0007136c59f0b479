package import Foundation
import Synchronization

/// Slows down the guessing of passwords, and nothing else.
///
/// Wrong passwords are counted for an account from one network, for an account from all networks
/// and for a network over all accounts. Each count has a number of free tries; after them the next
/// try has to wait, each time twice as long up to a limit. Nothing is ever locked.
/// - Where an account as a whole has to wait, sites take turns: who asks again and again cannot
///   keep its user out.
/// - Right passwords count for nobody, and an account that has signed in from a network within a
///   month is not slowed down there by what others do with the account or in the network.
/// - A try is reserved before the password is looked at: tries at the same time count like tries
///   one after another. The same password tried by many requests at once is one try.
package final class AttemptLimiter: Sendable {
  /// How many tries are free, and how long the first and the longest wait are, in seconds.
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

    /// Of one account from one network.
    package var pair = Rule(free: 10, longestWait: 900)
    /// Of one account from networks that it has not signed in from.
    package var account = Rule(free: 100, longestWait: 30)
    /// Of one network for accounts that have not signed in from it.
    package var network = Rule(free: 100, longestWait: 10)
    /// The longest that a site waits for its turn with an account, in seconds.
    package var longestTurn: TimeInterval = 900
    /// Counts that are kept in memory; beyond it the oldest go. ``SharedAttempts/capacity`` is a
    /// database's.
    package var capacity = 50_000
  }

  /// A try that may be made; ``finish(_:as:at:)`` says what came of it.
  package struct Ticket: Sendable {
    fileprivate let pair: AttemptBook.Key
    fileprivate let keys: [AttemptBook.Key]
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

  /// A try under way, and who makes the same.
  private struct Flight {
    var holders = 1
    var outcome = Outcome.unknown
    /// `nil` where counts are this process's own.
    var place: Task<Result<[AttemptBook.Key], Wait>, any Error>?
  }

  private struct State {
    var book: AttemptBook
    /// By what was tried.
    var flights: [AttemptBook.Key: [[UInt8]: Flight]] = [:]
    /// How many tries of a site wait for the database.
    var asking: [String: Int] = [:]
  }

  private let state: Mutex<State>
  private let shared: SharedAttempts?

  /// - Parameter database: Where processes that share it count together; `nil` counts in memory.
  package init(_ rules: Rules = Rules(), in database: (any AttemptDatabase)? = nil) {
    state = Mutex(State(book: AttemptBook(rules)))
    shared = database.map { SharedAttempts(database: $0, rules: rules) }
  }

  /// - Parameters:
  ///   - site: Takes turns with others; `nil` is the network.
  ///   - guess: A digest of the password.
  ///   - now: Not looked at where a database counts: it has its own clock.
  /// - Returns: A ticket, or the seconds to wait.
  /// - Throws: What the database throws: without counts nobody may guess.
  package func reserve(
    account: String, network: String, site: String? = nil, guess: [UInt8], at now: Date
  ) async throws -> Result<Ticket, Wait> {
    let pair = AttemptBook.Key.pair(account: account, network: network)
    guard let shared else {
      return state.withLock { state in
        let keys = state.book.keys(account: account, network: network, at: now)
        let ticket = Ticket(pair: pair, keys: keys, guess: guess, isKnown: keys == [pair])
        if state.flights[pair]?[guess] != nil {
          state.flights[pair]?[guess]?.holders += 1
          return .success(ticket)
        }
        let wait = state.book.wait(
          account: account, network: network, site: site ?? network, at: now)
        if let wait {
          state.book.trim(at: now)
          return .failure(Wait(wait))
        }
        for key in keys { state.book.pending[key, default: 0] += 1 }
        state.flights[pair, default: [:]][guess] = Flight()
        return .success(ticket)
      }
    }
    let site = site ?? network
    // Who tries the same here at the same time goes by the same answer.
    let found = state.withLock { state -> Task<Result<[AttemptBook.Key], Wait>, any Error>? in
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

  /// A try of the site has its answer.
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
        state.book.pending[key, default: 1] -= 1
        if state.book.pending[key] == 0 { state.book.pending[key] = nil }
      }
      switch outcome {
      case .unknown: return
      case .right: state.book.succeed(ticket.pair, at: now)
      case .wrong: state.book.fail(ticket.keys, at: now)
      }
      state.book.trim(at: now)
    }
  }

  /// Of several that tried the same, one that was looked at speaks for all.
  /// - Returns: What came of it once the last of them is done.
  private func land(
    _ pair: AttemptBook.Key, _ guess: [UInt8], as outcome: Outcome
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

  /// How many counts and known pairs are kept in memory, for tests.
  package var size: Int {
    state.withLock { $0.book.counts.count + $0.book.known.count + $0.book.turns.count }
  }
}
