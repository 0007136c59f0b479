import Foundation
import HTTP2
import HTTPClient
import HubCore
import Synchronization

/// The link to one origin under one credential: HTTP/2 if ALPN negotiates it, otherwise HTTP/1.1
/// through libcurl.
final class OriginLink: Sendable {
  let origin: Origin
  private let pool: HTTP2Pool
  private let session: any PushSession
  private let lane = HTTPLane(limit: 32)
  private let clock: HubClock
  /// The time until which the peer is assumed to lack HTTP/2.
  private let lacksHTTP2 = Mutex(Date.distantPast)

  /// Time for which a peer is assumed to lack HTTP/2.
  private static let memory: TimeInterval = 3600

  /// - Parameters:
  ///   - poolNumber: See ``GatewayPool/id``.
  ///   - connect: Makes a connection to the origin.
  ///   - session: For peers that lack HTTP/2; with the same rules about addresses.
  init(
    _ origin: Origin, poolNumber: Int, connect: @escaping @Sendable () -> any PushConnection,
    configuration: HTTP2PoolConfiguration, session: any PushSession, clock: HubClock,
    random: HubRandom
  ) {
    self.origin = origin
    self.session = session
    self.clock = clock
    pool = HTTP2Pool(
      poolNumber, connect, configuration: configuration, clock: clock, random: random)
  }

  /// The connections with HTTP/2.
  var shared: GatewayPool { pool.shared }

  /// The load of its connections, with either protocol.
  var load: GatewayLoad {
    get async {
      guard lacksHTTP2.withLock({ clock.steady() < $0 }) else { return await pool.load }
      return GatewayLoad(lane)
    }
  }

  func close() async { await pool.closeAll() }

  /// Sends requests and returns their replies, in order. Requests that a connection did not process
  /// are sent once more over another, at once; everything slower is up to the caller.
  ///
  /// - Parameter write: Writes the requests at these indices, in order, for ``origin``; the batch
  ///   asks for the header `retry-after` first.
  func send(
    _ indices: [Int], write: (_ indices: ArraySlice<Int>) -> HTTP2RequestBatch
  ) async -> [LinkReply] {
    var replies = [LinkReply](
      repeating: LinkReply(.unreachable("not sent")), count: indices.count)
    var queue = Array(indices.indices)
    var avoided: Int?
    var mayRepeat = true
    while !queue.isEmpty {
      let batch = write(queue.map { indices[$0] }[...])
      if lacksHTTP2.withLock({ clock.steady() < $0 }) {
        for (position, reply) in zip(queue, await sendPlainly(batch)) { replies[position] = reply }
        return replies
      }
      switch await pool.checkOut(avoiding: avoided) {
      case .unavailable(let error):
        if noteProtocol(error) { continue }
        for position in queue { replies[position] = LinkReply(unavailable: error) }
        return replies
      case .lease(let lease):
        avoided = lease.id
        let answers = await lease.connection.send(batch)
        if noteProtocol(answers.connectionError) {
          await pool.finished(lease, anyAccepted: false)
          continue
        }
        var unprocessed: [Int] = []
        for (index, position) in queue.enumerated() {
          replies[position] = LinkReply(answers, index)
          if answers.replies[index].failure == .refused { unprocessed.append(position) }
        }
        // Any reply proves the connection; its content concerns the push.
        await pool.finished(lease, anyAccepted: answers.replies.contains { $0.failure == nil })
        queue = mayRepeat ? unprocessed : []
        mayRepeat = false
      }
    }
    return replies
  }

  /// - Returns: Whether the peer turned out to lack HTTP/2.
  private func noteProtocol(_ error: HTTP2ConnectionError?) -> Bool {
    guard error?.kind == .wrongProtocol else { return false }
    lacksHTTP2.withLock { $0 = clock.steady() + Self.memory }
    return true
  }

  private func sendPlainly(_ batch: HTTP2RequestBatch) async -> [LinkReply] {
    let calls = (0..<batch.count).map { index in
      let request = batch.plain(index)
      return HTTPCall(
        url: origin.text + request.path,
        headers: request.fields.filter { $0.name != "content-length" }, body: request.body)
    }
    let results = await session.send(calls, lane: lane) { _, _ in true }
    return results.map { LinkReply($0) }
  }
}

/// The outcome of one request to an origin, with either protocol.
struct LinkReply: Sendable {
  enum Trouble: Hashable, Sendable {
    /// No connection, no reply, or a timeout; with a description for people.
    case unreachable(String)
    /// The origin's name resolves to no address that may be connected to.
    case refusedAddress
  }

  /// 0 when there was no reply.
  var status: UInt16 = 0
  /// `nil` when there was a reply.
  var trouble: Trouble?
  /// `Retry-After`, verbatim.
  var retryAfter: String?
  /// The body of a reply other than 2xx.
  var body: ArraySlice<UInt8> = []

  init(_ trouble: Trouble) { self.trouble = trouble }

  /// Reads a reply; `retry-after` must be the first header that the batch asked for.
  init(_ answers: HTTP2ReplyBatch, _ index: Int) {
    let reply = answers.replies[index]
    if let failure = reply.failure {
      trouble = Self.trouble(failure, answers.connectionError)
    } else {
      status = reply.status
      guard !(200...299).contains(reply.status) else { return }
      body = answers.body(of: index)
      retryAfter = answers.value(ofHeader: 0, in: index)
    }
  }

  init(_ result: Result<HTTPReply, HTTPFailure>) {
    switch result {
    case .success(let reply):
      status = reply.status
      guard !(200...299).contains(reply.status) else { return }
      body = reply.body[...]
      retryAfter = reply["retry-after"]
    case .failure(let failure):
      trouble =
        failure.kind == .refusedAddress ? .refusedAddress : .unreachable(failure.description)
    }
  }

  /// The reply when a pool will not connect for now.
  init(unavailable error: HTTP2ConnectionError?) {
    trouble =
      error?.kind == .refusedAddress
      ? .refusedAddress : .unreachable(error?.reason ?? "too early to connect again")
  }

  private static func trouble(
    _ failure: HTTP2Failure, _ error: HTTP2ConnectionError?
  ) -> Trouble {
    switch failure {
    case .connectFailed, .tlsRejectedCertificate:
      error?.kind == .refusedAddress
        ? .refusedAddress : .unreachable(error?.reason ?? "no connection")
    case .refused: .unreachable("the connection ended before the push was processed")
    case .reset(let code): .unreachable("the stream was reset with code \(code)")
    case .timedOut: .unreachable("no reply in time")
    case .connectionLost: .unreachable("the connection was lost before the reply")
    case .cancelled: .unreachable("stopped before the reply")
    }
  }
}
