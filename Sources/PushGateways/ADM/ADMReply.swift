import HTTPClient
import NotificationHubs
import Wire

/// The table of ADM replies (spec `pns/adm.md` section 4), whole, and how a row is found.
enum ADMReply {
  static let success = PushReplyRule("200", "", .none, .keep, .success)
  static let replaced = PushReplyRule(
    "200", "registrationID differs", .none, .replace, .success)
  static let otherClientError = PushReplyRule("4xx", "(other)", .never, .keep, .unknownError)
  static let otherServerError = PushReplyRule("5xx", "(other)", .backoff, .keep, .pnsServerError)

  private static let worded: [PushReplyRule] = [
    PushReplyRule("400", "InvalidRegistrationId", .never, .remove, .badChannel),
    PushReplyRule("400", "Unregistered", .never, .remove, .expiredChannel),
    PushReplyRule("400", "InvalidData", .fix, .keep, .invalidNotificationFormat),
    PushReplyRule("400", "InvalidConsolidationKey", .fix, .keep, .invalidNotificationFormat),
    PushReplyRule("400", "InvalidExpiration", .fix, .keep, .invalidNotificationFormat),
    PushReplyRule("400", "InvalidChecksum", .fix, .keep, .invalidNotificationFormat),
    PushReplyRule("400", "InvalidType", .fix, .keep, .pnsInterfaceError),
    PushReplyRule("401", "AccessTokenExpired", .refreshOnce, .keep, .invalidToken),
    PushReplyRule("413", "MessageTooLarge", .fix, .keep, .invalidNotificationSize),
    PushReplyRule("429", "MaxRateExceeded", .backoff, .keep, .throttled),
  ]
  private static let plain: [PushReplyRule] = [
    PushReplyRule("500", "", .backoff, .keep, .pnsServerError),
    PushReplyRule("503", "", .backoff, .keep, .pnsUnavailable),
  ]

  /// All rows of the answers to pushes; the token service's are ``AccessTokenFailure``'s.
  static let all: [PushReplyRule] =
    [success, replaced] + worded + plain + [otherClientError, otherServerError, .unreachable]

  private static let byReason = PushReplyRule.byReason(worded)

  static func verdict(_ reply: HTTPReply, to handle: String, now: Int64) -> PushVerdict {
    let body = try? JSONValue.parse(reply.body)
    if reply.status == 200 {
      guard case .string(let id)? = body?["registrationID"], id != handle,
        (1...4096).contains(id.utf8.count), id.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
      else { return PushVerdict(success, status: 200) }
      return PushVerdict(replaced, status: 200, newHandle: id)
    }
    let word = body?["reason"]?.scalarText
    let rule = rule(status: reply.status, word: word)
    return PushVerdict(
      rule, status: reply.status,
      reason: word.flatMap { PushVerdict.shown($0) } ?? "status \(reply.status)",
      retryAfter: reply["Retry-After"].flatMap { RetryAfter.seconds($0, now: now) })
  }

  /// The word decides under its own status; without one the status does where it says enough.
  private static func rule(status: UInt16, word: String?) -> PushReplyRule {
    if let word, let rule = byReason[word], rule.status == "\(status)" { return rule }
    return switch status {
    case 401, 413, 429: worded.first { $0.status == "\(status)" } ?? otherClientError
    case 400...499: otherClientError
    case 500...599: plain.first { $0.status == "\(status)" } ?? otherServerError
    default: .notUnderstood
    }
  }
}
