import Wire

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The number of registrations that an expression reaches, counted without sending: Belfry's reply
/// to `GET /{hub}/audience?tags=EXPR`.
public struct AudienceCount: Hashable, Sendable {
  /// The number of devices of one platform that native sends reach, or that have one template.
  public struct Item: Hashable, Sendable {
    /// The platform of the devices.
    public var platform: PushPlatform
    /// The template's name; `nil` for native sends.
    public var template: String?
    /// The number of registrations.
    public var devices: Int

    /// Creates the count for one platform and template.
    public init(platform: PushPlatform, template: String?, devices: Int) {
      self.platform = platform
      self.template = template
      self.devices = devices
    }
  }

  /// The sum over all items.
  public var total: Int
  /// The counts by platform and template.
  public var counts: [Item]
  /// Whether the hub counted only a sample of its devices, because counting all would have taken
  /// too long, and extrapolated: the result is close but not exact.
  public var isEstimate: Bool

  /// Creates an audience count.
  public init(total: Int, counts: [Item], isEstimate: Bool = false) {
    self.total = total
    self.counts = counts
    self.isEstimate = isEstimate
  }
}

extension AudienceCount {
  /// The number of devices, each counted once: of each platform the largest count, because an
  /// installation has one registration for native sends and one for each template. Registrations of
  /// templates alone may be of more devices.
  public var devices: Int {
    counts.reduce(into: [PushPlatform: Int]()) { most, item in
      most[item.platform] = max(most[item.platform] ?? 0, item.devices)
    }.values.reduce(0, +)
  }

  /// `{"total":3,"counts":[{"platform":"apns","template":null,"devices":3}]}`
  package var json: [UInt8] {
    JSONWriter.object { writer in
      writer.member("total", total)
      writer.objects("counts", counts) { writer, item in
        writer.member("platform", item.platform.rawValue)
        writer.name("template")
        if let template = item.template { writer.string(template) } else { writer.raw("null") }
        writer.member("devices", item.devices)
      }
      if isEstimate { writer.member("estimate", true) }
    }
  }

  /// Decodes the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let total = root.count("total"), let items = root.array("counts") else {
      throw WireFormatError("The reply is no count of an audience.")
    }
    self.init(total: total, counts: [], isEstimate: root.flag("estimate") ?? false)
    for item in items {
      // A platform newer than this build counts only toward the total.
      guard let platform = item.platform else { continue }
      counts.append(
        Item(
          platform: platform, template: item.text("template"), devices: item.count("devices") ?? 0))
    }
  }
}
