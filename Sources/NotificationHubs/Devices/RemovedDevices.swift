import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Registrations that the hub has removed because a push service called their handle dead, and that
/// can be brought back for seven days: Belfry's answer to `GET /{hub}/removals`.
public struct RemovedDevices: Hashable, Sendable {
  /// Those of one hour with the same outcome. A wave stands out from the daily drip.
  public struct Item: Hashable, Sendable {
    /// When the hour begins.
    public var hour: Date
    public var platform: PushPlatform
    /// What the push service said: `ExpiredChannel`, `BadChannel`, `WrongChannel`; `RefreshToken`
    /// for a handle that it has replaced.
    public var outcome: String
    public var registrations: Int

    public init(hour: Date, platform: PushPlatform, outcome: String, registrations: Int) {
      self.hour = hour
      self.platform = platform
      self.outcome = outcome
      self.registrations = registrations
    }
  }

  /// The oldest first.
  public var items: [Item]
  public var total: Int { items.reduce(0) { $0 + $1.registrations } }

  public init(_ items: [Item]) { self.items = items }

  /// `{"removals":[{"hour":"…","platform":"apns","outcome":"BadChannel","registrations":3}]}`
  package var json: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.array("removals", items) { writer, item in
      writer.beginObject()
      writer.member("hour", WireDate.seconds(item.hour))
      writer.member("platform", item.platform.rawValue)
      writer.member("outcome", item.outcome)
      writer.member("registrations", item.registrations)
      writer.endObject()
    }
    writer.endObject()
    return writer.bytes
  }

  /// Reads the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    guard case .array(let items)? = try JSONValue.parse(json)["removals"] else {
      throw WireFormatError("The reply is no list of removals.")
    }
    self.init(
      items.compactMap { item in
        guard let hour = item["hour"]?.scalarText.flatMap(WireDate.parse),
          let platform = item["platform"]?.scalarText.flatMap(PushPlatform.init(installationWord:))
        else { return nil }
        return Item(
          hour: hour, platform: platform, outcome: item["outcome"]?.scalarText ?? "",
          registrations: item["registrations"]?.count ?? 0)
      })
  }
}

/// What bringing removed registrations back has done: Belfry's answer to
/// `POST /{hub}/removals/restore`.
public struct DeviceRestoration: Hashable, Sendable {
  /// Registrations that are there again.
  public var restored: Int
  /// Those that stay away: the app has registered again meanwhile, or their time is over.
  public var superseded: Int
  /// The same request brings more of them back.
  package var hasMore: Bool

  public init(restored: Int, superseded: Int) {
    self.init(restored: restored, superseded: superseded, hasMore: false)
  }

  package init(restored: Int, superseded: Int, hasMore: Bool) {
    self.restored = restored
    self.superseded = superseded
    self.hasMore = hasMore
  }

  /// `{"restored":3,"superseded":0,"more":false}`
  package var json: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("restored", restored)
    writer.member("superseded", superseded)
    writer.member("more", hasMore)
    writer.endObject()
    return writer.bytes
  }

  /// Reads the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let restored = root["restored"]?.count, let superseded = root["superseded"]?.count else {
      throw WireFormatError("The reply is no account of a restoration.")
    }
    self.init(
      restored: restored, superseded: superseded, hasMore: root["more"]?.scalarText == "true")
  }
}
