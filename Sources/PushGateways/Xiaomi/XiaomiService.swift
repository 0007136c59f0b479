import Foundation
import HTTPClient
import HubCore
import NotificationHubs
import Wire

/// Xiaomi Push (docs/protocol/push-services/xiaomi.md): a secret in each request, no tokens.
struct XiaomiService: HTTPPushService {
  static let connections = 32

  /// Secret.
  private let appSecret: String
  private let url: String
  private let host: String
  /// True unless ``check(_:)`` has found the host allowed by the operator.
  private var isPublicOnly = true

  private static let vendorHosts = [".xmpush.xiaomi.com", ".xmpush.global.xiaomi.com"]

  private static let path = "/v3/message/regid"
  private static let standardHost = "https://api.xmpush.xiaomi.com"

  init(_ credential: PushCredential) throws(CredentialError) {
    guard let secret = credential.text("AppSecret"),
      secret.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else {
      throw CredentialError(
        "AppSecret is missing or no secret. Copy it from the app's page of Xiaomi's console.")
    }
    appSecret = secret
    var text = credential.text("Endpoint") ?? Self.standardHost
    if !text.contains("://") { text = "https://" + text }
    while text.hasSuffix("/") { text.removeLast() }
    guard let address = HTTPAddress(text), address.scheme == "https", address.query == nil,
      ["", "/", Self.path, "/v2/message/regid"].contains(address.path)
    else {
      throw CredentialError(
        "Endpoint is no https address of Xiaomi Push. Use the region's host, such as "
          + "\(Self.standardHost) or https://fr-api.xmpush.global.xiaomi.com.")
    }
    url = address.path.count > 1 ? text : text + Self.path
    host = "\(address.host):\(address.port)"
  }

  /// Checks the host.
  mutating func check(_ hosts: ServiceHosts) throws(CredentialError) {
    isPublicOnly = try hosts.isPublicOnly(
      url: url, vendor: Self.vendorHosts, property: "Endpoint")
  }

  func message(_ body: PushBody, now: Int64) throws(PushRefusal) -> XiaomiBody {
    try XiaomiBody(body, now: now)
  }

  func call(
    _ message: XiaomiBody, to handle: String, id: PushID, token: String?, now: Int64
  ) throws(PushRefusal) -> HTTPPushCall {
    // A comma would make it a list of ids.
    guard (1...512).contains(handle.utf8.count), !handle.contains(",") else {
      throw PushRefusal(.badChannel, "the handle is no registration id")
    }
    return HTTPPushCall(
      call: HTTPCall(
        url: url,
        headers: [
          ("Authorization", "key=" + appSecret),
          ("Content-Type", PercentEncoding.formType + ";charset=UTF-8"),
        ], body: PercentEncoding.form([("registration_id", handle)] + message.fields)),
      host: host, isPublicOnly: isPublicOnly)
  }

  func verdict(_ reply: HTTPReply, to handle: String, now: Int64) -> PushVerdict {
    XiaomiReply.verdict(reply, to: handle, now: now)
  }
}

/// Makes Xiaomi gateways.
struct XiaomiGateways: PlatformGateways {
  let supplies: GatewaySupplies

  static func check(_ credential: PushCredential, at now: Date) throws(CredentialError) {
    _ = try XiaomiService(credential)
  }

  func gateway(
    for credential: PushCredential
  ) throws(CredentialError) -> HTTPPushGateway<XiaomiService> {
    var service = try XiaomiService(credential)
    try service.check(supplies.hosts)
    return supplies.gateway(service)
  }
}

