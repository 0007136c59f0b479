import Foundation
import HubCore
import NotificationHubs
import Synchronization

/// Pushes to servers that people have chosen (``WebPushReach/anyPublic``), which may be slow.
///
/// A batch waits for them only for a moment, because its other pushes wait with it. A push without
/// an answer by then goes on, and is to be tried again; that try gets the answer of the first one,
/// and sends nothing. If the process ends before, it is sent again. A push beyond what may be under
/// way is not sent, and tried again as well.
final class LatePushes: Sendable {
  /// Time for which a batch waits for a server; for one that keeps an earlier batch waiting still,
  /// not at all.
  static let patience = Duration.seconds(5)
  /// Maximum number of batches whose pushes are under way, to one server and to all: each keeps its
  /// messages in memory. Pushes beyond it are tried later.
  private static let mostOfOne = 4
  private static let mostOfAll = 32
  /// Time for which an answer is kept for the next try, which comes within ten minutes unless the
  /// hub is busy.
  private static let keeping: TimeInterval = 1200

  private enum Entry {
    case underWay
    case answered(PushResult, at: Date)
  }

  private struct State {
    var entries: [PushID: Entry] = [:]
    /// Batches under way, by server.
    var underWay: [Origin: Int] = [:]
    var prunedAt = Date.distantPast

    /// Takes the answers that have come, and leaves `nil` for the others.
    mutating func take(_ ids: [PushID]) -> [PushResult?] {
      ids.map { id in
        guard case .answered(let result, _)? = entries[id] else { return nil }
        entries[id] = nil
        return result
      }
    }

    /// Forgets answers for which no try has come, as of messages that were aborted.
    mutating func prune(at now: Date) {
      guard now.timeIntervalSince(prunedAt) > 60 else { return }
      prunedAt = now
      entries = entries.filter { _, entry in
        guard case .answered(_, let at) = entry else { return true }
        return now.timeIntervalSince(at) < LatePushes.keeping
      }
    }
  }

  private let clock: HubClock
  private let state = Mutex(State())

  init(clock: HubClock) { self.clock = clock }

  /// The result of a push that has no answer yet.
  static let unanswered = later("no answer yet")
  /// The result of a push that was not sent.
  static let unsent = later("not sent: earlier pushes to chosen servers have no answer")

  private static func later(_ reason: String) -> PushResult {
    var result = PushVerdict(.unreachable, reason: reason).result
    result.concernsOthers = false
    return result
  }

  /// Sends pushes to one server, unless they are under way already.
  ///
  /// - Parameter send: Sends those at these indices, and returns their results in order.
  /// - Returns: The result of each, ``unanswered`` or ``unsent`` for those that have none.
  func deliver(
    _ ids: [PushID], to origin: Origin, send: @escaping @Sendable ([Int]) async -> [PushResult]
  ) async -> [PushResult] {
    let now = clock.steady()
    let (known, fresh, waits) = state.withLock { state -> ([PushResult], [Int], Bool) in
      state.prune(at: now)
      let answers = state.take(ids)
      let isKnown = zip(ids, answers).map { $1 != nil || state.entries[$0] != nil }
      let results = zip(answers, isKnown).map { $0 ?? ($1 ? Self.unanswered : Self.unsent) }
      let fresh = ids.indices.filter { !isKnown[$0] }
      let others = state.underWay[origin] ?? 0
      let all = state.underWay.values.reduce(0, +)
      guard !fresh.isEmpty, others < Self.mostOfOne, all < Self.mostOfAll else {
        return (results, [], false)
      }
      for index in fresh { state.entries[ids[index]] = .underWay }
      state.underWay[origin] = others + 1
      return (results, fresh, others == 0)
    }
    guard !fresh.isEmpty else { return known }
    let (ends, end) = AsyncStream.makeStream(of: Void.self)
    // Nobody cancels it: what the server has accepted must not be sent again.
    Task.detached { [self] in
      settle(await send(fresh), of: fresh.map { ids[$0] }, origin)
      end.finish()
    }
    if waits {
      await withTaskGroup(of: Void.self) { [clock] group in
        group.addTask { for await _ in ends {} }
        group.addTask { try? await clock.sleep(Self.patience) }
        await group.next()
        group.cancelAll()
      }
    }
    var results = known
    let answers = state.withLock { $0.take(fresh.map { ids[$0] }) }
    for (index, answer) in zip(fresh, answers) { results[index] = answer ?? Self.unanswered }
    return results
  }

  /// Number of batches under way to a server.
  func batches(to origin: Origin) -> Int { state.withLock { $0.underWay[origin] ?? 0 } }

  private func settle(_ results: [PushResult], of ids: [PushID], _ origin: Origin) {
    let now = clock.steady()
    state.withLock { state in
      for (id, result) in zip(ids, results) { state.entries[id] = .answered(result, at: now) }
      let left = (state.underWay[origin] ?? 1) - 1
      state.underWay[origin] = left > 0 ? left : nil
    }
  }
}
