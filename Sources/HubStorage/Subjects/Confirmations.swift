import Foundation
import HubCore
import SQLDatabase
import Synchronization

/// Devices that register again with the same request, as most do at each start of their app.
///
/// The caller's thread compares the hash of the request with the stored one (``RowReaders``) and
/// answers; only the time is left to write, and the writing thread does that for many devices at once,
/// ``delay`` later. What is
/// answered must be on the disk, and a push service's report on an older push must not remove a device
/// that has been answered since. So a device is not answered this way while a write of it is under
/// way, or a removal of any; and a removal, as a page of targets, first has the times written.
///
/// A crash loses the times of the last ``delay``, nothing else.
final class Confirmations: Sendable {
  private struct State {
    /// Milliseconds since 1970 by the installation's number.
    var waiting: [Int64: Int64] = [:]
    /// Number of writes under way by the device's key.
    var writes: [DeviceKey: Int] = [:]
    var removals = 0
    var endedRemovals = 0
    var isJobDue = false
    /// Whether most devices are the same: a device that is not is looked up twice.
    var luck = State.mostLuck
    var unlucky = 0
    static let mostLuck = 48

    func allows(_ key: DeviceKey) -> Bool {
      removals == 0 && waiting.count < Confirmations.limit && writes[key] == nil
    }
  }

  /// The state before a device's row is read.
  struct Mark {
    fileprivate let key: DeviceKey
    fileprivate let endedRemovals: Int
  }

  static let delay = Duration.milliseconds(100)
  /// With this many waiting, callers wait for the disk as others do.
  private static let limit = 65_536

  private let state = Mutex(State())
  private let seed: StableHash

  /// - Parameter release: See ``SQLiteHubStore/Options/release``.
  init(release: String) {
    var seed = StableHash()
    seed.combine(release.utf8)
    self.seed = seed
  }

  /// The hash of a request as stored: never 0, which is none.
  func hash(_ request: InstallationRequest) -> Int64 {
    var hash = seed
    for rule in request.rules { hash.combine(Int64(rule)) }
    hash.combineWords(request.body)
    return hash.value == 0 ? 1 : hash.value
  }

  // MARK: Callers' threads

  /// - Returns: `nil` if the device has to be written.
  func mark(_ key: DeviceKey) -> Mark? {
    state.withLock { state in
      guard state.allows(key) else { return nil }
      if state.luck == 0 {
        state.unlucky &+= 1
        guard state.unlucky % 16 == 0 else { return nil }
      }
      state.luck = max(0, state.luck - 1)
      return Mark(key: key, endedRemovals: state.endedRemovals)
    }
  }

  /// Keeps the time of a device that was found unchanged.
  ///
  /// - Parameter add: Queues the work that writes the times; called outside the lock.
  /// - Returns: `false` if the device has to be written: it may have been removed meanwhile.
  func confirm(
    _ installation: Int64, at: Int64, since mark: Mark, queueing add: @escaping @Sendable () -> Void
  ) -> Bool {
    let (isKept, wantsJob) = state.withLock { state in
      guard state.allows(mark.key), state.endedRemovals == mark.endedRemovals else {
        return (false, false)
      }
      state.luck = min(State.mostLuck, state.luck + 4)
      state.waiting[installation] = at
      defer { state.isJobDue = true }
      return (true, !state.isJobDue)
    }
    if wantsJob {
      Task.detached {
        try? await Task.sleep(for: Self.delay)
        add()
      }
    }
    return isKept
  }

  /// Writes a device, which then is answered in no other way until the write has ended.
  func writing<Value>(
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

  /// Removes devices because of push services' reports.
  func removing<Value>(_ body: () async throws -> Value) async rethrows -> Value {
    state.withLock { $0.removals += 1 }
    defer {
      state.withLock { state in
        state.removals -= 1
        state.endedRemovals += 1
      }
    }
    return try await body()
  }

  var areWaiting: Bool { state.withLock { !$0.waiting.isEmpty } }

  // MARK: The writing thread

  /// The times that wait, in the order of the rows.
  fileprivate var waiting: [(installation: Int64, at: Int64)] {
    state.withLock { state in
      state.waiting.map { (installation: $0.key, at: $0.value) }
    }.sorted { $0.installation < $1.installation }
  }

  /// A write has given the device a later time.
  func forget(_ installation: Int64) {
    state.withLock { if !$0.waiting.isEmpty { $0.waiting[installation] = nil } }
  }

  // MARK: Written

  fileprivate func written(_ times: [(installation: Int64, at: Int64)]) {
    state.withLock { state in
      for time in times where state.waiting[time.installation] == time.at {
        state.waiting[time.installation] = nil
      }
    }
  }

  /// From here on the next device has another one queued. What this one cannot write waits for that.
  fileprivate func jobBegins() { state.withLock { $0.isJobDue = false } }
}

/// Writes the times that wait.
final class ConfirmationJob: WriteJob, @unchecked Sendable {
  // `written` and `hasBegun` belong to the thread that has taken the job, and are handed on with it.
  private let confirmations: Confirmations
  private var written: [(installation: Int64, at: Int64)] = []
  private var hasBegun = false

  init(_ confirmations: Confirmations) { self.confirmations = confirmations }

  deinit { if !hasBegun { confirmations.jobBegins() } }

  override func run(_ session: WriteSession) throws {
    hasBegun = true
    confirmations.jobBegins()
    written = try InstallationWriter(session).writeConfirmations()
  }
  override func refuse(_ error: any Error) { written = [] }
  override func finish() { confirmations.written(written) }
}

extension StoreEngine {
  /// Writes the times that wait, so that a page of targets has them.
  func writeConfirmations(_ label: JobLabel) async throws {
    guard confirmations.areWaiting else { return }
    confirmations.written(
      try await writer.perform(label) { try InstallationWriter($0).writeConfirmations() })
  }
}

extension InstallationWriter {
  /// Writes the times at which devices have registered again unchanged.
  @discardableResult
  func writeConfirmations() throws -> [(installation: Int64, at: Int64)] {
    let waiting = session.confirmations.waiting
    for time in waiting { try confirm(time.installation, at: time.at) }
    return waiting
  }
}
