public import Foundation
public import NotificationHubs
public import PushDevice
public import SecurePush

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
    AccountRegistrar(
      sessions: sessions,
      requests: BackendRegistrar(backend: backend, transport: transport) {
        [sessions] user, refused in
        try await sessions.client(of: user).accessToken(insteadOf: refused)
      })
  }

  /// Adds the public key for which payloads are sealed.
  public var enrichment: PushInstallation.Enrichment {
    { [keys] installation in
      guard let user = installation.userID else { return }
      installation.sealingKey = try keys.publicKey(of: user)
    }
  }

  // MARK: Signing in and out

  /// Starts the installation. Sign-ins of an earlier installation of the app, which the keychain
  /// has kept, are ended.
  public func start(_ push: PushInstallation) async {
    await push.start()
    if let users = try? await sessions.earlierUsers() {
      for user in users { try? await push.endSignIn(of: user) }
    }
    // They were deleted at the sign-out, unless that failed.
    do { if try await push.userID == nil { try keys.delete() } } catch {}
    Task { [sessions] in await sessions.endReplaced() }
  }

  /// Signs in, and registers the device for the user.
  ///
  /// - Throws: ``SecurePushClientError``, ``RegistrarError`` if a former user's device could not
  ///   leave yet, or the error of the storage; the previous user then stays signed in.
  ///   `CancellationError` if a sign-out, or another sign-in, came during the call.
  public func signIn(
    user: String, password: String, tags: Set<Tag> = [], on push: PushInstallation
  ) async throws {
    let turn = await sessions.beginTurn()
    // A user who has signed out leaves with a sign-in that this one could replace.
    do { try await push.finishSignOut() } catch let error as RegistrarError
      where !error.isWorthRetrying
    {
      // The backend refuses to remove the former user's device: this registration replaces it.
    }
    let token = try await SecurePushClient.signIn(
      backend: backend, user: user, password: password, transport: transport)
    let stored: Void? = try await sessions.store(inTurn: turn) { [sessions] in
      let former = try? await push.userID
      do {
        try await sessions.add(token)
        try await push.signIn(as: token.user, tags: tags)
      } catch {
        // The same user stays signed in, with the new sign-in if it could be stored.
        if former != token.user { await sessions.abandon(token) }
        throw error
      }
    }
    guard stored != nil else {
      await sessions.abandon(token)
      throw CancellationError()
    }
    await sessions.endReplaced()
  }

  /// Signs out: user and keys leave this device at once, the device leaves the backend and the
  /// sign-in ends as soon as that can be reached.
  /// - Throws: The error of the storage; then the user is still signed in, with their keys.
  public func signOut(of push: PushInstallation) async throws {
    _ = await sessions.beginTurn()
    _ = try await sessions.store(inTurn: nil) { [keys] in
      try await push.signOut()
      // Without their user they open nothing, and the next launch deletes them.
      try? keys.delete()
    }
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
private struct AccountRegistrar: InstallationRegistrar {
  let sessions: UserSessions
  let requests: BackendRegistrar
  var address: String { requests.address }
  var isForSignedInUsersOnly: Bool { true }

  func save(_ installation: Installation) async throws(RegistrarError) {
    try await requests.save(installation)
  }

  func delete(installation id: String, of userID: String?) async throws(RegistrarError) {
    try await requests.delete(installation: id, of: userID)
  }

  func endSignIn(of userID: String) async throws(RegistrarError) {
    do { try await sessions.end(userID) } catch let error as SecurePushClientError {
      throw error.registrarError
    } catch { throw RegistrarError(.unreachable, "\(error)", cause: error) }
  }
}

extension SecurePushClientError: RegistrarErrorConvertible {
  /// The error of a registration that needed the backend for its token.
  public var registrarError: RegistrarError {
    switch self {
    case .notSignedIn(let reason): RegistrarError(.unauthorized, reason, cause: self)
    case .refused(let status, let reason): RegistrarError(status: status, reason, cause: self)
    case .limited(let seconds):
      RegistrarError(
        .throttled, "\(self)", retryAfter: seconds.map { .seconds($0) }, cause: self)
    case .notFound, .gone: RegistrarError(.notFound, "\(self)", cause: self)
    case .unreachable, .unexpectedReply: RegistrarError(.unreachable, "\(self)", cause: self)
    }
  }
}
