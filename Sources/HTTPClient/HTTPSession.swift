import Dispatch
import Synchronization

/// An HTTP/1.1 client over TLS: many calls at once on connections that are kept and used again,
/// each moved by one thread of the session's own.
///
/// Calls that are under way end as ``HTTPFailure/Kind-swift.enum/closed`` when the session is
/// closed or let go.
package final class HTTPSession: Sendable {
  let core: SessionCore

  package init(_ configuration: HTTPSessionConfiguration = HTTPSessionConfiguration()) {
    core = SessionCore(configuration)
  }

  deinit { core.close() }

  /// Sends one call.
  /// - Parameter lane: `nil` for no bound.
  package func send(
    _ call: HTTPCall, lane: HTTPLane? = nil
  ) async throws(HTTPFailure) -> HTTPReply {
    let results = await send([call], lane: lane ?? HTTPLane(limit: 1))
    guard let result = results.first else { throw HTTPFailure(.closed, "no answer") }
    return try result.get()
  }

  /// Sends calls, as many at once as the lane allows, and waits for all of them.
  ///
  /// - Parameter goesOn: Asked on the session's thread after each call of the batch that was begun;
  ///   after false those not begun are answered ``HTTPFailure/Kind-swift.enum/notSent``.
  /// - Returns: An answer for each call, in order. Cancelling the task answers what is open.
  package func send(
    _ calls: [HTTPCall], lane: HTTPLane,
    goesOn: @escaping @Sendable (_ call: Int, Result<HTTPReply, HTTPFailure>) -> Bool = { _, _ in
      true
    }
  ) async -> [Result<HTTPReply, HTTPFailure>] {
    guard !calls.isEmpty else { return [] }
    let id = core.nextBatchID()
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        core.submit(
          CallBatch(id: id, calls: calls, lane: lane, goesOn: goesOn, continuation: continuation))
      }
    } onCancel: {
      core.cancel(id)
    }
  }

  /// Ends all calls and connections now; later calls fail.
  package func close() { core.close() }
}

/// How a session connects and what it bears.
package struct HTTPSessionConfiguration: Sendable {
  /// PEM certificates trusted beside the system's store: an emulator's authority.
  package var extraAnchorsPEM: [UInt8] = []
  /// Plain `http` too; for tests and old services on purpose only.
  package var allowsPlainHTTP = false
  /// Goes through the proxy that the environment names (`https_proxy` and its like), except to this
  /// machine itself. A check of addresses would then see the proxy's.
  package var usesProxy = false
  /// Asked before each connection, on the session's thread, with the address that the host's name
  /// led to; false leaves that address out. `nil` allows all. Connections in use are not asked
  /// again.
  package var allowsAddress: (@Sendable (IPAddress) -> Bool)?
  /// Name look-up, TCP and TLS together.
  package var connectTimeout: Duration = .seconds(5)
  /// From the start of a call to the end of its reply; a call that waits for its lane has not
  /// begun.
  package var totalTimeout: Duration = .seconds(30)
  /// A clock that never steps back, in nanoseconds, for ``totalTimeout``; tests pass their own.
  package var monotonicClock: @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds }
  /// How long less than a byte a second may come or go; `nil` leaves it to ``totalTimeout``.
  package var silenceTimeout: Duration?
  /// How many connections without work are kept, over all hosts.
  package var maxIdleConnections = 128
  /// All header lines of a reply together, in bytes.
  package var maxReplyHeaderBytes = 64 * 1024
  /// In bytes.
  package var maxReplyBodyBytes = 1024 * 1024

  package init() {}
}

/// Calls that share a bound on how many are under way at once, and so on how many connections they
/// use: HTTP/1.1 has one for each. Those over the bound wait in order of arrival.
package struct HTTPLane: Sendable {
  private final class Meter: Sendable {
    let calls = Atomic<Int>(0)
  }

  let id: UInt64
  package let limit: Int
  private let meter = Meter()

  private static let counter = Atomic<UInt64>(0)

  /// - Parameter limit: From 1.
  package init(limit: Int) {
    id = Self.counter.add(1, ordering: .relaxed).newValue
    self.limit = max(1, limit)
  }

  /// How many calls are under way.
  package var inFlight: Int { meter.calls.load(ordering: .relaxed) }

  /// For sessions: a call has begun.
  package func began() { meter.calls.add(1, ordering: .relaxed) }

  /// For sessions: a call that had begun has its answer.
  package func ended() { meter.calls.subtract(1, ordering: .relaxed) }
}
