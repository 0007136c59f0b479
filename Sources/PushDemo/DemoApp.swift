public import Foundation
public import NotificationHubs
import SecurePush

/// The tutorials' app without its screen: launch, ask, register, sign in, receive. The iOS app and
/// the virtual phone both run this and only adapt their system's callbacks.
public actor DemoApp {
  /// What the system is told after a push that came in the background.
  public enum BackgroundResult: Hashable, Sendable {
    case newData
    case noData
    case failed
  }

  /// A key is replaced when it is this old, in seconds: 90 days.
  private static let keyLife: TimeInterval = 90 * 86_400

  private let settings: DemoSettings
  /// What the hub knows this device by. Kept with the secrets, which survive a reinstall as the
  /// session and the sealing keys do: all three belong together.
  public nonisolated let installationID: String
  private let tags: [Tag]
  private let system: any DemoSystem
  private let secrets: any SecretStore
  private let transport: any HTTPTransport
  private let now: @Sendable () -> Date
  private var deviceToken: Data?
  private var session: DemoSession?
  /// The session's way to the backend; keeps its token fresh.
  private var account: SecurePushClient?

  /// - Parameters:
  ///   - installationID: For a device without one: on iOS `identifierForVendor`, which changes when
  ///     the app is installed again.
  ///   - tags: The tutorial's unless told otherwise.
  public init(
    settings: DemoSettings, installationID: String, tags: [Tag] = DemoDevice.tags,
    system: any DemoSystem, secrets: any SecretStore,
    transport: any HTTPTransport = URLSessionTransport.shared,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.settings = settings
    self.installationID = DemoSession.installationID(in: secrets, orElse: installationID)
    self.tags = tags
    self.system = system
    self.secrets = secrets
    self.transport = transport
    self.now = now
    // The user who was signed in still is: a push may come before the person does.
    session = DemoSession.load(from: secrets)
    account = session?.client(transport, secrets: secrets)
  }

  // MARK: Launch and registration

  /// The app has started: asks for permission, then for a device token.
  public func didFinishLaunching() async {
    do {
      guard try await system.askForAuthorization() else {
        return await system.showAlert("Notifications are off; turn them on in Settings.")
      }
      await system.registerForRemoteNotifications()
    } catch {
      await system.showAlert("Notifications cannot be used: \(error)")
    }
  }

  /// The push service has given a token, at every start again: the device registers with it.
  /// - Throws: What registering throws; the next start tries again.
  public func didRegister(deviceToken: Data) async throws {
    self.deviceToken = deviceToken
    let device = device(deviceToken).installation
    system.log("installationId: \(device.installationID)")
    system.log("pushChannel: \(device.pushChannel.handle)")
    try await register()
  }

  /// The push service has given no token.
  public func didFailToRegister(_ error: any Error) async {
    await system.showAlert("There is no device token: \(error)")
  }

  /// ``didRegister(deviceToken:)`` threw: the hub or the backend said no, or cannot be reached.
  public func didFailToInstall(_ error: any Error) async {
    system.log("Registration issue: \(error)")
    await system.showAlert("This device is not registered: \(error)")
  }

  private func device(_ token: Data) -> DemoDevice {
    DemoDevice(installationID: installationID, deviceToken: token, tags: tags)
  }

  private func register() async throws {
    guard let deviceToken else { return }
    let device = device(deviceToken)
    if let account {
      var installation = device.installation
      installation.sealingKey = try publicKey()
      try await account.install(installation)
    } else if let connection = settings.connection {
      try await DemoRegistration(
        client: NotificationHubClient(
          connectionString: connection, hub: settings.hub, transport: transport)
      ).register(device)
    } else {
      return system.log("Not registered yet: the backend does it when somebody signs in")
    }
    system.log("Registered")
  }

  /// The public half of this device's key; makes the key on first use, and another in time.
  private func publicKey() throws -> SealingPublicKey {
    var ring: SealingKeyRing
    if let stored = try secrets.load(DemoSession.keysName),
      let known = try? SealingKeyRing(storage: stored)
    {
      ring = known
      guard ring.age(at: now()) > Self.keyLife else { return ring.current.publicKey }
      try ring.rotate(at: now())
    } else {
      // New, or damaged: what was sealed for a lost key is fetched by its id.
      ring = try SealingKeyRing(at: now())
    }
    try secrets.save(try ring.storage(), as: DemoSession.keysName)
    return ring.current.publicKey
  }

  // MARK: Sign-in

  /// Who is signed in.
  public var user: String? { session?.token.user }

  /// Signs in at the backend, which from now on registers this device.
  /// The password is not kept.
  /// - Throws: ``SecurePushClientError``; who was signed in before still is. ``DemoSettingsError``
  ///   without a backend.
  public func signIn(user: String, password: String) async throws {
    guard let backend = settings.backend else {
      throw DemoSettingsError(missing: "backendURL")
    }
    let token = try await SecurePushClient.signIn(
      backend: backend, user: user, password: password, transport: transport)
    let new = DemoSession(installationID: installationID, backend: backend, token: token)
    let former = (session, account)
    (session, account) = (new, new.client(transport, secrets: secrets))
    do {
      try await register()
      try new.save(to: secrets)
    } catch {
      (session, account) = former
      throw error
    }
  }

  /// Signs out: the device leaves the hub, so that the next user of this phone gets nothing of this
  /// one's.
  public func signOut() async throws {
    try await account?.uninstall(installationID)
    try await account?.signOut()
    (session, account) = (nil, nil)
    try DemoSession.forget(in: secrets)
  }

  /// The tutorial's button "Send push": a secure notification to oneself.
  /// - Returns: Its id.
  @discardableResult
  public func sendPush(_ payload: String? = nil) async throws -> String {
    guard let account else { throw SecurePushClientError.notSignedIn("sign in first") }
    return try await account.send(payload)
  }

  // MARK: Pushes

  /// What messages are read with.
  public var inbox: SecureInbox {
    SecureInbox(installationID: installationID, secrets: secrets, backend: account)
  }

  /// A notification arrives while the app is in the foreground: the tutorial shows its text over
  /// the app.
  /// - Returns: Whether that was done; otherwise the system is to show the notification as it is.
  public func willPresent(_ payload: Data) async -> Bool { await showAlert(payload) }

  /// The person has tapped on a notification.
  public func didOpen(_ payload: Data) async { _ = await showAlert(payload) }

  /// A push without anything to see has woken the app.
  public func didReceiveInBackground(_ payload: Data) async -> BackgroundResult {
    switch await inbox.content(of: payload) {
    case nil, .some(.none): return .noData
    case .text(let text, _):
      await system.showNotification(text, userInfo: SecureInbox.userInfo(showing: text))
      return .newData
    case .generic(let text):
      await system.showNotification(text, userInfo: SecureInbox.userInfo(fetching: payload))
      return .failed
    }
  }

  private func showAlert(_ payload: Data) async -> Bool {
    switch await inbox.content(of: payload) {
    case nil:
      guard let shown = ShownNotification(payload: payload), !shown.summary.isEmpty else {
        return false
      }
      await system.showAlert(shown.summary)
    case .text(let text, _), .generic(let text): await system.showAlert(text)
    case .some(.none): break
    }
    return true
  }
}

