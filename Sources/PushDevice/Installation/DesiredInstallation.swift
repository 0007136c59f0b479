public import NotificationHubs

/// The installation that the app desires at the hub, without its channel and its user.
public struct DesiredInstallation: Hashable, Codable, Sendable {
  /// The tags of the device, independent of the signed-in user.
  public var tags: Set<Tag>
  /// The templates by name.
  public var templates: [String: PushTemplate]
  /// Values for templates.
  public var pushVariables: [String: String]

  /// Creates an installation; without arguments it receives broadcasts only.
  public init(
    tags: Set<Tag> = [], templates: [String: PushTemplate] = [:],
    pushVariables: [String: String] = [:]
  ) {
    self.tags = tags
    self.templates = templates
    self.pushVariables = pushVariables
  }
}
