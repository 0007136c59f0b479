import Foundation
import HubCore
import HubTesting
import NotificationHubs

/// A hub service over a store with one hub, `hub1`.
struct TestHub {
  let hook = StoreHook()
  let store: any HubStore
  let clock = ManualClock()
  let service: HubService
  let hub: Hub

  init(registrationTTL: TimeInterval? = nil) async throws {
    store = try await temporaryStore(hook)
    let clock = clock.hubClock
    service = HubService(
      store: store, directory: HubDirectory(store: store, clock: clock),
      dispatcher: Dispatcher(store: store, gateways: StubGateways(), clock: clock, random: .system),
      clock: clock, random: .system,
      gateways: StubGateways())
    hub = try await service.createHub(named: "hub1", registrationTTL: registrationTTL)
  }

  /// A token of a policy's key for `https://h/hub1`, good for twenty minutes.
  func token(
    _ policy: AccessPolicy, resource: String = "https://h/hub1", key: String? = nil
  ) -> String {
    SharedAccessSignature(
      resource: resource, keyName: policy.name, key: key ?? policy.primaryKey,
      expiresAt: clock.now.addingTimeInterval(1200)
    ).text
  }

  func full() async throws -> AccessPolicy {
    try await service.policies.get(named: AccessPolicy.defaultFullName, hub: "hub1")
  }

  func authorize(
    _ header: String?, hub: String = "hub1", host: String? = "h", path: String = "/hub1/messages",
    publicNames: [String] = [], requiring right: AccessRights = .send
  ) async throws -> Hub {
    try await service.authorize(
      TokenCall(
        header: header.map { Array($0.utf8)[...] }, host: host.map { Array($0.utf8)[...] },
        path: Array(path.utf8)[...], publicNames: publicNames),
      hub: hub, requiring: right)
  }
}

/// Takes every credential whose `Token` is not `bad`; has no gateway for ADM.
struct StubGateways: GatewayDirectory {
  private struct Silent: PushGateway {
    func deliver(_ batch: PushBatch) async -> [PushResult] { batch.requests.map { _ in .success } }
    func close() async {}
  }

  func gateway(for credential: PushCredential, hub: Hub.ID) async throws -> (any PushGateway)? {
    if credential["Token"] == "bad" { throw CredentialError("'Token' is no private key") }
    return credential.platform == .adm ? nil : Silent()
  }
}
