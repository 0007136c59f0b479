public import Foundation
package import Wire

/// What became of a notification for one device: an element of Belfry's answer to
/// `GET /{hub}/messages/{id}/devices`.
public struct DeviceOutcome: Hashable, Sendable {
  /// `nil` when nobody knows it any more: the device has gone.
  public var platform: PushPlatform?
  /// What clients call the registration; `nil` for a direct send.
  public var registrationID: String?
  /// `nil` for a direct send, and for a device without installation.
  public var installationID: String?
  /// What the push service calls the device; of a browser, its endpoint.
  public var handle: String?
  /// The outcome's wire name; ``outcome`` reads it.
  public var outcomeName: String
  /// The push service's HTTP status; 0 when there was no reply.
  public var status: Int
  /// The push service's own word, or the hub's reason.
  public var reason: String?
  /// How often the push was sent; 0 when it was not.
  public var attempts: Int
  /// When it was recorded; `nil` when an older server has kept it.
  public var time: Date?

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

  /// `nil` for an outcome newer than this library.
  public var outcome: NotificationOutcome? { NotificationOutcome(name: outcomeName) }
}

/// Which devices' outcomes a list has; what is `nil` does not matter.
public struct DeviceOutcomeQuery: Hashable, Sendable {
  public var outcome: NotificationOutcome?
  public var platform: PushPlatform?
  public var installation: String?
  /// The most devices of one page, 1 to 100.
  public var pageSize: Int?

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

/// The list's wire form.
package enum DeviceOutcomeList {
  /// The query parameters that narrow the list.
  package enum Parameter {
    /// An outcome's wire name, letter case aside.
    package static let outcome = "outcome"
    package static let platform = "platform"
    package static let installation = "installation"
    /// What clients call a registration; only where one device is explained.
    package static let registration = "registration"
  }

  /// `{"devices":[…]}`
  package static func json(_ page: [DeviceOutcome]) -> [UInt8] {
    JSONWriter.object(capacity: 256 * page.count) { writer in
      writer.objects("devices", page) { $1.write(to: &$0) }
    }
  }

  /// Reads the reply.
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
  /// Its members; what is not known is left out.
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

  /// - Returns: `nil` without an outcome.
  package init?(_ value: JSONValue) {
    guard let outcome = value.text("outcome") else { return nil }
    self.init(
      platform: value.platform, registrationID: value.text("registrationId"),
      installationID: value.text("installationId"), handle: value.text("handle"),
      outcomeName: outcome, status: value.count("status") ?? 0, reason: value.text("reason"),
      attempts: value.count("attempts") ?? 0, time: value.date("time"))
  }
}
