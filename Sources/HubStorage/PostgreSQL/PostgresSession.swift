import Foundation
import HubCore
import NotificationHubs
import SQLDatabase
import Synchronization

/// State shared by all threads of an open database.
final class PostgresShared: Sendable {
  let address: String
  /// Number of schema steps that this process knows.
  let version: Int
  let sealing: any SecretSealing
  /// Makes and reads the ids of registrations.
  let coding: RegistrationIDCoding
  let slots: DeviceSlots
  /// See ``PostgresHubStore/Options``.
  let options: PostgresHubStore.Options
  let numbers = NumberBlocks()
  let templates = TemplateNumbers()
  let health = PostgresHealth()
  let directory = DirectoryMark()
  /// The node that sends heartbeats; `nil` in a process that is not a node.
  let heartbeat = Mutex<NodeHeartbeat?>(nil)
  let statistics = Mutex(StoreStatistics())
  /// For tests: the next commit loses its connection before the reply arrives.
  let losesAnswer = Atomic(false)
  let isClosing = Atomic(false)
  /// The first of this process's lanes for sums that are added up on reading. Other processes
  /// usually have different ones.
  let firstLane = Int64.random(in: 0..<PostgresSession.laneLimit)

  init(
    address: String, version: Int, sealing: any SecretSealing, coding: RegistrationIDCoding,
    slots: DeviceSlots, options: PostgresHubStore.Options
  ) {
    self.address = address
    self.version = version
    self.sealing = sealing
    self.coding = coding
    self.slots = slots
    self.options = options
  }

  /// Counts a committed transaction.
  fileprivate func note(since start: ContinuousClock.Instant) {
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    statistics.withLock { $0.commits.observe(seconds) }
  }

  static func connect(
    to address: String, for role: PostgresSession.Role, answerLimit: Duration?
  ) throws -> PostgresConnection {
    let connection = try PostgresConnection(
      address: address, component: "hub", answerLimit: answerLimit)
    try connection.set(role.settings)
    return connection
  }
}

/// A thread's working state: its connection, and what is shared. Only that thread uses it.
///
/// Reading and writing threads have the same type; the server keeps reading transactions from
/// writing.
final class PostgresSession {
  enum Role: Sendable {
    case writing
    case batches
    case reading

    /// Settings applied first to connections of this kind.
    fileprivate var settings: [(name: String, value: String)] {
      // JIT compilation takes longer than any of our statements: over 16 slots it took 40 s.
      let common = [
        ("jit", "off"), ("lock_timeout", "\(PostgresHealth.lockWait.components.seconds)s"),
      ]
      switch self {
      case .writing: return common
      case .batches:
        // Its few statements look rows up by key, whatever the statistics of a new table say.
        return common + [
          ("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off"),
          ("enable_hashjoin", "off"), ("enable_mergejoin", "off"),
        ]
      // The best index for an audience depends on its tags.
      case .reading: return common + [("plan_cache_mode", "force_custom_plan")]
      }
    }
  }

  private(set) var connection: PostgresConnection
  let shared: PostgresShared
  private let role: Role
  /// The lane in which this thread writes its share of sums, so that it does not wait for other
  /// writers.
  let lane: Int64
  /// Counts made by the current transaction; written with its commit.
  var tally = StatisticTally()
  /// Whether the current work has raised the directory's version.
  var changesDirectory = false

  /// Number of lanes of all nodes; two writers in the same one merely wait for each other.
  static let laneLimit: Int64 = 64

  /// See ``PostgresHubStore/Options/answerTime``.
  private let answerTime: Duration?

  init(
    _ connection: PostgresConnection, shared: PostgresShared, role: Role, lane: Int,
    answerTime: Duration? = nil
  ) {
    self.answerTime = answerTime ?? shared.options.answerTime
    self.connection = connection
    self.shared = shared
    self.role = role
    self.lane = (shared.firstLane + Int64(lane)) % Self.laneLimit
  }

  /// - Parameter answerTime: `nil` for the common limit.
  convenience init(
    shared: PostgresShared, role: Role, lane: Int, answerTime: Duration? = nil
  ) throws {
    self.init(
      try PostgresShared.connect(
        to: shared.address, for: role, answerLimit: answerTime ?? shared.options.answerTime),
      shared: shared, role: role, lane: lane, answerTime: answerTime)
    connection.snapshot = shared.options.snapshot
  }

