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
    let values: [(String, String?)] = [
      (Parameter.outcome, outcome?.name), (Parameter.platform, platform?.rawValue),
      (Parameter.installation, installation), (WireName.top, pageSize.map(String.init)),
    ]
    return values.compactMap { name, value in value.map { URLQueryItem(name: name, value: $0) } }
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
    var writer = JSONWriter(capacity: 256 * page.count)
    writer.beginObject()
    writer.name("devices")
    writer.beginArray()
    for device in page { device.write(to: &writer) }
    writer.endArray()
    writer.endObject()
    return writer.bytes
  }

  /// Reads the reply.
  package static func decode(
    _ json: some Collection<UInt8>
  ) throws(WireFormatError) -> [DeviceOutcome] {
    guard case .array(let items)? = try JSONValue.parse(json)["devices"] else {
      throw WireFormatError("The reply is no list of devices.")
    }
    return items.compactMap(DeviceOutcome.init)
  }
}

extension DeviceOutcome {
  /// What is not known is left out.
  package func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("platform", platform?.rawValue)
    writer.member("registrationId", registrationID)
    writer.member("installationId", installationID)
    writer.member("handle", handle)
    writer.member("outcome", outcomeName)
    if status > 0 { writer.member("status", status) }
    writer.member("reason", reason)
    writer.member("attempts", attempts)
    writer.member("time", time)
    writer.endObject()
  }

  /// - Returns: `nil` without an outcome.
  package init?(_ value: JSONValue) {
    guard let outcome = value["outcome"]?.scalarText else { return nil }
    self.init(
      platform: value["platform"]?.scalarText.flatMap(PushPlatform.init(installationWord:)),
      registrationID: value["registrationId"]?.scalarText,
      installationID: value["installationId"]?.scalarText,
      handle: value["handle"]?.scalarText, outcomeName: outcome,
      status: value["status"]?.count ?? 0, reason: value["reason"]?.scalarText,
      attempts: value["attempts"]?.count ?? 0,
      time: value["time"]?.scalarText.flatMap(WireDate.parse))
  }
}

extension JSONWriter {
  /// Writes nothing for `nil`.
  package mutating func member(_ name: String, _ text: String?) {
    guard let text else { return }
    self.name(name)
    string(text)
  }

  package mutating func member(_ name: String, _ number: Int?) {
    guard let number else { return }
    self.name(name)
    raw(String(number))
  }

  package mutating func member(_ name: String, _ flag: Bool?) {
    guard let flag else { return }
    self.name(name)
    bool(flag)
  }

  /// In UTC with milliseconds.
  package mutating func member(_ name: String, _ date: Date?) {
    guard let date else { return }
    self.name(name)
    string(WireDate.milliseconds(date))
  }
}