/// What the app needs of the system it runs on: iOS, or the virtual phone. Only this is different
/// between them.
public protocol DemoSystem: Sendable {
  /// Asks the person for permission to show notifications, the first time only.
  func askForAuthorization() async throws -> Bool
  /// Asks the push service for a device token; the answer comes as
  /// ``DemoApp/didRegister(deviceToken:)`` or ``DemoApp/didFailToRegister(_:)``.
  func registerForRemoteNotifications() async
  /// Shows a text over the app: it is in the foreground.
  func showAlert(_ text: String) async
  /// Posts a local notification.
  ///
  /// - Parameter userInfo: Belongs into the notification's `userInfo`: the app is handed it back,
  ///   as ``DemoApp/willPresent(_:)`` when it is in the foreground, and as ``DemoApp/didOpen(_:)``
  ///   when the person taps.
  func showNotification(_ text: String, userInfo: [String: String]) async
  /// Prints a line for the developer, as the tutorial does.
  func log(_ line: String)
}

/// Where an app keeps its secrets: the keychain, in an access group that its notification service
/// extension shares.
public protocol SecretStore: Sendable {
  /// - Returns: `nil` when nothing is kept under that name.
  func load(_ name: String) throws -> Data?
  /// - Parameter data: `nil` forgets what is kept under that name.
  func save(_ data: Data?, as name: String) throws
}
