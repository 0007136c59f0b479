import HubCore
import NotificationHubs
import Wire

/// Reaches devices that registered for Google Cloud Messaging through FCM's HTTP v1: their tokens
/// are the same, and the message is rewritten (docs/protocol/push-services/retired.md, section 1).
struct LegacyFCMGateway: PushGateway {
  /// The gateway of the hub's FCM v1 credential.
  let base: any PushGateway

  func deliver(_ batch: PushBatch) async -> [PushResult] {
    var batch = batch
    for index in batch.bodies.indices {
      // What is no such message stays, for the gateway to refuse.
      if let bytes = Self.converted(batch.bodies[index].bytes) {
        batch.bodies[index].bytes = bytes
      }
    }
    return await base.deliver(batch)
  }

  func close() async { await base.close() }

  private static let titles: Set<String> = ["title", "body"]

  /// A legacy message as a message of HTTP v1, without its receiver.
  static func converted(_ bytes: [UInt8]) -> [UInt8]? {
    guard let legacy = try? JSONValue.parse(bytes), case .object = legacy else { return nil }
    var writer = JSONWriter()
    writer.beginObject()
    if case .bool(true)? = legacy["dry_run"] {
      writer.name("validate_only")
      writer.bool(true)
    }
    writer.name("message")
    writer.beginObject()
    if case .object(let data)? = legacy["data"] {
      writer.name("data")
      writer.beginObject()
      for member in data {
        writer.name(member.name)
        writer.string(text(member.value))
      }
      writer.endObject()
    }
    let notification = members(of: legacy["notification"])
    write("notification", notification.filter { titles.contains($0.name) }, to: &writer)
    let android = android(legacy)
    let rest = notification.filter { !titles.contains($0.name) }
    if !android.isEmpty || !rest.isEmpty {
      writer.name("android")
      writer.beginObject()
      for member in android {
        writer.name(member.name)
        writer.value(member.value)
      }
      write("notification", rest, to: &writer)
      writer.endObject()
    }
    writer.endObject()
    writer.endObject()
    return writer.bytes
  }

  private static func android(_ legacy: JSONValue) -> [JSONValue.Member] {
    var members: [JSONValue.Member] = []
    if let key = legacy["collapse_key"]?.scalarText {
      members.append(.init("collapse_key", .string(key)))
    }
    if let seconds = legacy["time_to_live"]?.scalarText {
      members.append(.init("ttl", .string(seconds + "s")))
    }
    if let priority = legacy["priority"]?.scalarText {
      members.append(.init("priority", .string(priority.uppercased())))
    }
    if let name = legacy["restricted_package_name"]?.scalarText {
      members.append(.init("restricted_package_name", .string(name)))
    }
    return members
  }

  private static func members(of value: JSONValue?) -> [JSONValue.Member] {
    guard case .object(let members)? = value else { return [] }
    return members
  }

  private static func write(
    _ name: String, _ members: [JSONValue.Member], to writer: inout JSONWriter
  ) {
    guard !members.isEmpty else { return }
    writer.name(name)
    writer.beginObject()
    for member in members {
      writer.name(member.name)
      writer.value(member.value)
    }
    writer.endObject()
  }

  /// Data of HTTP v1 holds texts only.
  private static func text(_ value: JSONValue) -> String {
    if let text = value.scalarText { return text }
    guard value != .null else { return "" }
    var writer = JSONWriter()
    writer.value(value)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}
