import Foundation
import HTTPClient
import PushGateways
import Synchronization

/// A node's HTTP/1.1 client for simulated services. Calls go in rounds, as many at once as their lane
/// has room for.
final class SimulatedSession: PushSession {
  typealias Answer = Result<HTTPReply, HTTPFailure>

  private let services: SimulatedServices
  private let node: Int
  private let configuration: HTTPSessionConfiguration
  private let isClosed = Mutex(false)

  private var world: any ServiceWorld { services.world }

  /// Interval at which a call checks whether its lane has room, in seconds.
  private static let laneCheck = 0.25

  init(_ services: SimulatedServices, node: Int, _ configuration: HTTPSessionConfiguration) {
    self.services = services
    self.node = node
    self.configuration = configuration
  }

  func close() { isClosed.withLock { $0 = true } }

  private var isOpen: Bool { isClosed.withLock { !$0 } }

  func send(
    _ calls: [HTTPCall], lane: HTTPLane,
    goesOn: @escaping @Sendable (_ call: Int, Result<HTTPReply, HTTPFailure>) -> Bool
  ) async -> [Answer] {
    var answers: [Answer] = []
    var begun = 0
    var mayGoOn = true
    do {
      while mayGoOn, isOpen, answers.count < calls.count {
        while lane.inFlight >= lane.limit, isOpen { try await world.wait(Self.laneCheck) }
        let round = calls[answers.count...].prefix(lane.limit - lane.inFlight)
        for _ in round { lane.began() }
        begun = round.count
        let arrivals = round.map { act(on: $0) }
        let isOpen = try await world.wait(arrivals.map(\.delay).max() ?? 0) { self.isOpen }
        for _ in round { lane.ended() }
        begun = 0
        for arrival in arrivals {
          let answer = isOpen ? arrival.answer : .failure(Self.closed)
          if !goesOn(answers.count, answer) { mayGoOn = false }
          answers.append(answer)
        }
      }
    } catch {
      // The task is cancelled, or the life has ended.
      for _ in 0..<begun { lane.ended() }
      let failure = HTTPFailure(.cancelled, "cancelled")
      while answers.count < calls.count {
        _ = goesOn(answers.count, .failure(failure))
        answers.append(.failure(failure))
      }
    }
    let rest =
      isOpen ? HTTPFailure(.notSent, "not sent after what was answered before") : Self.closed
    while answers.count < calls.count { answers.append(.failure(rest)) }
    return answers
  }

  private static let closed = HTTPFailure(.closed, "the session is closed")

  private struct Arrival {
    let answer: Answer
    let delay: Double
  }

  /// Sends a call, and lets the service act on it.
  private func act(on call: HTTPCall) -> Arrival {
    let rest = call.url.dropFirst("https://".count)
    let path = rest.firstIndex(of: "/").map { String(rest[$0...]) } ?? "/"
    let host = String(rest.prefix { $0 != "/" && $0 != ":" }).lowercased()
    guard let service = SimulatedService(host: host, isHTTP2: false) else {
      world.strayed(to: host)
      return Arrival(answer: .failure(HTTPFailure(.resolve, "\(host) has no address")), delay: 0)
    }
    guard services.isReachable(service, from: node) else {
      return Arrival(
        answer: .failure(HTTPFailure(.connect, "no connection to \(host)")),
        delay: configuration.connectTimeout / .seconds(1))
    }
    let patience = configuration.totalTimeout / .seconds(1)
    var memory = ConnectionMemory()
    let arrival = services.receive(
      ServiceRequest(
        now: world.now, host: host, path: path,
        headers: call.headers.map { ($0.name.lowercased(), $0.value) }, body: call.body),
      at: service, node: node, patience: patience, memory: &memory)
    if arrival.delay >= patience {
      return Arrival(answer: .failure(HTTPFailure(.timeout, "no reply in time")), delay: patience)
    }
    switch arrival.outcome {
    case .reply(let answer):
      var reply = HTTPReply(status: answer.status)
      reply.headers = answer.headers
      reply.body = answer.body
      return Arrival(answer: .success(reply), delay: arrival.delay)
    case .refused, .reset, .lost:
      return Arrival(
        answer: .failure(HTTPFailure(.reset, "the connection ended before the reply")),
        delay: arrival.delay)
    }
  }
}
