import Wire

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How many devices an expression reaches, counted without sending: Belfry's answer to
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

  public init(total: Int, counts: [Item]) {
    self.total = total
    self.counts = counts
  }
}

extension AudienceCount {
  /// `{"total":3,"counts":[{"platform":"apns","template":null,"devices":3}]}`
  package var json: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.name("total")
    writer.raw(String(total))
    writer.name("counts")
    writer.beginArray()
    for item in counts {
      writer.beginObject()
      writer.name("platform")
      writer.string(item.platform.rawValue)
      writer.name("template")
      if let template = item.template { writer.string(template) } else { writer.raw("null") }
      writer.name("devices")
      writer.raw(String(item.devices))
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
    return writer.bytes
  }

  /// Reads the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let total = root["total"]?.count, case .array(let items)? = root["counts"] else {
      throw WireFormatError("The reply is no count of an audience.")
    }
    self.init(total: total, counts: [])
    for item in items {
      // A platform newer than this build is in the total only.
      guard
        let platform = item["platform"]?.scalarText.flatMap(PushPlatform.init(installationWord:))
      else { continue }
      counts.append(
        Item(
          platform: platform, template: item["template"]?.scalarText,
          devices: item["devices"]?.count ?? 0))
    }
  }
}

extension JSONValue {
  /// A whole number that is not negative.
  var count: Int? {
    guard case .number(let digits) = self, let number = Int(digits), number >= 0 else {
      return nil
    }
    return number
  }
}
