import HTTP2
import HubCore
import NotificationHubs

/// A batch that is being sent to APNs.
///
/// Everything that pushes have in common is computed once per body or once per set of headers; a
/// push itself costs the bytes of its path and its id.
struct APNsOutbox {
  /// A message is the index of its headers in ``headerSets``; handles are in lower case, and a byte
  /// that is not a hexadecimal digit is 0.
  private var outbox: PushOutbox<Int>
  private let headerSets: [APNsHeaders]

  private static let lowered: [UInt8] = {
    var table = [UInt8](repeating: 0, count: 256)
    for (digits, lower) in [("0123456789abcdef", "0123456789abcdef"), ("ABCDEF", "abcdef")] {
      for (digit, small) in zip(digits.utf8, lower.utf8) { table[Int(digit)] = small }
    }
    return table
  }()

  init(_ batch: PushBatch, topic: String) {
    var lowered = batch
    lowered.handles = Self.lowered.withUnsafeBufferPointer { table in
      batch.handles.map { table[Int($0)] }
    }
    var headerSets: [APNsHeaders] = []
    outbox = PushOutbox(
      lowered,
      prepare: { body throws(PushRefusal) in
        let headers = try Self.headers(body, topic: topic)
        // The bodies of one send nearly always share their headers, or each has its own: searching
        // only the last few finds the shared ones and costs little otherwise.
        if let index = headerSets.suffix(4).lastIndex(of: headers) { return index }
        headerSets.append(headers)
        return headerSets.count - 1
      },
      check: { handle in
        (1...200).contains(handle.count) && !handle.contains(0)
          ? nil : PushRefusal(.badChannel, "the device token is not hexadecimal")
      })
    self.headerSets = headerSets
  }

  private static func headers(
    _ body: PushBody, topic: String
  ) throws(PushRefusal) -> APNsHeaders {
    let payload = APNsPayloadFacts(body.bytes)
    guard
      let headers = APNsHeaders(body: body, derivedType: payload?.pushType ?? .alert, topic: topic)
    else { throw .badFormat("a header cannot be sent") }
    // The size is checked before the syntax: rendered templates are truncated beyond any service's
    // limit, and are no longer valid JSON then.
    guard body.bytes.count <= headers.payloadLimit else {
      throw .tooLarge(body.bytes.count, limit: headers.payloadLimit)
    }
    guard payload != nil else { throw .badFormat("the payload is not a JSON object") }
    return headers
  }

  var results: [PushResult] { outbox.results }
  var sendable: [Int] { outbox.sendable }

  /// Writes requests for the wire, in the order of `indices`.
  /// - Parameter token: The provider token; `nil` for a connection with a client certificate.
  func requests(
    _ indices: ArraySlice<Int>, to endpoint: APNsEndpoint, token: String?
  ) -> HTTP2RequestBatch {
    var wire = HTTP2RequestBatch(authority: endpoint.authority, replyHeaders: ["retry-after"])
    let idName = wire.addFieldName("apns-id")
    let authorization = token.map(endpoint.authorization)
    let fieldSets = headerSets.map {
      wire.addFieldSet($0.fields + (authorization.map { [$0] } ?? []))
    }
    let batch = outbox.batch
    var bodies = [HTTP2ByteRange?](repeating: nil, count: batch.bodies.count)
    wire.reserve(requests: indices.count, bytes: indices.count * (10 + 64 + 36))
    for index in indices {
      let request = batch.requests[index]
      let position = Int(request.body)
      guard let headerSet = outbox.message(index) else { continue }
      let body: HTTP2ByteRange
      if let written = bodies[position] {
        body = written
      } else {
        body = wire.write { $0 += batch.bodies[position].bytes }
        bodies[position] = body
      }
      let path = wire.write {
        $0 += Self.pathStart
        $0 += batch.handles[request.handle]
      }
      wire.addRequest(path: path, fields: fieldSets[headerSet], body: body)
      if !headerSets[headerSet].hasID {
        wire.addField(idName, value: wire.write { request.id.appendUUID(to: &$0) })
      }
    }
    return wire
  }

  private static let pathStart = Array("/3/device/".utf8)

  /// The sendable requests, by the environment that their handles presumably belong to.
  var sendableByEnvironment: (own: [Int], other: [Int]) {
    guard outbox.batch.requests.contains(where: { $0.environment == .other }) else {
      return (sendable, [])
    }
    return (sendable.filter(isOwn), sendable.filter { !isOwn($0) })
  }

  func isOwn(_ index: Int) -> Bool { outbox.batch.requests[index].environment == .own }

  /// The requests to try in the other environment: those whose handle this one did not know, and
  /// those that it refused because the credential is not for it.
  var strays: [Int] {
    sendable.filter { index in
      let result = results[index]
      guard result.outcome != .success else { return false }
      return result.reason == APNsReply.badDeviceToken.reason
        || !isOwn(index) && result.retry == .pauseCredential
    }
  }

  /// Determines the result of a push that was tried in both environments. A handle is removed only
  /// when neither knows it.
  /// - Returns: Whether the credential serves one environment only.
  mutating func settleStray(_ index: Int, first: PushResult) -> Bool {
    var second = results[index]
    let isBound = [first, second].contains { APNsReply.isOfEnvironment($0.reason) }
    if second.outcome == .success {
      second.environment = isOwn(index) ? .other : .own
    } else if second.retry == .pauseCredential, isOwn(index) {
      // Nothing was learned about the handle, unless the key cannot reach the other environment at
      // all.
      second = first
      if !isBound { second.handle = .keep }
    } else if first.retry == .pauseCredential, !isBound {
      second.handle = .keep
    }
    outbox.results[index] = second
    return isBound
  }

  /// Records that APNs accepted the push.
  mutating func accept(_ index: Int) { outbox.results[index] = .success }

  /// Records APNs' refusal.
  mutating func record(_ verdict: PushVerdict, for index: Int) {
    outbox.results[index] = verdict.result(
      confirmedAt: outbox.batch.requests[index].confirmedAt,
      isOwnTopic: outbox.message(index).map { headerSets[$0].isOwnTopic } ?? true)
  }
}
