public import Foundation
public import NotificationHubs

/// The phone of the tutorial: it knows the token that Apple gave it, and how it wants to be reached.
public struct DemoDevice: Hashable, Sendable {
  /// The tutorial's tag.
  public static let tags: [Tag] = ["12345"]
  /// The tutorial's template, by the tutorial's name.
  public static let templates = [
    "genericTemplate": PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)
  ]

  /// Kept by the app for as long as it is installed: on iOS `identifierForVendor`.
  public let installationID: String
  /// As the system passed it to the app.
  public let deviceToken: Data
  public var tags: [Tag]
  public var templates: [String: PushTemplate]

  public init(
    installationID: String, deviceToken: Data, tags: [Tag] = Self.tags,
    templates: [String: PushTemplate] = Self.templates
  ) {
    self.installationID = installationID
    self.deviceToken = deviceToken
    self.tags = tags
    self.templates = templates
  }

  /// What the hub is told.
  public var installation: Installation {
    Installation(
      installationID: installationID, platform: .apns, pushChannel: .apns(deviceToken),
      tags: tags, templates: templates)
  }
}
