public import NotificationHubs

/// The operating system's part: `UserNotificationSystem` on Apple's systems.
public protocol PushSystem: Sendable {
  /// Requests a device token, which arrives as ``PushInstallation/didRegister(deviceToken:)`` or
  /// ``PushInstallation/didFailToRegister(_:)``.
  func registerForRemoteNotifications() async
  /// The permission to show notifications, without asking the user.
  func permission() async -> PushPermission
  /// Asks the user, who sees the question the first time only.
  func requestPermission(_ options: PermissionOptions) async throws -> PushPermission
  /// The versions whose change leads to a new registration.
  var facts: DeviceFacts { get }
}

/// The user's permission to show notifications. A device without it has a token too, and receives
/// background pushes.
public enum PushPermission: String, Hashable, Sendable, CaseIterable {
  /// The user has not been asked.
  case undetermined
  /// The user has refused.
  case denied
  /// The user has agreed.
  case authorized
  /// Delivered quietly, until the user decides.
  case provisional

  /// The tag of devices with this permission, if the configuration asks for it.
  public var tag: Tag { Tag(rawValue: "push:\(rawValue)") }
}

/// The ways of notifying that the app asks permission for.
public struct PermissionOptions: OptionSet, Hashable, Sendable {
  public let rawValue: Int
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// Texts on the screen.
  public static let alert = PermissionOptions(rawValue: 1)
  /// Sounds.
  public static let sound = PermissionOptions(rawValue: 2)
  /// The number at the app's icon.
  public static let badge = PermissionOptions(rawValue: 4)
  /// Without a question: notifications arrive quietly.
  public static let provisional = PermissionOptions(rawValue: 8)
  /// Texts, sounds and the number.
  public static let standard: PermissionOptions = [.alert, .sound, .badge]
}

/// The versions of app and system. A new version may bring a new token or lift a refusal.
public struct DeviceFacts: Hashable, Sendable {
  /// The app's version, with its build.
  public var appVersion: String
  /// The version of the operating system, in the same form in every language.
  public var systemVersion: String

  /// Creates the versions.
  public init(appVersion: String, systemVersion: String) {
    self.appVersion = appVersion
    self.systemVersion = systemVersion
  }
}
