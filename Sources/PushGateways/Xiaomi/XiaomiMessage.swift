import Foundation
import HubCore
import NotificationHubs
import Wire

/// A message in the form that Xiaomi takes (spec `pns/xiaomi.md` section 3): the caller's JSON, or
/// form, reduced to the names that the service knows.
struct XiaomiMessage: Sendable {
  /// Without the registration id.
  let fields: [(name: String, value: String)]

  static let payloadLimit = 4096
  private static let extra = "extra"
  private static let lifetime = "time_to_live"
  private static let names: Set<String> = [
    "restricted_package_name", "payload", "title", "description", "pass_through", "notify_type",
    "notify_id", lifetime, "time_to_send",
  ]
  /// Two weeks, in seconds: no message class keeps longer.
  private static let longest: Int64 = 14 * 86_400

  init(_ body: PushBody, now: Int64) throws(PushRefusal) {
    // What no field of a message needs is not even read.
    guard body.bytes.count <= 4 * Self.payloadLimit else {
      throw PushRefusal.tooLarge(body.bytes.count, limit: 4 * Self.payloadLimit)
    }
    var fields = try Self.fields(body.bytes)
    let value = { (name: String) in fields.last { $0.name == name }?.value }
    if let payload = value("payload"), payload.utf8.count > Self.payloadLimit {
      throw PushRefusal.tooLarge(payload.utf8.count, limit: Self.payloadLimit)
    }
    if value("pass_through") == "1" {
      guard value("payload") != nil else {
        throw PushRefusal.badFormat("a message for the app needs a payload")
      }
    } else {
      guard let title = value("title"), let text = value("description"), !title.isEmpty,
        !text.isEmpty
      else { throw PushRefusal.badFormat("a notification needs a title and a description") }
      guard title.count < 50, text.count < 128 else {
        throw PushRefusal(
          .invalidNotificationSize,
          "the title has 50 characters or more, or the description 128 or more")
      }
    }
    if value(Self.lifetime) == nil, let expiry = body.expiry {
      let (life, isOver) = expiry.subtractingReportingOverflow(now)
      let seconds = isOver ? 1 : min(max(life, 1), Self.longest)
      fields.append((Self.lifetime, "\(seconds * 1000)"))
    }
    self.fields = fields
  }

  private static func fields(
    _ bytes: [UInt8]
  ) throws(PushRefusal) -> [(name: String, value: String)] {
    var fields: [(name: String, value: String)] = []
    if let object = StrictJSON.object(bytes), case .object(let members) = object {
      for member in members {
        if member.name == extra, case .object(let extras) = member.value {
          for item in extras { fields.append(("\(extra).\(item.name)", try text(item))) }
        } else if isKnown(member.name) {
          fields.append((member.name, try text(member)))
        }
      }
      return fields
    }
    guard let text = String(validating: bytes, as: UTF8.self), text.contains("="),
      !text.hasPrefix("{")
    else { throw PushRefusal.badFormat("the payload is neither a JSON object nor a form") }
    for pair in text.split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = decoded(parts[0])
      if isKnown(name) { fields.append((name, parts.count > 1 ? decoded(parts[1]) : "")) }
    }
    return fields
  }

  private static func isKnown(_ name: String) -> Bool {
    names.contains(name) || name.hasPrefix(extra + ".")
  }

  private static func decoded(_ text: Substring) -> String {
    text.split(separator: "+", omittingEmptySubsequences: false).joined(separator: " ")
      .percentDecoded
  }

  /// An object, such as a payload for the app, goes as its own text.
  private static func text(_ member: JSONValue.Member) throws(PushRefusal) -> String {
    if let text = member.value.scalarText { return text }
    guard member.value != .null else { return "" }
    var writer = JSONWriter()
    writer.value(member.value)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}
