/// An HTTP/1.1 client over TLS: many calls at once on connections that are kept and used again, each
/// moved by one thread of the session's own.
///
/// Calls that are under way end as ``HTTPFailure/Kind-swift.enum/closed`` when the session is closed
/// or let go.
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
