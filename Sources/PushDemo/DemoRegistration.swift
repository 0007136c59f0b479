public import Foundation
public import NotificationHubs

/// Registers the tutorial's phone with a hub.
public struct DemoRegistration: Sendable {
  private let client: NotificationHubClient

  public init(client: NotificationHubClient) { self.client = client }

  /// Registers the device, then reads back the installation that the hub stored. Idempotent: the
  /// app does this at every start.
  ///
  /// - Throws: ``DemoRegistrationError`` if the hub stored something else, and the errors of the
  ///   client.
  @discardableResult
  public func register(_ device: DemoDevice) async throws -> Installation {
    let wanted = device.installation
    try await client.createOrReplace(wanted)
    let kept = try await client.installation(wanted.installationID)
    guard kept.pushChannel == wanted.pushChannel, Set(kept.tags) == Set(wanted.tags),
      kept.templates.mapValues(\.body) == wanted.templates.mapValues(\.body)
    else { throw DemoRegistrationError(installationID: wanted.installationID) }
    return kept
  }

  /// Removes the device from the hub.
  public func unregister(_ device: DemoDevice) async throws {
    try await client.delete(installation: device.installationID)
  }
}

/// The hub returned another installation than the one it was given.
public struct DemoRegistrationError: LocalizedError, Hashable, CustomStringConvertible {
  public let installationID: String

  public var errorDescription: String? { description }
  public var description: String {
    "the hub keeps another channel, tags or templates for installation '\(installationID)' than it "
      + "was given; is another device using this installation id?"
  }
}

/// The tutorial's phone, with its device token, tags and templates.
public struct DemoDevice: Hashable, Sendable {
  /// The tutorial's tag.
  public static let tags: [Tag] = ["12345"]
  /// The tutorial's template, under the tutorial's name.
  public static let templates = [
    "genericTemplate": PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)
  ]

  /// The id that the app keeps while it is installed: on iOS `identifierForVendor`.
  public let installationID: String
  /// The token that the system passed to the app.
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

  /// The installation to register.
  public var installation: Installation {
    Installation(
      installationID: installationID, platform: .apns, pushChannel: .apns(deviceToken),
      tags: tags, templates: templates)
  }
}
