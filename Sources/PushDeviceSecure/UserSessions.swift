import Foundation
import NotificationHubs
import PushDevice
import SecurePush

extension StoredItem {
  /// The sign-ins by user: the present one, and former ones whose device has not left yet.
  static let sessions = StoredItem("sign-ins", isSecret: true)
}

/// The sign-ins of this device's users, in the storage, and a client for each.
actor UserSessions {
  private let backend: URL
  private let storage: any DeviceStorage
  private let transport: any HTTPTransport
  /// One for each user: it renews the user's token once for all callers.
  private var clients: [String: SecurePushClient] = [:]
  /// The users whose sign-in an earlier launch has stored; `nil` before the first look.
  private var earlier: Set<String>?

  init(backend: URL, storage: any DeviceStorage, transport: any HTTPTransport) {
    self.backend = backend
    self.storage = storage
    self.transport = transport
  }

  /// Returns the users whose sign-in an earlier launch has stored, once. A sign-in of this launch is
  /// none of them, even if it comes before the call.
  func takeEarlier() throws(StorageError) -> Set<String> {
    let users = try loadEarlier()
    earlier = []
    return users
  }

  /// - Throws: ``SecurePushClientError/notSignedIn(_:)`` if there is no sign-in of that user's.
  func client(of user: String?) throws -> SecurePushClient {
    if let client = user.flatMap({ clients[$0] }) { return client }
    guard let user, let token = try load()[user] else {
      throw SecurePushClientError.notSignedIn("sign in first")
    }
    let latest = Locked(token)
    let client = SecurePushClient(
      backend: backend,
      credentials: .token(token) { [storage] renewed in
        let former = latest.withLock { latest in
          defer { latest = renewed }
          return latest
        }
        // In the meantime the user may have signed out, or signed in again.
        try Self.update(storage) { sessions in
          guard sessions[user]?.refreshToken == former.refreshToken else { return }
          sessions[user] = renewed
        }
      }, transport: transport)
    clients[user] = client
    return client
  }

  func add(_ token: SignInToken) throws(StorageError) {
    var users = try loadEarlier()
    users.remove(token.user)
    try Self.update(storage) { $0[token.user] = token }
    earlier = users
    clients[token.user] = nil
  }

  /// Removes a user whose device has left.
  func forget(_ user: String) {
    clients[user] = nil
    try? Self.update(storage) { $0[user] = nil }
  }

  private func loadEarlier() throws(StorageError) -> Set<String> {
    if let earlier { return earlier }
    return Set(try load().keys)
  }

  private func load() throws(StorageError) -> [String: SignInToken] {
    Self.decode(try storage.load(.sessions))
  }

  private static func update(
    _ storage: any DeviceStorage, _ change: (inout [String: SignInToken]) -> Void
  ) throws(StorageError) {
    try storage.update(.sessions) { data in
      var sessions = decode(data)
      change(&sessions)
      data = sessions.isEmpty ? nil : try? JSONEncoder().encode(sessions)
    }
  }

  /// Damaged sign-ins are none: their users sign in again.
  private static func decode(_ data: Data?) -> [String: SignInToken] {
    data.flatMap { try? JSONDecoder().decode([String: SignInToken].self, from: $0) } ?? [:]
  }
}
