import Wire

/// The numbers of items erased with a user: Belfry's reply to `DELETE /{hub}/users/{userId}`.
public struct UserErasure: Hashable, Sendable {
  /// Installations of the user.
  public var installations: Int
  /// Scheduled notifications for this user only.
  public var schedules: Int
  /// Stored payloads.
  public var notifications: Int
  /// Outcomes kept for single devices.
  public var deviceRecords: Int
  /// Tags that no other device has.
  public var tags: Int
  /// Templates that no other device has.
  public var templates: Int

  /// Creates a result.
  public init(
    installations: Int, schedules: Int, notifications: Int, deviceRecords: Int, tags: Int = 0,
    templates: Int = 0
  ) {
    self.tags = tags
    self.templates = templates
    self.installations = installations
    self.schedules = schedules
    self.notifications = notifications
    self.deviceRecords = deviceRecords
  }

  private static let names = [
    "installations", "schedules", "notifications", "deviceRecords", "tags", "templates",
  ]

  /// `{"installations":1,"schedules":0,"notifications":2,"deviceRecords":0,"tags":1,"templates":0}`
  package var json: [UInt8] {
    let counts = [installations, schedules, notifications, deviceRecords, tags, templates]
    return JSONWriter.object { writer in
      for (name, count) in zip(Self.names, counts) { writer.member(name, count) }
    }
  }

  /// Decodes the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    // Servers before 2026-12 do not report the last two.
    let counts = Self.names.enumerated().compactMap { index, name in
      root[name]?.count ?? (index > 3 && root[name] == nil ? 0 : nil)
    }
    guard counts.count == Self.names.count else {
      throw WireFormatError("The reply is no account of an erasure.")
    }
    self.init(
      installations: counts[0], schedules: counts[1], notifications: counts[2],
      deviceRecords: counts[3], tags: counts[4], templates: counts[5])
  }
}
