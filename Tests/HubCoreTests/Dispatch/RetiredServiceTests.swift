import HubTesting
import NotificationHubs
import Testing

@testable import HubCore

@Suite("Services that have ended")
struct RetiredServiceTests {
  @Test(
    "devices of GCM are reported as retired, or reached through FCM v1 where that is wanted",
    arguments: [false, true])
  func migration(migrates: Bool) async throws {
    let gateway = FakeGateway()
    let store = try await temporaryStore()
    let clock = ManualClock()
    let hub = try await store.createHub(
      named: "h", registrationTTL: nil, policies: [], at: clock.now)
    try await store.putCredential(
      PushCredential(platform: .fcmv1, properties: [:], modifiedAt: clock.now), hub: hub.id)
    let routes = GatewayRoutes(
      store: store, gateways: OneGateway(gateway: gateway), migratesGCM: migrates)
    try await routes.refresh()
    switch try await routes.route(LaneKey(hub: hub.id, platform: .gcm)) {
    case .open(let way, _):
      #expect(migrates)
      let body = PushBody(bytes: Array(#"{"data":{}}"#.utf8))
      let batch = PushBatch(
        requests: [
          PushRequest(id: PushID(high: 0, low: 0), handle: 0..<1, body: 0, confirmedAt: 0)
        ], bodies: [body], handles: [65])
      #expect(await way.deliver(batch).map(\.outcome) == [.success])
      #expect(gateway.pushes.map(\.body) == [#"{"data":{}} rewritten"#])
    case .refused(let outcome, let reason):
      #expect(!migrates)
      #expect(outcome == .pnsInterfaceError)
      #expect(reason == "retired service")
    }
  }
}

private struct OneGateway: GatewayDirectory {
  let gateway: FakeGateway

  func gateway(for credential: PushCredential, hub: Hub.ID) -> (any PushGateway)? { gateway }

  func legacy(_ gateway: any PushGateway) -> any PushGateway { Rewriting(base: gateway) }
}

/// Marks what goes through it.
private struct Rewriting: PushGateway {
  let base: any PushGateway

  func deliver(_ batch: PushBatch) async -> [PushResult] {
    var batch = batch
    for index in batch.bodies.indices { batch.bodies[index].bytes += Array(" rewritten".utf8) }
    return await base.deliver(batch)
  }

  func close() async {}
}