  var sealing: any SecretSealing { shared.sealing }
  var coding: RegistrationIDCoding { shared.coding }
  var slots: DeviceSlots { shared.slots }

  // MARK: Transactions

  /// Maximum number of attempts after conflicts with other transactions.
  private static let conflictLimit = 20

  func perform(_ work: PostgresWork) {
    var mark = CommitMark()
    changesDirectory = false
    // Only once it is committed: until then others read, and cache, the previous state.
    func noteDirectory() { if changesDirectory { shared.directory.invalidate() } }
    do {
      let answer = try retrying(unclear: work.unclear) {
        switch (work.kind, work.unclear) {
        case (.single, _): try connection.separately { try work.run(self) }
        case (.reading, _): try connection.reading { try work.run(self) }
        case (.writing, .mark): try marked(&mark, work.run)
        case (.writing, _): try transaction { try work.run(self) }
        }
      }
      noteDirectory()
      answer()
    } catch {
      noteDirectory()
      if !connection.isLost { shared.health.answered() }
      work.fail(PostgresRefusal.answer(error))
    }
  }

  /// The mark that a unit of work writes, to find out whether it was committed.
  private struct CommitMark {
    let number = Int64.random(in: 0 ... .max)
    /// Resumes the waiting task with the result of the last attempt, which may have been committed.
    var answer: (@Sendable () -> Void)?
  }

  /// The maximum time in milliseconds that a transaction with a lost reply may still be running,
  /// plus an hour by which the clock may be set meanwhile.
  private static let markLifetime = 7_200_000

  private func marked(
    _ mark: inout CommitMark, _ work: (PostgresSession) throws -> @Sendable () -> Void
  ) throws -> @Sendable () -> Void {
    let number = mark.number
    let insert = """
      INSERT INTO commit_mark (mark, at) VALUES (?1, \(PostgresConnection.databaseTime))
      ON CONFLICT DO NOTHING
      """
    guard let answer = mark.answer else {
      var found: (@Sendable () -> Void)?
      defer { mark.answer = found }
      func prepare() throws {
        try execute(insert, number)
        if Int.random(in: 0..<100) == 0 { try forgetMarks() }
      }
      return try transaction(preparing: prepare) {
        let answer = try work(self)
        found = answer
        return answer
      }
    }
    return try transaction {
      // The mark makes this wait for a transaction that is still being committed.
      guard try execute(insert, number) > 0 else { return answer }
      let again = try work(self)
      mark.answer = again
      return again
    }
  }

  /// Deletes old marks, called at random in proportion to the new ones.
  private func forgetMarks() throws {
    try execute(
      """
      DELETE FROM commit_mark WHERE mark IN (SELECT mark FROM commit_mark
        WHERE at < \(PostgresConnection.databaseTime) - \(Self.markLifetime)
        LIMIT 1000 FOR UPDATE SKIP LOCKED)
      """)
  }

  /// The connection was lost during a commit.
  struct Unclear: Error { let cause: any Error }

  /// Runs `body` in a transaction, together with its counts.
  ///
  /// - Parameter prepare: Runs statements that are sent with the first; `body` can read the rows of
  ///   those that it still holds.
  /// - Throws: ``Unclear`` when it is unknown whether it was committed.
  func transaction<Value>(
    preparing prepare: () throws -> Void = {}, _ body: () throws -> Value
  ) throws -> Value {
    let start = ContinuousClock.now
    tally = StatisticTally()
    let value: Value
    do {
      try connection.pipelined {
        try connection.begin(connection.dialect.beginWriting)
        try prepare()
      }
      value = try body()
      // A failure that `body` has ignored: the server would roll back and report success.
      guard !connection.hasFailedTransaction else {
        throw SQLError(kind: .other, code: 0, message: "a statement of the transaction has failed")
      }
    } catch {
      connection.rollBack()
      throw error
    }
    do {
      try connection.pipelined {
        try writeTally()
        try connection.run("COMMIT")
      }
    } catch {
      if connection.isLost { throw Unclear(cause: error) }
      connection.rollBack()
      throw error
    }
    if shared.losesAnswer.exchange(false, ordering: .relaxed) {
      connection.close()
      throw Unclear(cause: StoreError.locked)
    }
    shared.note(since: start)
    return value
  }

