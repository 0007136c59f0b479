import Foundation
import HubTesting
import NotificationHubs
import Testing

@testable import HubCore

@Suite("Services that have ended")
struct RetiredServiceTests {
  @Test(
    "a legacy message becomes one of HTTP v1",
    arguments: [
      (
        #"{"data":{"a":"b","n":1,"o":{"x":[true]}}}"#,
        #"{"message":{"data":{"a":"b","n":"1","o":"{\"x\":[true]}"}}}"#
      ),
      (
        #"{"notification":{"title":"t","body":"b","sound":"s"},"dry_run":true}"#,
        #"{"validate_only":true,"message":{"notification":{"title":"t","body":"b"},"#
          + #""android":{"notification":{"sound":"s"}}}}"#
      ),
      (
        #"{"to":"x","registration_ids":["y"],"content_available":true,"collapse_key":"k","#
          + #""time_to_live":60,"priority":"high","restricted_package_name":"p"}"#,
        #"{"message":{"android":{"collapse_key":"k","ttl":"60s","priority":"HIGH","#
          + #""restricted_package_name":"p"}}}"#
      ),
      ("{}", #"{"message":{}}"#),
    ])
  func conversion(legacy: String, expected: String) {
    let converted = LegacyFCMGateway.converted(Array(legacy.utf8))
    #expect(converted.map { String(decoding: $0, as: UTF8.self) } == expected)
  }

  @Test("what is no message stays for the gateway to refuse")
  func garbage() {
    #expect(LegacyFCMGateway.converted(Array("[1]".utf8)) == nil)
    #expect(LegacyFCMGateway.converted(Array("{".utf8)) == nil)
  }

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
      #expect(gateway.pushes.map(\.body) == [#"{"message":{"data":{}}}"#])
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
}
