import Foundation
import NotificationHubs
import SecurePush

/// The signed-in user, stored with the app's secrets so that a push can be read that arrives while
/// the app is not running.
struct DemoSession: Codable, Sendable {
  /// The name under which the device's ``SealingKeyRing`` is stored.
  static let keysName = "sealing-keys"
  /// The name of a session that has ended in the app but perhaps not at the backend.
  static let leavingName = "leaving"
  private static let name = "session"
  private static let installationName = "installation-id"

  let installationID: String
  let backend: URL
  /// The token that replaces the password, which is not stored anywhere.
  var token: SignInToken

  /// - Parameters:
  ///   - secrets: The store for tokens that replace this one.
  ///   - name: The name of the session in the store.
  func client(
    _ transport: any HTTPTransport, secrets: any SecretStore, as name: String = name
  ) -> SecurePushClient {
    let latest = LatestToken(token)
    return SecurePushClient(
      backend: backend,
      credentials: .token(token) { renewed in
        let former = await latest.replace(with: renewed)
        // In the meantime the user may have signed out, or another user may have signed in.
        guard var session = try Self.load(from: secrets, as: name),
          session.token.user == former.user, session.token.refreshToken == former.refreshToken
        else { return }
        session.token = renewed
        try session.save(to: secrets, as: name)
      }, transport: transport)
  }

  /// The latest token of a client.
  private actor LatestToken {
    private var token: SignInToken
    init(_ token: SignInToken) { self.token = token }

    /// - Returns: The previous token.
    func replace(with renewed: SignInToken) -> SignInToken {
      defer { token = renewed }
      return token
    }
  }

  /// - Returns: `nil` if no user is signed in, or the stored data is invalid.
  static func load(from secrets: any SecretStore, as name: String = name) throws -> DemoSession? {
    guard let data = try secrets.load(name) else { return nil }
    return try? JSONDecoder().decode(DemoSession.self, from: data)
  }

  func save(to secrets: any SecretStore, as name: String = name) throws {
    try secrets.save(try JSONEncoder().encode(self), as: name)
  }

  /// Restores the device's id and the session from an earlier run or installation of the app.
  ///
  /// - Parameter new: The id for a device without one, stored from then on.
  /// - Throws: An error if the secrets cannot be read or written, as before the phone's first
  ///   unlock.
  static func restore(
    from secrets: any SecretStore, orElse new: String
  ) throws -> (installationID: String, session: DemoSession?) {
    // A sign-out that was interrupted.
    if try secrets.load(leavingName) != nil { try forget(in: secrets) }
    let id = try installationID(in: secrets, orElse: new)
    return (id, try load(from: secrets))
  }

  private static func installationID(
    in secrets: any SecretStore, orElse new: String
  ) throws -> String {
    if let stored = try secrets.load(installationName),
      let id = String(data: stored, encoding: .utf8), !id.isEmpty
    {
      return id
    }
    // An earlier version stored the id only within the session, along with the password.
    let old = try secrets.load(name).flatMap {
      try? JSONDecoder().decode(OldSession.self, from: $0)
    }
    let id = old?.installationID ?? new
    try secrets.save(Data(id.utf8), as: installationName)
    if old?.password != nil { try secrets.save(nil, as: name) }
    return id
  }

  private struct OldSession: Decodable {
    let installationID: String
    let password: String?
  }

  /// Deletes the session, and the keys that open payloads sealed for its user.
  static func forget(in secrets: any SecretStore) throws {
    try secrets.save(nil, as: keysName)
    try secrets.save(nil, as: name)
  }
}
