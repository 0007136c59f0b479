import HTTPClient
import NotificationHubs

/// The table of WNS replies (spec `pns/wns.md` section 4), whole, and how a row is found.
enum WNSReply {
  static let received = PushReplyRule("200", "X-WNS-Status: received", .none, .keep, .success)
  static let dropped = PushReplyRule("200", "X-WNS-Status: dropped", .never, .keep, .dropped)
  static let disconnected = PushReplyRule(
    "200", "dropped + X-WNS-DeviceConnectionStatus: disconnected", .never, .keep,
    .channelDisconnected)
  static let channelThrottled = PushReplyRule(
    "200", "X-WNS-Status: channelthrottled", .backoff, .keep, .channelThrottled)
  static let throttled = PushReplyRule("406", "", .backoff, .keep, .throttled)
  static let otherClientError = PushReplyRule("4xx", "(other)", .never, .keep, .unknownError)
  static let otherServerError = PushReplyRule("5xx", "(other)", .backoff, .keep, .pnsServerError)

  private static let byStatus: [PushReplyRule] = [
    PushReplyRule("400", "", .fix, .keep, .invalidNotificationFormat),
    PushReplyRule("401", "", .refreshOnce, .keep, .invalidToken),
    PushReplyRule("403", "", .never, .keep, .wrongToken),
    PushReplyRule("404", "", .never, .remove, .badChannel),
    PushReplyRule("405", "", .fix, .keep, .pnsInterfaceError),
    throttled,
    PushReplyRule("410", "", .never, .remove, .expiredChannel),
    PushReplyRule("413", "", .fix, .keep, .invalidNotificationSize),
    PushReplyRule("500", "", .backoff, .keep, .pnsServerError),
    PushReplyRule("503", "", .backoff, .keep, .pnsUnavailable),
  ]

  /// All rows of the channel's answers; the token service's are ``AccessTokenFailure``'s.
  static let all: [PushReplyRule] =
    [received, dropped, disconnected, channelThrottled] + byStatus + [
      otherClientError, otherServerError, .unreachable,
    ]

  /// 406 without `Retry-After`: a minute, says the specification.
  static let throttlePause: Int32 = 60

  /// - Parameter now: In seconds since 1970.
  static func verdict(_ reply: HTTPReply, now: Int64) -> PushVerdict {
    let rule = rule(reply)
    var verdict = PushVerdict(rule, status: reply.status)
    verdict.retryAfter = reply["Retry-After"].flatMap { RetryAfter.seconds($0, now: now) }
    if rule == throttled, verdict.retryAfter == nil { verdict.retryAfter = throttlePause }
    if rule == channelThrottled, let text = reply["X-WNS-CONTINUE-AFTER"] {
      verdict.retryAfter = RetryAfter.seconds(text, now: now)
    }
    if rule.outcome != .success {
      let said = reply["X-WNS-Error-Description"].flatMap { PushVerdict.shown($0) }
      let state = reply.status == 200 ? status(reply).flatMap { PushVerdict.shown($0) } : nil
      verdict.reason = said ?? state ?? "status \(reply.status)"
    }
    return verdict
  }

  private static func rule(_ reply: HTTPReply) -> PushReplyRule {
    switch reply.status {
    case 200:
      switch status(reply)?.lowercased() {
      case "dropped": isDisconnected(reply) ? disconnected : dropped
      case "channelthrottled": channelThrottled
      // Without a status, or with a word newer than this build, 200 is what it says.
      default: received
      }
    case 400...499: byStatus.first { $0.status == "\(reply.status)" } ?? otherClientError
    case 500...599: byStatus.first { $0.status == "\(reply.status)" } ?? otherServerError
    default: .notUnderstood
    }
  }

  private static func status(_ reply: HTTPReply) -> String? {
    reply["X-WNS-Status"] ?? reply["X-WNS-NotificationStatus"]
  }

  private static func isDisconnected(_ reply: HTTPReply) -> Bool {
    ["disconnected", "tempdisconnected"].contains(
      reply["X-WNS-DeviceConnectionStatus"]?.lowercased() ?? "")
  }
}
