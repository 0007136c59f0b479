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
  private let newInstallationID: String
  private let tags: [Tag]
  private let system: any DemoSystem
  private let secrets: any SecretStore
  private let transport: any HTTPTransport
  private let now: @Sendable () -> Date
  private var deviceToken: Data?
  /// The last try to register failed, or found the secrets locked; or there was none yet.
  private var isRegistrationOwed = true
  private var knownID: String?
  private var session: DemoSession?
  /// The session's way to the backend; keeps its token fresh.
  private var account: SecurePushClient?
  /// Tells the backend of a sign-out. One at a time: a late call would take away what the next
  /// user has registered.
  private var leaving: Task<Void, any Error>?

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
    newInstallationID = installationID
    self.tags = tags
    self.system = system
    self.secrets = secrets
    self.transport = transport
    self.now = now
  }

  /// The id under which the hub knows this device. Kept with the secrets, which survive a reinstall
  /// as the session and the sealing keys do: all three belong together. `nil` while the secrets are
  /// locked, as before the phone's first unlock: with another id the hub would have the device
  /// twice.
  public var installationID: String? { try? unlock() }

  /// Reads the device's id and who is signed in, unless they are known. Everything that needs one of
  /// them begins with this: a push may start the app, before the person does.
  /// - Returns: The device's id.
  /// - Throws: The error of the secrets while they are locked.
  @discardableResult
  private func unlock() throws -> String {
    if let knownID { return knownID }
    let kept = try DemoSession.restore(from: secrets, orElse: newInstallationID)
    knownID = kept.installationID
    session = kept.session
    account = kept.session?.client(transport, secrets: secrets)
    return kept.installationID
  }

  /// The phone was unlocked, for the first time since it started: the device registers if it could
  /// not before.
  /// - Throws: The error of registering.
  public func secretsBecameReadable() async throws {
    if isRegistrationOwed { try await register() }
  }

  // MARK: Launch and registration

  /// The app has started: asks for permission, then for a device token.
  public func didFinishLaunching() async {
    await askForToken()
    try? await finishLeaving()
  }

  private func askForToken() async {
    do {
      guard try await system.askForAuthorization() else {
        return await system.showAlert("Notifications are off; turn them on in Settings.")
      }
      await system.registerForRemoteNotifications()
    } catch {
      await system.showAlert("Notifications cannot be used: \(error)")
    }
  }

  /// The push service has given a token, at every start again: the device registers with it, before
  /// the phone's first unlock as soon as ``secretsBecameReadable()`` is called.
  /// - Throws: The error of registering; the next background push, or start, tries again.
  public func didRegister(deviceToken: Data) async throws {
    self.deviceToken = deviceToken
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

  private func register() async throws {
    var isDone = false
    defer { isRegistrationOwed = !isDone }
    guard let id = try? unlock() else {
      return system.log("Not registered yet: the phone has not been unlocked since it started")
    }
    try await finishLeaving()
    if let deviceToken {
      try await register(DemoDevice(installationID: id, deviceToken: deviceToken, tags: tags))
    }
    isDone = true
  }

  private func register(_ device: DemoDevice) async throws {
    var installation = device.installation
    system.log("installationId: \(installation.installationID)")
    system.log("pushChannel: \(installation.pushChannel.handle)")
    if let account {
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
  public var user: String? { (try? unlock()) == nil ? nil : session?.token.user }

  /// Signs in at the backend, which from now on registers this device.
  /// The password is not kept.
  /// - Throws: ``SecurePushClientError``; who was signed in before still is. ``DemoSettingsError``
  ///   without a backend. The error of the secrets while they are locked.
  public func signIn(user: String, password: String) async throws {
    guard let backend = settings.backend else {
      throw DemoSettingsError(missing: "backendURL")
    }
    let installationID = try unlock()
    try await finishLeaving()
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

  /// Signs out: the phone forgets the user and their keys at once, and the device leaves the hub, so
  /// that the next user of this phone gets nothing of this one's. Where the backend cannot be
  /// reached it is told later: at the next start, or before somebody registers or signs in.
  /// - Throws: The error of the secrets; then the user is still signed in.
  public func signOut() async throws {
    try unlock()
    try session?.save(to: secrets, as: DemoSession.leavingName)
    try DemoSession.forget(in: secrets)
    (session, account) = (nil, nil)
    do { try await finishLeaving() } catch {
      system.log("Signed out on this phone; the backend is told later: \(error)")
    }
  }

  /// Takes the device off the hub for a user who has signed out, and revokes their token.
  /// - Throws: ``SecurePushClientError``: try again later.
  private func finishLeaving() async throws {
    try unlock()
    if leaving == nil {
      leaving = Task {
        defer { leaving = nil }
        guard let former = try DemoSession.load(from: secrets, as: DemoSession.leavingName) else {
          return
        }
        let account = former.client(transport, secrets: secrets, as: DemoSession.leavingName)
        do {
          try await account.uninstall(former.installationID)
          try await account.signOut()
        } catch SecurePushClientError.notSignedIn, SecurePushClientError.refused {
          // The sign-in is over, or the backend does not allow it: another try changes nothing.
        }
        try secrets.save(nil, as: DemoSession.leavingName)
      }
    }
    try await leaving?.value
  }

  /// The tutorial's button "Send push": a secure notification to oneself.
  /// - Returns: Its id.
  @discardableResult
  public func sendPush(_ payload: String? = nil) async throws -> String {
    try unlock()
    guard let account else { throw SecurePushClientError.notSignedIn("sign in first") }
    return try await account.send(payload)
  }

  // MARK: Pushes

  /// What messages are read with.
  public var inbox: SecureInbox {
    let id = (try? unlock()) ?? newInstallationID
    return SecureInbox(installationID: id, secrets: secrets, backend: account)
  }

  /// A notification arrives while the app is in the foreground: the tutorial shows its text over
  /// the app.
  /// - Returns: Whether that was done; otherwise the system is to show the notification as it is.
  public func willPresent(_ payload: Data) async -> Bool { await showAlert(payload) }

  /// The person has tapped on a notification.
  public func didOpen(_ payload: Data) async { _ = await showAlert(payload) }

  /// A push without anything to see has woken the app.
  public func didReceiveInBackground(_ payload: Data) async -> BackgroundResult {
    let result = await showNotification(payload)
    // After the message, for which there are some thirty seconds.
    if isRegistrationOwed { try? await register() }
    return result
  }

  private func showNotification(_ payload: Data) async -> BackgroundResult {
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
  /// - Throws: The secrets cannot be read now, as before the phone's first unlock.
  func load(_ name: String) throws -> Data?
  /// - Parameter data: `nil` forgets what is kept under that name.
  func save(_ data: Data?, as name: String) throws
}
