import HTTP2
import HubCore
import NotificationHubs

/// A batch on its way: what can be sent, how it is written, and what has been answered.
///
/// Everything that pushes have in common is worked out once per body or once per set of headers; a
/// push itself costs the bytes of its path and its id.
struct APNsOutbox {
  private struct Message {
    /// Index into `headerSets`; -1 when the body cannot be sent.
    var headerSet: Int
    var refusal: PushResult?
  }

  let batch: PushBatch
  /// One per request; a request that is not answered yet counts as not reached.
  private(set) var results: [PushResult]
  /// The requests that may be sent, as indices.
  private(set) var sendable: [Int] = []
  private var headerSets: [APNsHeaders] = []
  private var messages: [Message] = []
  /// The handles in lower case; a byte that is no hexadecimal digit is 0.
  private let handles: [UInt8]

  private static let lowered: [UInt8] = {
    var table = [UInt8](repeating: 0, count: 256)
    for (digits, lower) in [("0123456789abcdef", "0123456789abcdef"), ("ABCDEF", "abcdef")] {
      for (digit, small) in zip(digits.utf8, lower.utf8) { table[Int(digit)] = small }
    }
    return table
  }()

  init(_ batch: PushBatch, topic: String) {
    self.batch = batch
    handles = Self.lowered.withUnsafeBufferPointer { table in
      batch.handles.map { table[Int($0)] }
    }
    results = Array(
      repeating: APNsVerdict(.unreachable).result(confirmedAt: 0, isOwnTopic: true),
      count: batch.requests.count)
    messages.reserveCapacity(batch.bodies.count)
    for body in batch.bodies { messages.append(prepare(body, topic: topic)) }
    sendable.reserveCapacity(batch.requests.count)
    for (index, request) in batch.requests.enumerated() {
      if let refusal = refusal(of: request) {
        results[index] = refusal
      } else {
        sendable.append(index)
      }
    }
  }

  private mutating func prepare(_ body: PushBody, topic: String) -> Message {
    let payload = APNsPayloadFacts(body.bytes)
    let derivedType = payload?.pushType ?? .alert
    guard let headers = APNsHeaders(body: body, derivedType: derivedType, topic: topic) else {
      return Message(headerSet: -1, refusal: Self.badFormat("a header cannot be sent"))
    }
    // The size comes before the form: what a template renders is cut where no service takes it any
    // more, and is no JSON then.
    guard body.bytes.count <= headers.payloadLimit else {
      return Message(
        headerSet: -1,
        refusal: PushResult(
          outcome: .invalidNotificationSize,
          reason: "the payload has \(body.bytes.count) bytes, more than \(headers.payloadLimit)"))
    }
    guard payload != nil else {
      return Message(headerSet: -1, refusal: Self.badFormat("the payload is not a JSON object"))
    }
    // Bodies of one send nearly always share their headers, or each has its own: a look at the last
    // few finds the one and does not search in vain for the other.
    if let index = headerSets.suffix(4).lastIndex(of: headers) { return Message(headerSet: index) }
    headerSets.append(headers)
    return Message(headerSet: headerSets.count - 1)
  }

  private static func badFormat(_ reason: String) -> PushResult {
    PushResult(outcome: .invalidNotificationFormat, reason: reason)
  }

  private func refusal(of request: PushRequest) -> PushResult? {
    guard messages.indices.contains(Int(request.body)) else {
      return Self.badFormat("the push has no body")
    }
    if let refusal = messages[Int(request.body)].refusal { return refusal }
    guard (1...200).contains(request.handle.count),
      request.handle.lowerBound >= 0, request.handle.upperBound <= handles.count,
      !handles[request.handle].contains(0)
    else {
      // APNs did not say so, hence the handle stays.
      return PushResult(outcome: .badChannel, reason: "the device token is not hexadecimal")
    }
    return nil
  }

  /// Writes requests for the wire, in the order of `indices`.
  /// - Parameter token: The provider token; `nil` for a connection with a client certificate.
  func requests(
    _ indices: ArraySlice<Int>, authority: String, token: String?
  ) -> HTTP2RequestBatch {
    var wire = HTTP2RequestBatch(authority: authority, replyHeaders: ["retry-after"])
    let idName = wire.addFieldName("apns-id")
    let authorization = token.map {
      HTTP2Field("authorization", "bearer " + $0, indexing: .never)
    }
    let fieldSets = headerSets.map {
      wire.addFieldSet($0.fields + (authorization.map { [$0] } ?? []))
    }
    var bodies = [HTTP2ByteRange?](repeating: nil, count: batch.bodies.count)
    wire.reserve(requests: indices.count, bytes: indices.count * (10 + 64 + 36))
    for index in indices {
      let request = batch.requests[index]
      let position = Int(request.body)
      let headerSet = messages[position].headerSet
      let body: HTTP2ByteRange
      if let written = bodies[position] {
        body = written
      } else {
        body = wire.write { $0 += batch.bodies[position].bytes }
        bodies[position] = body
      }
      let path = wire.write {
        $0 += Self.pathStart
        $0 += handles[request.handle]
      }
      wire.addRequest(path: path, fields: fieldSets[headerSet], body: body)
      if !headerSets[headerSet].hasID {
        wire.addField(idName, value: wire.write { request.id.appendUUID(to: &$0) })
      }
    }
    return wire
  }

  private static let pathStart = Array("/3/device/".utf8)

  /// The requests that may be sent, by the environment that their handles are thought to live in.
  var sendableByEnvironment: (own: [Int], other: [Int]) {
    guard batch.requests.contains(where: { $0.environment == .other }) else {
      return (sendable, [])
    }
    return (sendable.filter(isOwn), sendable.filter { !isOwn($0) })
  }

  func isOwn(_ index: Int) -> Bool { batch.requests[index].environment == .own }

  /// What one environment did not know, or, where the credential was not meant for it, did not take:
  /// to be tried in the other.
  var strays: [Int] {
    sendable.filter { index in
      let result = results[index]
      guard result.outcome != .success else { return false }
      return result.reason == APNsReply.badDeviceToken.reason
        || !isOwn(index) && result.retry == .pauseCredential
    }
  }

  /// Decides what becomes of a push that was tried in both environments. A handle goes only when
  /// neither knows it.
  /// - Returns: Whether the credential serves one environment only.
  mutating func settleStray(_ index: Int, first: PushResult) -> Bool {
    var second = results[index]
    let isBound = [first, second].contains { result in
      result.reason.flatMap(APNsReply.row(reason:))?.isOfEnvironment ?? false
    }
    if second.outcome == .success {
      second.environment = isOwn(index) ? .other : .own
    } else if second.retry == .pauseCredential, isOwn(index) {
      // Nothing was learned of the handle, unless the key cannot reach the other environment at all.
      second = first
      if !isBound { second.handle = .keep }
    } else if first.retry == .pauseCredential, !isBound {
      second.handle = .keep
    }
    results[index] = second
    return isBound
  }

  /// Notes that APNs took the push.
  mutating func accept(_ index: Int) { results[index] = .success }

  /// Notes what APNs said instead.
  mutating func record(_ verdict: APNsVerdict, for index: Int) {
    let request = batch.requests[index]
    results[index] = verdict.result(
      confirmedAt: request.confirmedAt,
      isOwnTopic: headerSets[messages[Int(request.body)].headerSet].isOwnTopic)
  }
}

extension APNsHeaders {
  /// In bytes; a kind we do not know gets the usual one.
  var payloadLimit: Int { pushType?.payloadLimit ?? APNsPushType.alert.payloadLimit }
}
