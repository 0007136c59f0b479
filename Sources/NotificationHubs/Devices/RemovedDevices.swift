import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Registrations that the hub removed because a push service reported their handle dead, and that
/// can be restored for seven days: Belfry's reply to `GET /{hub}/removals`.
public struct RemovedDevices: Hashable, Sendable {
  /// The removals of one hour with the same outcome, so that a wave of removals stands out.
  public struct Item: Hashable, Sendable {
    /// The start of the hour.
    public var hour: Date
    /// The platform of the registrations.
    public var platform: PushPlatform
    /// The verdict of the push service: `ExpiredChannel`, `BadChannel`, `WrongChannel`;
    /// `RefreshToken` for a handle that it has replaced.
    public var outcome: String
    /// The number of registrations removed.
    public var registrations: Int

    /// Creates the removals of one hour.
    public init(hour: Date, platform: PushPlatform, outcome: String, registrations: Int) {
      self.hour = hour
      self.platform = platform
      self.outcome = outcome
      self.registrations = registrations
    }
  }

  /// The removals by hour, oldest first.
  public var items: [Item]
  /// The total number of registrations removed.
  public var total: Int { items.reduce(0) { $0 + $1.registrations } }

  /// Creates a list of removals.
  public init(_ items: [Item]) { self.items = items }

  /// `{"removals":[{"hour":"…","platform":"apns","outcome":"BadChannel","registrations":3}]}`
  package var json: [UInt8] {
    JSONWriter.object { writer in
      writer.objects("removals", items) { writer, item in
        writer.member("hour", WireDate.seconds(item.hour))
        writer.member("platform", item.platform.rawValue)
        writer.member("outcome", item.outcome)
        writer.member("registrations", item.registrations)
      }
    }
  }

  /// Decodes the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    guard let items = try JSONValue.parse(json).array("removals") else {
      throw WireFormatError("The reply is no list of removals.")
    }
    self.init(
      items.compactMap { item in
        guard let hour = item.date("hour"), let platform = item.platform else { return nil }
        return Item(
          hour: hour, platform: platform, outcome: item.text("outcome") ?? "",
          registrations: item.count("registrations") ?? 0)
      })
  }
}

/// The result of restoring removed registrations: Belfry's reply to `POST /{hub}/removals/restore`.
public struct DeviceRestoration: Hashable, Sendable {
  /// The number of registrations restored.
  public var restored: Int
  /// The number of registrations not restored, because the app has registered again or they have
  /// expired.
  public var superseded: Int
  /// Whether repeating the request restores more.
  package var hasMore: Bool

  /// Creates a result.
  public init(restored: Int, superseded: Int) {
    self.init(restored: restored, superseded: superseded, hasMore: false)
  }

  package init(restored: Int = 0, superseded: Int = 0, hasMore: Bool = false) {
    self.restored = restored
    self.superseded = superseded
    self.hasMore = hasMore
  }

  /// `{"restored":3,"superseded":0,"more":false}`
  package var json: [UInt8] {
    JSONWriter.object { writer in
      writer.member("restored", restored)
      writer.member("superseded", superseded)
      writer.member("more", hasMore)
    }
  }

  /// Decodes the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let restored = root.count("restored"), let superseded = root.count("superseded") else {
      throw WireFormatError("The reply is no account of a restoration.")
    }
    self.init(restored: restored, superseded: superseded, hasMore: root.flag("more") ?? false)
  }
}
