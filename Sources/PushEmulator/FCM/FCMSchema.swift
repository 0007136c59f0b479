import Wire

/// The fields that a message may have, with their types: FCM's API takes proto3 JSON and refuses
/// what it does not know.
///
/// - SeeAlso: <https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages>
indirect enum FCMField: Sendable {
  case text, flag, whole, number, duration, timestamp
  /// One of these words, in any letter case.
  case word([String])
  case list(FCMField)
  /// Any names, values of one type.
  case map(FCMField)
  case object([String: FCMField])
  /// Any JSON object.
  case anything

  /// `message`.
  static let message = FCMField.object([
    "name": .text, "token": .text, "fid": .text, "topic": .text, "condition": .text,
    "data": .map(.text),
    "notification": .object(["title": .text, "body": .text, "image": .text]),
    "android": android, "apns": apns, "webpush": webPush,
    "fcm_options": .object(["analytics_label": .text]),
  ])

  private static let android = FCMField.object([
    "collapse_key": .text, "priority": .word(["NORMAL", "HIGH"]), "ttl": .duration,
    "restricted_package_name": .text, "data": .map(.text), "notification": androidNotification,
    "fcm_options": .object(["analytics_label": .text]), "direct_boot_ok": .flag,
    "bandwidth_constrained_ok": .flag, "restricted_satellite_ok": .flag,
  ])

  private static let androidNotification = FCMField.object([
    "title": .text, "body": .text, "icon": .text, "color": .text, "sound": .text, "tag": .text,
    "click_action": .text, "body_loc_key": .text, "body_loc_args": .list(.text),
    "title_loc_key": .text, "title_loc_args": .list(.text), "channel_id": .text, "ticker": .text,
    "sticky": .flag, "event_time": .timestamp, "local_only": .flag,
    "notification_priority": .word([
      "PRIORITY_UNSPECIFIED", "PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH",
      "PRIORITY_MAX",
    ]),
    "default_sound": .flag, "default_vibrate_timings": .flag, "default_light_settings": .flag,
    "vibrate_timings": .list(.duration),
    "visibility": .word(["VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"]),
    "notification_count": .whole, "image": .text, "bypass_proxy_notification": .flag,
    "proxy": .word(["PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"]),
    "light_settings": .object([
      "color": .object(["red": .number, "green": .number, "blue": .number, "alpha": .number]),
      "light_on_duration": .duration, "light_off_duration": .duration,
    ]),
  ])

  private static let apns = FCMField.object([
    "headers": .map(.text), "payload": .anything, "live_activity_token": .text,
    "fcm_options": .object(["analytics_label": .text, "image": .text]),
  ])

  private static let webPush = FCMField.object([
    "headers": .map(.text), "data": .map(.text), "notification": .anything,
    "fcm_options": .object(["link": .text, "analytics_label": .text]),
  ])

  /// The name of the type in proto JSON's error messages.
  private var typeName: String {
    switch self {
    case .text: "TYPE_STRING"
    case .flag: "TYPE_BOOL"
    case .whole: "TYPE_INT32"
    case .number: "TYPE_FLOAT"
    case .duration: "type.googleapis.com/google.protobuf.Duration"
    case .timestamp: "type.googleapis.com/google.protobuf.Timestamp"
    case .word: "TYPE_ENUM"
    case .list: "repeated"
    case .map: "map"
    case .object, .anything: "message"
    }
  }

  /// Collects the violations of a value.
  ///
  /// - Parameter path: The path of the value, for example `message.android`.
  func check(_ value: JSONValue, at path: String, into violations: inout [FCMRefusal.Violation]) {
    // In proto JSON null means an absent field.
    if value == .null { return }
    switch (self, value) {
    case (.text, .string), (.flag, .bool), (.anything, .object), (.timestamp, .string):
      return
    case (.number, .number) where value.number != nil: return
    case (.whole, .number(let digits)) where Int32(digits) != nil: return
    case (.whole, .string(let text)) where Int32(text) != nil: return
    case (.duration, .string(let text)) where FCMDuration(text) != nil: return
    case (.word(let words), .string(let text)) where words.contains(text.uppercased()): return
    case (.list(let type), .array(let items)):
      for (place, item) in items.enumerated() {
        type.check(item, at: "\(path)[\(place)]", into: &violations)
      }
    case (.map(let type), .object(let members)):
      for (place, member) in members.enumerated() {
        type.check(member.value, at: "\(path)[\(place)].value", into: &violations)
      }
    case (.object(let fields), .object(let members)):
      for member in members {
        let name = member.name.snakeCase
        guard let type = fields[name] else {
          violations.append(
            .init(
              field: path,
              description: "Invalid JSON payload received. Unknown name \"\(member.name)\" at "
                + "'\(path)': Cannot find field."))
          continue
        }
        type.check(member.value, at: "\(path).\(name)", into: &violations)
      }
    default:
      violations.append(
        .init(field: path, description: "Invalid value at '\(path)' (\(typeName))"))
    }
  }
}

/// A duration in proto JSON: seconds with an optional fraction of up to nine digits, then `s`.
struct FCMDuration: Sendable, Equatable {
  let milliseconds: Int64

  init?(_ text: String) {
    guard text.hasSuffix("s") else { return nil }
    let parts = text.dropLast().split(separator: ".", omittingEmptySubsequences: false)
    guard (1...2).contains(parts.count), let whole = Int64(parts[0]), abs(whole) <= 315_576_000_000,
      parts[0].utf8.allSatisfy({ $0 == UInt8(ascii: "-") || $0.isDigit })
    else { return nil }
    var fraction: Int64 = 0
    if parts.count == 2 {
      guard (1...9).contains(parts[1].utf8.count), parts[1].utf8.allSatisfy(\.isDigit)
      else { return nil }
      fraction = Int64((parts[1] + "00").prefix(3)) ?? 0
    }
    milliseconds = whole * 1000 + (parts[0].hasPrefix("-") ? -fraction : fraction)
  }
}

extension String {
  /// `collapseKey` as `collapse_key`: proto JSON accepts both spellings.
  var snakeCase: String {
    guard utf8.contains(where: { $0 >= UInt8(ascii: "A") && $0 <= UInt8(ascii: "Z") })
    else { return self }
    var out = ""
    for character in self {
      if character.isASCII, character.isUppercase {
        out += "_" + character.lowercased()
      } else {
        out.append(character)
      }
    }
    return out
  }
}

extension JSONValue {
  /// An object's member by its name in snake case, in either spelling; `nil` for none or null.
  func field(_ name: String) -> JSONValue? {
    guard
      let value = members?.first(where: { $0.name == name || $0.name.snakeCase == name })?.value,
      value != .null
    else { return nil }
    return value
  }
}
