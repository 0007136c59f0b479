import HTTPClient
import NotificationHubs
import Wire

/// The table of GCM's replies (spec `pns/mpns-and-gcm-legacy.md` section 3), whole.
enum GCMReply {
  static let success = PushReplyRule("200", "message_id", .none, .keep, .success)
  static let replaced = PushReplyRule(
    "200", "message_id + registration_id", .none, .replace, .success)
  static let overloaded = PushReplyRule("501-599", "", .backoff, .keep, .throttled)
  private static let serverError = PushReplyRule(
    "200", "InternalServerError", .backoff, .keep, .pnsServerError)

  private static let worded: [PushReplyRule] = [
    PushReplyRule("200", "MissingRegistration|InvalidRegistration", .never, .remove, .badChannel),
    PushReplyRule("200", "NotRegistered", .never, .remove, .expiredChannel),
    PushReplyRule("200", "InvalidPackageName", .never, .keep, .wrongChannel),
    PushReplyRule("200", "MismatchSenderId", .never, .keep, .invalidCredentials),
    PushReplyRule("200", "MessageTooBig", .fix, .keep, .invalidNotificationSize),
    PushReplyRule(
      "200", "InvalidDataKey|InvalidTtl|InvalidParameters", .fix, .keep,
      .invalidNotificationFormat),
    PushReplyRule(
      "200", "Unavailable|DeviceMessageRateExceeded|TopicsMessageRateExceeded", .backoff, .keep,
      .throttled),
    serverError,
  ]
  private static let byStatus: [PushReplyRule] = [
    PushReplyRule("400", "", .fix, .keep, .invalidNotificationFormat),
    PushReplyRule("401", "", .pauseCredential, .keep, .invalidCredentials),
    PushReplyRule("404", "", .pauseCredential, .keep, .pnsInterfaceError),
  ]

  static let all: [PushReplyRule] =
    [success, replaced] + worded + byStatus + [overloaded, RetiredService.rule]

  private static let byReason = PushReplyRule.byReason(worded)

  static func verdict(_ reply: HTTPReply, now: Int64) -> PushVerdict {
    let retryAfter = reply["Retry-After"].flatMap { RetryAfter.seconds($0, now: now) }
    let reason = "status \(reply.status)"
    guard reply.status == 200 else {
      let rule =
        switch reply.status {
        case 500: serverError
        case 501...599: overloaded
        default: byStatus.first { $0.status == "\(reply.status)" } ?? .notUnderstood
        }
      return PushVerdict(rule, status: reply.status, reason: reason, retryAfter: retryAfter)
    }
    guard case .array(let results)? = StrictJSON.object(reply.body)?["results"],
      let first = results.first
    else { return PushVerdict(.notUnderstood, status: 200, reason: "the reply has no result") }
    if let word = first["error"]?.scalarText {
      return PushVerdict(
        byReason[word] ?? PushReplyRule("200", "", .never, .keep, .unknownError), status: 200,
        reason: PushVerdict.shown(word), retryAfter: retryAfter)
    }
    guard first["message_id"] != nil else {
      return PushVerdict(.notUnderstood, status: 200, reason: "the reply has no result")
    }
    guard case .string(let id)? = first["registration_id"], (1...4096).contains(id.utf8.count)
    else { return PushVerdict(success, status: 200) }
    return PushVerdict(replaced, status: 200, newHandle: id)
  }
}
