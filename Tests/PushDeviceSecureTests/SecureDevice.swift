import Foundation
import NotificationHubs
import PushDevice
import PushDeviceSecure
import PushDeviceTesting
import SecurePush
import Testing

/// A device whose app has a backend, over several launches.
struct SecureDevice {
  let storage = FakeStorage()
  let backend: FakeBackend
  let clock = ManualDeviceClock()

  init(backend: FakeBackend = FakeBackend()) { self.backend = backend }

  /// An account of a process: the app's, or the service extension's.
  func account() throws -> BackendAccount {
    BackendAccount(
      backend: try #require(URL(string: "https://backend.example")), storage: storage,
      transport: backend, now: { [clock] in clock.now })
  }

  func launch() async throws -> (push: PushInstallation, account: BackendAccount) {
    clock.endProcess()
    let account = try account()
    let push = PushInstallation(
      registrar: account.registrar, storage: storage, system: FakeSystem(), clock: clock,
      jitter: { 1 }, enrich: account.enrichment)
    await account.start(push)
    await push.didRegister(deviceToken: Data([0x0a, 0xff]))
    await push.settled()
    await clock.advance(by: .seconds(1))
    return (push, account)
  }

  func signedIn(as user: String = "alice") async throws -> (
    push: PushInstallation, account: BackendAccount
  ) {
    let (push, account) = try await launch()
    try await account.signIn(user: user, password: user, on: push)
    try await push.synchronize()
    return (push, account)
  }

  /// Everything that is stored, as text.
  var stored: String {
    [StoredItem.installationID, .record, StoredItem("sign-ins", isSecret: true)]
      .compactMap { storage[$0] }.map { String(decoding: $0, as: UTF8.self) }.joined()
  }

  /// A push with a payload sealed for the registered key.
  func sealedPush(_ text: String) throws -> PushMessage {
    let recipient = try #require(backend.installation.flatMap { SealingRecipient($0) })
    let message = SecureMessage(
      id: "m9", sealed: try seal(Data(text.utf8), id: "m9", for: recipient))
    let push = try #require(message.notification(for: .apns, as: .alert("You have a message")))
    return try #require(PushMessage(json: push.body))
  }
}

extension PushInstallation.State {
  /// The failure; `nil` if there is none.
  var error: RegistrarError? { if case .failed(let error, _) = self { error } else { nil } }
}
