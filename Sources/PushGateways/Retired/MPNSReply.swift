import HTTPClient
import NotificationHubs

/// The table of MPNS replies (spec `pns/mpns-and-gcm-legacy.md` section 2), whole.
enum MPNSReply {
  static let received = PushReplyRule(
    "200", "X-NotificationStatus: Received", .none, .keep, .success)
  static let queueFull = PushReplyRule(
    "200", "X-NotificationStatus: QueueFull", .backoff, .keep, .dropped)
  static let suppressed = PushReplyRule(
    "200", "X-NotificationStatus: Suppressed", .never, .keep, .dropped)
  static let throttled = PushReplyRule("406", "", .backoff, .keep, .throttled)
  static let inactive = PushReplyRule(
    "412", "X-DeviceConnectionStatus: Inactive", .backoff, .keep, .channelDisconnected)

  private static let byStatus: [PushReplyRule] = [
    PushReplyRule("400", "", .fix, .keep, .invalidNotificationFormat),
    PushReplyRule("401", "", .fix, .keep, .invalidCredentials),
    PushReplyRule("404", "X-SubscriptionStatus: Expired", .never, .remove, .badChannel),
    PushReplyRule("405", "", .fix, .keep, .pnsInterfaceError),
    throttled, inactive,
    PushReplyRule("413", "", .fix, .keep, .invalidNotificationFormat),
    PushReplyRule("500", "", .backoff, .keep, .pnsServerError),
    PushReplyRule("503", "", .backoff, .keep, .pnsUnavailable),
  ]

  static let all: [PushReplyRule] =
    [received, queueFull, suppressed] + byStatus + [.unreachable]

  /// The least pause that the service asks for with 406 and 412, in seconds.
  private static let hour: Int32 = 3600

  static func verdict(_ reply: HTTPReply, now: Int64) -> PushVerdict {
    let status = reply["X-NotificationStatus"]?.lowercased()
    let rule: PushReplyRule =
      if reply.status == 200 {
        switch status {
        case "queuefull": queueFull
        case "suppressed", "dropped": suppressed
        default: received
        }
      } else {
        byStatus.first { $0.status == "\(reply.status)" } ?? .notUnderstood
      }
    var verdict = PushVerdict(rule, status: reply.status)
    verdict.retryAfter =
      reply["Retry-After"].flatMap { RetryAfter.seconds($0, now: now) }
      ?? (rule == throttled || rule == inactive ? hour : nil)
    if rule.outcome != .success {
      verdict.reason = status.flatMap { PushVerdict.shown($0) } ?? "status \(reply.status)"
    }
    return verdict
  }
}
