import Foundation
import NotificationHubs
import SecurePush

/// Who is signed in, kept with the app's secrets so that a push that comes while the app is not running
/// can be read.
struct DemoSession: Codable, Sendable {
  /// The name under which the device's ``SealingKeyRing`` is kept.
  static let keysName = "sealing-keys"
  private static let name = "session"

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

  static func forget(in secrets: any SecretStore) throws { try secrets.save(nil, as: name) }
}
