/// What was erased with a user: Belfry's answer to `DELETE /{hub}/users/{userId}`.
public struct UserErasure: Hashable, Sendable {
  public var installations: Int
  /// Scheduled notifications that were for this user only.
  public var schedules: Int
  /// Stored payloads.
  public var notifications: Int
  /// Outcomes kept for single devices.
  public var deviceRecords: Int

  public init(installations: Int, schedules: Int, notifications: Int, deviceRecords: Int) {
    self.installations = installations
    self.schedules = schedules
    self.notifications = notifications
    self.deviceRecords = deviceRecords
  }

  private static let names = ["installations", "schedules", "notifications", "deviceRecords"]

  /// `{"installations":1,"schedules":0,"notifications":2,"deviceRecords":0}`
  package var json: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    for (name, count) in zip(Self.names, [installations, schedules, notifications, deviceRecords]) {
      writer.name(name)
      writer.raw(String(count))
    }
    writer.endObject()
    return writer.bytes
  }

  /// Reads the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    let counts = Self.names.compactMap { root[$0]?.count }
    guard counts.count == Self.names.count else {
      throw WireFormatError("The reply is no account of an erasure.")
    }
    self.init(
      installations: counts[0], schedules: counts[1], notifications: counts[2],
      deviceRecords: counts[3])
  }
}
