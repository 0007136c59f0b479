import Foundation
import HTTPClient
import HubCore
import NotificationHubs
import Synchronization

/// The part of a gateway that is specific to one push service with HTTP/1.1: writing a push and
/// reading the reply. The common part (connections, tokens, when to stop) is in
/// ``HTTPPushGateway``.
protocol HTTPPushService: Sendable {
  /// A body prepared for this service.
  associatedtype Message: Sendable

  /// Maximum number of connections of one credential, unless the configuration overrides it; each
  /// carries one request at a time.
  static var connections: Int { get }

  /// Prepares and validates a body; called once for each body of a batch.
  /// - Parameter now: In seconds since 1970.
  func message(_ body: PushBody, now: Int64) throws(PushRefusal) -> Message

  /// Writes one push.
  /// - Parameter token: `nil` for services without access tokens.
  func call(
    _ message: Message, to handle: String, id: PushID, token: String?, now: Int64
  ) throws(PushRefusal) -> HTTPPushCall

  /// The way to try a credential.
  var trial: ServiceTrial { get }

  /// Reads the reply to one push.
  func verdict(_ reply: HTTPReply, to handle: String, now: Int64) -> PushVerdict
}

/// A push that is ready to send, and its destination.
struct HTTPPushCall: Sendable {
  let call: HTTPCall
  /// Calls with the same host fail together.
  let host: String
  /// Whether the host must not lead into a private network, because the operator has not allowed it
  /// by name.
  let isPublicOnly: Bool
}

/// Delivers under one credential to a push service with HTTP/1.1: one request at a time on each of
/// a bounded number of connections.
///
/// A batch is spread over the connections until a reply concerns the sender as a whole (a refused
/// token, a rate limit, a wrong credential): then nothing more of it is sent, and the unsent pushes
/// get the same result, or are sent again with a fresh token. That token is the only remedy applied
/// here; everything slower is advice to the caller, who schedules retries.
final class HTTPPushGateway<Service: HTTPPushService>: PushGateway {
  let service: Service
  private let sessions: GatewaySessions
  let tokens: AccessTokenSource?
  private let clock: HubClock
  private let lane: HTTPLane
  /// Whether the service has given any reply other than refusing the sender.
  private let isProven = Atomic<Bool>(false)

  /// - Parameter connections: Maximum number for this credential, from 1.
  init(
    _ service: Service, sessions: GatewaySessions, tokens: AccessTokenSource? = nil,
    connections: Int, clock: HubClock
  ) {
    self.service = service
    self.sessions = sessions
    self.tokens = tokens
    self.clock = clock
    lane = HTTPLane(limit: connections)
  }

  package func load() async -> GatewayLoad? { GatewayLoad(lane) }

  /// The connections are shared by all gateways and close by themselves.
  func close() async {}

  func deliver(_ batch: PushBatch) async -> [PushResult] {
    let start = now
    var outbox = PushOutbox(
      batch,
      prepare: { body throws(PushRefusal) in try service.message(body, now: start) })
    var queue = outbox.sendable
    var mayRefresh = tokens != nil
    while !queue.isEmpty {
      let token: AccessToken?
      do throws(AccessTokenFailure) {
        token = try await tokens?.current()
      } catch {
        for index in queue { outbox.results[index] = error.result }
        break
      }
      // One push goes ahead: the effect of a bad credential need not be tried with a thousand.
      let round = isProven.load(ordering: .relaxed) ? queue : Array(queue.prefix(1))
      let rest = queue.dropFirst(round.count)
      let (again, stop) = await send(round, of: &outbox, token: token, mayRefresh: mayRefresh)
      if stop == nil { isProven.store(true, ordering: .relaxed) }
      if stop?.rule.retry == .refreshOnce, let token { tokens?.invalidate(token) }
      if !again.isEmpty {
        mayRefresh = false
        queue = again + rest
      } else if let stop {
        for index in rest { outbox.results[index] = stop.result }
        queue = []
      } else {
        queue = Array(rest)
      }
    }
    return outbox.results
  }

  private var now: Int64 { Int64(clock.now().timeIntervalSince1970) }

  /// Sends the queued pushes and records the replies.
  /// - Returns: The pushes to send again with a fresh token, and the reply that ended the round.
  private func send(
    _ queue: [Int], of outbox: inout PushOutbox<Service.Message>, token: AccessToken?,
    mayRefresh: Bool
  ) async -> (again: [Int], stop: PushVerdict?) {
    let groups = outbox.calls(queue, of: service, token: token?.text, now: now)
    let round = PushRound()
    var again: [Int] = []
    await withTaskGroup(of: [(Int, PushVerdict)].self) { tasks in
      // Hosts that devices named may hang; processing several at a time keeps the others going.
      var waiting = groups[...]
      for group in waiting.prefix(8) { tasks.addTask { await self.send(group, in: round) } }
      waiting = waiting.dropFirst(8)
      for await verdicts in tasks {
        if let next = waiting.popFirst() { tasks.addTask { await self.send(next, in: round) } }
        for (index, verdict) in verdicts {
          if verdict.rule.retry == .refreshOnce, mayRefresh {
            again.append(index)
          } else {
            outbox.results[index] = verdict.result
          }
        }
      }
    }
    return (again.sorted(), round.stop)
  }

