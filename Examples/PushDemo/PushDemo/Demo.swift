import Foundation
import NotificationHubs
import PushDevice
import PushDeviceSecure

/// The app without its screens: an installation, and an account if there is a backend.
@MainActor final class Demo {
  /// `nil` if the settings cannot be used: then ``problem`` says why.
  private(set) var push: PushInstallation?
  /// `nil` for an app that registers with the hub itself.
  private(set) var account: BackendAccount?
  private(set) var problem: String?

  init() {
    do {
      let settings = try DemoSettings.ofBundle()
      let storage = SharedStorage.storage
      if let backend = settings.backend {
        let account = BackendAccount(backend: backend, storage: storage)
        self.account = account
        push = PushInstallation(
          registrar: account.registrar, storage: storage, system: UserNotificationSystem(),
          enrich: account.enrichment)
      } else if let connection = settings.connection {
        // The tutorial's way, for trials: the key can be extracted, and its holder chooses the tags.
        push = PushInstallation(
          registrar: HubRegistrar(connectionString: connection, hub: settings.hub),
          storage: storage, system: UserNotificationSystem())
      }
    } catch {
      problem = "\(error)"
    }
  }

  /// At each launch, also one in the background.
  func start() async {
    guard let push else { return }
    if let account { await account.start(push) } else { await push.start() }
    // The tutorial's tag and template. While the device is locked they cannot be stored; the launch
    // in which somebody sees the app does it.
    try? await push.update {
      $0.tags.insert("12345")
      $0.templates["genericTemplate"] = PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)
    }
  }

  func signIn(user: String, password: String) async throws {
    guard let push, let account else { return }
    try await account.signIn(user: user, password: password, on: push)
  }

  func signOut() async throws {
    guard let push, let account else { return }
    try await account.signOut(of: push)
  }

  /// - Returns: `nil` if it is not a secure message.
  func content(of message: PushMessage) async -> SealedMessages.Content? {
    await account?.messages.content(of: message)
  }

  /// The members by which a tap on a notification finds its text again.
  func userInfo(showing text: String) -> [String: String] {
    account?.messages.userInfo(showing: text) ?? [:]
  }

  /// The text of a push to show in the app; `nil` if there is none.
  func text(of message: PushMessage) async -> String? {
    switch await content(of: message) {
    case .text(let text, _), .generic(let text): text
    case .some(.none): nil
    case nil: message.text.summary.isEmpty ? nil : message.text.summary
    }
  }
}
