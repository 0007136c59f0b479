import Foundation
package import HubCore
import NotificationHubs
import PushGateways

/// The push services of a life: the simulated ones, and what its plan does to them.
final class LifeServices: @unchecked Sendable {  // owner: the world's thread
  let simulated: SimulatedServices
  private let world: World
  /// Handles whose app is gone.
  private(set) var dead: Set<String> = []
  fileprivate private(set) var replacements: [String: String] = [:]

  /// - Parameters:
  ///   - saw: Hears of each request.
  ///   - strayed: Hears of each look for a host that has no service.
  init(
    _ world: World, seed: UInt64, saw: @escaping (ServiceCall) -> Void,
    strayed: @escaping (_ host: String) -> Void
  ) {
    self.world = world
    simulated = SimulatedServices(
      world: Surroundings(world, seed: seed, saw: saw, strayed: strayed))
  }

  /// The gateways of a process.
  func gateways(
    of machine: Int, nodes: NodeCount, clock: HubClock, random: HubRandom
  ) -> LifeGateways {
    LifeGateways(
      directory: PushGatewayDirectory(
        transport: simulated.transport(node: machine), nodes: nodes, clock: clock, random: random),
      services: self)
  }

  static func service(_ platform: PushPlatform) -> SimulatedService {
    switch platform {
    case .fcmv1: .fcm
    case .wns: .wns
    case .browser: .webPush
    default: .apns
    }
  }

  // MARK: What goes wrong

  /// Does what a line of the plan says.
  func strike(_ line: Plan.Line, for seconds: Double) {
    let service = Self.service(
      Names.platforms[line.act.arguments.first == "platform" ? line[0] : 0])
    let end = world.date + seconds
    switch line.act {
    case .throttle:
      fault(service) { $0.throttle = .init(until: end, retryAfter: Self.time(line[2])) }
    case .fail:
      fault(service) {
        $0.failure = .init(
          until: end, status: UInt16(clamping: line[2]), retryAfter: Self.time(line[3]))
      }
    case .silence: fault(service) { $0.hangsUntil = end }
    case .withhold:
      for service in [SimulatedService.fcmTokens, .wnsTokens] {
        fault(service) {
          switch line[1] {
          case 0: $0.failure = .init(until: end, status: 500)
          case 1: $0.hangsUntil = end
          default: $0.unreachableUntil[nil] = end
          }
        }
      }
    case .revoke: simulated.with { $0.revokeAccessTokens() }
    case .slander: fault(service) { $0.callsAllDeadUntil = max(end, $0.callsAllDeadUntil ?? end) }
    case .forbid, .disconnect:
      let machine = line[2] > 0 ? line[2] - 1 : nil
      let ends = line.act == .forbid ? \ServiceFaults.refusesUntil : \.unreachableUntil
      fault(service) { $0[keyPath: ends][machine] = max(end, $0[keyPath: ends][machine] ?? end) }
    case .die:
      dead.insert(Names.handle(line[1]))
      let handle = SimulatedServices.Handle(
        Self.service(Names.platform(ofHandle: line[1])), Names.channel(line[1]).handle)
      simulated.with { [now = world.date] in $0.handles[handle] = .dead(since: now) }
    case .replace: replacements[Names.handle(line[0])] = Names.handle(line[1])
    case .reset:
      let kinds = ServiceFaults.Single.allCases
      fault(service) { $0.next.append(kinds[line[1] % kinds.count]) }
    case .goAway:
      fault(service) { $0.goAways.append(line[1] == 1 ? "IdleTimeout" : "Shutdown") }
    default: break
    }
  }

  private static func time(_ seconds: Int) -> Int? { seconds > 0 ? seconds : nil }

  private func fault(_ service: SimulatedService, _ change: (inout ServiceFaults) -> Void) {
    simulated.with { $0.setFaults(service, change) }
  }

  func heal() { simulated.with { $0.heal() } }

  /// The life as its services see it.
  // Owner of its state: the world's thread.
  private final class Surroundings: ServiceWorld, @unchecked Sendable {
    private let world: World
    private var draw: RandomStream
    private let hears: (ServiceCall) -> Void
    private let misses: (_ host: String) -> Void

    init(
      _ world: World, seed: UInt64, saw: @escaping (ServiceCall) -> Void,
      strayed: @escaping (_ host: String) -> Void
    ) {
      self.world = world
      draw = RandomStream(seed, UInt64(keyOf: "services"))
      hears = saw
      misses = strayed
    }

    var now: Date { world.date }

    func wait(_ seconds: Double) async throws {
      let due = world.seconds + seconds
      try await world.sleep(at: world.current) { [world] in due - world.seconds }
    }

    func chance() -> UInt64 { draw.next() }
    func note(_ line: String) { world.note(line, at: world.current) }
    func saw(_ call: ServiceCall) { if !world.isClosing { hears(call) } }

    func strayed(to host: String) {
      guard !world.isClosing else { return }
      note("nothing is at \(host)")
      misses(host)
    }
  }
}

/// The gateways of one process. They add what only services of the past say with a success: that a
/// device has another handle now.
package struct LifeGateways: GatewayDirectory {
  private struct Gateway: PushGateway {
    let base: any PushGateway
    let services: LifeServices

    func deliver(_ batch: PushBatch) async -> [PushResult] {
      var results = await base.deliver(batch)
      guard !services.replacements.isEmpty else { return results }
      for (index, request) in batch.requests.enumerated()
      where results[index].outcome == .success {
        let handle = String(decoding: batch.handles[request.handle], as: UTF8.self)
        guard let new = services.replacements[handle] else { continue }
        results[index].handle = .replace
        results[index].newHandle = new
      }
      return results
    }

    func load() async -> GatewayLoad? { await base.load() }
    func close() async { await base.close() }
    var pool: GatewayPool? { base.pool }
  }

  let directory: PushGatewayDirectory
  let services: LifeServices

  package func gateway(
    for credential: PushCredential, hub: Hub.ID
  ) async throws -> (any PushGateway)? {
    let gateway = try await directory.gateway(for: credential, hub: hub)
    return gateway.map { Gateway(base: $0, services: services) }
  }

  package func loads() async -> [PlacedLoad] { await directory.loads() }
  package func close() async { await directory.close() }
}
