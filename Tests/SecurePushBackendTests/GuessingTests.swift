import Authentication
import Cryptography
import Dispatch
import Foundation
import HTTPServer
import HubTesting
import NotificationHubs
import SQLDatabase
import Synchronization
import Testing
import Wire

@testable import SecurePushBackend

@Suite("Guessing passwords")
struct GuessingTests {
  /// Passwords of users, counting how often one was looked at.
  private final class Passwords: PasswordDirectory {
    private let state: Mutex<(passwords: [String: String], looks: Int)>
    private let gate: Gate?

    init(_ passwords: [String: String], gate: Gate? = nil) {
      state = Mutex((passwords, 0))
      self.gate = gate
    }

    var looks: Int { state.withLock { $0.looks } }

    func check(
      _ password: String, of user: UserName, from site: String, isKnown: Bool
    ) async throws(PasswordsBusy) -> [UInt8]? {
      let isRight = state.withLock { state in
        state.looks += 1
        return state.passwords[user.text] == password
      }
      await gate?.wait()
      return isRight ? [1] : nil
    }

    func fingerprint(of user: UserName) async -> [UInt8]? {
      state.withLock { $0.passwords[user.text] } == nil ? nil : [1]
    }
  }

  private func basic(_ user: String, _ password: String) -> String {
    "Basic " + Base64.encode(Array("\(user):\(password)".utf8))
  }

  private func status(
    _ world: BackendWorld, _ user: String, _ password: String, from address: String = "192.0.2.1"
  ) async -> Int {
    await world.ask(
      .get, "/api/notifications", authorization: basic(user, password), from: address
    ).status.rawValue
  }

  @Test("of 150 wrong guesses at the same time ten are looked at")
  func parallelGuesses() async throws {
    let gate = Gate()
    let passwords = Passwords(["alice": "secret"], gate: gate)
    try await BackendWorld.run(signIn: SignIn(passwords: passwords)) { world in
      let results = await withTaskGroup(of: Int.self) { group in
        for number in 0..<150 { group.addTask { await status(world, "alice", "guess \(number)") } }
        // Those that are not looked at are refused while the others still wait.
        var results: [Int] = []
        while results.count < 140, let next = await group.next() { results.append(next) }
        gate.open()
        for await result in group { results.append(result) }
        return results
      }
      #expect(passwords.looks == 10)
      #expect(results.count { $0 == 401 } == 10)
      #expect(results.count { $0 == 429 } == 140)
    }
  }

  @Test("the right password from many requests at the same time is one try, and counts for nobody")
  func parallelSignIns() async throws {
    let passwords = Passwords(["alice": "secret"])
    try await BackendWorld.run(signIn: SignIn(passwords: passwords)) { world in
      for _ in 0..<3 {
        let results = await withTaskGroup(of: Int.self) { group in
          for _ in 0..<100 { group.addTask { await status(world, "alice", "secret") } }
          return await group.reduce(into: [Int]()) { $0.append($1) }
        }
        #expect(results.allSatisfy { $0 == 200 })
      }
    }
  }