extension XiaomiService {
  /// A message to the app, for a registration id that no device has: Xiaomi's calls that send
  /// nothing query a message or a device, and use the same secret.
  var trial: ServiceTrial {
    .push(
      handle: "belfry-probe",
      body: PushBody(bytes: Array(#"{"pass_through":1,"payload":"probe"}"#.utf8)),
      ProbeReading(
        service: "Xiaomi",
        proof: "it took the secret, and knows no device with the registration id that was tried",
        advice: [
          "10037": "Check this machine's clock.",
          "22022": "The secret is not of this package.",
        ],
        otherAdvice:
          "The AppSecret must be that of the app (not its AppKey or AppId), of the region that "
          + "--endpoint names: the app's page of Xiaomi's console."))
  }
}

/// A message in the form that Xiaomi accepts (docs/protocol/push-services/xiaomi.md, section 3):
/// the caller's JSON, or form, reduced to the names that the service knows.
struct XiaomiBody: Sendable {
  /// All fields except the registration id.
  let fields: [(name: String, value: String)]

  static let payloadLimit = 4096
  private static let extra = "extra"
  private static let lifetime = "time_to_live"
  private static let names: Set<String> = [
    "restricted_package_name", "payload", "title", "description", "pass_through", "notify_type",
    "notify_id", lifetime, "time_to_send",
  ]
  /// Two weeks, in seconds, the longest for any message class.
  private static let longest: Int64 = 14 * 86_400

  init(_ body: PushBody, now: Int64) throws(PushRefusal) {
    // A body with more than any message needs is not even parsed.
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

  /// An object, such as a payload for the app, is passed as its own text.
  private static func text(_ member: JSONValue.Member) throws(PushRefusal) -> String {
    if let text = member.value.scalarText { return text }
    guard member.value != .null else { return "" }
    return member.value.jsonText
  }
}

/// The complete table of Xiaomi's replies (docs/protocol/push-services/xiaomi.md, section 4), and
/// the lookup of a row: by the code in the body.
enum XiaomiReply {
  static let success = ReplyRule("200", "0", .none, .keep, .success)
  static let badID = ReplyRule("200", "0 + id in bad_regids", .never, .remove, .badChannel)
  static let otherCode = ReplyRule("200", "(other code)", .never, .keep, .unknownError)
  static let refused = ReplyRule("4xx", "", .pauseCredential, .keep, .invalidCredentials)
  static let serverError = ReplyRule("5xx", "", .backoff, .keep, .pnsServerError)

  private static let coded: [ReplyRule] = [
    ReplyRule(
      "200", "10001|10002|10003|1|-1|20607|26003|65029", .backoff, .keep, .pnsServerError),
    ReplyRule(
      "200",
      "10008|10012|10016|10017|21305|65011|65014|65015|65030|65036|65037|65038", .fix, .keep,
      .invalidNotificationFormat),
    ReplyRule("200", "65009", .fix, .keep, .invalidNotificationSize),
    ReplyRule("200", "10027|10030|10034|26004|200001", .backoff, .keep, .throttled),
    ReplyRule("200", "10029|66108", .never, .remove, .badChannel),
    ReplyRule("200", "65003", .never, .keep, .channelDisconnected),
    ReplyRule(
      "200", "10031|10036|21301|21302|21303|22000|22006|22007", .pauseCredential, .keep,
      .invalidCredentials),
    ReplyRule("200", "22022", .fix, .keep, .wrongChannel),
    ReplyRule("200", "27001", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("200", "10037", .fix, .keep, .pnsInterfaceError),
    ReplyRule("200", "26006", .never, .keep, .dropped),
    ReplyRule("200", "20301|22102", .backoff, .keep, .pnsServerError),
  ]

  static let all: [ReplyRule] =
    [success, badID] + coded + [otherCode, refused, serverError, .unreachable]

  private static let byCode = ReplyRule.byReason(coded)

  /// The code of an exhausted daily quota of a message class
  /// (docs/protocol/push-services/xiaomi.md, section 5).
  private static let dailyQuota = "10034"

  static func verdict(_ reply: HTTPReply, to handle: String, now: Int64) -> PushVerdict {
    let reason = "status \(reply.status)"
    switch reply.status {
    case 200: break
    case 400...499: return PushVerdict(refused, status: reply.status, reason: reason)
    case 500...599:
      return PushVerdict(
        serverError, status: reply.status, reason: reason,
        retryAfter: reply["Retry-After"].flatMap { RetryAfter.seconds($0, now: now) })
    default: return PushVerdict(.notUnderstood, status: reply.status, reason: reason)
    }
    guard let body = StrictJSON.object(reply.body), let code = body["code"]?.scalarText else {
      return PushVerdict(.notUnderstood, status: 200, reason: "the reply has no code")
    }
    if code == "0" { return PushVerdict(isBad(handle, in: body) ? badID : success, status: 200) }
    let said = (body["reason"] ?? body["description"])?.scalarText
      .flatMap { PushVerdict.shown($0) }
    let number = PushVerdict.shown(code) ?? "unreadable code"
    return PushVerdict(
      byCode[code] ?? otherCode, status: 200, reason: said.map { "\(number): \($0)" } ?? number,
      retryAfter: code == dailyQuota ? secondsToMidnight(now) : nil)
  }

  /// Whether a comma-separated list or an array contains the handle.
  private static func isBad(_ handle: String, in body: JSONValue) -> Bool {
    switch body["data"]?["bad_regids"] {
    case .string(let list)?: list.split(separator: ",").contains { $0 == handle }
    case .array(let items)?: items.contains { $0.scalarText == handle }
    default: false
    }
  }

  /// The time until the day ends in China (UTC+8).
  private static func secondsToMidnight(_ now: Int64) -> Int32 {
    Int32(86_400 - (now + 8 * 3600) % 86_400)
  }
}
