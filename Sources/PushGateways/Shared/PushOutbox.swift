import HubCore
import NotificationHubs

/// The result of a push that cannot be sent; no service was asked.
struct PushRefusal: Error {
  let result: PushResult

  init(_ outcome: NotificationOutcome, _ reason: String) {
    result = PushResult(outcome: outcome, reason: reason)
  }

  /// A fault found locally, where the service's table has a row for it.
  init(_ verdict: PushVerdict) { result = verdict.result }

  static func badFormat(_ reason: String) -> PushRefusal {
    PushRefusal(.invalidNotificationFormat, reason)
  }

  /// Refuses a payload that is larger than the limit in ``PlatformTraits``.
  static func check(_ count: Int, for platform: PushPlatform) throws(PushRefusal) {
    if let limit = platform.traits.payloadLimit, count > limit {
      throw tooLarge(count, limit: limit)
    }
  }

  static func tooLarge(_ count: Int, limit: Int) -> PushRefusal {
    PushRefusal(
      .invalidNotificationSize, "the payload has \(count) bytes, more than \(limit)")
  }
}

/// A batch that is being sent: its prepared bodies, the sendable requests, and the results so far.
/// Writing a push is up to its service.
struct PushOutbox<Message: Sendable>: Sendable {
  let batch: PushBatch
  /// By index of the body.
  private let messages: [Result<Message, PushRefusal>]
  /// One per request; a request without a reply yet counts as not reached.
  var results: [PushResult]
  /// The requests that may be sent, as indices.
  private(set) var sendable: [Int] = []

  /// - Parameters:
  ///   - prepare: Prepares and validates a body; called once for each of the batch.
  ///   - check: Returns the reason that a handle cannot be sent to. The service did not say so, so
  ///     the handle is kept unless the refusal says otherwise.
  init(
    _ batch: PushBatch, prepare: (PushBody) throws(PushRefusal) -> Message,
    check: (ArraySlice<UInt8>) -> PushRefusal? = { _ in nil }
  ) {
    self.batch = batch
    messages = batch.bodies.map { body in
      Result { () throws(PushRefusal) in try prepare(body) }
    }
    results = Array(repeating: PushVerdict(.unreachable).result, count: batch.requests.count)
    sendable.reserveCapacity(batch.requests.count)
    for (index, request) in batch.requests.enumerated() {
      guard messages.indices.contains(Int(request.body)) else {
        results[index] = PushRefusal.badFormat("the push has no body").result
        continue
      }
      let isInside =
        request.handle.lowerBound >= 0 && request.handle.upperBound <= batch.handles.count
      if case .failure(let refusal) = messages[Int(request.body)] {
        results[index] = refusal.result
      } else if let refusal = check(isInside ? batch.handles[request.handle] : []) {
        results[index] = refusal.result
      } else if !isInside {
        results[index] = PushRefusal(.badChannel, "the push has no handle").result
      } else {
        sendable.append(index)
      }
    }
  }

  /// The prepared body of a request; `nil` when it was refused.
  func message(_ index: Int) -> Message? { try? messages[Int(batch.requests[index].body)].get() }

  func handle(_ index: Int) -> ArraySlice<UInt8> { batch.handles[batch.requests[index].handle] }
}
