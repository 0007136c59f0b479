public import NotificationHubs

extension PushInstallation {
  /// The rules by which a device registers.
  public struct Configuration: Hashable, Sendable {
    /// The push service of the device.
    public var platform = PushPlatform.apns
    /// The delay after a change, in which further changes are collected.
    public var saveDelay = Duration.seconds(1)
    /// The longest delay after the first of several changes.
    public var longestSaveDelay = Duration.seconds(5)
    /// The age of a confirmation at which the device registers again, although nothing has
    /// changed: a hub may have lost it.
    public var refreshInterval = Duration.seconds(7 * 86_400)
    /// The life of the installation at the hub, which is renewed after two thirds of it; `nil` for
    /// the longest that the hub allows.
    public var lifetime: Duration?
    /// Whether the permission to show notifications is a tag: ``PushPermission/tag``.
    public var tagsPermission = false

    /// Creates the rules with their defaults.
    public init() {}
  }

  /// The scope of a sign-out: the user, or the device too.
  public enum SignOutMode: Hashable, Sendable {
    /// The device stays registered, without the user and their tags. With a registrar for signed-in
    /// users it leaves until the next sign-in.
    case keepDevice
    /// The installation is deleted, and registered again without user.
    case deleteDevice
  }
}
