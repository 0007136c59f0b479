import Foundation
import HTTP2
import PushGateways
import Synchronization

/// An HTTP/2 connection of a node to a simulated service.
///
/// It has no task and no timer: what time does to it shows when somebody looks.
final class SimulatedConnection: PushConnection {
  private struct State {
    var status = HTTP2ConnectionStatus()
    var usedAt: Date
    var answeredAt = Date.distantPast
    var memory = ConnectionMemory()
  }

  private let services: SimulatedServices
  private let service: SimulatedService?
  private let node: Int
  private let configuration: HTTP2ConnectionConfiguration
  /// When connecting has ended, well or not.
  private let readyAt: Date
  /// Why it has not ended well.
  private let failure: HTTP2ConnectionError?
  private let state: Mutex<State>

  private var world: any ServiceWorld { services.world }

  /// Streams at once; with APNs one, until it has taken a token.
  private static let streamLimit = 1000

  init(_ services: SimulatedServices, node: Int, _ configuration: HTTP2ConnectionConfiguration) {
    self.services = services
    self.node = node
    self.configuration = configuration
    let (host, now) = (configuration.host, services.world.now)
    service = SimulatedService(host: host, isHTTP2: true)
    var pause = services.world.chance(in: 0.02...0.2)
    if service == nil {
      services.world.strayed(to: host)
      failure = HTTP2ConnectionError(.lookup, "\(host) has no address")
    } else if service.map({ services.isReachable($0, from: node) }) == true {
      failure = nil
    } else if services.world.chance() & 1 == 0 {
      failure = HTTP2ConnectionError(.connect, "\(host) refuses connections")
    } else {
      failure = HTTP2ConnectionError(.connectTimedOut, "\(host) does not answer")
      pause = configuration.connectTimeout / .seconds(1)
    }
    readyAt = now + pause
    state = Mutex(State(usedAt: readyAt))
  }

  var status: HTTP2ConnectionStatus {
    let now = world.now
    return state.withLock { state in
      settle(&state, at: now)
      return state.status
    }
  }

  func close() {
    state.withLock { state in
      end(&state, HTTP2ConnectionError(.closed, "closed by its owner"))
    }
  }

  func send(_ batch: HTTP2RequestBatch) async -> HTTP2ReplyBatch {
    var replies = HTTP2ReplyBatch(to: batch)
    var (sent, answered) = (0, 0)
    state.withLock { $0.status.queued += batch.count }
    do {
      while status.state == .connecting {
        let left = max(0.001, readyAt.timeIntervalSince(world.now))
        _ = try await world.wait(left) { self.status.state == .connecting }
      }
      while sent < batch.count {
        let round = begin(batch, from: sent)
        sent += round.arrivals.count
        if round.arrivals.isEmpty { break }
        let isOpen = try await world.wait(round.delay) { self.status.state != .closed }
        finish(round, of: batch, isOpen: isOpen, &replies)
        answered = sent
      }
      fail(sent..<batch.count, unsentFailure, wasSent: false, &replies)
    } catch {
      // The task is cancelled, or the life has ended.
      fail(answered..<sent, .cancelled, wasSent: true, &replies)
      fail(sent..<batch.count, .cancelled, wasSent: false, &replies)
      state.withLock { $0.status.inFlight -= sent - answered }
    }
    let status = state.withLock { state in
      state.status.queued -= batch.count - sent
      return state.status
    }
    replies.goAway = status.goAway
    replies.connectionError = status.error
    return replies
  }

  /// Requests that were sent together, and what becomes of them.
  private struct Round {
    let first: Int
    let sentAt: Date
    var arrivals: [ServiceArrival] = []
    /// Until the last of them is answered or given up.
    var delay = 0.0
    var error: HTTP2ConnectionError?
  }

