import Cryptography
import HTTP2
import HubCore
import NotificationHubs

/// A batch on its way: what can be sent to which origin, how it is written, and what has been
/// answered.
struct WebPushOutbox: Sendable {
  /// The pushes to one origin, as places in ``letters``.
  struct Delivery: Sendable {
    let origin: Origin
    let admission: WebPushHosts.Admission
    var letters: [Int] = []
  }

  private let batch: PushBatch
  /// By body.
  private let headers: [Result<WebPushHeaders, PushRefusal>]
  private(set) var letters: [WebPushLetter] = []
  private(set) var deliveries: [Delivery] = []
  /// One per request; a request that is not answered yet counts as not reached.
  var results: [PushResult]

  private struct PushRefusal: Error {
    let result: PushResult
  }

  init(_ batch: PushBatch, hosts: WebPushHosts, now: Int64) {
    self.batch = batch
    headers = batch.bodies.map { body in Self.headers(body, now: now) }
    results = Array(
      repeating: WebPushVerdict(.unreachable).result, count: batch.requests.count)
    letters.reserveCapacity(batch.requests.count)
    var origins: [Origin] = []
    for index in batch.requests.indices {
      if let refusal = add(index, hosts: hosts, origins: &origins) { results[index] = refusal }
    }
  }

  private static func headers(
    _ body: PushBody, now: Int64
  ) -> Result<WebPushHeaders, PushRefusal> {
    guard body.bytes.count <= WebPushEncryptor.maxPlaintext else {
      let reason =
        "the message has \(body.bytes.count) bytes, more than \(WebPushEncryptor.maxPlaintext)"
      return .failure(PushRefusal(result: WebPushVerdict(.tooLong, reason: reason).result))
    }
    let size = body.bytes.isEmpty ? 0 : body.bytes.count + WebPushEncryptor.overhead
    do throws(WebPushHeaders.Refusal) {
      return .success(try WebPushHeaders(body, size: size, now: now))
    } catch {
      return .failure(
        PushRefusal(
          result: PushResult(outcome: .invalidNotificationFormat, reason: error.reason)))
    }
  }

  /// - Returns: The result of a push that cannot be sent.
  private mutating func add(
    _ index: Int, hosts: WebPushHosts, origins: inout [Origin]
  ) -> PushResult? {
    let request = batch.requests[index]
    guard headers.indices.contains(Int(request.body)) else {
      return PushResult(outcome: .invalidNotificationFormat, reason: "the push has no body")
    }
    if case .failure(let refusal) = headers[Int(request.body)] { return refusal.result }
    guard request.handle.lowerBound >= 0, request.handle.upperBound <= batch.handles.count else {
      return WebPushVerdict(.badSubscription).result
    }
    let parts = batch.handles[request.handle].split(
      separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    guard parts.count == 3, let endpoint = WebPushEndpoint(parts[0], known: origins),
      let recipient = WebPushRecipient(p256dh: parts[1], auth: parts[2])
    else { return WebPushVerdict(.badSubscription).result }
    guard let admission = hosts.admission(of: endpoint.origin),
      hosts.allows(endpoint.path, of: endpoint.origin)
    else { return WebPushVerdict(.notAllowed).result }
    let letter = WebPushLetter(
      request: index, body: Int(request.body), recipient: recipient, path: endpoint.path)
    if let place = origins.lastIndex(of: endpoint.origin) {
      deliveries[place].letters.append(letters.count)
    } else {
      origins.append(endpoint.origin)
      deliveries.append(
        Delivery(origin: endpoint.origin, admission: admission, letters: [letters.count]))
    }
    letters.append(letter)
    return nil
  }

  /// The place in the batch of a letter.
  func request(_ letter: Int) -> Int { letters[letter].request }

  /// Writes the requests of letters that are sealed, in the order of `indices`.
  func requests(
    _ indices: ArraySlice<Int>, sealed: WebPushSealed, origin: Origin, authorization: String
  ) -> HTTP2RequestBatch {
    var wire = HTTP2RequestBatch(authority: origin.authority, replyHeaders: ["retry-after"])
    let proof = HTTP2Field("authorization", authorization)
    var fieldSets = [HTTP2RequestBatch.FieldSet?](repeating: nil, count: batch.bodies.count)
    let size = indices.reduce(0) {
      $0 + letters[$1].path.count + batch.bodies[letters[$1].body].bytes.count
        + WebPushEncryptor.overhead
    }
    wire.reserve(requests: indices.count, bytes: size)
    for index in indices {
      let letter = letters[index]
      guard case .sealed(let chunk, let range) = sealed.letters[index],
        case .success(let headers) = headers[letter.body]
      else { continue }
      let fields = fieldSets[letter.body] ?? wire.addFieldSet(headers.fields + [proof])
      fieldSets[letter.body] = fields
      let path = wire.write { $0 += letter.path }
      let body = wire.write { $0 += sealed.chunks[chunk][range] }
      wire.addRequest(path: path, fields: fields, body: body)
    }
    return wire
  }
}
