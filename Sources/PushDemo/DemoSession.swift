import Foundation
import NotificationHubs
import SecurePush

/// Who is signed in, kept with the app's secrets so that a push that comes while the app is not
/// running can be read.
struct DemoSession: Codable, Sendable {
  /// The name under which the device's ``SealingKeyRing`` is kept.
  static let keysName = "sealing-keys"
  private static let name = "session"
  private static let installationName = "installation-id"

  let installationID: String
  let backend: URL
  /// In place of the password, which is kept nowhere.
  var token: SignInToken

  /// - Parameter secrets: Where a token that takes this one's place is kept.
  func client(_ transport: any HTTPTransport, secrets: any SecretStore) -> SecurePushClient {
    SecurePushClient(
      backend: backend,
      credentials: .token(token) { renewed in
        var session = self
        session.token = renewed
        try session.save(to: secrets)
      }, transport: transport)
  }

  /// - Returns: `nil` when nobody is signed in, or what is kept cannot be read.
  static func load(from secrets: any SecretStore) -> DemoSession? {
    guard let data = try? secrets.load(name) else { return nil }
    return try? JSONDecoder().decode(DemoSession.self, from: data)
  }

  func save(to secrets: any SecretStore) throws {
    try secrets.save(try JSONEncoder().encode(self), as: Self.name)
  }

  /// The device's id of an earlier start, or of the app's earlier installation; else the given one,
  /// which is kept from now on. While the secrets cannot be read, as before the phone's first
  /// unlock, nothing is kept.
  static func installationID(in secrets: any SecretStore, orElse new: String) -> String {
    let stored: Data?
    do { stored = try secrets.load(installationName) } catch { return new }
    if let stored, let id = String(data: stored, encoding: .utf8), !id.isEmpty { return id }
    // A version before kept the id with the session only, and there the password too.
    let old = (try? secrets.load(name)).flatMap {
      try? JSONDecoder().decode(OldSession.self, from: $0)
    }
    if old?.password != nil { try? forget(in: secrets) }
    let id = old?.installationID ?? new
    try? secrets.save(Data(id.utf8), as: installationName)
    return id
  }

  private struct OldSession: Decodable {
    let installationID: String
    let password: String?
  }

  static func forget(in secrets: any SecretStore) throws { try secrets.save(nil, as: name) }
}
