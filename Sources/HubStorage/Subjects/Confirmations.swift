import Foundation
import HubCore
import SQLDatabase
import Synchronization

/// Repeated registrations: devices that send the request again that their row is the result of, as
/// most do at each start of their app.
///
/// The caller's thread compares hashes (``RowReaders``) and answers. The writing thread writes the
/// times, for many devices at once. Only durable rows may be answered from, and a push service's late
/// report must not remove a device that was answered since. So a repeat is written as usual while a
/// write of its device, or a removal of any, is under way; and no device with a waiting time is
/// removed.
///
/// A crash loses the times that are not written yet, usually those of the last ``delay``.
final class Confirmations: Sendable {
  /// Milliseconds since 1970 by the installation's number.
  typealias Times = [Int64: Int64]

  private struct State {
    var waiting: Times = [:]
    /// Those that a job has taken, by its number, until they are on the disk.
    var taken: [Int: Times] = [:]
    var lastJob = 0
    /// Number of writes under way by the device's key.
    var writes: [DeviceKey: Int] = [:]
    var removals = 0
    var endedRemovals = 0
    var isJobDue = false
    /// Whether the last job could not write: until one can, callers get the disk's error.
    var isFailing = false
    /// Look-ups that a hub may still make: one less with each, four more with each repeat that is
    /// found. At 0 only one device in 64 is looked up, because a look-up in vain costs a new device
    /// some 20 µs.
    var credits: [Hub.ID: Int] = [:]
    var skipped = 0

    func allows(_ key: DeviceKey) -> Bool {
      removals == 0 && !isFailing && waiting.count < Confirmations.limit && writes[key] == nil
    }

    /// The times that may not be in the rows yet.
    var all: [Times] { (waiting.isEmpty ? [] : [waiting]) + taken.values }
  }

  /// The state before a device's row is read.
  struct Attempt {
    fileprivate let key: DeviceKey
    fileprivate let hub: Hub.ID
    fileprivate let endedRemovals: Int
  }

  static let delay = Duration.milliseconds(100)
  /// The delay after a job that could not write.
  private static let pause = Duration.seconds(1)
  /// With this many times waiting, callers wait for the disk as others do. Writing them takes some
  /// 50 ms.
  private static let limit = 16_384
  private static let mostCredit = 48

  private let state = Mutex(State())
  private let writer: JobQueue<WriteJob>

  init(writer: JobQueue<WriteJob>) { self.writer = writer }

  // MARK: Callers' threads

  /// - Returns: `nil` if the device has to be written.
  func attempt(_ key: DeviceKey, of hub: Hub.ID) -> Attempt? {
    state.withLock { state in
      guard state.allows(key) else { return nil }
      let credit = state.credits[hub, default: Self.mostCredit]
      if credit == 0 {
        state.skipped &+= 1
        guard state.skipped % 64 == 0 else { return nil }
      }
      state.credits[hub] = max(0, credit - 1)
      return Attempt(key: key, hub: hub, endedRemovals: state.endedRemovals)
    }
  }

  /// Keeps the time of a device whose request was found to be a repeat.
  /// - Returns: `false` if the device has to be written: it may have been removed meanwhile.
  func confirm(_ installation: Int64, at: Int64, _ attempt: Attempt) -> Bool {
    let (isKept, wantsJob) = state.withLock { state in
      guard state.allows(attempt.key), state.endedRemovals == attempt.endedRemovals else {
        return (false, false)
      }
      state.credits[attempt.hub] = min(Self.mostCredit, (state.credits[attempt.hub] ?? 0) + 4)
      state.waiting[installation] = max(at, state.waiting[installation] ?? .min)
      defer { state.isJobDue = true }
      return (true, !state.isJobDue)
    }
    if wantsJob { writeTimes(after: Self.delay) }
    return isKept
  }

  /// Runs `body`, a write of the device; until it ends, repeats are written, too.
  func whileWriting<Value>(
    _ key: DeviceKey, _ body: () async throws -> Value
  ) async rethrows -> Value {
    state.withLock { $0.writes[key, default: 0] += 1 }
    defer {
      state.withLock { state in
        let left = state.writes[key, default: 1] - 1
        state.writes[key] = left == 0 ? nil : left
      }
    }
    return try await body()
  }

