import HTTP2
import HubCore
import NotificationHubs

/// A batch on its way: what can be sent, how it is written, and what has been answered.
struct FCMOutbox {
  private let batch: PushBatch
  private let messages: [Result<FCMMessage, FCMMessage.Refusal>]
  /// One per request; a request that is not answered yet counts as not reached.
  var results: [PushResult]
  /// The requests that may be sent, as indices.
  private(set) var sendable: [Int] = []

  init(_ batch: PushBatch) {
    self.batch = batch
    messages = batch.bodies.map { body in
      Result { () throws(FCMMessage.Refusal) in try FCMMessage(body.bytes) }
    }
    results = Array(repeating: FCMVerdict(.unreachable).result, count: batch.requests.count)
    sendable.reserveCapacity(batch.requests.count)
    for (index, request) in batch.requests.enumerated() {
      if let refusal = refusal(of: request) {
        results[index] = refusal
      } else {
        sendable.append(index)
      }
    }
  }

  private func refusal(of request: PushRequest) -> PushResult? {
    guard messages.indices.contains(Int(request.body)) else {
      return PushResult(outcome: .invalidNotificationFormat, reason: "the push has no body")
    }
    if case .failure(let refusal) = messages[Int(request.body)] {
      return PushResult(outcome: refusal.outcome, reason: refusal.reason)
    }
    guard request.handle.lowerBound >= 0, request.handle.upperBound <= batch.handles.count,
      FCMMessage.isToken(batch.handles[request.handle])
    else {
      // FCM did not say so, hence the handle stays.
      return PushResult(outcome: .badChannel, reason: "the handle is no registration token")
    }
    return nil
  }

  /// Writes requests for the wire, in the order of `indices`.
  func requests(
    _ indices: ArraySlice<Int>, to origin: Origin, path: String, token: AccessToken
  ) -> HTTP2RequestBatch {
    var wire = HTTP2RequestBatch(authority: origin.authority, replyHeaders: ["retry-after"])
    let path = wire.write(path)
    // Google's tokens are a kilobyte long: kept in the connection's header table, which serves this
    // credential alone, they travel once.
    let fields = wire.addFieldSet([
      HTTP2Field("authorization", "Bearer " + token.text),
      HTTP2Field("content-type", "application/json; charset=UTF-8"),
      HTTP2Field("accept", "application/json"),
    ])
    var size = 0
    for index in indices {
      if case .success(let message) = messages[Int(batch.requests[index].body)] {
        let handle = batch.handles[batch.requests[index].handle]
        size += message.head(for: handle).count + handle.count + message.tail.count
      }
    }
    wire.reserve(requests: indices.count, bytes: size)
    for index in indices {
      let request = batch.requests[index]
      guard case .success(let message) = messages[Int(request.body)] else { continue }
      let body = wire.write {
        let handle = batch.handles[request.handle]
        $0 += message.head(for: handle)
        $0 += handle
        $0 += message.tail
      }
      wire.addRequest(path: path, fields: fields, body: body)
    }
    return wire
  }
}
