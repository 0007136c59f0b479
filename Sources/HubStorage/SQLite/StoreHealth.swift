import Foundation
import HubCore
import SQLDatabase
import Synchronization

/// What the threads of a store have last found out about its disk and its file, for those who ask
/// how it is (``SQLiteHubStore/condition()``).
///
/// A write that failed counts until one succeeds; a page that cannot be made sense of counts until
/// the store is opened again, since only another file mends it.
final class StoreHealth: Sendable {
  private struct State {
    /// Why the last write failed.
    var writing: StoreError?
    /// When a write was last tried for the sake of knowing.
    var lastProbe: ContinuousClock.Instant?
    /// The last read that the system failed.
    var reading: (error: StoreError, at: ContinuousClock.Instant)?
    var damage: StoreError?
  }

  private let state = Mutex(State())
  /// Some write has failed and none succeeded since; spares the lock where all is well.
  private let hasWriteFault = Atomic(false)

  /// How long a failed read counts: the next one may be of another part of the disk.
  private static let readFaultPeriod = Duration.seconds(60)
  /// Between two writes that are made to see whether writing works again.
  private static let probePeriod = Duration.seconds(1)

  // MARK: Telling

  /// Takes note of what a write met; refusals of what was asked say nothing about the store.
  func writeFailed(_ error: any Error) {
    guard let trouble = Self.trouble(error) else { return }
    state.withLock { state in
      if case .corrupt = trouble {
        state.damage = trouble
      } else {
        state.writing = trouble
        if state.lastProbe == nil { state.lastProbe = .now }
      }
    }
    if case .corrupt = trouble { return }
    hasWriteFault.store(true, ordering: .relaxed)
  }

  /// Something was written, and is on the disk.
  func written() {
    guard hasWriteFault.load(ordering: .relaxed) else { return }
    hasWriteFault.store(false, ordering: .relaxed)
    state.withLock { state in
      state.writing = nil
      state.lastProbe = nil
    }
  }

  func readFailed(_ error: any Error) {
    guard let trouble = Self.trouble(error) else { return }
    state.withLock { state in
      switch trouble {
      case .corrupt: state.damage = trouble
      // Anyone who reads waits for nobody but the recovery of the log.
      case .locked: break
      default: state.reading = (trouble, .now)
      }
    }
  }

  /// What an error says about the disk or the file; `nil` for all others.
  private static func trouble(_ error: any Error) -> StoreError? {
    switch error {
    case let error as SQLError:
      switch error.kind {
      case .full, .locked, .conflict, .corrupt, .notADatabase, .readOnly, .cannotOpen,
        .notAllowed, .inputOutput:
        StoreError.orRefusal(error) as? StoreError
      case .constraint, .unfitValue, .newerSchema, .other: nil
      }
    case StoreError.corrupt(let what): .corrupt(what)
    default: nil
    }
  }

  // MARK: Asking

  var condition: StoreCondition {
    state.withLock { state in
      if let damage = state.damage { return .unavailable(reason: damage.description) }
      if let (error, at) = state.reading, .now - at < Self.readFaultPeriod {
        return .unavailable(reason: error.description)
      }
      // What is kept can be read, whatever keeps writes from the disk.
      return state.writing.map { .readOnly(reason: $0.description) } ?? .healthy
    }
  }

  /// Whether it is time to try a write, because the last one failed and nobody else may write.
  func wantsProbe() -> Bool {
    guard hasWriteFault.load(ordering: .relaxed) else { return false }
    return state.withLock { state in
      guard let last = state.lastProbe, .now - last >= Self.probePeriod else { return false }
      state.lastProbe = .now
      return true
    }
  }
}

extension SQLConnection {
  /// Looks at both ends of every table, which takes the same few pages however many rows there are.
  /// It finds a file that is cut short or overwritten in large parts; a single damaged page shows
  /// when it is read.
  ///
  /// - Returns: What it has met; `nil` when nothing is wrong where it has looked.
  func quickCheck() -> SQLError? {
    do {
      var tables: [(name: String, isClustered: Bool)] = []
      do {
        let row = try statement(
          """
          SELECT name, sql LIKE '%WITHOUT ROWID' FROM sqlite_schema
          WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
          """)
        while try row.step() { tables.append((row.text(0), row.integer(1) != 0)) }
      }
      for table in tables {
        _ = try statement("SELECT * FROM \"\(table.name)\" LIMIT 1").step()
        guard !table.isClustered else { continue }
        _ = try statement("SELECT * FROM \"\(table.name)\" ORDER BY rowid DESC LIMIT 1").step()
      }
      return nil
    } catch {
      return error
    }
  }
}
