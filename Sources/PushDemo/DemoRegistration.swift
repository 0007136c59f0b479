public import NotificationHubs

/// Registers the tutorial's phone with a hub.
public struct DemoRegistration: Sendable {
  private let client: NotificationHubClient

  public init(client: NotificationHubClient) { self.client = client }

  /// Registers the device, then reads back what the hub has kept. May be repeated: the app does so
  /// at every start.
  ///
  /// - Throws: ``DemoRegistrationError`` when the hub keeps something else than it was told, and
  ///   whatever the client throws.
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

  /// Takes the device off the hub.
  public func unregister(_ device: DemoDevice) async throws {
    try await client.delete(installation: device.installationID)
  }
}

/// The hub returned another installation than the one it had been given.
public struct DemoRegistrationError: Error, Hashable, CustomStringConvertible {
  public let installationID: String

  public var description: String {
    "the hub keeps another channel, tags or templates for installation '\(installationID)' than it "
      + "was given; is another device using this installation id?"
  }
}
