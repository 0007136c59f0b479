public import NotificationHubs

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The app's wishes for this device at the hub, besides its channel and its user.
public struct DesiredInstallation: Hashable, Codable, Sendable {
  /// The tags of the device, independent of the signed-in user.
  public var tags: Set<Tag>
  /// The templates by name.
  public var templates: [String: PushTemplate]
  /// Values for templates.
  public var pushVariables: [String: String]

  public init(
    tags: Set<Tag> = [], templates: [String: PushTemplate] = [:],
    pushVariables: [String: String] = [:]
  ) {
    self.tags = tags
    self.templates = templates
    self.pushVariables = pushVariables
  }
}

/// The hub's confirmation of an installation.
public struct SaveReceipt: Hashable, Sendable {
  /// Eight hexadecimal digits that stand for everything that was sent, for logs: it tells whether
  /// two registrations differ, and nothing else.
  public let fingerprint: String
  /// When the hub confirmed it.
  public let confirmedAt: Date
}
