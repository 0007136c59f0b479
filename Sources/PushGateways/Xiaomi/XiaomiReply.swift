import HTTPClient
import NotificationHubs
import Wire

/// The table of Xiaomi's replies (spec `pns/xiaomi.md` section 4), whole, and how a row is found: by
/// the code in the body.
enum XiaomiReply {
  static let success = PushReplyRule("200", "0", .none, .keep, .success)
  static let badID = PushReplyRule("200", "0 + id in bad_regids", .never, .remove, .badChannel)
  static let otherCode = PushReplyRule("200", "(other code)", .never, .keep, .unknownError)
  static let refused = PushReplyRule("4xx", "", .pauseCredential, .keep, .invalidCredentials)
  static let serverError = PushReplyRule("5xx", "", .backoff, .keep, .pnsServerError)

  private static let coded: [PushReplyRule] = [
    PushReplyRule(
      "200", "10001|10002|10003|1|-1|20607|26003|65029", .backoff, .keep, .pnsServerError),
    PushReplyRule(
      "200",
      "10008|10012|10016|10017|21305|65011|65014|65015|65030|65036|65037|65038", .fix, .keep,
      .invalidNotificationFormat),
    PushReplyRule("200", "65009", .fix, .keep, .invalidNotificationSize),
    PushReplyRule("200", "10027|10030|10034|26004|200001", .backoff, .keep, .throttled),
    PushReplyRule("200", "10029|66108", .never, .remove, .badChannel),
    PushReplyRule("200", "65003", .never, .keep, .channelDisconnected),
    PushReplyRule(
      "200", "10031|10036|21301|21302|21303|22000|22006|22007", .pauseCredential, .keep,
      .invalidCredentials),
    PushReplyRule("200", "22022", .fix, .keep, .wrongChannel),
    PushReplyRule("200", "27001", .fix, .keep, .invalidNotificationFormat),
    PushReplyRule("200", "10037", .fix, .keep, .pnsInterfaceError),
    PushReplyRule("200", "26006", .never, .keep, .dropped),
    PushReplyRule("200", "20301|22102", .backoff, .keep, .pnsServerError),
  ]

  static let all: [PushReplyRule] =
    [success, badID] + coded + [otherCode, refused, serverError, .unreachable]

  private static let byCode = PushReplyRule.byReason(coded)

  /// The day's quota of a message class is used up (spec section 5).
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

  /// A list with commas between, or an array.
  private static func isBad(_ handle: String, in body: JSONValue) -> Bool {
    switch body["data"]?["bad_regids"] {
    case .string(let list)?: list.split(separator: ",").contains { $0 == handle }
    case .array(let items)?: items.contains { $0.scalarText == handle }
    default: false
    }
  }

  /// Until the day ends in China (UTC+8).
  private static func secondsToMidnight(_ now: Int64) -> Int32 {
    Int32(86_400 - (now + 8 * 3600) % 86_400)
  }
}
