import Foundation
import NotificationHubs
import SecurePush

/// Who is signed in, kept with the app's secrets so that a push that comes while the app is not
/// running can be read.
struct DemoSession: Codable, Sendable {
  /// The name under which the device's ``SealingKeyRing`` is kept.
  static let keysName = "sealing-keys"
  /// Where a session is kept that the app has left and the backend may not know of yet.
  static let leavingName = "leaving"
  private static let name = "session"
  private static let installationName = "installation-id"

  let installationID: String
  let backend: URL
  /// In place of the password, which is kept nowhere.
  var token: SignInToken

  /// - Parameters:
  ///   - secrets: Where a token that takes this one's place is kept.
  ///   - name: Under which the session is kept there.
  func client(
    _ transport: any HTTPTransport, secrets: any SecretStore, as name: String = name
  ) -> SecurePushClient {
    SecurePushClient(
      backend: backend,
      credentials: .token(token) { renewed in
        var session = self
        session.token = renewed
        try session.save(to: secrets, as: name)
      }, transport: transport)
  }

  /// - Returns: `nil` when nobody is signed in, or what is kept makes no sense.
  static func load(from secrets: any SecretStore, as name: String = name) throws -> DemoSession? {
    guard let data = try secrets.load(name) else { return nil }
    return try? JSONDecoder().decode(DemoSession.self, from: data)
  }

  func save(to secrets: any SecretStore, as name: String = name) throws {
    try secrets.save(try JSONEncoder().encode(self), as: name)
  }

  /// What an earlier start of the app, or its earlier installation, has left: the device's id, and
  /// who is signed in.
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