  /// Runs `body`, which removes devices because of push services' reports if `isRemoval`; until it
  /// ends, repeats are written.
  func whileRemoving<Value>(
    if isRemoval: Bool = true, _ body: () async throws -> Value
  ) async rethrows -> Value {
    guard isRemoval else { return try await body() }
    state.withLock { $0.removals += 1 }
    defer {
      state.withLock { state in
        state.removals -= 1
        state.endedRemovals += 1
      }
    }
    return try await body()
  }

  // MARK: Writing

  var areWaiting: Bool { state.withLock { !$0.waiting.isEmpty || !$0.taken.isEmpty } }

  /// Times that may be later than those in the rows.
  var times: [Times] { state.withLock { $0.all } }

  func isWaiting(_ installation: Int64) -> Bool {
    state.withLock { state in
      state.waiting[installation] != nil || state.taken.values.contains { $0[installation] != nil }
    }
  }

  /// Queues the work that writes the waiting times.
  func writeTimes() {
    let rows = state.withLock { state in
      state.isJobDue = true
      return state.waiting.count
    }
    // A closed queue takes nothing any more.
    _ = writer.add(ConfirmationJob(self), JobLabel(.devices, rows: rows))
  }

  private func writeTimes(after delay: Duration) {
    Task.detached { [self] in
      // Nobody cancels it.
      try? await Task.sleep(for: delay)
      writeTimes()
    }
  }

  /// From here on the next repeat has another job queued.
  fileprivate func take() -> (job: Int, times: Times) {
    state.withLock { state in
      state.isJobDue = false
      state.lastJob += 1
      state.taken[state.lastJob] = state.waiting
      defer { state.waiting = [:] }
      return (state.lastJob, state.waiting)
    }
  }

  fileprivate func didWrite(_ job: Int) {
    let times = state.withLock { state in
      state.isFailing = false
      return state.taken.removeValue(forKey: job)
    }
    // Freed here, without the lock.
    _ = times
  }

  /// The times are tried again until they can be written.
  fileprivate func failed(_ job: Int?) {
    let wantsJob = state.withLock { state in
      state.isFailing = true
      if let job, let times = state.taken.removeValue(forKey: job) {
        state.waiting.merge(times, uniquingKeysWith: max)
      }
      defer { state.isJobDue = true }
      return !state.isJobDue
    }
    if wantsJob { writeTimes(after: Self.pause) }
  }
}

extension [Confirmations.Times] {
  /// The time when an installation was last seen, of which its row has `written`.
  func time(of installation: Int64, written: Int64) -> Int64 {
    reduce(written) { Swift.max($0, $1[installation] ?? $0) }
  }
}

/// Writes the times that wait.
private final class ConfirmationJob: WriteJob, @unchecked Sendable {
  // `taken` and `isWritten` belong to the thread that has taken the job, and are handed on with it.
  private let confirmations: Confirmations
  private var taken: (job: Int, times: Confirmations.Times)?
  private var isWritten = false

  init(_ confirmations: Confirmations) { self.confirmations = confirmations }

  override func run(_ session: WriteSession) throws {
    isWritten = false
    // The writer may call it again after it has rolled the first back.
    let taken = taken ?? confirmations.take()
    self.taken = taken
    try InstallationWriter(session).write(taken.times)
    isWritten = true
  }
  override func refuse(_ error: any Error) { isWritten = false }
  override func finish() {
    if isWritten, let taken {
      confirmations.didWrite(taken.job)
    } else {
      confirmations.failed(taken?.job)
    }
  }
  override func fail(_ error: any Error) { confirmations.failed(taken?.job) }
}

extension InstallationWriter {
  /// Writes the times at which devices have repeated their registration.
  fileprivate func write(_ times: Confirmations.Times) throws {
    // In the order of the rows. A write may have come since, with a later time.
    for (installation, at) in times.sorted(by: { $0.key < $1.key }) {
      do {
        try execute(
          """
          UPDATE registration SET confirmed_at = MAX(confirmed_at, ?1), revision = ?3
          WHERE installation = ?2
          """, at, installation, revision)
      } catch let error as SQLError where error.kind == .corrupt || error.kind == .constraint {
        // A row that cannot be written keeps no other device's time waiting.
        session.health.writeFailed(error)
      }
    }
  }
}
