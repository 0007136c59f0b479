public import Foundation
package import Wire

/// The outcome of a notification for one device: an element of Belfry's reply to `GET
/// /{hub}/messages/{id}/devices`.
public struct DeviceOutcome: Hashable, Sendable {
  /// The platform of the device; `nil` if it is no longer known because the device is gone.
  public var platform: PushPlatform?
  /// The id of the registration; `nil` for a direct send.
  public var registrationID: String?
  /// The id of the installation; `nil` for a direct send, and for a device without one.
  public var installationID: String?
  /// The device's handle at the push service; for a browser, its endpoint.
  public var handle: String?
  /// The wire name of the outcome; ``outcome`` is its typed form.
  public var outcomeName: String
  /// The HTTP status of the push service; 0 if there was no reply.
  public var status: Int
  /// The push service's own reason, or the hub's.
  public var reason: String?
  /// The number of attempts; 0 if the push was not sent.
  public var attempts: Int
  /// The time at which the outcome was recorded; `nil` if an older server recorded it.
  public var time: Date?

  /// Creates an outcome.
  public init(
    platform: PushPlatform?, registrationID: String?, installationID: String?, handle: String?,
    outcomeName: String, status: Int, reason: String?, attempts: Int, time: Date?
  ) {
    self.platform = platform
    self.registrationID = registrationID
    self.installationID = installationID
    self.handle = handle
    self.outcomeName = outcomeName
    self.status = status
    self.reason = reason
    self.attempts = attempts
    self.time = time
  }

  /// The outcome; `nil` if it is newer than this library.
  public var outcome: NotificationOutcome? { NotificationOutcome(name: outcomeName) }
}

/// The criteria for a list of device outcomes; `nil` matches any value.
public struct DeviceOutcomeQuery: Hashable, Sendable {
  /// The outcome of the devices.
  public var outcome: NotificationOutcome?
  /// The platform of the devices.
  public var platform: PushPlatform?
  /// The id of the installation.
  public var installation: String?
  /// The maximum number of devices per page, 1 to 100.
  public var pageSize: Int?

  /// Creates a query; without arguments it matches every device.
  public init(
    outcome: NotificationOutcome? = nil, platform: PushPlatform? = nil,
    installation: String? = nil, pageSize: Int? = nil
  ) {
    self.outcome = outcome
    self.platform = platform
    self.installation = installation
    self.pageSize = pageSize
  }

  var items: [URLQueryItem] {
    typealias Parameter = DeviceOutcomeList.Parameter
    return .given([
      (Parameter.outcome, outcome?.name), (Parameter.platform, platform?.rawValue),
      (Parameter.installation, installation), (WireName.top, pageSize.map(String.init)),
    ])
  }
}

/// The list's wire format.
package enum DeviceOutcomeList {
  /// The query parameters that filter the list.
  package enum Parameter {
    /// The wire name of an outcome, in any letter case.
    package static let outcome = "outcome"
    package static let platform = "platform"
    package static let installation = "installation"
    /// The id of a registration; used only to explain a single device.
    package static let registration = "registration"
  }

  /// `{"devices":[…]}`
  package static func json(_ page: [DeviceOutcome]) -> [UInt8] {
    JSONWriter.object(capacity: 256 * page.count) { writer in
      writer.objects("devices", page) { $1.write(to: &$0) }
    }
  }

  /// Decodes the reply.
  package static func decode(
    _ json: some Collection<UInt8>
  ) throws(WireFormatError) -> [DeviceOutcome] {
    guard let items = try JSONValue.parse(json).array("devices") else {
      throw WireFormatError("The reply is no list of devices.")
    }
    return items.compactMap(DeviceOutcome.init)
  }
}

extension DeviceOutcome {
  /// Writes the members, leaving out those that are unknown.
  package func write(to writer: inout JSONWriter) {
    writer.member("platform", platform?.rawValue)
    writer.member("registrationId", registrationID)
    writer.member("installationId", installationID)
    writer.member("handle", handle)
    writer.member("outcome", outcomeName)
    if status > 0 { writer.member("status", status) }
    writer.member("reason", reason)
    writer.member("attempts", attempts)
    writer.member("time", time)
  }

  /// - Returns: `nil` if the outcome is missing.
  package init?(_ value: JSONValue) {
    guard let outcome = value.text("outcome") else { return nil }
    self.init(
      platform: value.platform, registrationID: value.text("registrationId"),
      installationID: value.text("installationId"), handle: value.text("handle"),
      outcomeName: outcome, status: value.count("status") ?? 0, reason: value.text("reason"),
      attempts: value.count("attempts") ?? 0, time: value.date("time"))
  }
}
