import Dispatch
import Synchronization

/// An HTTP/1.1 client over TLS: many concurrent calls on connections that are kept and reused, all
/// on one thread of the session's own.
///
/// Calls in flight end as ``HTTPFailure/Kind-swift.enum/closed`` when the session is closed or
/// released.
package final class HTTPSession: Sendable {
  let core: SessionCore

  package init(_ configuration: HTTPSessionConfiguration = HTTPSessionConfiguration()) {
    core = SessionCore(configuration)
  }

  deinit { core.close() }

  /// Sends one call.
  /// - Parameter lane: `nil` for no limit.
  package func send(
    _ call: HTTPCall, lane: HTTPLane? = nil
  ) async throws(HTTPFailure) -> HTTPReply {
    let results = await send([call], lane: lane ?? HTTPLane(limit: 1))
    guard let result = results.first else { throw HTTPFailure(.closed, "no answer") }
    return try result.get()
  }

  /// Sends calls, as many at once as the lane allows, and waits for all of them.
  ///
  /// - Parameter goesOn: Called on the session's thread after each started call of the batch; after
  ///   false the calls not started get ``HTTPFailure/Kind-swift.enum/notSent``.
  /// - Returns: A result for each call, in order. Cancelling the task completes the open ones.
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

/// The connection settings and limits of a session.
package struct HTTPSessionConfiguration: Sendable {
  /// PEM certificates trusted in addition to the system's store: for example an emulator's CA.
  package var extraAnchorsPEM: [UInt8] = []
  /// Allows plain `http` too; only for tests and, on purpose, for old services.
  package var allowsPlainHTTP = false
  /// Uses the proxy that the environment names (`https_proxy` and the like), except for this
  /// machine itself. A check of addresses would then see the proxy's.
  package var usesProxy = false
  /// Called before each connection, on the session's thread, with the resolved address of the host;
  /// false skips that address. `nil` allows all. Existing connections are not checked again.
  package var allowsAddress: (@Sendable (IPAddress) -> Bool)?
  /// Limit for name resolution, TCP and TLS together.
  package var connectTimeout: Duration = .seconds(5)
  /// Limit from the start of a call to the end of its reply; a call that waits for its lane has not
  /// started.
  package var totalTimeout: Duration = .seconds(30)
  /// A monotonic clock, in nanoseconds, for ``totalTimeout``; tests pass their own.
  package var monotonicClock: @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds }
  /// Time for which less than a byte a second may be transferred; `nil` leaves it to
  /// ``totalTimeout``.
  package var silenceTimeout: Duration?
  /// Maximum number of idle connections that are kept, over all hosts.
  package var maxIdleConnections = 128
  /// Maximum size of all header lines of a reply together, in bytes.
  package var maxReplyHeaderBytes = 64 * 1024
  /// In bytes.
  package var maxReplyBodyBytes = 1024 * 1024

  package init() {}
}

/// Calls that share a limit on concurrency, and so on the number of their connections: HTTP/1.1 has
/// one for each call. Those over the limit wait in order of arrival.
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

  /// Number of calls in flight.
  package var inFlight: Int { meter.calls.load(ordering: .relaxed) }

  /// For sessions: a call has started.
  package func began() { meter.calls.add(1, ordering: .relaxed) }

  /// For sessions: a started call has its result.
  package func ended() { meter.calls.subtract(1, ordering: .relaxed) }
}
