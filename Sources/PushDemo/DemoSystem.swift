public import Foundation

/// What the app needs of the system it runs on: iOS, or the virtual phone. Only this is different
/// between them.
public protocol DemoSystem: Sendable {
  /// Asks the person for permission to show notifications, the first time only.
  func askForAuthorization() async throws -> Bool
  /// Asks the push service for a device token; the answer comes as
  /// ``DemoApp/didRegister(deviceToken:)`` or ``DemoApp/didFailToRegister(_:)``.
  func registerForRemoteNotifications() async
  /// Shows a text over the app: it is in the foreground.
  func showAlert(_ text: String) async
  /// Posts a local notification.
  ///
  /// - Parameter userInfo: Belongs into the notification's `userInfo`: the app is handed it back, as
  ///   ``DemoApp/willPresent(_:)`` when it is in the foreground, and as ``DemoApp/didOpen(_:)`` when
  ///   the person taps.
  func showNotification(_ text: String, userInfo: [String: String]) async
  /// Prints a line for the developer, as the tutorial does.
  func log(_ line: String)
}

/// Where an app keeps its secrets: the keychain, in an access group that its notification service
/// extension shares.
public protocol SecretStore: Sendable {
  /// - Returns: `nil` when nothing is kept under that name.
  func load(_ name: String) throws -> Data?
  /// - Parameter data: `nil` forgets what is kept under that name.
  func save(_ data: Data?, as name: String) throws
}