  /// Retries `body` after conflicts and lost connections.
  ///
  /// - Returns: A closure that resumes the waiting task.
  func retrying(
    unclear: PostgresWork.Look, _ body: () throws -> @Sendable () -> Void
  ) throws -> @Sendable () -> Void {
    var conflicts = 0
    /// Whether an attempt may have been committed, and none since has found out.
    var isUnclear = false
    let limit = ContinuousClock.now + shared.options.patience
    while true {
      let start = ContinuousClock.now
      do {
        try reconnect(until: limit)
        let value = try body()
        shared.health.succeeded(writing: role != .reading)
        return value
      } catch let error as Unclear {
        shared.health.failed(error.cause, writing: true)
        switch unclear {
        case .refuse: throw StoreError.unclearCommit
        case .again: break
        case .mark: isUnclear = true
        case .look(let look):
          isUnclear = true
          do {
            try reconnect(until: limit)
            if let found = try connection.reading({ try look(self) }) { return found }
          } catch {
            throw StoreError.unclearCommit
          }
        }
      } catch let error as SQLError {
        if error.kind == .full { shared.health.failed(error, writing: true) }
        // Some work sets a shorter timeout, which says nothing about the database.
        if error.kind == .locked, .now - start >= PostgresHealth.lockWait {
          shared.health.noteLockWait()
        }
        // The former primary is now a standby: a new connection finds the new primary.
        if error.kind == .readOnly, role != .reading { connection.close() }
        if connection.isLost {
          shared.health.failed(error, writing: role != .reading)
          guard mayConnectAgain(until: limit) else {
            throw isUnclear ? StoreError.unclearCommit : error
          }
        } else if error.kind == .conflict, conflicts < Self.conflictLimit {
          conflicts += 1
          Thread.sleep(forTimeInterval: .random(in: 0...0.002) * Double(conflicts))
        } else {
          throw isUnclear ? StoreError.unclearCommit : error
        }
      }
    }
  }

  /// Whether to reconnect. Not when the database has been unreachable for long: nobody waits for it
  /// then, and each call tries once.
  private func mayConnectAgain(until limit: ContinuousClock.Instant) -> Bool {
    ContinuousClock.now < limit && !shared.isClosing.load(ordering: .relaxed)
      && shared.health.downtime < shared.options.patience
  }

  /// Replaces a lost connection.
  /// - Parameter limit: The time until which it is retried.
  private func reconnect(until limit: ContinuousClock.Instant) throws {
    guard connection.isLost else { return }
    connection.close()
    while true {
      do {
        connection = try PostgresShared.connect(
          to: shared.address, for: role, answerLimit: answerTime)
        connection.snapshot = shared.options.snapshot
        return
      } catch {
        shared.health.failed(error, writing: role != .reading)
        guard mayConnectAgain(until: limit) else { throw error }
        Thread.sleep(forTimeInterval: .random(in: 0.05...0.15))
      }
    }
  }
}

/// The statements of one subject in the transactions of a session.
protocol PostgresSubject {
  var session: PostgresSession { get }
}

extension PostgresSession: PostgresSubject {
  var session: PostgresSession { self }
}

extension PostgresSubject {
  var connection: PostgresConnection { session.connection }
  var shared: PostgresShared { session.shared }
  var lane: Int64 { session.lane }
  var sealing: any SecretSealing { session.sealing }
  var coding: RegistrationIDCoding { session.coding }
  var slots: DeviceSlots { session.slots }

  /// Runs a statement with the values of `?1`, `?2` and so on.
  /// - Returns: The number of changed rows.
  @discardableResult
  func execute(_ sql: String, _ values: any SQLValue...) throws -> Int {
    try connection.changes(running: connection.statement(sql, values: values))
  }

  /// The number in the first row's first column.
  func first(_ sql: String, _ values: any SQLValue...) throws -> Int64? {
    let row = try connection.statement(sql, values: values)
    return try row.step() ? row.optionalInteger(0) : nil
  }

  func hasHub(_ hub: Hub.ID) throws -> Bool { try connection.hasHub(hub) }

  /// Keeps a hub from being deleted until the transaction ends; deletion takes the lock
  /// exclusively.
  ///
  /// An advisory lock and not a row lock, so that writes of all nodes share it.
  func lockHub(_ hub: Hub.ID, alone: Bool = false) throws {
    let call = alone ? "pg_advisory_xact_lock" : "pg_advisory_xact_lock_shared"
    try connection.statement(
      "SELECT \(call)(1, ?1::int8::int4)", Int64(Int32(truncatingIfNeeded: hub))
    ).run()
  }

