import Foundation
import HubCore
import NotificationHubs
import SQLDatabase
import Synchronization

/// What all threads of an open database share.
final class PostgresShared: Sendable {
  let address: String
  /// How many steps of the schema this process knows.
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
  /// Tells the database that this process lives; `nil` in one that is no node.
  let heart = Mutex<NodeHeart?>(nil)
  let statistics = Mutex(StoreStatistics())
  /// For tests: the next commit loses its connection before the answer comes.
  let losesAnswer = Atomic(false)
  let isClosing = Atomic(false)
  /// Where the lanes of this process write what is added up in reading; others have other numbers,
  /// as a rule.
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

  /// Counts a transaction that is committed.
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

/// What a thread works with: its connection, and what is shared. Only that thread touches it.
///
/// Threads that read and threads that write have the same; a transaction that reads is held to that
/// by the server.
final class PostgresSession {
  enum Role: Sendable {
    case writing
    case batches
    case reading

    /// What connections of this kind are told first.
    fileprivate var settings: [(name: String, value: String)] {
      // Compiling a statement takes longer than any of ours runs: over 16 slots it took 40 s.
      let common = [
        ("jit", "off"), ("lock_timeout", "\(PostgresHealth.lockWait.components.seconds)s"),
      ]
      switch self {
      case .writing: return common
      case .batches:
        // Its few statements look rows up by their keys, whatever statistics say of a new table.
        return common + [
          ("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off"),
          ("enable_hashjoin", "off"), ("enable_mergejoin", "off"),
        ]
      // Which index serves an audience depends on its tags.
      case .reading: return common + [("plan_cache_mode", "force_custom_plan")]
      }
    }
  }

  private(set) var connection: PostgresConnection
  let shared: PostgresShared
  private let role: Role
  /// Where this thread adds to numbers that are added up in reading, so that it does not wait for
  /// others.
  let lane: Int64
  /// What the transaction under way has counted; written with its commit.
  var tally = StatisticTally()
  /// The work under way has raised the directory's version.
  var changesDirectory = false

  /// Lanes of all nodes; two that have the same number only wait for each other.
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

  /// - Parameter answerTime: `nil` for that of all connections.
  convenience init(
    shared: PostgresShared, role: Role, lane: Int, answerTime: Duration? = nil
  ) throws {
    self.init(
      try PostgresShared.connect(
        to: shared.address, for: role, answerLimit: answerTime ?? shared.options.answerTime),
      shared: shared, role: role, lane: lane, answerTime: answerTime)
  }

  var sealing: any SecretSealing { shared.sealing }
  var coding: RegistrationIDCoding { shared.coding }
  var slots: DeviceSlots { shared.slots }

  // MARK: Transactions

  /// How often work is tried that others' transactions undo.
  private static let conflictLimit = 20

  func perform(_ work: PostgresWork) {
    var mark = CommitMark()
    changesDirectory = false
    // Only once it is committed: until then others are told, and remember, what was before.
    func noteDirectory() { if changesDirectory { shared.directory.look() } }
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

  /// What a piece of work writes, to find out whether it was committed.
  private struct CommitMark {
    let number = Int64.random(in: 0 ... .max)
    /// What resumes who waits, as the last try had it, which may have been committed.
    var answer: (@Sendable () -> Void)?
  }

  /// For so long a transaction whose answer was lost may still be under way, in milliseconds, and an
  /// hour more, by which somebody may set the clock meanwhile.
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
      // A transaction that is still being committed is waited for at its mark.
      guard try execute(insert, number) > 0 else { return answer }
      let again = try work(self)
      mark.answer = again
      return again
    }
  }

  /// By chance, in proportion to what comes.
  private func forgetMarks() throws {
    try execute(
      """
      DELETE FROM commit_mark WHERE mark IN (SELECT mark FROM commit_mark
        WHERE at < \(PostgresConnection.databaseTime) - \(Self.markLifetime)
        LIMIT 1000 FOR UPDATE SKIP LOCKED)
      """)
  }

  /// Tells when the connection was lost during a commit.
  struct Unclear: Error { let cause: any Error }

  /// Does `body` in a transaction with what it has counted.
  ///
  /// - Parameter prepare: Runs statements of which no answer is wanted; they are sent with the
  ///   first.
  /// - Throws: ``Unclear`` when nobody knows whether it was committed.
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
      // A failure that the work has passed over: the server would roll back and call it a success.
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

  /// Does `body` until neither other transactions nor a lost connection are in its way.
  ///
  /// - Returns: What resumes who waits for it.
  func retrying(
    unclear: PostgresWork.Look, _ body: () throws -> @Sendable () -> Void
  ) throws -> @Sendable () -> Void {
    var conflicts = 0
    /// A try may have been committed, and none since has found out.
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
        // Some work waits for less, and says nothing by it.
        if error.kind == .locked, .now - start >= PostgresHealth.lockWait {
          shared.health.noteLockWait()
        }
        // What was the primary is a standby now: another connection finds the new one.
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

  /// Not when the database has been away for long: nobody waits for it then, and each call tries
  /// once.
  private func mayConnectAgain(until limit: ContinuousClock.Instant) -> Bool {
    ContinuousClock.now < limit && !shared.isClosing.load(ordering: .relaxed)
      && shared.health.downtime < shared.options.patience
  }

  /// Makes a new connection in the place of one that is lost.
  /// - Parameter limit: Until then it is tried again.
  private func reconnect(until limit: ContinuousClock.Instant) throws {
    guard connection.isLost else { return }
    connection.close()
    while true {
      do {
        connection = try PostgresShared.connect(
          to: shared.address, for: role, answerLimit: answerTime)
        return
      } catch {
        shared.health.failed(error, writing: role != .reading)
        guard mayConnectAgain(until: limit) else { throw error }
        Thread.sleep(forTimeInterval: .random(in: 0.05...0.15))
      }
    }
  }
}

/// Statements, as ``WriteSession`` has them.
extension PostgresSession {
  /// Runs a statement with the values of `?1`, `?2` and so on.
  /// - Returns: How many rows it has changed.
  @discardableResult
  func execute(_ sql: String, _ values: any SQLValue...) throws -> Int {
    try connection.changes(running: connection.statement(sql, values: values))
  }