  /// Sends the pushes of one host.
  private func send(_ group: HostGroup, in round: PushRound) async -> [(Int, PushVerdict)] {
    let session = sessions.session(isPublicOnly: group.isPublicOnly)
    let (service, now) = (service, now)
    let heard = Mutex((verdicts: [Int: PushVerdict](), hostStop: PushVerdict?.none))
    let results = await session.send(group.calls, lane: lane) { position, result in
      let verdict =
        switch result {
        case .success(let reply):
          service.verdict(reply, to: group.handles[position], now: now)
        case .failure(let failure): PushVerdict(failure)
        }
      let isHostDown = heard.withLock { heard in
        heard.verdicts[position] = verdict
        if verdict.concernsHost { heard.hostStop = verdict }
        return heard.hostStop != nil
      }
      if verdict.concernsSender { round.end(verdict) }
      return round.stop == nil && !isHostDown
    }
    return heard.withLock { heard in
      group.indices.enumerated().map { position, index in
        if let verdict = heard.verdicts[position] { return (index, verdict) }
        if let stop = round.stop ?? heard.hostStop { return (index, stop) }
        guard case .failure(let failure) = results[position] else {
          return (index, PushVerdict(.unreachable))
        }
        return (index, PushVerdict(failure))
      }
    }
  }
}

/// State shared by the groups of one round.
private final class PushRound: Sendable {
  private let verdict = Mutex<PushVerdict?>(nil)

  /// The first reply that concerned the sender.
  var stop: PushVerdict? { verdict.withLock { $0 } }

  func end(_ with: PushVerdict) {
    verdict.withLock { $0 = $0 ?? with }
  }
}

/// The pushes of a round that go to one host.
struct HostGroup: Sendable {
  let host: String
  let isPublicOnly: Bool
  /// Indexes into the batch, parallel to ``calls`` and ``handles``.
  var indices: [Int] = []
  var calls: [HTTPCall] = []
  var handles: [String] = []
}

extension PushOutbox {
  /// Writes pushes, grouped by host; one that cannot be written gets its result now.
  mutating func calls<Service: HTTPPushService>(
    _ queue: [Int], of service: Service, token: String?, now: Int64
  ) -> [HostGroup] where Service.Message == Message {
    var groups: [HostGroup] = []
    var places: [String: Int] = [:]
    for index in queue {
      guard let message = message(index) else { continue }
      let handle = String(decoding: handle(index), as: UTF8.self)
      do throws(PushRefusal) {
        let written = try service.call(
          message, to: handle, id: batch.requests[index].id, token: token, now: now)
        let place = places[written.host] ?? groups.count
        if place == groups.count {
          places[written.host] = place
          groups.append(HostGroup(host: written.host, isPublicOnly: written.isPublicOnly))
        }
        groups[place].indices.append(index)
        groups[place].calls.append(written.call)
        groups[place].handles.append(handle)
      } catch {
        results[index] = error.result
      }
    }
    return groups
  }
}

/// The HTTP/1.1 clients that all gateways share. An idle client costs nothing.
package final class GatewaySessions: Sendable {
  /// For hosts that the configuration allows by name: they may be in a private network.
  private let anywhere: any PushSession
  /// For all others, whether named by a credential or a device: the resolved address is checked for
  /// each connection.
  private let publicOnly: any PushSession

  package init(
    _ configuration: PushGatewaysConfiguration, transport: PushTransport = .network
  ) {
    var session = HTTPSessionConfiguration()
    session.extraAnchorsPEM = configuration.extraAnchorsPEM
    anywhere = transport.session(session)
    session.allowsAddress = { $0.isPublic }
    publicOnly = transport.session(session)
  }

  func session(isPublicOnly: Bool) -> any PushSession { isPublicOnly ? publicOnly : anywhere }

  deinit {
    anywhere.close()
    publicOnly.close()
  }
}

extension GatewayLoad {
  /// HTTP/1.1 uses a connection for each push in flight. Idle connections in the cache belong to
  /// nobody, and are not counted.
  init(_ lane: HTTPLane) {
    let count = lane.inFlight
    self.init(connections: count, streams: count, limit: lane.limit)
  }
}