  /// Sends as many requests as there are streams, and lets the service act on them.
  /// - Returns: No arrivals when nothing more can be sent.
  private func begin(_ batch: HTTP2RequestBatch, from first: Int) -> Round {
    let now = world.now
    var round = Round(first: first, sentAt: now)
    let cut = world.chance()
    state.withLock { state in
      settle(&state, at: now)
      guard let service, state.status.state == .ready else { return }
      let room = max(1, (state.status.peerStreamLimit ?? 1) - state.status.inFlight)
      let count = min(batch.count - first, room)
      var processed = count
      if let goAway = services.takeGoAway(service) {
        processed = Int(cut % UInt64(count + 1))
        state.status.state = .draining
        state.status.goAway = HTTP2GoAway(
          lastStreamID: Int32(processed * 2 + 1), code: 0,
          debugData: Array(#"{"reason":"\#(goAway)"}"#.utf8))
      }
      let patience = configuration.replyTimeout / .seconds(1)
      for index in first..<(first + count) {
        var arrival = ServiceArrival(outcome: .refused, delay: 0)
        if round.error != nil {
          arrival = ServiceArrival(outcome: .lost, delay: 0)
        } else if index < first + processed {
          let plain = batch.plain(index)
          arrival = services.receive(
            ServiceRequest(
              now: now, host: configuration.host, path: plain.path, headers: plain.fields,
              body: plain.body),
            at: service, node: node, patience: patience, memory: &state.memory)
        }
        if case .lost = arrival.outcome {
          round.error = HTTP2ConnectionError(
            .lost, "\(configuration.host) ended the connection")
        }
        round.arrivals.append(arrival)
        round.delay = max(round.delay, min(patience, arrival.delay))
      }
      state.status.inFlight += count
      state.status.queued -= count
      state.usedAt = now
    }
    return round
  }

  /// Writes down what a round's requests have heard.
  private func finish(
    _ round: Round, of batch: HTTP2RequestBatch, isOpen: Bool, _ replies: inout HTTP2ReplyBatch
  ) {
    let now = world.now
    let patience = configuration.replyTimeout / .seconds(1)
    state.withLock { state in
      for (place, arrival) in round.arrivals.enumerated() {
        var reply = HTTP2Reply()
        reply.wasSent = true
        var (headers, body): ([String?], [UInt8]) = ([], [])
        switch arrival.outcome {
        case _ where !isOpen:
          reply.failure = state.status.error?.kind == .closed ? .cancelled : .connectionLost
        case .refused: reply.failure = .refused
        case .lost: reply.failure = .connectionLost
        case _ where arrival.delay >= patience:
          reply.failure = .timedOut
          if state.answeredAt < round.sentAt { state.status.isSilent = true }
        case .reset: reply.failure = .reset(code: 2)
        case .reply(let answer):
          reply.status = answer.status
          headers = batch.replyHeaders.map { name in
            answer.headers.first { $0.name == name }?.value
          }
          if !(200...299).contains(answer.status) { body = answer.body }
          state.status.answered += 1
          state.status.isSilent = false
          state.answeredAt = now
        }
        replies.set(reply, at: round.first + place, headers: headers, body: body)
      }
      state.status.inFlight -= round.arrivals.count
      state.usedAt = now
      if let error = round.error { end(&state, error) }
      settle(&state, at: now)
    }
  }

  private func fail(
    _ indices: Range<Int>, _ failure: HTTP2Failure, wasSent: Bool, _ replies: inout HTTP2ReplyBatch
  ) {
    var reply = HTTP2Reply()
    reply.failure = failure
    reply.wasSent = wasSent
    for index in indices { replies.set(reply, at: index) }
  }

  /// The error of a request that was never sent.
  private var unsentFailure: HTTP2Failure {
    let status = status
    switch status.error?.kind {
    case .closed, .cancelled: return .cancelled
    case .lookup, .connect, .connectTimedOut: return .connectFailed
    default: return .refused
    }
  }

  // MARK: What time does

  private func settle(_ state: inout State, at now: Date) {
    if state.status.state == .connecting, now >= readyAt {
      if let failure {
        end(&state, failure)
      } else {
        state.status.state = .ready
      }
    }
    if state.status.state == .ready {
      let isNarrow = service == .apns && state.memory.team == nil
      state.status.peerStreamLimit = isNarrow ? 1 : Self.streamLimit
      if let idleTimeout = configuration.idleTimeout, state.status.inFlight == 0,
        now >= state.usedAt + idleTimeout / .seconds(1)
      {
        end(&state, HTTP2ConnectionError(.idle, "closed after the idle time"))
      }
    }
    if state.status.state == .draining, state.status.inFlight == 0 {
      end(&state, HTTP2ConnectionError(.drained, "\(configuration.host) sent GOAWAY"))
    }
  }

  private func end(_ state: inout State, _ error: HTTP2ConnectionError) {
    guard state.status.state != .closed else { return }
    state.status.state = .closed
    state.status.error = error
  }
}
