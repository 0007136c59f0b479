import Wire

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How many registrations an expression reaches, counted without sending: Belfry's answer to
/// `GET /{hub}/audience?tags=EXPR`.
public struct AudienceCount: Hashable, Sendable {
  /// The devices of one platform that native sends reach, or those with one template.
  public struct Item: Hashable, Sendable {
    public var platform: PushPlatform
    /// The template's name; `nil` for native sends.
    public var template: String?
    public var devices: Int

    public init(platform: PushPlatform, template: String?, devices: Int) {
      self.platform = platform
      self.template = template
      self.devices = devices
    }
  }

  /// The sum over all items.
  public var total: Int
  public var counts: [Item]
  /// Whether the hub has counted a part of its devices only, since all would have taken too long,
  /// and tells what follows for the whole: close, but not exact.
  public var isEstimate: Bool

  public init(total: Int, counts: [Item], isEstimate: Bool = false) {
    self.total = total
    self.counts = counts
    self.isEstimate = isEstimate
  }
}

extension AudienceCount {
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

  /// Reads the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let total = root.count("total"), let items = root.array("counts") else {
      throw WireFormatError("The reply is no count of an audience.")
    }
    self.init(total: total, counts: [], isEstimate: root.flag("estimate") ?? false)
    for item in items {
      // A platform newer than this build is in the total only.
      guard let platform = item.platform else { continue }
      counts.append(
        Item(
          platform: platform, template: item.text("template"), devices: item.count("devices") ?? 0))
    }
  }
}
