import HTTPClient
import NotificationHubs
import Wire

/// The table of Baidu's replies (spec `pns/baidu.md` section 4), whole, and how a row is found: by
/// the code in the body, not by the status.
enum BaiduReply {
  static let success = PushReplyRule("200", "", .none, .keep, .success)
  static let otherCode = PushReplyRule("any", "(other code)", .never, .keep, .unknownError)
  static let serverError = PushReplyRule("5xx", "(no code)", .backoff, .keep, .pnsServerError)

  private static let coded: [PushReplyRule] = [
    PushReplyRule("500", "30600", .backoff, .keep, .pnsServerError),
    PushReplyRule("error", "30601", .fix, .keep, .pnsInterfaceError),
    PushReplyRule("400", "30602", .fix, .keep, .invalidNotificationFormat),
    PushReplyRule("error", "30603", .pauseCredential, .keep, .invalidCredentials),
    PushReplyRule("error", "30604", .backoff, .keep, .throttled),
    PushReplyRule("error", "30605", .never, .keep, .unknownError),
    PushReplyRule("error", "30606", .fix, .keep, .pnsInterfaceError),
    PushReplyRule("error", "30607", .never, .remove, .expiredChannel),
    PushReplyRule("error", "30608", .never, .remove, .badChannel),
    PushReplyRule("error", "30609", .fix, .keep, .pnsInterfaceError),
    PushReplyRule("error", "30610", .never, .keep, .unknownError),
    PushReplyRule("error", "30611", .never, .keep, .unknownError),
    PushReplyRule("error", "30612", .pauseCredential, .keep, .invalidCredentials),
    PushReplyRule("error", "30613", .pauseCredential, .keep, .invalidCredentials),
    PushReplyRule("error", "30614|30615", .fix, .keep, .pnsInterfaceError),
    PushReplyRule("error", "30616|30617", .pauseCredential, .keep, .invalidCredentials),
    PushReplyRule("error", "30618", .pauseCredential, .keep, .invalidCredentials),
    PushReplyRule("error", "30699", .backoff, .keep, .throttled),
  ]

  static let all: [PushReplyRule] = [success] + coded + [otherCode, serverError, .unreachable]

  private static let byCode = PushReplyRule.byReason(coded)

  static func verdict(_ reply: HTTPReply, now: Int64) -> PushVerdict {
    let body = StrictJSON.object(reply.body)
    if let code = body?["error_code"]?.scalarText {
      let said = body?["error_msg"]?.scalarText.flatMap { PushVerdict.shown($0) }
      let number = PushVerdict.shown(code) ?? "unreadable code"
      return PushVerdict(
        byCode[code] ?? otherCode, status: reply.status,
        reason: said.map { "\(number): \($0)" } ?? number,
        retryAfter: reply["Retry-After"].flatMap { RetryAfter.seconds($0, now: now) })
    }
    let reason = "status \(reply.status)"
    switch reply.status {
    case 200 where body?["response_params"] != nil: return PushVerdict(success, status: 200)
    case 500...599: return PushVerdict(serverError, status: reply.status, reason: reason)
    default: return PushVerdict(.notUnderstood, status: reply.status, reason: reason)
    }
  }
}
