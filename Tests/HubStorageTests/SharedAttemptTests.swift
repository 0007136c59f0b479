import Authentication
import Foundation
import HubTesting
import SQLDatabase
import Testing

@testable import HubStorage

@Suite(
  "Guessing at several nodes on one PostgreSQL",
  .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"))
struct SharedAttemptTests {
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)
  private static let home = "192.0.2.1"

  private func scene(
    _ body: (AttemptLimiter, AttemptLimiter, PostgresHubStore) async throws -> Void
  ) async throws {
    try await PostgresStores.withNodes(2) { nodes in
      // The database's clock goes on, on a busy machine for long between two lines.
      var rules = AttemptLimiter.Rules()
      rules.pair.firstWait = 900
      (rules.account.firstWait, rules.account.longestWait) = (900, 900)
      try await body(
        AttemptLimiter(rules, in: nodes[0]), AttemptLimiter(rules, in: nodes[1]), nodes[0])
    }
  }

  private func reserve(
    _ limiter: AttemptLimiter, _ guess: Int, account: String = "ann", from network: String = home
  ) async throws -> AttemptLimiter.Ticket? {
    switch try await limiter.reserve(
      account: account, network: network, guess: [UInt8(guess)], at: Self.now)
    {
    case .success(let ticket): ticket
    case .failure: nil
    }
  }

  private func guess(
    _ limiter: AttemptLimiter, _ number: Int, _ outcome: AttemptLimiter.Outcome = .wrong,
    account: String = "ann", from network: String = home
  ) async throws -> Bool {
    guard
      let ticket = try await reserve(limiter, number, account: account, from: network)
    else { return false }
    await limiter.finish(ticket, as: outcome, at: Self.now)
    return true
  }

  /// Makes the database believe that it all was so many seconds ago.
  private func age(_ store: PostgresHubStore, by seconds: Int64) async throws {
    _ = try await store.write { session in
      try session.execute(
        """
        UPDATE failed_sign_in SET failed_at = failed_at - ?1, next_turn = next_turn - ?1,
          expires_at = expires_at - ?1 WHERE failed_at > 0
        """, seconds * 1000)
    }
  }

  @Test("wrong passwords at two nodes count together, and a right one clears them on both")
  func together() async throws {
    try await scene { one, two, store in
      for number in 0..<10 { #expect(try await guess(number % 2 == 0 ? one : two, number)) }
      #expect(try await !guess(one, 10))
      #expect(try await !guess(two, 10))
      #expect(try await guess(two, 10, account: "bob"), "another account has its own count")
      try await age(store, by: 901)
      #expect(try await guess(two, 11, .right))
      let ticket = try #require(try await reserve(one, 12))
      #expect(ticket.isKnown, "what one node knows, the other does")
      await one.finish(ticket, as: .unknown, at: Self.now)
      for number in 20..<30 { #expect(try await guess(one, number), "ten are free once more") }
      #expect(try await !guess(two, 30))
    }
  }

  @Test("of guesses that come to both nodes at the same time as many are looked at as are free")
  func atOnce() async throws {
    try await scene { one, two, _ in
      let taken = try await withThrowingTaskGroup(of: Bool.self) { group in
        for number in 0..<40 {
          group.addTask { try await reserve(number % 2 == 0 ? one : two, number) != nil }
        }
        return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(taken == 10)
      // None of them has been finished, as by nodes that have died: they stay failures.
      #expect(try await !guess(one, 50))
    }
  }

  @Test("the same password tried by many requests of a node at once is one try")
  func same() async throws {
    try await scene { one, two, _ in
      let tickets = try await withThrowingTaskGroup(of: AttemptLimiter.Ticket?.self) { group in
        for _ in 0..<30 { group.addTask { try await reserve(one, 1) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(tickets.allSatisfy { $0 != nil })
      for ticket in tickets.compactMap(\.self) {
        await one.finish(ticket, as: .wrong, at: Self.now)
      }
      var left = 0
      while left < 20, try await guess(two, 2 + left) { left += 1 }
      #expect(left == 9)
    }
  }

  @Test("an account that is guessed at from everywhere is slowed down whichever node is asked")
  func everywhere() async throws {
    try await scene { one, two, _ in
      for number in 0..<100 {
        _ = try await guess(number % 2 == 0 ? one : two, 1, from: "198.51.100.\(number)")
      }
      #expect(try await !guess(one, 1, from: "203.0.113.1"))
      #expect(try await !guess(two, 1, from: "203.0.113.2"))
    }
  }

  @Test("what is over goes, and beyond the most that is kept what ends first")
  func clearing() async throws {
    try await scene { one, _, store in
      for number in 0..<6 {
        #expect(
          try await guess(one, number, .right, account: "user\(number)", from: "192.0.2.\(number)"))
      }
      #expect(try await guess(one, 1, account: "eve", from: "203.0.113.9"))
      func count() async throws -> Int64? {
        try await store.read { try $0.first("SELECT count(*) FROM failed_sign_in") }
      }
      let all = try #require(try await count())
      #expect(all == 6 * 3 + 3, "an account in a network, the account and the network")
      _ = try await store.write { session in
        try session.execute("UPDATE failed_sign_in SET expires_at = 1 WHERE known_at = 0")
      }
      while try await store.clear(expiredBy: Self.now) {}
      #expect(try await count() == 6)
      while try await store.countingAttempts({
        try SharedAttempts.clear("failed_sign_in", keeping: 2, $0)
      }) {}
      #expect(try await count() == 2)
      #expect(try await reserve(one, 9, account: "user5", from: "192.0.2.5")?.isKnown == true)
    }
  }
}
