import Foundation
import NotificationHubs
import PushDemo
import SecurePush
import Synchronization

/// The tutorials' app, signed in at the app backend, on a virtual iPhone. It performs the work of
/// both the iOS app and its notification service extension.
final class SecurePhone: Sendable {
  /// The way in which a text reached the user.
  enum Source: String, Encodable, Sendable {
    /// The push contained the text.
    case plain
    /// The push contained the sealed text, which was opened on the phone.
    case opened
    /// The push contained an id, and the backend returned the text to the signed-in user.
    case fetched
    /// The text could neither be opened nor fetched, and a general text is shown.
    case unavailable
  }

  /// A text that the phone has shown.
  struct Showing: Encodable, Sendable {
    enum Place: String, Encodable, Sendable { case alert, notification }

    let place: Place
    let text: String
    let source: Source
    /// The payload from the push service.
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
  /// - Throws: ``CommandFailure`` if the backend is unreachable or rejects the sign-in.
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

  /// The texts that the phone shows from now on. The phone is online during the iteration.
  func showings() -> AsyncThrowingStream<Showing, any Error> {
    .whileIterated { [self] yield in
      for try await arrival in phone.arrivals() {
        for showing in await receive(arrival.payload) { yield(showing) }
      }
    }
  }

  /// Passes a push to the same receiver as iOS: a visible push with a secret to the extension,
  /// another visible one to the app, and one without visible content to the app in the background.
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

  /// Collects the texts shown until they are read.
  private final class Screen: DemoSystem {
    private let shown = Mutex<[(Showing.Place, String)]>([])

    func take() -> [(Showing.Place, String)] {
      shown.withLock { shown in
        defer { shown = [] }
        return shown
      }
    }

    func askForAuthorization() async throws -> Bool { true }
    /// The emulator has already issued the token.
    func registerForRemoteNotifications() async {}
    func showAlert(_ text: String) async { shown.withLock { $0.append((.alert, text)) } }
    func log(_ line: String) {}
    func showNotification(_ text: String, userInfo: [String: String]) async {
      shown.withLock { $0.append((.notification, text)) }
    }
  }
}

/// An in-memory store of secrets for the lifetime of the phone.
private final class PocketSecrets: SecretStore {
  private let values = Mutex<[String: Data]>([:])

  func load(_ name: String) throws -> Data? { values.withLock { $0[name] } }
  func save(_ data: Data?, as name: String) throws { values.withLock { $0[name] = data } }
}
