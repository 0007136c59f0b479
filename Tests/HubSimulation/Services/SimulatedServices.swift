package import Cryptography
import Foundation
import HTTP2
package import PushGateways
import Synchronization

/// The push services and token services of one life, shared by all of its nodes: what they know,
/// what is wrong with them, and what they were asked.
///
/// A service acts on a request at the moment when the node sends it; what takes time is the answer.
/// So the time of a push is right even when its node is stopped meanwhile.
package final class SimulatedServices: Sendable {
  /// Configuration of the services, and a record of the requests to them.
  package struct State: Sendable {
    // Valid credentials. A change takes effect at once.

    /// Provider token keys by their ids.
    package var apnsKeys: [String: APNsKey] = [:]
    /// Service accounts by their addresses.
    package var accounts: [String: ServiceAccount] = [:]
    /// The secrets of Windows apps by Package SID (`ms-app://…`), or by the client id of Microsoft
    /// Entra, in lower case.
    package var windowsSecrets: [String: Set<String>] = [:]
    /// The application server keys that any subscription may be made with; empty for all.
    package var applicationKeys: Set<String> = []
    /// By platform's service and handle.
    package var handles: [Handle: SimulatedHandle] = [:]
    /// All requests, in the order of their time.
    package internal(set) var calls: [ServiceCall] = []

    /// Provider tokens that APNs has seen, by their text.
    var providerTokens: [String: ProviderTokenFacts] = [:]
    var grants = AccessGrants()
    /// VAPID tokens that were verified, by token and key.
    var vapidTokens: [String: VAPIDFacts] = [:]

    private var allFaults: [SimulatedService: ServiceFaults] = [:]

    package func faults(_ service: SimulatedService) -> ServiceFaults {
      allFaults[service] ?? ServiceFaults()
    }

    package mutating func setFaults(
      _ service: SimulatedService, _ change: (inout ServiceFaults) -> Void
    ) {
      change(&allFaults[service, default: ServiceFaults()])
    }

    /// Ends all faults. Dead handles stay dead.
    package mutating func heal() { allFaults = [:] }

    /// The number of different provider tokens that APNs has seen of a key.
    package func providerTokenCount(of key: String) -> Int {
      providerTokens.values.count { $0.kid == key }
    }

    /// Ends all access tokens before their time.
    package mutating func revokeAccessTokens() { grants.revokeAll() }
  }

  /// A handle at its service.
  package struct Handle: Hashable, Sendable {
    package let service: SimulatedService
    /// As the wire has it: of APNs in lower case, of Web Push the endpoint alone.
    package let text: String

    package init(_ service: SimulatedService, _ text: String) {
      self.service = service
      self.text = service == .apns ? text.lowercased() : text
    }
  }

  /// A provider token key as Apple knows it.
  package struct APNsKey: Sendable {
    package var team: String
    package var key: P256PublicKey
    /// The bundle ids of its team's apps.
    package var topics: Set<String>

    package init(team: String, key: P256PublicKey, topics: Set<String>) {
      self.team = team
      self.key = key
      self.topics = topics
    }
  }

  /// A service account as Google knows it.
  package struct ServiceAccount: Sendable {
    package var project: String
    package var key: RSAPublicKey

    package init(project: String, key: RSAPublicKey) {
      self.project = project
      self.key = key
    }
  }

  let world: any ServiceWorld
  private let state = Mutex(State())

  package init(world: any ServiceWorld) { self.world = world }

  /// Reads or changes what the services know. Not to be called from within itself.
  package func with<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
    state.withLock { body(&$0) }
  }

  /// All requests so far, in the order of their time.
  package var calls: [ServiceCall] { with { $0.calls } }

  /// The pushes that devices got, in the order of their time.
  package var pushes: [ServiceCall] {
    calls.filter { $0.isTaken && !$0.service.isForTokens }
  }

  /// The transport of a node's gateways.
  package func transport(node: Int) -> PushTransport {
    PushTransport(
      connect: { SimulatedConnection(self, node: node, $0) },
      session: { SimulatedSession(self, node: node, $0) })
  }

  /// Whether connections to a service come about now.
  func isReachable(_ service: SimulatedService, from node: Int) -> Bool {
    let now = world.now
    return with { $0.faults(service).isReachable(from: node, at: now) }
  }

  /// Whether the next batch ends its connection; the reason that APNs gives.
  func takeGoAway(_ service: SimulatedService) -> String? {
    with { state in
      guard let reason = state.faults(service).goAways.first else { return nil }
      state.setFaults(service) { $0.goAways.removeFirst() }
      return reason
    }
  }

  /// Takes a request, acts on it and notes it.
  ///
  /// - Parameters:
  ///   - patience: How long the sender waits for the answer, in seconds.
  ///   - memory: What the service remembers of the connection.
  func receive(
    _ request: ServiceRequest, at service: SimulatedService, node: Int, patience: Double,
    memory: inout ConnectionMemory
  ) -> ServiceArrival {
    var call = ServiceCall(at: request.now, service: service, node: node)
    let latency = world.chance(in: 0.01...0.1)
    let isActedOn = world.chance() & 1 == 0
    let arrival = with { state in
      let arrival = state.arrival(
        of: request, latency: latency, isActedOn: isActedOn, patience: patience, &memory, &call)
      state.calls.append(call)
      return arrival
    }
    if !call.isTaken || !call.isAnswered {
      world.note(
        "\(service.rawValue) answers node \(node): \(call.status) \(call.reason)"
          + (call.isTaken ? ", taken" : "") + (call.isAnswered ? "" : ", unheard"))
    }
    world.saw(call)
    return arrival
  }
}

