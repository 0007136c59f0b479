package import Foundation
package import HubCore
import NotificationHubs
import Synchronization

/// The database that all nodes of a life share: one value, which each transaction replaces.
///
/// It follows the engine for several nodes: devices stand in slots, an audience is read in parts,
/// and what a node does is checked against the owner and epoch of its part.
package final class SimulatedDatabase: Sendable {
  /// A state in a box: it has many tables to count, and is read far more often than written.
  private final class Snapshot: Sendable {
    let state: State
    init(_ state: consuming State) { self.state = state }
  }

  private struct Contents {
    var now: Snapshot
    /// Those before the last commits, the oldest first.
    var past: [Snapshot] = []

    init(_ state: State) { now = Snapshot(state) }
  }

  /// The number of commits that ``goBack(commits:)`` can undo.
  private static let pastLimit = 256

  private let contents: Mutex<Contents>
  /// The database's own time of day.
  package let now: @Sendable () -> Date
  /// The coding of registration ids, the same for every hub.
  let coding = RegistrationIDCoding(key: (0x5e, 0xed))

  /// - Parameters:
  ///   - slots: The number of parts that devices are divided into, a power of two up to 256.
  ///   - narrowLimit: The largest audience that is not divided among nodes.
  ///   - now: The database's clock, which may be set by any amount.
  package init(slots: Int = 4, narrowLimit: Int = 1_000, now: @escaping @Sendable () -> Date) {
    contents = Mutex(Contents(State(slots: slots, narrowLimit: narrowLimit)))
    self.now = now
  }

  /// The current state.
  package var state: State { contents.withLock { $0.now }.state }

  /// Reads the current state.
  package func read<Value>(_ body: (State) throws -> Value) rethrows -> Value {
    let snapshot = contents.withLock { $0.now }
    return try body(snapshot.state)
  }

  /// Runs a transaction; nothing is written when `body` throws.
  package func transaction<Value: Sendable>(_ body: (inout State) throws -> Value) throws -> Value {
    try contents.withLock { contents in
      var next = contents.now.state
      next.commit += 1
      do {
        let value = try body(&next)
        contents.past.append(contents.now)
        if contents.past.count >= 2 * Self.pastLimit { contents.past.removeFirst(Self.pastLimit) }
        contents.now = Snapshot(consume next)
        return value
      } catch {
        // A number that was given out is not given out again.
        contents.now = Snapshot(contents.now.state.with(next.sequences))
        throw error
      }
    }
  }

  /// Forgets the last commits, at most 256: a standby that had not received them takes over. Numbers
  /// of commits are used again, those of rows are not: a server gives them out some way ahead.
  package func goBack(commits: Int) {
    contents.withLock { contents in
      let count = min(commits, contents.past.count, Self.pastLimit)
      guard count > 0 else { return }
      let sequences = contents.now.state.sequences
      contents.now = Snapshot(contents.past[contents.past.count - count].state.with(sequences))
      contents.past.removeLast(count)
    }
  }

  /// Puts an older copy in the place of everything. Numbers are given out again.
  /// - Parameter isElsewhere: On another server, whose commits have numbers of their own: the first
  ///   node that opens it lets what was written before count as old there.
  package func restore(_ copy: State, isElsewhere: Bool) {
    contents.withLock { contents in
      var copy = copy
      if isElsewhere { copy.adopt(at: copy.commit / 2) }
      contents = Contents(copy)
    }
  }
}

extension SimulatedDatabase.State {
  fileprivate func with(_ sequences: SimulatedDatabase.Sequences) -> Self {
    var state = self
    state.sequences = sequences
    return state
  }

  /// No number of a commit lies ahead.
  fileprivate mutating func adopt(at commit: Int64) {
    self.commit = commit
    for number in registrations.map(\.number) {
      registrations.change(number) { row in
        if row.written > commit { row.written = 0 }
        if row.confirmed > commit { row.confirmed = 0 }
        if let shared = row.sharedSince, shared > commit { row.sharedSince = 0 }
      }
    }
    for row in notifications.active { notifications.change(row.number) { $0.acceptance = commit } }
  }
}

/// The key of a row by what its hub calls it.
package struct HubKey<ID: Hashable & Sendable>: Hashable, Sendable {
  package let hub: Hub.ID
  package let id: ID
}

extension SimulatedDatabase {
  /// Everything that is stored.
  package struct State: Sendable {
    /// The number of the transaction that made it; in a transaction, its own.
    package var commit: Int64 = 0
    package let slots: Int
    package let narrowLimit: Int
    var sequences = Sequences()

    // Directory.
    package var directoryVersion = 1
    package var hubs = Table<Hub>()
    /// In the order of their creation.
    package var policies: [PolicyRow] = []
    package var credentials: [CredentialRow] = []
    package var sealingKey = "test key"

    // Devices.
    package var installations = Table<InstallationRow>()
    var installationNumbers: [HubKey<String>: Int64] = [:]
    package var registrations = Table<RegistrationRow>()
    package var removed = Table<RemovedRow>()
    package var feedback = Table<FeedbackRow>()

    // Sending.
    package var notifications = Table<NotificationRow>()
    var notificationNumbers: [HubKey<NotificationID>: Int64] = [:]
    package var keys: [HubKey<String>: IdempotencyRow] = [:]

    // Nodes.
    package var nodes = Table<NodeRow>()
    /// The steps of the database's clock that nodes have detected, added up, in milliseconds.
    package var clockSteps: Int64 = 0

    // The rest.
    package var jobs: [JobRow] = []
    package var activity = Table<ActivityRow>()
    package var statistics: [HubKey<StatisticPeriod>: Table<StatisticRow>] = [:]
    package var sessions: [OperatorSession] = []

    init(slots: Int, narrowLimit: Int) {
      self.slots = slots
      self.narrowLimit = narrowLimit
    }

    /// - Throws: ``StoreError/noHub``.
    func requireHub(_ hub: Hub.ID) throws { guard hasHub(hub) else { throw StoreError.noHub } }

    func hasHub(_ hub: Hub.ID) -> Bool { hubs[number: hub] != nil }
  }

  /// The last numbers that were given out.
  struct Sequences: Sendable {
    /// The rows whose numbers nodes reserve in blocks.
    enum Devices: Hashable {
      case installation
      case registration
    }

    var hub: Int64 = 0
    /// The ends of the blocks that were taken.
    var devices: [Devices: Int64] = [:]
    var notification: Int64 = 0
    var feedback: Int64 = 0
    var activity: Int64 = 0
    var node: Int64 = 0

    mutating func next(_ sequence: WritableKeyPath<Sequences, Int64>) -> Int64 {
      self[keyPath: sequence] += 1
      return self[keyPath: sequence]
    }
  }
}

extension Date {
  /// The time as a database gives it back.
  var stored: Date { Date(milliseconds: milliseconds) }
}
