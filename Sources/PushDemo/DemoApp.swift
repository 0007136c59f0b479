public import Foundation
public import NotificationHubs
import SecurePush

/// The tutorials' app without its user interface: launch, ask for permission, register, sign in,
/// receive. Both the iOS app and the virtual phone run it, and only adapt their system's callbacks.
public actor DemoApp {
  /// The result that the system is given after a background push.
  public enum BackgroundResult: Hashable, Sendable {
    case newData
    case noData
    case failed
  }

  /// The age in seconds at which a key is replaced: 90 days.
  private static let keyLife: TimeInterval = 90 * 86_400

  private let settings: DemoSettings
  private let newInstallationID: String
  private let tags: [Tag]
  private let system: any DemoSystem
  private let secrets: any SecretStore
  private let transport: any HTTPTransport
  private let now: @Sendable () -> Date
  private var deviceToken: Data?
  /// Whether the device must register: the last attempt failed or found the secrets locked, or
  /// there was none yet.
  private var isRegistrationOwed = true
  private var knownID: String?
  private var session: DemoSession?
  /// The session's client for the backend, which renews its token.
  private var account: SecurePushClient?
  /// The pending call that informs the backend of a sign-out. Only one runs at a time: a late call
  /// would remove what the next user has registered.
  private var leaving: Task<Void, any Error>?

  /// - Parameters:
  ///   - installationID: The id for a device without one: on iOS `identifierForVendor`, which
  ///     changes when the app is reinstalled.
  ///   - tags: The tags of the device; by default the tutorial's.
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

  /// The id under which the hub knows this device. It is stored with the secrets, which survive a
  /// reinstallation like the session and the sealing keys, with which it belongs. `nil` while the
  /// secrets are locked, as before the phone's first unlock: with another id the hub would have the
  /// device twice.
  public var installationID: String? { try? unlock() }

  /// Reads the device's id and the session, unless they are known. Everything that needs one of
  /// them calls this first, because a push may start the app before its user does.
  /// - Returns: The device's id.
  /// - Throws: The error of the secret store while it is locked.
  @discardableResult
  private func unlock() throws -> String {
    if let knownID { return knownID }
    let kept = try DemoSession.restore(from: secrets, orElse: newInstallationID)
    knownID = kept.installationID
    session = kept.session
    account = kept.session?.client(transport, secrets: secrets)
    return kept.installationID
  }

  /// Called when the phone is first unlocked after its start: registers the device if that was not
  /// possible before.
  /// - Throws: The error of the registration.
  public func secretsBecameReadable() async throws {
    if isRegistrationOwed { try await register() }
  }

  // MARK: Launch and registration

  /// Called when the app has started: asks for permission, then for a device token.
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

  /// Called with the push service's token at every start: registers the device with it or, before
  /// the phone's first unlock, waits for ``secretsBecameReadable()``.
  /// - Throws: The error of the registration; the next background push or start tries again.
  public func didRegister(deviceToken: Data) async throws {
    self.deviceToken = deviceToken
    try await register()
  }

  /// Called when the push service issued no token.
  public func didFailToRegister(_ error: any Error) async {
    await system.showAlert("There is no device token: \(error)")
  }

  /// Called when ``didRegister(deviceToken:)`` threw: the hub or the backend refused, or cannot be
  /// reached.
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

  /// The public half of this device's key; generates the key on first use, and rotates it in time.
  private func publicKey() throws -> SealingPublicKey {
    var ring: SealingKeyRing
    if let stored = try secrets.load(DemoSession.keysName),
      let known = try? SealingKeyRing(storage: stored)
    {
      ring = known
      guard ring.age(at: now()) > Self.keyLife else { return ring.current.publicKey }
      try ring.rotate(at: now())
    } else {
      // New or damaged. Payloads sealed for a lost key are fetched by their id.
      ring = try SealingKeyRing(at: now())
    }
    try secrets.save(try ring.storage(), as: DemoSession.keysName)
    return ring.current.publicKey
  }

  // MARK: Sign-in

  /// The name of the signed-in user; `nil` if there is none.
  public var user: String? { (try? unlock()) == nil ? nil : session?.token.user }

  /// Signs in at the backend, which registers this device from then on. The password is not stored.
  /// - Throws: ``SecurePushClientError``; the previous user then stays signed in.
  ///   ``DemoSettingsError`` without a backend. The error of the secret store while it is locked.
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

  /// Signs out: the phone deletes the user's session and keys at once, and the device leaves the
  /// hub, so that the next user of this phone receives nothing meant for this one. If the backend
  /// cannot be reached, it is informed later: at the next start, or before the next registration or
  /// sign-in.
  /// - Throws: The error of the secret store; then the user is still signed in.
  public func signOut() async throws {
    try unlock()
    try session?.save(to: secrets, as: DemoSession.leavingName)
    try DemoSession.forget(in: secrets)
    (session, account) = (nil, nil)
    do { try await finishLeaving() } catch {
      system.log("Signed out on this phone; the backend is told later: \(error)")
    }
  }

  /// Removes the device of a user who has signed out from the hub, and revokes their token.
  /// - Throws: ``SecurePushClientError`` if it must be retried later.
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
          // The sign-in has ended, or the backend refuses: a retry would change nothing.
        }
        try secrets.save(nil, as: DemoSession.leavingName)
      }
    }
    try await leaving?.value
  }

  /// The tutorial's button "Send push": a secure notification to the user themselves.
  /// - Returns: The id of the message.
  @discardableResult
  public func sendPush(_ payload: String? = nil) async throws -> String {
    try unlock()
    guard let account else { throw SecurePushClientError.notSignedIn("sign in first") }
    return try await account.send(payload)
  }

  // MARK: Pushes

  /// The inbox that reads messages.
  public var inbox: SecureInbox {
    let id = (try? unlock()) ?? newInstallationID
    return SecureInbox(installationID: id, secrets: secrets, backend: account)
  }

  /// Called when a notification arrives while the app is in the foreground: the tutorial shows its
  /// text over the app.
  /// - Returns: Whether it was shown; otherwise the system should show the notification unchanged.
  public func willPresent(_ payload: Data) async -> Bool { await showAlert(payload) }

  /// Called when the user has tapped a notification.
  public func didOpen(_ payload: Data) async { _ = await showAlert(payload) }

  /// Called when a push without visible content has woken the app.
  public func didReceiveInBackground(_ payload: Data) async -> BackgroundResult {
    let result = await showNotification(payload)
    // Registers after showing the message, which must be done within about thirty seconds.
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

/// The system functions that the app needs, implemented for iOS and for the virtual phone. This is
/// the only difference between the two.
public protocol DemoSystem: Sendable {
  /// Asks the user for permission to show notifications, the first time only.
  func askForAuthorization() async throws -> Bool
  /// Requests a device token from the push service; the result arrives as
  /// ``DemoApp/didRegister(deviceToken:)`` or ``DemoApp/didFailToRegister(_:)``.
  func registerForRemoteNotifications() async
  /// Shows a text over the app, which is in the foreground.
  func showAlert(_ text: String) async
  /// Posts a local notification.
  ///
  /// - Parameter userInfo: The notification's `userInfo`. The app gets it back as
  ///   ``DemoApp/willPresent(_:)`` if it is in the foreground, and as ``DemoApp/didOpen(_:)`` if
  ///   the user taps the notification.
  func showNotification(_ text: String, userInfo: [String: String]) async
  /// Prints a line for the developer, as the tutorial does.
  func log(_ line: String)
}

/// The storage for an app's secrets: the keychain, in an access group shared with its notification
/// service extension.
public protocol SecretStore: Sendable {
  /// - Returns: `nil` if nothing is stored under that name.
  /// - Throws: An error if the secrets cannot be read now, as before the phone's first unlock.
  func load(_ name: String) throws -> Data?
  /// - Parameter data: The data to store; `nil` deletes the entry.
  func save(_ data: Data?, as name: String) throws
}
