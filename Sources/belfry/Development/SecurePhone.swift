import Foundation
import NotificationHubs
import PushDevice
import PushDeviceSecure
import SecurePush

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

  let installationID: String
  private let app: PhoneApp
  private let account: BackendAccount

  private init(installationID: String, app: PhoneApp, account: BackendAccount) {
    self.installationID = installationID
    self.app = app
    self.account = account
  }

  var phone: VirtualPhone { app.device }

  /// Starts the app and signs in, which registers the phone through the backend.
  ///
  /// - Parameter note: Is told how the phone found its storage.
  /// - Throws: ``CommandFailure`` if the backend is unreachable or rejects the sign-in.
  static func start(
    phone: VirtualPhone, storage: PhoneStorage, circumstances: PhoneCircumstances, backend: URL,
    user: String, password: String, tags: Set<Tag>, note: @escaping @Sendable (String) -> Void
  ) async throws -> SecurePhone {
    let network = PhoneNetwork(ClientTransport.shared, isOffline: false)
    let account = BackendAccount(backend: backend, storage: storage, transport: network)
    let app = PhoneApp(
      phone: phone, storage: storage, circumstances: circumstances, network: network,
      registrar: account.registrar, enrichment: account.enrichment)
    do {
      try await app.launch(note: note) { push in
        await account.start(push)
        try await push.update { $0.tags = tags }
        try await push.update { $0.templates = PushPlatform.apns.phoneTemplates }
        if try await !isSignedIn(user, push) {
          try await account.signIn(user: user, password: password, on: push)
        }
      }
      try await app.registered()
    } catch let error as RegistrarError {
      throw CommandFailure(
        "\(backend.absoluteString): \(error)",
        exitCode: error.kind == .unreachable ? .unreachable : .refused)
    } catch SecurePushClientError.notSignedIn("") {
      // A backend says why.
      throw CommandFailure(
        "no app backend answers at \(backend.absoluteString): `belfry up` prints its address",
        exitCode: .refused)
    } catch let error as SecurePushClientError {
      throw CommandFailure("\(backend.absoluteString): \(error)", exitCode: Self.exitCode(error))
    }
    return SecurePhone(
      installationID: await app.push.installationID ?? "", app: app, account: account)
  }

  /// Whether the user is signed in, and the backend has not ended that.
  private static func isSignedIn(_ user: String, _ push: PushInstallation) async throws -> Bool {
    guard try await push.userID == user else { return false }
    do { try await push.synchronize() } catch let error as RegistrarError {
      return error.kind != .unauthorized
    } catch is NotRegistered {}
    return true
  }

  private static func exitCode(_ error: SecurePushClientError) -> ExitCode {
    switch error {
    case .unreachable, .unexpectedReply: .unreachable
    default: .refused
    }
  }

  /// The texts that the phone shows from now on. The phone is online during the iteration.
  func showings() -> AsyncThrowingStream<Showing, any Error> {
    .whileIterated { [self] yield in
      for try await arrival in phone.arrivals() {
        if let showing = await receive(arrival.payload) { yield(showing) }
      }
    }
  }

  /// Passes a push to the same receiver as iOS: a visible push with a secret to the service
  /// extension, another visible one to the app, and one without visible content to the app in the
  /// background, which posts a notification.
  private func receive(_ payload: String) async -> Showing? {
    guard let message = PushMessage(json: Data(payload.utf8)) else { return nil }
    let (place, text, source): (Showing.Place, String, Source)
    switch await account.messages.content(of: message) {
    case nil where message.text.summary.isEmpty: return nil
    case nil: (place, text, source) = (.alert, message.text.summary, .plain)
    case .text(let opened, let offline):
      (place, text, source) = (.notification, opened, offline ? .opened : .fetched)
    case .generic(let general): (place, text, source) = (.notification, general, .unavailable)
    case .some(.none): return nil
    }
    return Showing(place: place, text: text, source: source, payload: payload)
  }

  /// See ``PhoneApp/live(note:)``.
  func live(note: @escaping @Sendable (String) -> Void) async throws {
    try await app.live(note: note)
  }
}
