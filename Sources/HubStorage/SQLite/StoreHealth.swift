import Foundation
import HubCore
import SQLDatabase
import Synchronization

/// The latest observations of a store's threads about its disk and its file, for health checks
/// (``SQLiteHubStore/condition()``).
///
/// A failed write counts until one succeeds; a malformed page counts until the store is opened
/// again, because only another file repairs it.
final class StoreHealth: Sendable {
  private struct State {
    /// The error of the last write, if it failed.
    var writing: StoreError?
    /// The time of the last write that was made only as a probe.
    var lastProbe: ContinuousClock.Instant?
    /// The last read that the system failed.
    var reading: (error: StoreError, at: ContinuousClock.Instant)?
    var damage: StoreError?
  }

  private let state = Mutex(State())
  /// Whether a write has failed and none succeeded since; avoids the lock while all is well.
  private let hasWriteFault = Atomic(false)

  /// Time for which a failed read counts: the next one may be of another part of the disk.
  private static let readFaultPeriod = Duration.seconds(60)
  /// Pause between two probe writes.
  private static let probePeriod = Duration.seconds(1)

  // MARK: Reporting

  /// Records the failure of a write; rejections of the request itself say nothing about the store.
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

  /// Records that something was written, and is on the disk.
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
      // A reader waits for nothing but the recovery of the log.
      case .locked: break
      default: state.reading = (trouble, .now)
      }
    }
  }

  /// The fault of the disk or the file that an error shows; `nil` for all other errors.
  private static func trouble(_ error: any Error) -> StoreError? {
    switch error {
    case let error as SQLError:
      switch error.kind {
      case .full, .locked, .conflict, .corrupt, .notADatabase, .readOnly, .cannotOpen,
        .notAllowed, .inputOutput:
        StoreError.orRefusal(error) as? StoreError
      case .constraint, .unfitValue, .newerSchema, .lostSnapshot, .other: nil
      }
    case StoreError.corrupt(let what): .corrupt(what)
    default: nil
    }
  }

  // MARK: Health checks

  var condition: StoreCondition {
    state.withLock { state in
      if let damage = state.damage { return .unavailable(reason: damage.description) }
      if let (error, at) = state.reading, .now - at < Self.readFaultPeriod {
        return .unavailable(reason: error.description)
      }
      // Stored data can be read, whatever keeps writes from the disk.
      return state.writing.map { .readOnly(reason: $0.description) } ?? .healthy
    }
  }

  /// Whether it is time for a probe, because the last write failed and nobody else may write.
  func wantsProbe() -> Bool {
    guard hasWriteFault.load(ordering: .relaxed) else { return false }
    return state.withLock { state in
      guard let last = state.lastProbe, .now - last >= Self.probePeriod else { return false }
      state.lastProbe = .now
      return true
    }
  }

  /// Reads both ends of every table, which takes the same few pages however many rows there are. It
  /// detects a file that is truncated or overwritten in large parts; a single damaged page is found
  /// when it is read.
  ///
  /// - Returns: The error that it met; `nil` when none was found.
  static func quickCheck(_ connection: SQLiteConnection) -> SQLError? {
    do {
      var tables: [(name: String, isClustered: Bool)] = []
      do {
        let row = try connection.statement(
          """
          SELECT name, sql LIKE '%WITHOUT ROWID' FROM sqlite_schema
          WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
          """)
        while try row.step() { tables.append((row.text(0), row.integer(1) != 0)) }
      }
      for table in tables {
        _ = try connection.statement("SELECT * FROM \"\(table.name)\" LIMIT 1").step()
        guard !table.isClustered else { continue }
        _ = try connection.statement("SELECT * FROM \"\(table.name)\" ORDER BY rowid DESC LIMIT 1")
          .step()
      }
      return nil
    } catch {
      return error
    }
  }
}
