public import Foundation
public import NotificationHubs
public import PushDevice
import SecurePush

/// The user's sign-in at the app backend, which registers the device and fetches what did not travel
/// in a push.
///
/// ```swift
/// let account = BackendAccount(backend: url, storage: storage)
/// let push = PushInstallation(
///   registrar: account.registrar, storage: storage, system: UserNotificationSystem(),
///   enrich: account.enrichment)
/// await account.start(push)                                   // at every launch
/// try await account.signIn(user: "alice", password: password, on: push)
/// ```
/// Passwords are not stored. Tokens and keys are, as secrets, so that a service extension with the
/// same storage reads sealed pushes.
public struct BackendAccount: Sendable {
  private let backend: URL
  private let storage: any DeviceStorage
  private let transport: any HTTPTransport
  private let sessions: UserSessions
  private let keys: DeviceKeys

  /// - Parameters:
  ///   - backend: The URL of the backend, without the path `/api`.
  ///   - storage: That of the ``PushInstallation``.
  ///   - now: The time, for the age of keys.
  public init(
    backend: URL, storage: any DeviceStorage,
    transport: any HTTPTransport = URLSessionTransport.shared,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.backend = backend
    self.storage = storage
    self.transport = transport
    sessions = UserSessions(backend: backend, storage: storage, transport: transport)
    keys = DeviceKeys(storage: storage, now: now)
  }

  /// Opens sealed pushes.
  public var messages: SealedMessages {
    SealedMessages(storage: storage, keys: keys, sessions: sessions)
  }

  /// Registers the device through the backend.
  public var registrar: any InstallationRegistrar {
    AccountRegistrar(sessions: sessions, address: backend.absoluteString)
  }

  /// Adds the public key for which payloads are sealed.
  public var enrichment: PushInstallation.Enrichment {
    { [keys] installation in
      guard installation.userID != nil else { return }
      installation.sealingKey = try keys.publicKey()
    }
  }

  // MARK: Signing in and out

  /// Starts the installation. Sign-ins of an earlier installation of the app, which the keychain
  /// has kept, are ended.
  public func start(_ push: PushInstallation) async {
    await push.start()
    guard let users = try? await sessions.takeEarlier() else { return }
    for user in users { try? await push.endSignIn(of: user) }
  }

  /// Signs in, and registers the device for the user.
  ///
  /// - Throws: ``SecurePushClientError``, ``RegistrarError`` if a former user's device could not
  ///   leave yet, or the error of the storage; the previous user then stays signed in.
  public func signIn(
    user: String, password: String, tags: Set<Tag> = [], on push: PushInstallation
  ) async throws {
    // A user who has signed out leaves with a sign-in that this one could replace.
    try await push.finishSignOut()
    let token = try await SecurePushClient.signIn(
      backend: backend, user: user, password: password, transport: transport)
    let former = try await push.userID
    try await sessions.add(token)
    if former != token.user { try keys.delete() }
    try await push.signIn(as: token.user, tags: tags)
  }

  /// Signs out: keys and user leave this device at once, the device leaves the backend as soon as
  /// that can be reached.
  /// - Throws: The error of the storage; then the user is still signed in.
  public func signOut(of push: PushInstallation) async throws {
    try keys.delete()
    try await push.signOut()
  }

  /// Sends a secure notification to the signed-in user themselves, or from an operator to another.
  ///
  /// - Returns: The id of the message.
  @discardableResult
  public func send(_ payload: String? = nil, to other: String? = nil) async throws -> String {
    let user = try PushInstallation.storedUserID(in: storage)
    return try await sessions.client(of: user).send(payload, to: other)
  }
}

/// Makes the requests of a ``PushInstallation`` with the sign-in of each user.
struct AccountRegistrar: InstallationRegistrar {
  let sessions: UserSessions
  let address: String
  var isForSignedInUsersOnly: Bool { true }

  func save(_ installation: Installation) async throws(RegistrarError) {
    do {
      try await sessions.client(of: installation.userID).install(installation)
    } catch { throw RegistrarError(error) }
  }

  /// Removes the device, and then the user's sign-in.
  func delete(installation id: String, of userID: String?) async throws(RegistrarError) {
    guard let userID else { throw RegistrarError(.unauthorized, "nobody is signed in") }
    do {
      let client = try await sessions.client(of: userID)
      do {
        try await client.uninstall(id)
        try await client.signOut()
      } catch let error as SecurePushClientError where error.isFinal {
        // The sign-in has ended, or the backend refuses: a retry would change nothing.
      }
    } catch { throw RegistrarError(error) }
    await sessions.forget(userID)
  }
}

extension SecurePushClientError {
  fileprivate var isFinal: Bool {
    switch self {
    case .notSignedIn, .refused: true
    default: false
    }
  }
}

extension RegistrarError {
  fileprivate init(_ error: any Error) {
    switch error {
    case SecurePushClientError.notSignedIn(let reason):
      self.init(.unauthorized, reason, cause: error)
    case SecurePushClientError.refused(let status, let reason):
      self.init(status: status, reason, cause: error)
    case SecurePushClientError.limited(let seconds):
      self.init(
        .throttled, "too many tries", retryAfter: seconds.map { .seconds($0) }, cause: error)
    case SecurePushClientError.notFound, SecurePushClientError.gone:
      self.init(.notFound, "\(error)", cause: error)
    default: self.init(.unreachable, "\(error)", cause: error)
    }
  }
}
