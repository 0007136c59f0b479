import Foundation
import NotificationHubs
import PushDemo
import SecurePush
import Synchronization

/// The tutorials' app, signed in at the app backend, on a virtual iPhone: what the iOS app does of
/// itself and what its notification service extension does are both done here.
final class SecurePhone: Sendable {
  /// How a text came to the person.
  enum Source: String, Encodable, Sendable {
    /// It stood in the push.
    case plain
    /// It was sealed into the push, and opened on the phone.
    case opened
    /// The push held an id, and the backend gave the text to the signed-in user.
    case fetched
    /// It could neither be opened nor fetched: a general text stands for it.
    case unavailable
  }

  /// One thing that the phone has shown.
  struct Showing: Encodable, Sendable {
    enum Place: String, Encodable, Sendable { case alert, notification }

    let place: Place
    let text: String
    let source: Source
    /// What the push service brought.
    let payload: String
  }

  let phone: VirtualPhone
  let installationID: String
  private let app: DemoApp
  private let screen: Screen

  private init(phone: VirtualPhone, installationID: String, app: DemoApp, screen: Screen) {
    self.phone = phone
    self.installationID = installationID
    self.app = app
    self.screen = screen
  }

  /// Starts the app on a new phone and signs in, which registers it through the backend.
  ///
  /// - Throws: ``CommandFailure``: the backend is not there, or does not take the sign-in.
  static func start(
    control: EmulatorControl, topic: String, backend: URL, user: String, password: String,
    installationID: String = UUID().uuidString.lowercased(), tags: [Tag] = DemoDevice.tags
  ) async throws -> SecurePhone {
    let phone = try await VirtualPhone.make(control: control, topic: topic)
    let screen = Screen()
    let app = DemoApp(
      settings: DemoSettings(connection: nil, hub: "", backend: backend),
      installationID: installationID, tags: tags, system: screen, secrets: PocketSecrets(),
      transport: ClientTransport.shared)
    await app.didFinishLaunching()
    do {
      let token = try phone.demoDevice(installationID: installationID).deviceToken
      try await app.didRegister(deviceToken: token)
      try await app.signIn(user: user, password: password)
    } catch let error as SecurePushClientError {
      throw CommandFailure("\(backend.absoluteString): \(error)", exitCode: Self.exitCode(error))
    }
    return SecurePhone(phone: phone, installationID: installationID, app: app, screen: screen)
  }

  static func exitCode(_ error: SecurePushClientError) -> ExitCode {
    switch error {
    case .unreachable, .unexpectedReply: .unreachable
    default: .refused
    }
  }

  /// What the phone shows of what arrives from now on. It is online while somebody iterates.
  func showings() -> AsyncThrowingStream<Showing, any Error> {
    .whileIterated { [self] yield in
      for try await arrival in phone.arrivals() {
        for showing in await receive(arrival.payload) { yield(showing) }
      }
    }
  }

  /// Hands a push to whom iOS hands it: one to see to the extension if it holds a secret and to the
  /// app otherwise, one without anything to see to the app in the background.
  private func receive(_ payload: String) async -> [Showing] {
    let data = Data(payload.utf8)
    let source: Source
    if SecureMessage(payload: data) == nil {
      _ = await app.willPresent(data)
      source = .plain
    } else if ShownNotification(payload: data)?.isVisible == true {
      switch await app.inbox.content(of: data) {
      case .text(let text, let offline):
        await screen.showNotification(text, userInfo: [:])
        source = offline ? .opened : .fetched
      case .generic(let text):
        await screen.showNotification(text, userInfo: [:])
        source = .unavailable
      case nil, .some(.none): return []
      }
    } else {
      switch await app.didReceiveInBackground(data) {
      case .newData: source = SecureMessage(payload: data)?.sealed == nil ? .fetched : .opened
      case .failed: source = .unavailable
      case .noData: return []
      }
    }
    return screen.take().map { place, text in
      Showing(place: place, text: text, source: source, payload: payload)
    }
  }

  /// Collects what is shown until it is taken.
  private final class Screen: DemoSystem {
    private let shown = Mutex<[(Showing.Place, String)]>([])

    func take() -> [(Showing.Place, String)] {
      shown.withLock { shown in
        defer { shown = [] }
        return shown
      }
    }

    func askForAuthorization() async throws -> Bool { true }
    /// The emulator has given the token already.
    func registerForRemoteNotifications() async {}
    func showAlert(_ text: String) async { shown.withLock { $0.append((.alert, text)) } }
    func log(_ line: String) {}
    func showNotification(_ text: String, userInfo: [String: String]) async {
      shown.withLock { $0.append((.notification, text)) }
    }
  }
}

/// Secrets for as long as the phone runs.
private final class PocketSecrets: SecretStore {
  private let values = Mutex<[String: Data]>([:])

  func load(_ name: String) throws -> Data? { values.withLock { $0[name] } }
  func save(_ data: Data?, as name: String) throws { values.withLock { $0[name] = data } }
}
