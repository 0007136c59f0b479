package import Foundation
package import HubCore
import NotificationHubs
import Synchronization

/// The store of one process on a ``SimulatedDatabase``: a third engine, in memory.
package final class SimulatedStore: HubStore {
  typealias State = SimulatedDatabase.State

  /// State of the process itself, outside the database.
  struct Process {
    /// `nil` until it has joined.
    var lease: NodeLease?
    /// Seconds without a heartbeat after which other nodes take over this node's work.
    var leaseTime: TimeInterval = 0
    var isLeaving = false
    var isClosed = false
    /// The last fault of those that read, and of those that write, until one of the same kind
    /// succeeds.
    var readFault: StoreError?
    var writeFault: StoreError?
    /// Reserved numbers.
    var blocks: [SimulatedDatabase.Sequences.Devices: Range<Int64>] = [:]
    /// The version of the directory that was read last; see ``directoryVersion()``.
    var directory: (version: Int, at: Date)?
    /// Rises with each change of this process: what was asked for before does not count.
    var directoryChanges = 0
    /// Numbers of the templates that were read.
    var templates: [PushTemplate: Int64] = [:]
  }

  let database: SimulatedDatabase
  private let link: any DatabaseLink
  let machine: HubClock
  let random: @Sendable () -> UInt64
  let process = Mutex(Process())

  /// - Parameters:
  ///   - machine: Its clock; its time of day counts as long as the process is no node.
  ///   - random: For the numbers of claims, and samples.
  package init(
    _ database: SimulatedDatabase, link: any DatabaseLink, machine: HubClock,
    random: @escaping @Sendable () -> UInt64
  ) {
    self.database = database
    self.link = link
    self.machine = machine
    self.random = random
  }

  var coding: RegistrationIDCoding { database.coding }

  // MARK: Calls

  /// - Parameter isIdle: Whether an answer says that nothing was done.
  func write<Value: Sendable>(
    _ name: String = #function, ifUnclear unclear: SimulatedCall.Unclear = .mark,
    isIdle: (@Sendable (Value) -> Bool)? = nil,
    _ body: @escaping @Sendable (inout State) throws -> Value
  ) async throws -> Value {
    let call = SimulatedCall(name: name, isWrite: true, unclear: unclear)
    let answer = Answer<Value>()
    try await carry(call) { [database] in
      let value = try database.transaction(body)
      answer.value = value
      return !(isIdle?(value) ?? false)
    }
    return try answer.get()
  }

  /// In one state of the database.
  func read<Value: Sendable>(
    _ name: String = #function, _ body: @escaping @Sendable (State) throws -> Value
  ) async throws -> Value {
    let call = SimulatedCall(name: name, isWrite: false, unclear: .again)
    let answer = Answer<Value>()
    try await carry(call) { [database] in
      answer.value = try database.read(body)
      return false
    }
    return try answer.get()
  }

  private func carry(_ call: SimulatedCall, _ transaction: @escaping Transaction) async throws {
    if process.withLock({ $0.isClosed }) { throw StoreError.closed }
    do {
      try await link.carry(call, transaction)
      note(nil, of: call)
    } catch {
      // Refusals of what was asked say nothing about the database.
      if let fault = error as? StoreError, fault.condition != nil { note(fault, of: call) }
      throw error
    }
  }

  private func note(_ fault: StoreError?, of call: SimulatedCall) {
    process.withLock { process in
      if call.isWrite { process.writeFault = fault } else { process.readFault = fault }
    }
  }

  // MARK: Upkeep

  package var isShared: Bool { true }

  package func condition() async -> StoreCondition {
    let now = machine.steady()
    return process.withLock { process in
      if process.isClosed { return .unavailable(reason: StoreError.closed.description) }
      if let fault = (process.readFault ?? process.writeFault)?.condition { return fault }
      guard let lease = process.lease, !process.isLeaving, !lease.isHeld(at: now) else {
        return .healthy
      }
      let silence = lease.silence(at: now).map { "\(Int($0))" } ?? "some"
      return .leaseLost(reason: "the database did not hear of this node for \(silence) seconds")
    }
  }

  package func inTurn<Value: Sendable>(
    bytes: Int, _ work: @escaping @Sendable () throws -> Value
  ) async throws -> Value { try work() }

  package func statistics() async -> StoreStatistics { StoreStatistics() }

  package func close() async throws {
    await leave()
    process.withLock { $0.isClosed = true }
  }

  /// The most devices or registrations that one call deletes.
  private static let clearingLimit = 250

  package func clear(expiredBy limit: Date) async throws -> Bool {
    let oldest = limit.addingTimeInterval(-RemovalWave.lifetime)
    let oldestFeedback = limit.addingTimeInterval(-HandleFeedback.lifetime)
    return try await write(ifUnclear: .again) { state in
      let devices = state.installations.filter { $0.isOver(at: limit) }
      state.deleteInstallations(devices.prefix(Self.clearingLimit).map(\.number))
      guard devices.isEmpty else { return true }
      let registrations = state.registrations.filter { $0.isOver(at: limit) }
      for row in registrations.prefix(Self.clearingLimit) { state.remove(row) }
      guard registrations.isEmpty else { return true }
      state.removed.removeAll { $0.removedAt <= oldest }
      state.feedback.removeAll { $0.feedback.at <= oldestFeedback }
      return false
    }
  }

  // MARK: Numbers

  /// The size of a block: numbers of several nodes are not in the order of creation.
  private static let blockSize: Int64 = 16

  func nextNumber(_ sequence: SimulatedDatabase.Sequences.Devices, _ state: inout State) -> Int64 {
    var block = process.withLock { $0.blocks[sequence] } ?? 0..<0
    if block.isEmpty {
      let first = state.sequences.devices[sequence] ?? 1
      block = first..<first + Self.blockSize
      state.sequences.devices[sequence] = block.upperBound
    }
    let rest = block.dropFirst()
    process.withLock { $0.blocks[sequence] = rest }
    return block.lowerBound
  }
}

/// The value of a transaction, for the caller that waits for it.
// Owner of the value: the transaction until it has arrived, then the caller.
private final class Answer<Value: Sendable>: @unchecked Sendable {
  var value: Value?

  /// - Throws: ``StoreError/closed`` when no transaction was done.
  func get() throws -> Value {
    guard let value else { throw StoreError.closed }
    return value
  }
}

extension SimulatedStore {
  /// The only node of a new database, without heartbeats; by default by the machine's clock.
  package static func alone(
    link: any DatabaseLink = DirectLink(), machine: HubClock = .system,
    now: @escaping @Sendable () -> Date = HubClock.system.now,
    random: @escaping @Sendable () -> UInt64 = { .random(in: 0 ... .max) }
  ) async throws -> SimulatedStore {
    let database = SimulatedDatabase(now: now)
    let store = SimulatedStore(database, link: link, machine: machine, random: random)
    try await store.join(lease: 86_400)
    return store
  }
}
