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
    JSONWriter.object { writer in
      writer.objects("removals", items) { writer, item in
        writer.member("hour", WireDate.seconds(item.hour))
        writer.member("platform", item.platform.rawValue)
        writer.member("outcome", item.outcome)
        writer.member("registrations", item.registrations)
      }
    }
  }

  /// Reads the reply.
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

  /// Reads the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let restored = root.count("restored"), let superseded = root.count("superseded") else {
      throw WireFormatError("The reply is no account of a restoration.")
    }
    self.init(restored: restored, superseded: superseded, hasMore: root.flag("more") ?? false)
  }
}