extension SimulatedServices.State {
  fileprivate mutating func arrival(
    of request: ServiceRequest, latency: Double, isActedOn: Bool, patience: Double,
    _ memory: inout ConnectionMemory, _ call: inout ServiceCall
  ) -> ServiceArrival {
    let faults = faults(call.service)
    var single: ServiceFaults.Single?
    if !faults.next.isEmpty { setFaults(call.service) { single = $0.next.removeFirst() } }
    var delay = latency
    if let hangsUntil = faults.hangsUntil, hangsUntil > request.now {
      delay += hangsUntil.timeIntervalSince(request.now)
    }
    if single == .late { delay = patience + latency }
    let isHeard = delay < patience
    if !faults.isReachable(from: call.node, at: request.now) { single = .lostBefore }
    // Read whatever happens: who asked, and for what, is noted of each.
    let reply = answer(request, &memory, &call)
    call.isAnswered = isHeard && single == nil
    call.delay = delay
    let isIgnored =
      switch single {
      case .refused, .resetBefore, .lostBefore: true
      case .resetAfter, .lostAfter, .late: false
      case nil: !isHeard && !isActedOn
      }
    if isIgnored { (call.isTaken, call.isDead, call.status) = (false, false, 0) }
    if !call.isAnswered { call.reason = single.map { "\($0)" } ?? "silence" }
    let outcome: ServiceArrival.Outcome =
      switch single {
      case .refused: .refused
      case .resetBefore, .resetAfter: .reset
      case .lostBefore, .lostAfter: .lost
      case .late, nil: .reply(reply)
      }
    return ServiceArrival(outcome: outcome, delay: delay)
  }

  private mutating func answer(
    _ request: ServiceRequest, _ memory: inout ConnectionMemory, _ call: inout ServiceCall
  ) -> ServiceReply {
    var reply = judge(request, &memory, &call)
    if let failure = faults(call.service).failure(at: request.now) {
      (call.isTaken, call.isDead, call.refusal, call.reason) = (false, false, nil, "failing")
      reply = Self.failure(failure.status, of: call.service).retry(after: failure.retryAfter)
    }
    call.status = reply.status
    call.retryAfter = reply.headers.first { $0.name == "retry-after" }.flatMap { Int($0.value) }
    return reply
  }

  private mutating func judge(
    _ request: ServiceRequest, _ memory: inout ConnectionMemory, _ call: inout ServiceCall
  ) -> ServiceReply {
    switch call.service {
    case .apns: return apns(request, &memory, &call)
    case .fcm: return fcm(request, &call)
    case .fcmTokens: return googleToken(request, &call)
    case .wns: return wns(request, &call)
    case .wnsTokens: return windowsToken(request, &call)
    case .webPush: return webPush(request, &call)
    }
  }

  private static func failure(_ status: UInt16, of service: SimulatedService) -> ServiceReply {
    switch service {
    case .apns:
      let word = status == 503 ? "ServiceUnavailable" : "InternalServerError"
      return ServiceReply(status, #"{"reason":"\#(word)"}"#)
    case .fcm:
      let word = status == 503 ? "UNAVAILABLE" : "INTERNAL"
      return fcmError(status, word, "failing", code: word)
    case .fcmTokens, .wns, .wnsTokens, .webPush: return ServiceReply(status)
    }
  }

  /// Returns the state of a handle that a request names.
  func handle(_ text: String, _ call: inout ServiceCall, at now: Date) -> SimulatedHandle {
    call.handle = text
    // A moment ago: a registration from before that is what is to go.
    if faults(call.service).callsAllDeadUntil.map({ now < $0 }) ?? false {
      return .dead(since: now)
    }
    return handles[SimulatedServices.Handle(call.service, text)] ?? .alive
  }
}
