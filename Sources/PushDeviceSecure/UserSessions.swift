import Foundation
import NotificationHubs
import PushDevice
import SecurePush

extension StoredItem {
  /// The sign-ins: the present one, and former ones that are not ended at the backend yet.
  static let sessions = StoredItem("sign-ins", isSecret: true)
}

/// The sign-ins of this device's users, in the storage, and a client for each.
actor UserSessions {
  private struct Contents: Codable {
    /// The present user's, and those of users whose device has not left yet.
    var users: [String: SignInToken] = [:]
    /// Sign-ins that a later one of the same user has replaced, and abandoned ones.
    var replaced: [SignInToken] = []
  }

  /// A sign-in with its client, which renews the user's token once for all callers.
  private struct Session {
    let client: SecurePushClient
    /// The latest token, as it is stored.
    let token: Locked<SignInToken>
  }

  private let backend: URL
  private let storage: any DeviceStorage
  private let transport: any HTTPTransport
  private var sessions: [String: Session] = [:]
  /// The users whose sign-in an earlier launch has stored; `nil` before the first look.
  private var earlier: Set<String>?
  /// Counts sign-ins and sign-outs: a sign-in whose reply comes after a later one is abandoned.
  private var turn = 0
  private var storing: Task<Void, Never>?

  init(backend: URL, storage: any DeviceStorage, transport: any HTTPTransport) {
    self.backend = backend
    self.storage = storage
    self.transport = transport
  }

  // MARK: Turns

  /// Begins a sign-in or sign-out.
  func beginTurn() -> Int {
    turn += 1
    return turn
  }

  /// Stores the result of a sign-in or sign-out, one after the other. No request is made meanwhile.
  ///
  /// - Parameter turn: `nil` for a sign-out, which always counts.
  /// - Returns: `nil` if a later turn has begun.
  func store<Result: Sendable>(
    inTurn turn: Int?, _ work: @escaping @Sendable () async throws -> Result
  ) async throws -> Result? {
    let former = storing
    let task = Task<Result?, any Error> {
      await former?.value
      return (turn ?? self.turn) == self.turn ? try await work() : nil
    }
    storing = Task { _ = try? await task.value }
    return try await task.value
  }

  // MARK: Sign-ins

  /// Returns the users whose sign-in an earlier launch has stored, once. A sign-in of this launch is
  /// none of them, even if it comes before the call.
  func earlierUsers() throws(StorageError) -> Set<String> {
    let users = try loadEarlier()
    earlier = []
    return users
  }

  /// - Throws: ``SecurePushClientError/notSignedIn(_:)`` if there is no sign-in of that user's.
  func client(of user: String?) throws -> SecurePushClient { try session(of: user).client }

  /// Stores a user's sign-in. A former one of theirs is to be ended.
  func add(_ token: SignInToken) throws(StorageError) {
    var users = try loadEarlier()
    users.remove(token.user)
    try Self.update(storage) { contents in
      if let former = contents.users.updateValue(token, forKey: token.user) {
        contents.replaced.append(former)
      }
    }
    earlier = users
    sessions[token.user] = nil
  }

  /// Ends a sign-in that nobody uses.
  func abandon(_ token: SignInToken) async {
    if sessions[token.user]?.token.withLock({ $0.refreshToken }) == token.refreshToken {
      sessions[token.user] = nil
    }
    do {
      try Self.update(storage) { contents in
        if contents.users[token.user]?.refreshToken == token.refreshToken {
          contents.users[token.user] = nil
        }
        contents.replaced.append(token)
      }
      await endReplaced()
    } catch {
      try? await session(with: token).client.signOut()
    }
  }

  /// Ends a user's sign-in at the backend, and forgets it. That there is none is not an error.
  func end(_ user: String) async throws {
    let session: Session
    do { session = try self.session(of: user) } catch SecurePushClientError.notSignedIn { return }
    do { try await session.client.signOut() } catch let error as SecurePushClientError
      where error.isFinal
    {
      // The backend has no such request, or refuses it: a retry would change nothing.
    }
    // In the meantime the user may have signed in again.
    let ended = session.token.withLock { $0.refreshToken }
    try Self.update(storage) { contents in
      if contents.users[user]?.refreshToken == ended { contents.users[user] = nil }
    }
    if sessions[user]?.token.withLock({ $0.refreshToken }) == ended { sessions[user] = nil }
  }

  /// Ends the sign-ins that have been replaced. Those that the backend cannot be told now are kept.
  func endReplaced() async {
    for token in (try? load())?.replaced ?? [] {
      let session = session(with: token)
      do { try await session.client.signOut() } catch let error as SecurePushClientError {
        guard error.isFinal else { return }
      } catch { return }
      let ended = session.token.withLock { $0.refreshToken }
      try? Self.update(storage) { contents in
        contents.replaced.removeAll { $0.refreshToken == ended }
      }
    }
  }

  // MARK: Storage

  private func session(of user: String?) throws -> Session {
    if let session = user.flatMap({ sessions[$0] }) { return session }
    guard let user, let token = try load().users[user] else {
      throw SecurePushClientError.notSignedIn("sign in first")
    }
    let session = session(with: token)
    sessions[user] = session
    return session
  }

  private func session(with token: SignInToken) -> Session {
    let latest = Locked(token)
    let client = SecurePushClient(
      backend: backend,
      credentials: .token(token) { [storage] renewed in
        let former = latest.withLock { latest in
          defer { latest = renewed }
          return latest
        }
        // In the meantime the user may have signed out, or signed in again.
        try Self.update(storage) { contents in
          if contents.users[former.user]?.refreshToken == former.refreshToken {
            contents.users[former.user] = renewed
          }
          if let index = contents.replaced.firstIndex(where: {
            $0.refreshToken == former.refreshToken
          }) {
            contents.replaced[index] = renewed
          }
        }
      }, transport: transport)
    return Session(client: client, token: latest)
  }

  private func loadEarlier() throws(StorageError) -> Set<String> {
    if let earlier { return earlier }
    return Set(try load().users.keys)
  }

  private func load() throws(StorageError) -> Contents {
    Self.decode(try storage.load(.sessions))
  }

  private static func update(
    _ storage: any DeviceStorage, _ change: (inout Contents) -> Void
  ) throws(StorageError) {
    try storage.update(.sessions) { data in
      var contents = decode(data)
      change(&contents)
      let isEmpty = contents.users.isEmpty && contents.replaced.isEmpty
      data = isEmpty ? nil : try? JSONEncoder().encode(contents)
    }
  }

  /// Damaged sign-ins are none: their users sign in again.
  private static func decode(_ data: Data?) -> Contents {
    data.flatMap { try? JSONDecoder().decode(Contents.self, from: $0) } ?? Contents()
  }
}

extension SecurePushClientError {
  /// Whether a retry would change nothing.
  fileprivate var isFinal: Bool {
    switch self {
    case .notSignedIn, .refused, .notFound, .gone: true
    default: false
    }
  }
}
