import Foundation
import NotificationHubs
import SecurePush

/// Who is signed in, kept with the app's secrets so that a push that comes while the app is not running
/// can be read.
struct DemoSession: Codable, Sendable {
  /// The name under which the device's ``SealingKeyRing`` is kept.
  static let keysName = "sealing-keys"
  private static let name = "session"
  private static let installationName = "installation-id"

  let installationID: String
  let backend: URL
  let user: String
  let password: String

  func client(_ transport: any HTTPTransport) -> SecurePushClient {
    SecurePushClient(
      backend: backend, credentials: .password(user: user, password: password),
      transport: transport)
  }

  /// - Returns: `nil` when nobody is signed in, or what is kept cannot be read.
  static func load(from secrets: any SecretStore) -> DemoSession? {
    guard let data = try? secrets.load(name) else { return nil }
    return try? JSONDecoder().decode(DemoSession.self, from: data)
  }

  func save(to secrets: any SecretStore) throws {
    try secrets.save(try JSONEncoder().encode(self), as: Self.name)
  }

  /// The device's id of an earlier start, or of the app's earlier installation; else the given one, which
  /// is kept from now on. While the secrets cannot be read, as before the phone's first unlock, nothing
  /// is kept.
  static func installationID(in secrets: any SecretStore, orElse new: String) -> String {
    let stored: Data?
    do { stored = try secrets.load(installationName) } catch { return new }
    if let stored, let id = String(data: stored, encoding: .utf8), !id.isEmpty { return id }
    // A session of a version that kept the id with the session only.
    let id = load(from: secrets)?.installationID ?? new
    try? secrets.save(Data(id.utf8), as: installationName)
    return id
  }

  static func forget(in secrets: any SecretStore) throws { try secrets.save(nil, as: name) }
}
