import Wire

/// A send request's body as FCM reads it (docs/protocol/emulator.md, section 5.2).
struct FCMMessage: Sendable {
  enum Target: Sendable, Equatable {
    case token(String)
    /// A Firebase installation id.
    case fid(String)
    case topic(String)
    case condition(FCMCondition)

    var isForTopics: Bool {
      switch self {
      case .topic, .condition: true
      case .token, .fid: false
      }
    }
  }

  let target: Target
  let isValidateOnly: Bool
  /// The message without its target, as the app receives it.
  let payload: [UInt8]
  let collapseKey: String?
  let isHighPriority: Bool
  /// In ms; `nil` for the default.
  let timeToLive: Int64?
  let restrictedPackage: String?

  /// Maximum size of data, notification and the platforms' parts in bytes.
  static let limit = 4096
  /// The same for a message to topics.
  static let topicLimit = 2048
  /// The longest `ttl` in ms: 28 days, which is the default too.
  static let longestTTL: Int64 = 2_419_200_000

  /// Reads a body.
  /// - Throws: `FCMRefusal`.
  init(_ body: [UInt8], contentType: String?) throws(FCMRefusal) {
    let type = MediaType.of(contentType)
    guard type == "application/json" || type.hasSuffix("+json") else {
      throw .badRequest("", "Content-Type must be application/json, not '\(type)'.")
    }
    let json: JSONValue
    do {
      json = try JSONValue.read(body, uniqueNames: true)
    } catch {
      throw .badRequest(
        "", "Invalid JSON payload received. \(error.message) at byte \(error.position).")
    }
    guard let members = json.members else {
      throw .badRequest("", "Invalid JSON payload received. Root element must be a message.")
    }
    for member in members where !["message", "validate_only"].contains(member.name.snakeCase) {
      throw .badRequest(
        "",
        "Invalid JSON payload received. Unknown name \"\(member.name)\": Cannot find field.")
    }
    guard let message = json.field("message"), message.members != nil else {
      throw .badRequest("message", "Invalid value at 'message': a message is required.")
    }
    isValidateOnly = try Self.flag(json.field("validate_only"))
    target = try Self.target(message)
    try Self.checkFields(message)

    let android = message.field("android")
    collapseKey = android?.field("collapse_key")?.text
    restrictedPackage = android?.field("restricted_package_name")?.text
    timeToLive = android?.field("ttl")?.text.flatMap { FCMDuration($0)?.milliseconds }
    if let word = android?.field("priority")?.text {
      isHighPriority = word.uppercased() == "HIGH"
    } else {
      isHighPriority =
        message.field("notification") != nil || android?.field("notification") != nil
    }
    try Self.checkSize(message, limit: target.isForTopics ? Self.topicLimit : Self.limit)
    let rest = (message.members ?? []).filter { !Self.targets.contains($0.name) }
    payload = JSONValue.object(rest).jsonBytes
  }

  /// The named device or, as it is given to subscribers, topic.
  var handle: String? {
    switch target {
    case .token(let handle), .fid(let handle): handle
    case .topic(let name): "/topics/" + name
    case .condition: nil
    }
  }

  private static let targets = ["token", "fid", "topic", "condition"]

  private static func flag(_ value: JSONValue?) throws(FCMRefusal) -> Bool {
    switch value {
    case nil: return false
    case .bool(let flag): return flag
    default:
      throw .badRequest("validate_only", "Invalid value at 'validate_only' (TYPE_BOOL)")
    }
  }

  /// Requires exactly one target.
  private static func target(_ message: JSONValue) throws(FCMRefusal) -> Target {
    let given = targets.compactMap { name in message.field(name).map { (name, $0) } }
    guard let (name, value) = given.first else {
      throw .badRequest("message.token", "Recipient of the message is not set.")
    }
    if given.count > 1 {
      throw .badRequest(
        "message",
        "Invalid value at 'message' (oneof), oneof field 'target' is already set. Cannot set "
          + "'\(given[1].0)'")
    }
    guard case .string(let text) = value, !text.isEmpty else {
      throw .badRequest("message.\(name)", "Invalid value at 'message.\(name)' (TYPE_STRING)")
    }
    switch name {
    case "token": return .token(text)
    case "fid": return .fid(text)
    case "topic":
      guard FCMTopics.isName(text) else {
        throw .fcm("INVALID_ARGUMENT", "Malformed topic name.")
      }
      return .topic(text)
    default:
      guard let condition = FCMCondition(text) else {
        throw .fcm("INVALID_ARGUMENT", "Invalid condition expression provided.")
      }
      return .condition(condition)
    }
  }

  /// Checks the members of the message and their values.
  private static func checkFields(_ message: JSONValue) throws(FCMRefusal) {
    var violations: [FCMRefusal.Violation] = []
    FCMField.message.check(message, at: "message", into: &violations)
    guard violations.isEmpty else { throw .badRequest(Array(violations.prefix(20))) }
    for (path, data) in [
      ("message.data", message.field("data")),
      ("message.android.data", message.field("android")?.field("data")),
      ("message.webpush.data", message.field("webpush")?.field("data")),
    ] {
      for member in data?.members ?? [] where isReserved(member.name) {
        throw .badRequest(path, "Invalid data payload key: \(member.name)")
      }
    }
    if let text = message.field("android")?.field("ttl")?.text, let ttl = FCMDuration(text),
      !(0...longestTTL).contains(ttl.milliseconds)
    {
      throw .badRequest("message.android.ttl", "Invalid ttl: must be from 0s to 2419200s.")
    }
  }

  /// Whether FCM reserves a name.
  private static func isReserved(_ name: String) -> Bool {
    name == "from" || name == "message_type" || name.hasPrefix("google") || name.hasPrefix("gcm")
  }

  /// Checks the size of `data`, `notification` and the platforms' parts.
  private static func checkSize(_ message: JSONValue, limit: Int) throws(FCMRefusal) {
    let counted = ["data", "notification", "android", "webpush", "apns"]
    let size = counted.reduce(0) { $0 + (message.field($1)?.jsonBytes.count ?? 0) }
    guard size <= limit else {
      throw .fcm(
        "INVALID_ARGUMENT",
        limit == topicLimit ? "Topics message is too big" : "Android message is too big")
    }
  }
}
