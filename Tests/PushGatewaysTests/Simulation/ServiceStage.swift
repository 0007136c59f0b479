import Foundation
import HubCore
import HubSimulation
import HubTesting
import NotificationHubs
import StoreContract
import Synchronization
import Testing

@testable import PushGateways

/// Simulated services with one node's real gateways in front of them. Whoever waits moves the clock:
/// time is what the services and the gateways take.
struct ServiceStage {
  final class World: ServiceWorld {
    /// Its steady time is the true one; the node reads the other.
    let clock = ManualClock()
    private let generator: Mutex<SeededGenerator>
    private let noted = Mutex<[String]>([])

    init(seed: UInt64) { generator = Mutex(SeededGenerator(seed: seed)) }

    var now: Date { clock.hubClock.steady() }
    var lines: [String] { noted.withLock { $0 } }

    func wait(_ seconds: Double) async throws {
      try Task.checkCancellation()
      clock.advance(by: .seconds(seconds))
    }

    func chance() -> UInt64 { generator.withLock { $0.next() } }
    func note(_ line: String) { noted.withLock { $0.append(line) } }
  }

  let world: World
  let services: SimulatedServices
  let directory: PushGatewayDirectory
  let app = SimulatedApp(number: 1)

  init(seed: UInt64 = 1) {
    let world = World(seed: seed)
    self.world = world
    services = SimulatedServices(world: world)
    directory = PushGatewayDirectory(
      transport: services.transport(node: 3), clock: world.clock.hubClock,
      random: HubRandom { [world] in world.chance() })
    services.with { $0.add(app) }
  }

  func gateway(
    _ platform: PushPlatform, _ kind: SimulatedApp.Credential = .first
  ) async throws -> any PushGateway {
    let credential = app.credential(platform, kind, modifiedAt: world.now)
    return try #require(try await directory.gateway(for: credential, hub: 1))
  }

  /// What most tests send with.
  func apns() async throws -> any PushGateway { try await gateway(.apns) }

  func set(_ handle: String, at service: SimulatedService, _ fate: SimulatedHandle) {
    services.with { $0.handles[.init(service, handle)] = fate }
  }

  func fault(_ service: SimulatedService, _ change: (inout ServiceFaults) -> Void) {
    services.with { $0.setFaults(service, change) }
  }
}
