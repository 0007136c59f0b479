// The samples of docs/device.md and of PushDevice.docc: DocumentationTests compares.

import Foundation
import NotificationHubs
import PushDevice
import PushDeviceTesting
import Testing

struct Session {
  func token(of user: String, insteadOf refused: String?) async throws -> String { user }
}

typealias Fetch = @Sendable () async throws -> SharedAccessSignature

func registrars(
  url: URL, session: Session, endpoint: ServiceEndpoint, fetch: @escaping Fetch
) -> [any InstallationRegistrar] {
  let backend = BackendRegistrar(backend: url) { user, refused in
    try await session.token(of: user, insteadOf: refused)
  }
  let hub = HubRegistrar(
    endpoint: endpoint, hub: "news", tokens: TokenProvider { try await fetch() })
  return [backend, hub]
}

func wishes(_ push: PushInstallation) async throws {
  try await push.insert("news")
  try await push.update { wishes in
    wishes.tags.remove("sport")
    wishes.templates["main"] = PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)
  }
  let receipt = try await push.synchronize()
  print("the hub has", receipt.fingerprint)
}

func watch(_ push: PushInstallation) async {
  for await state in push.states {
    switch state {
    case .saved: print("registered")
    case .failed(let error, _): print("not registered: \(error)")
    default: break
    }
  }
}

@Test("the test of docs/device.md passes")
func documentedTest() async throws {
  let token = Data(repeating: 1, count: 32)
  let (hub, clock) = (FakeRegistrar(), ManualDeviceClock())
  let push = PushInstallation(
    registrar: hub, storage: FakeStorage(), system: FakeSystem(), clock: clock, jitter: { 1 })
  await push.didRegister(deviceToken: token)
  hub.answer = .offline
  await clock.advance(by: .seconds(1))
  let error = RegistrarError(.unreachable, "offline")
  #expect(await push.state == .failed(error, retryAt: clock.now + 2))
}