  /// The snapshot that the statements of this transaction, or the next one, see.
  func snapshot() throws -> String {
    let row = try connection.statement("SELECT pg_current_snapshot()::text")
    return try row.step() ? row.text(0) : ""
  }
}

/// Row numbers, allocated from the database in blocks. They rise within a block and are never used
/// twice, but several nodes allocate in parallel.
final class NumberBlocks: Sendable {
  enum Sequence: String, Sendable {
    case installation = "installation_number"
    case registration = "registration_number"
  }

  /// The increment of sequences that allocate blocks.
  static let blockSize: Int64 = 256

  private let free = Mutex<[Sequence: Range<Int64>]>([:])

  func next(_ sequence: Sequence, _ session: PostgresSession) throws -> Int64 {
    while true {
      let number = free.withLock { free -> Int64? in
        guard let block = free[sequence], let first = block.first else { return nil }
        free[sequence] = (first + 1)..<block.upperBound
        return first
      }
      if let number { return number }
      // Not under the lock, so that others can use the numbers they have.
      guard let start = try session.first("SELECT nextval(?1::text::regclass)", sequence.rawValue)
      else { throw StoreError.corrupt("a sequence gives no number") }
      free.withLock { free in
        // Two threads may allocate at once: the first one's block is kept if it is higher.
        guard free[sequence]?.isEmpty ?? true else { return }
        free[sequence] = start..<start + Self.blockSize
      }
    }
  }
}

extension NumberBlocks {
  /// Makes sure that a number is never allocated: it was assigned by a database of which this one
  /// is an older copy.
  func skip(_ sequence: Sequence, to number: Int64, _ session: PostgresSession) throws {
    let look = "SELECT last_value FROM \(sequence.rawValue)"
    guard number >= (try session.first(look) ?? 0) + Self.blockSize else { return }
    // Serialized, because the second caller must not set the sequence back. Threads that allocate
    // blocks meanwhile do not wait; there is room for a thousand blocks between the check and the
    // change.
    try session.connection.statement("SELECT pg_advisory_xact_lock(2, 0)").run()
    guard let last = try session.first(look), number >= last + Self.blockSize else { return }
    _ = try session.first(
      "SELECT setval(?1::text::regclass, ?2)", sequence.rawValue, number + 1_000 * Self.blockSize)
  }
}

/// The health of the database, as observed by the threads that use it.
final class PostgresHealth: Sendable {
  private struct State {
    /// The last fault of reading threads, and of writing ones, until one of the same kind succeeds.
    var reading: StoreError?
    var writing: StoreError?
    var since: ContinuousClock.Instant?
    /// The time of the last lock timeout.
    var lockWait: ContinuousClock.Instant?
    var lastAnswer = ContinuousClock.now
  }

  private let state = Mutex(State())

  /// Records a failure. Rejections of the request itself say nothing about the database, and are
  /// ignored.
  func failed(_ error: any Error, writing: Bool) {
    guard let error = PostgresRefusal.answer(error) as? StoreError else { return }
    state.withLock { state in
      if writing { state.writing = error } else { state.reading = error }
      if state.since == nil { state.since = .now }
    }
  }

  func succeeded(writing: Bool) {
    state.withLock { state in
      if writing { state.writing = nil } else { state.reading = nil }
      state.since = nil
      state.lastAnswer = .now
    }
  }

  /// Records that the server has replied, if only with an error.
  func answered() { state.withLock { $0.lastAnswer = .now } }

  /// Maximum time that a statement waits for a lock. Our own locks are held for milliseconds, but
  /// any role that may connect can hold the same ones, and callers must not wait for it.
  static let lockWait = Duration.seconds(3)

  func noteLockWait() { state.withLock { $0.lockWait = .now } }

  /// Whether a lock timed out within the last minute.
  var hasWaitedForLocks: Bool {
    state.withLock { $0.lockWait.map { .now - $0 < .seconds(60) } ?? false }
  }

  /// Time since the last reply from the server.
  var silence: Duration { state.withLock { .now - $0.lastAnswer } }

  /// For tests: behaves as if the last reply were this much older.
  func loseTime(_ duration: Duration) { state.withLock { $0.lastAnswer -= duration } }

  /// Time for which nothing has worked.
  var downtime: Duration { state.withLock { $0.since.map { .now - $0 } } ?? .zero }

  /// `nil` while all is well.
  var fault: StoreError? { state.withLock { $0.reading ?? $0.writing } }
  var condition: StoreCondition? { fault?.condition }
}
