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
      // A body that is not such a message is left for the gateway to refuse.
      if let bytes = Self.converted(batch.bodies[index].bytes) {
        batch.bodies[index].bytes = bytes
      }
    }
    return await base.deliver(batch)
  }

  func close() async { await base.close() }

  private static let titles: Set<String> = ["title", "body"]

  /// Converts a legacy message to a message of HTTP v1, without its receiver.
  static func converted(_ bytes: [UInt8]) -> [UInt8]? {
    guard let legacy = try? JSONValue.parse(bytes), case .object = legacy else { return nil }
    var message: [JSONValue.Member] = []
    if case .object(let data)? = legacy["data"] {
      message.append(.init("data", .object(data.map { .init($0.name, .string(text($0.value))) })))
    }
    var notification: [JSONValue.Member] = []
    if case .object(let members)? = legacy["notification"] { notification = members }
    message += object("notification", notification.filter { titles.contains($0.name) })
    let rest = object("notification", notification.filter { !titles.contains($0.name) })
    message += object("android", android(legacy) + rest)
    let isTrial: [JSONValue.Member] =
      legacy.flag("dry_run") == true ? [.init("validate_only", .bool(true))] : []
    return JSONValue.object(isTrial + [.init("message", .object(message))]).jsonBytes
  }

  private static func android(_ legacy: JSONValue) -> [JSONValue.Member] {
    var members: [JSONValue.Member] = []
    if let key = legacy.text("collapse_key") {
      members.append(.init("collapse_key", .string(key)))
    }
    if let seconds = legacy.text("time_to_live") {
      members.append(.init("ttl", .string(seconds + "s")))
    }
    if let priority = legacy.text("priority") {
      members.append(.init("priority", .string(priority.uppercased())))
    }
    if let name = legacy.text("restricted_package_name") {
      members.append(.init("restricted_package_name", .string(name)))
    }
    return members
  }

  /// A member that is an object; `nil` when that is empty.
  private static func object(
    _ name: String, _ members: [JSONValue.Member]
  ) -> [JSONValue.Member] {
    members.isEmpty ? [] : [.init(name, .object(members))]
  }

  /// Converts a value to text, because data of HTTP v1 contains only strings.
  private static func text(_ value: JSONValue) -> String {
    value == .null ? "" : value.scalarText ?? value.jsonText
  }
}
