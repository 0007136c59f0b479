import Foundation
import NotificationHubs
import SecurePush

/// Who is signed in, kept with the app's secrets so that a push that comes while the app is not
/// running can be read.
struct DemoSession: Codable, Sendable {
  /// The name under which the device's ``SealingKeyRing`` is kept.
  static let keysName = "sealing-keys"
  /// The name of a session that the app has left and the backend may not know of yet.
  static let leavingName = "leaving"
  private static let name = "session"
  private static let installationName = "installation-id"

  let installationID: String
  let backend: URL
  /// In place of the password, which is kept nowhere.
  var token: SignInToken

  /// - Parameters:
  ///   - secrets: Keep the token that takes this one's place.
  ///   - name: The session's in the secrets.
  func client(
    _ transport: any HTTPTransport, secrets: any SecretStore, as name: String = name
  ) -> SecurePushClient {
    let latest = LatestToken(token)
    return SecurePushClient(
      backend: backend,
      credentials: .token(token) { renewed in
        let former = await latest.replace(with: renewed)
        // Meanwhile the user may have signed out, or somebody else in.
        guard var session = try Self.load(from: secrets, as: name),
          session.token.user == former.user, session.token.refreshToken == former.refreshToken
        else { return }
        session.token = renewed
        try session.save(to: secrets, as: name)
      }, transport: transport)
  }

  /// The token that a client was given last.
  private actor LatestToken {
    private var token: SignInToken
    init(_ token: SignInToken) { self.token = token }

    /// - Returns: The former one.
    func replace(with renewed: SignInToken) -> SignInToken {
      defer { token = renewed }
      return token
    }
  }

  /// - Returns: `nil` when nobody is signed in, or what is kept makes no sense.
  static func load(from secrets: any SecretStore, as name: String = name) throws -> DemoSession? {
    guard let data = try secrets.load(name) else { return nil }
    return try? JSONDecoder().decode(DemoSession.self, from: data)
  }

  func save(to secrets: any SecretStore, as name: String = name) throws {
    try secrets.save(try JSONEncoder().encode(self), as: name)
  }

  /// The device's id, and who is signed in, as an earlier start of the app, or its earlier
  /// installation, has left them.
  ///
  /// - Parameter new: The id of a device without one, kept from now on.
  /// - Throws: The secrets cannot be read or written, as before the phone's first unlock.
  static func restore(
    from secrets: any SecretStore, orElse new: String
  ) throws -> (installationID: String, session: DemoSession?) {
    // A sign-out that the app did not live to finish.
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
    // A version before kept the id with the session only, and there the password too.
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

  /// Forgets who was signed in, and what was sealed for them can be opened with.
  static func forget(in secrets: any SecretStore) throws {
    try secrets.save(nil, as: keysName)
    try secrets.save(nil, as: name)
  }
}