  @Test("after ten wrong passwords each next try waits twice as long, from that network only")
  func growingDelay() async throws {
    let passwords = Passwords(["alice": "secret", "bob": "hidden"])
    try await BackendWorld.run(signIn: SignIn(passwords: passwords)) { world in
      for number in 0..<10 { #expect(await status(world, "alice", "guess \(number)") == 401) }
      for delay in [1, 2, 4, 8] {
        let refused = await world.ask(
          .get, "/api/notifications", authorization: basic("alice", "secret"))
        #expect(refused.status == 429)
        #expect(refused.headers["Retry-After"] == "\(delay)")
        world.clock.advance(by: .seconds(delay))
        #expect(await status(world, "alice", "guess") == 401)
      }
      // Others are not held up, nor is alice elsewhere.
      #expect(await status(world, "bob", "hidden") == 200)
      #expect(await status(world, "alice", "secret", from: "192.0.2.2") == 200)
      world.clock.advance(by: .seconds(16))
      #expect(await status(world, "alice", "secret") == 200)
      #expect(await status(world, "alice", "secret") == 200)
      // The wait has a limit, and is forgotten.
      for _ in 0..<25 {
        world.clock.advance(by: .seconds(900))
        #expect(await status(world, "alice", "guess") == 401)
      }
    }
  }

  @Test("who tries many names in a network does not lock out those who sign in there")
  func spraying() async throws {
    var known = ["alice": "secret", "bob": "hidden"]
    for number in 0..<200 { known["user\(number)"] = "x" }
    let passwords = Passwords(known)
    try await BackendWorld.run(signIn: SignIn(passwords: passwords)) { world in
      #expect(await status(world, "alice", "secret") == 200)
      for number in 0..<100 { #expect(await status(world, "user\(number)", "guess") == 401) }
      #expect(await status(world, "user100", "guess") == 429)
      // Alice has signed in from there before; bob waits a second.
      #expect(await status(world, "alice", "secret") == 200)
      #expect(await status(world, "bob", "hidden") == 429)
      #expect(await status(world, "bob", "hidden", from: "192.0.2.2") == 200)
      world.clock.advance(by: .seconds(1))
      #expect(await status(world, "bob", "hidden") == 200)
    }
  }

  @Test("guesses at one account from everywhere are slowed down; the user is not, where known")
  func distributed() async throws {
    let passwords = Passwords(["alice": "secret"])
    try await BackendWorld.run(signIn: SignIn(passwords: passwords)) { world in
      #expect(await status(world, "alice", "secret", from: "203.0.113.9") == 200)
      for number in 0..<100 {
        #expect(await status(world, "alice", "guess", from: "10.0.\(number).1") == 401)
      }
      #expect(await status(world, "alice", "guess", from: "10.1.0.1") == 429)
      #expect(await status(world, "alice", "secret", from: "203.0.113.9") == 200)
    }
  }

  @Test("the addresses of one IPv6 network count as one")
  func networks() async throws {
    let passwords = Passwords(["alice": "secret"])
    try await BackendWorld.run(signIn: SignIn(passwords: passwords)) { world in
      for number in 0..<10 {
        #expect(
          await status(world, "alice", "guess \(number)", from: "2001:db8:1:2::\(number)") == 401)
      }
      #expect(await status(world, "alice", "guess", from: "2001:db8:1:2:ffff::1") == 429)
      #expect(await status(world, "alice", "secret", from: "2001:db8:1:3::1") == 200)
    }
  }

  @Test("bad bearer tokens hold up nobody")
  func badTokens() async throws {
    let passwords = Passwords(["alice": "secret"])
    try await BackendWorld.run(signIn: SignIn(passwords: passwords)) { world in
      let token = try #require(
        await world.ask(.post, "/api/token", authorization: basic("alice", "secret"))
          .json["Token"]?.scalarText)
      for number in 0..<300 {
        #expect(
          await world.ask(
            .get, "/api/notifications", authorization: "Bearer a.b.\(number)"
          ).status == 401)
      }
      #expect(
        await world.ask(.get, "/api/notifications", authorization: "Bearer \(token)").status == 200)
      #expect(await status(world, "alice", "secret") == 200)
    }
  }

  @Test("wrong passwords do not hold up a token of the same user")
  func tokensPass() async throws {
    let passwords = Passwords(["alice": "secret"])
    try await BackendWorld.run(signIn: SignIn(passwords: passwords)) { world in
      let token = try #require(
        await world.ask(.post, "/api/token", authorization: basic("alice", "secret"))
          .json["Token"]?.scalarText)
      for _ in 0..<20 { _ = await status(world, "alice", "guess") }
      #expect(await status(world, "alice", "secret") == 429)
      #expect(
        await world.ask(.get, "/api/notifications", authorization: "Bearer \(token)").status == 200)
    }
  }

  @Test("what a user does over and over fills a day's lines and no more, and hides nothing else")
  func auditLimit() async throws {
    try await BackendWorld.run { world in
      let most = Int(BackendStore.auditLinesPerDay)
      func line(_ action: String, _ outcome: String) -> AuditLine {
        AuditLine(
          at: world.clock.now, actor: "name:alice", action: action, subject: "x", outcome: outcome,
          address: "")
      }
      for _ in 0..<(most + 5) { try await world.store.note(line("sign in", "refused")) }
      try await world.store.note(line("sign in", "done"))
      var lines = try await world.store.audit(limit: 2 * most)
      #expect(lines.count == most + 1)
      #expect(lines[0].outcome == "done")
      #expect(lines[1].subject == "x (more of this day is left out)")
      world.clock.advance(by: .seconds(86_401))
      try await world.store.note(line("sign in", "refused"))
      lines = try await world.store.audit(limit: 2 * most)
      #expect(lines.count == most + 2)
    }
  }

  @Test(
    "refused sign-ins are in the audit, so many a minute; names that nobody has are not written")
  func audit() async throws {
    let passwords = Passwords(["alice": "secret"])
    try await BackendWorld.run(signIn: SignIn(passwords: passwords)) { world in
      _ = await status(world, "alice", "guess")
      _ = await status(world, "hunter2", "alice", from: "192.0.2.7")
      var lines = try await world.store.audit()
      #expect(lines.map(\.actor) == ["unknown user", "name:alice"])
      #expect(lines.allSatisfy { $0.action == "sign in" && $0.outcome == "wrong password" })
      #expect(lines.first?.address == "192.0.2.7")
      for number in 0..<100 {
        _ = await world.ask(
          .get, "/api/notifications", authorization: "Bearer a.b.\(number)")
      }
      lines = try await world.store.audit(limit: 1000)
      #expect(lines.count == 60)
      world.clock.advance(by: .seconds(60))
      _ = await status(world, "alice", "another")
      #expect(
        try await world.store.audit().contains { $0.outcome == "and 42 refused sign-ins more" })
    }
  }

  @Test("who polls an account cannot keep its user out from a new network")
  func poller() async throws {
    let passwords = Passwords(["alice": "secret"])
    try await BackendWorld.run(signIn: SignIn(passwords: passwords)) { world in
      for number in 0..<120 {
        world.clock.advance(by: .seconds(30))
        _ = await status(world, "alice", "guess", from: "10.0.\(number).1")
      }
      var wait = 0
      var waited = 0
      for second in 0..<300 {
        // The poller is always first, and comes from a network of its own each time.
        let address = "2001:db8:1:\(String(second, radix: 16))::1"
        _ = await status(world, "alice", "guess", from: address)
        if wait == 0 {
          let reply = await world.ask(
            .get, "/api/notifications", authorization: basic("alice", "secret"),
            from: "203.0.113.9")
          if reply.status == 200 { break }
          wait = try #require(reply.headers["Retry-After"].flatMap { Int($0) })
        }
        world.clock.advance(by: .seconds(1))
        wait -= 1
        waited += 1
      }
      #expect(waited <= 60)
    }
  }

  @Test("however many guess at an account, its user gets in from a new network within 15 minutes")
  func manyPollers() async throws {
    let passwords = Passwords(["alice": "secret"])
    try await BackendWorld.run(signIn: SignIn(passwords: passwords)) { world in
      for number in 0..<500 {
        _ = await status(world, "alice", "guess", from: "10.\(number / 250).\(number % 250).1")
      }
      func signIn() async -> HTTPResponse {
        await world.ask(
          .get, "/api/notifications", authorization: basic("alice", "secret"), from: "203.0.113.9")
      }
      let refused = await signIn()
      #expect(refused.status == 429)
      let wait = try #require(refused.headers["Retry-After"].flatMap { Int($0) })
      #expect((1...900).contains(wait))
      world.clock.advance(by: .seconds(wait))
      #expect(await signIn().status == 200)
    }
  }

  // MARK: The limiter by itself

  private func reserve(
    _ limiter: AttemptLimiter, _ account: String, _ network: String, at now: Date
  ) async -> AttemptLimiter.Ticket? {
    try? await limiter.reserve(account: account, network: network, guess: [], at: now).get()
  }

  @Test("what is remembered is bounded, and the oldest goes first")
  func eviction() async throws {
    var rules = AttemptLimiter.Rules()
    rules.capacity = 100
    rules.network.free = 1_000_000
    let limiter = AttemptLimiter(rules)
    var now = Date(timeIntervalSince1970: 1_893_456_000)
    for number in 0..<1000 {
      now.addTimeInterval(0.01)
      let ticket = try #require(await reserve(limiter, "user\(number)", "192.0.2.1", at: now))
      await limiter.finish(ticket, as: .wrong, at: now)
      #expect(limiter.size <= 101)
    }
    // The account that is guessed at the whole time is not forgotten.
    for _ in 0..<10 {
      now.addTimeInterval(0.01)
      if let ticket = await reserve(limiter, "victim", "192.0.2.1", at: now) {
        await limiter.finish(ticket, as: .wrong, at: now)
      }
    }
    for number in 0..<20 {
      now.addTimeInterval(0.001)
      let ticket = try #require(await reserve(limiter, "other\(number)", "198.51.100.1", at: now))
      await limiter.finish(ticket, as: .wrong, at: now)
    }
    #expect(await reserve(limiter, "victim", "192.0.2.1", at: now) == nil)
  }

  @Test("a clock that is set back makes nobody wait")
  func clockSetBack() async throws {
    let limiter = AttemptLimiter()
    let now = Date(timeIntervalSince1970: 1_893_456_000)
    for _ in 0..<10 {
      let ticket = try #require(await reserve(limiter, "alice", "192.0.2.1", at: now))
      await limiter.finish(ticket, as: .wrong, at: now)
    }
    #expect(await reserve(limiter, "alice", "192.0.2.1", at: now) == nil)
    #expect(await reserve(limiter, "alice", "192.0.2.1", at: now.addingTimeInterval(-600)) != nil)
  }

  @Test("a password that was not looked at, because too many wait, is not counted")
  func busy() async throws {
    let limiter = AttemptLimiter()
    let now = Date(timeIntervalSince1970: 1_893_456_000)
    for _ in 0..<50 {
      let ticket = try #require(await reserve(limiter, "alice", "192.0.2.1", at: now))
      await limiter.finish(ticket, as: .unknown, at: now)
    }
  }

  /// A database that answers nobody until it is told to.
  private final class SlowDatabase: AttemptDatabase {
    struct Gone: Error {}
    let attemptTable = "none"
    let attemptsAtOnce = 32
    private let waiting = Mutex<[CheckedContinuation<Void, Never>]>([])
    var count: Int { waiting.withLock(\.count) }

    func countingAttempts<Value: Sendable>(
      _ body: @escaping @Sendable (any SQLConnection) throws -> Value
    ) async throws -> Value {
      await withCheckedContinuation { wait in waiting.withLock { $0.append(wait) } }
      throw Gone()
    }

    func release() {
      let all = waiting.withLock { waiting in
        defer { waiting = [] }
        return waiting
      }
      for wait in all { wait.resume() }
    }
  }

  @Test("a flood of guesses does not fill the queue of a database that counts them")
  func slowDatabase() async throws {
    let database = SlowDatabase()
    let limiter = AttemptLimiter(in: database)
    @Sendable func guess(_ number: Int, from network: String) async -> String {
      do {
        let answer = try await limiter.reserve(
          account: "user\(number)", network: network, guess: [], at: .now)
        if case .failure(let wait) = answer { return "wait \(wait.seconds)" }
        return "taken"
      } catch {
        return "gone"
      }
    }
    let answers = await withTaskGroup(of: String.self) { group in
      var answers: [String] = []
      for number in 0..<40 { group.addTask { await guess(number, from: "192.0.2.1") } }
      // A quarter of the places are a site's; who gets none hears so at once.
      while answers.count < 32, let answer = await group.next() { answers.append(answer) }
      while database.count < 8 { await Task.yield() }
      for number in 0..<8 { group.addTask { await guess(number, from: "192.0.2.2") } }
      while database.count < 16 { await Task.yield() }
      database.release()
      for await answer in group { answers.append(answer) }
      return answers
    }
    #expect(answers.count { $0 == "wait 1" } == 32)
    #expect(answers.count { $0 == "gone" } == 16)
    // What the database has not answered is under way no more.
    let again = Task { await guess(99, from: "192.0.2.1") }
    while database.count < 1 { await Task.yield() }
    database.release()
    #expect(await again.value == "gone")
  }

  // MARK: The queue

  /// What has been done, in order.
  private final class Journal: Sendable {
    private let state = Mutex<[String]>([])
    var lines: [String] { state.withLock { $0 } }
    func add(_ line: String) { state.withLock { $0.append(line) } }
  }

  @Test("passwords that are hashed hold up nobody else, neither who reads the user file")
  func hashingApart() async throws {
    let scratch = try TemporaryDirectory()
    defer { scratch.remove() }
    let file = scratch.path("users")
    let alice = try #require(UserName(typed: "alice"))
    _ = try UserFile.set("secret word", of: alice, in: file, cost: 10)
    // More than the machine has cores: as many threads as libdispatch and Swift have.
    let width = 4 * ProcessInfo.processInfo.activeProcessorCount + 64
    let queue = HashingQueue(width: width, limit: width)
    let gate = DispatchSemaphore(value: 0)
    let clock = ManualClock(now: Date())
    let users = try UserFile(path: file, hashing: queue, now: { clock.now })
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<width {
        group.addTask { _ = await queue.run(for: "\(number)") { gate.wait() } }
      }
      defer { for _ in 0..<width { gate.signal() } }
      try await withLimit(.seconds(60), "the hashing to begin") {
        while queue.running < width { try await Task.sleep(for: .milliseconds(1)) }
      }
      // A second later the file is looked at again.
      clock.advance(by: .seconds(2))
      try await withLimit(.seconds(60), "the look at the file") {
        #expect(await users.hasPasswords())
      }
    }
  }

  @Test("hashing is bounded, and networks take turns")
  func fairness() async throws {
    let queue = HashingQueue(width: 1, limit: 8)
    let order = Journal()
    let (started, start) = AsyncStream<Void>.makeStream()
    let release = DispatchSemaphore(value: 0)
    let results = await withTaskGroup(of: (String, Bool).self) { group in
      group.addTask {
        let result = await queue.run(for: "first") {
          start.yield()
          release.wait()
          return true
        }
        return ("first", result ?? false)
      }
      for await _ in started { break }
      for _ in 0..<12 {
        group.addTask {
          let result = await queue.run(for: "flood") {
            order.add("flood")
            return true
          }
          return ("flood", result ?? false)
        }
      }
      // Four of the twelve are refused at once: eight may wait.
      var results: [(String, Bool)] = []
      while results.count < 4, let next = await group.next() { results.append(next) }
      #expect(results.allSatisfy { $0.0 == "flood" && !$0.1 })
      group.addTask {
        let result = await queue.run(for: "alice") {
          order.add("alice")
          return true
        }
        return ("alice", result ?? false)
      }
      // One of the flood makes room for alice.
      if let next = await group.next() { results.append(next) }
      release.signal()
      for await result in group { results.append(result) }
      return results
    }
    #expect(results.count { $0.1 } == 9)
    #expect(results.contains { $0 == ("alice", true) })
    // Second, not last.
    #expect(order.lines.firstIndex(of: "alice") == 1)
  }

  /// A world whose users stand in a file, behind a queue that is full: one password is being
  /// hashed, four wait that were tried from these addresses.
  ///
  /// - Parameter body: Is given what lets the queue go on.
  private func withFullQueue(
    floodedFrom addresses: [String],
    _ body: (BackendWorld, HashingQueue, _ goOn: () -> Void) async throws -> Void
  ) async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let file = directory.path("users")
    for name in ["alice", "bob"].compactMap(UserName.init(typed:)) {
      _ = try UserFile.set("secret", of: name, in: file, cost: 10)
    }
    let queue = HashingQueue(width: 1, limit: 4)
    let clock = ManualClock(now: Date())
    let users = try UserFile(path: file, hashing: queue, now: { clock.now })
    try await BackendWorld.run(signIn: SignIn(passwords: users)) { world in
      #expect(await status(world, "alice", "secret", from: "203.0.113.9") == 200)
      clock.advance(by: .seconds(3600))  // so that the password has to be hashed again
      let (started, start) = AsyncStream<Void>.makeStream()
      let release = DispatchSemaphore(value: 0)
      try await withThrowingTaskGroup(of: Void.self) { group in
        defer { release.signal() }
        group.addTask {
          await queue.run(for: "first") {
            start.yield()
            release.wait()
          }
        }
        for await _ in started { break }
        for address in addresses {
          group.addTask { _ = await status(world, "mallory", address, from: address) }
        }
        try await waiting(in: queue) { $0 == 4 }
        try await body(world, queue) { release.signal() }
      }
    }
  }

  /// Nothing tells that a job has come into the queue.
  private func waiting(in queue: HashingQueue, _ isMeant: (Int) -> Bool) async throws {
    for _ in 0..<5000 where !isMeant(queue.waiting) { try await Task.sleep(for: .milliseconds(2)) }
    #expect(isMeant(queue.waiting))
  }

  @Test("a flood of guesses from everywhere leaves places for users where they have signed in")
  func reservedPlaces() async throws {
    try await withFullQueue(floodedFrom: (1...4).map { "198.51.100.\($0)" }) { world, queue, goOn in
      #expect(await status(world, "bob", "secret", from: "192.0.2.7") == 503)
      async let known = status(world, "alice", "secret", from: "203.0.113.9")
      try await waiting(in: queue) { $0 == 5 }
      goOn()
      #expect(await known == 200)
    }
  }

  @Test("a flood from ever new networks of one provider's customer waits for itself")
  func floodOfOneSite() async throws {
    try await withFullQueue(floodedFrom: (1...4).map { "2001:db8:1:\($0)::1" }) {
      world, queue, goOn in
      async let bob = status(world, "bob", "secret", from: "192.0.2.7")
      // One of the flood has made room for bob and is answered.
      _ = try await waiting(in: queue) { $0 == 4 }
      goOn()
      #expect(await bob == 200)
    }
  }

  @Test("a password whose sender has gone is not hashed")
  func goneSender() async throws {
    let queue = HashingQueue(width: 1, limit: 8)
    let (started, start) = AsyncStream<Void>.makeStream()
    let release = DispatchSemaphore(value: 0)
    async let first: Void? = queue.run(for: "first") {
      start.yield()
      release.wait()
    }
    for await _ in started { break }
    let gone = Task { await queue.run(for: "gone") { true } }
    try await waiting(in: queue) { $0 == 1 }
    gone.cancel()
    try await waiting(in: queue) { $0 == 0 }
    release.signal()
    #expect(await first != nil)
    #expect(await gone.value == nil)
  }
}