  /// The number in the first row's first column.
  func first(_ sql: String, _ values: any SQLValue...) throws -> Int64? {
    let row = try connection.statement(sql, values: values)
    return try row.step() ? row.optionalInteger(0) : nil
  }

  /// - Throws: ``StoreError/noHub`` when there is none of that number.
  func requireHub(_ hub: Hub.ID) throws {
    guard try hasHub(hub) else { throw StoreError.noHub }
  }

  func hasHub(_ hub: Hub.ID) throws -> Bool { try connection.hasHub(hub) }

  /// Keeps a hub from being deleted until the transaction ends; who deletes one takes it alone.
  ///
  /// A lock, not a row: writes of all nodes share it.
  func lockHub(_ hub: Hub.ID, alone: Bool = false) throws {
    let call = alone ? "pg_advisory_xact_lock" : "pg_advisory_xact_lock_shared"
    try connection.statement(
      "SELECT \(call)(1, ?1::int8::int4)", Int64(Int32(truncatingIfNeeded: hub))
    ).run()
  }

  /// The state of the database that the statements of a transaction, or the next one, see.
  func snapshot() throws -> String {
    let row = try connection.statement("SELECT pg_current_snapshot()::text")
    return try row.step() ? row.text(0) : ""
  }
}

/// Numbers for rows, taken from the database in blocks: they only rise within a block and are never
/// used twice, but nodes give theirs out side by side.
final class NumberBlocks: Sendable {
  enum Sequence: String, Sendable {
    case installation = "installation_number"
    case registration = "registration_number"
  }

  /// What sequences of blocks are incremented by.
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
      // Not under the lock: others go on with what they have.
      guard let start = try session.first("SELECT nextval(?1::text::regclass)", sequence.rawValue)
      else { throw StoreError.corrupt("a sequence gives no number") }
      free.withLock { free in
        // Two threads at once: what the first has brought is not lost, as far as it is higher.
        guard free[sequence]?.isEmpty ?? true else { return }
        free[sequence] = start..<start + Self.blockSize
      }
    }
  }
}

extension NumberBlocks {
  /// Sees to it that a number is not given out any more: one that a database has given out of which
  /// this one is an older copy.
  func skip(_ sequence: Sequence, to number: Int64, _ session: PostgresSession) throws {
    let look = "SELECT last_value FROM \(sequence.rawValue)"
    guard number >= (try session.first(look) ?? 0) + Self.blockSize else { return }
    // One after the other: who comes second must not set it back. Who takes blocks meanwhile does not
    // wait; there is room for a thousand blocks between the look and the change.
    try session.connection.statement("SELECT pg_advisory_xact_lock(2, 0)").run()
    guard let last = try session.first(look), number >= last + Self.blockSize else { return }
    _ = try session.first(
      "SELECT setval(?1::text::regclass, ?2)", sequence.rawValue, number + 1_000 * Self.blockSize)
  }
}

/// How the database is, as the threads that work with it have found.
final class PostgresHealth: Sendable {
  private struct State {
    /// The last fault of those that read, and of those that write; until one of the same kind
    /// succeeds.
    var reading: StoreError?
    var writing: StoreError?
    var since: ContinuousClock.Instant?
    /// When a lock was last waited for in vain.
    var lockWait: ContinuousClock.Instant?
    var lastAnswer = ContinuousClock.now
  }

  private let state = Mutex(State())

  /// Refusals of what was asked say nothing about the database, and are not noted.
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

  /// The server has refused something: it is there.
  func answered() { state.withLock { $0.lastAnswer = .now } }

  /// How long a statement waits for a lock at most. Ours are held for milliseconds; any role that
  /// may connect can hold the same ones, and callers must not wait for it.
  static let lockWait = Duration.seconds(3)

  func noteLockWait() { state.withLock { $0.lockWait = .now } }

  /// Whether somebody has held locks for too long within the last minute.
  var hasWaitedForLocks: Bool {
    state.withLock { $0.lockWait.map { .now - $0 < .seconds(60) } ?? false }
  }

  /// How long nothing was heard from the server.
  var silence: Duration { state.withLock { .now - $0.lastAnswer } }

  /// For tests: as if nothing had been heard for so much longer.
  func loseTime(_ duration: Duration) { state.withLock { $0.lastAnswer -= duration } }

  /// For how long nothing has worked.
  var downtime: Duration { state.withLock { $0.since.map { .now - $0 } } ?? .zero }

  /// `nil` while all is well.
  var fault: StoreError? { state.withLock { $0.reading ?? $0.writing } }
  var condition: StoreCondition? { fault?.condition }
}
