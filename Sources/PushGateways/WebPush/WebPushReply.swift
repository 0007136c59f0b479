import HubCore
import NotificationHubs
import Wire

/// The complete table of the replies of browsers' push services
/// (docs/protocol/push-services/web-push.md, section 5), with the faults found locally in a
/// subscription, and the lookup of a row.
enum WebPushReply {
  static let success = ReplyRule("201", "", .none, .keep, .success)
  static let accepted = ReplyRule("200|202|204", "", .none, .keep, .success)
  static let redirect = ReplyRule("3xx", "", .fix, .keep, .pnsInterfaceError)
  static let forbidden = ReplyRule("403", "", .fix, .keep, .invalidCredentials)
  static let otherClientError = ReplyRule("4xx", "(other)", .never, .keep, .unknownError)
  static let otherServerError = ReplyRule("5xx", "(other)", .backoff, .keep, .pnsServerError)
  static let badSubscription = ReplyRule(
    "local", "bad-subscription-key", .never, .remove, .badChannel)
  static let tooLong = ReplyRule(
    "local", "too-long-plaintext", .fix, .keep, .invalidNotificationSize)

  /// The complete table.
  static let all: [ReplyRule] =
    statuses + [
      accepted, redirect, otherClientError, otherServerError, .unreachable, badSubscription,
      tooLong,
    ]

  private static let statuses: [ReplyRule] = [
    success,
    ReplyRule("400", "", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("401", "", .fix, .keep, .invalidCredentials),
    forbidden,
    ReplyRule("404", "", .never, .remove, .expiredChannel),
    ReplyRule("406", "", .backoff, .keep, .throttled),
    ReplyRule("410", "", .never, .remove, .expiredChannel),
    ReplyRule("413", "", .fix, .keep, .invalidNotificationSize),
    ReplyRule("429", "", .backoff, .keep, .throttled),
    ReplyRule("500", "", .backoff, .keep, .pnsServerError),
    ReplyRule("502", "", .backoff, .keep, .pnsServerError),
    ReplyRule("503", "", .backoff, .keep, .pnsUnavailable),
  ]

  private static let byStatus = Dictionary(
    uniqueKeysWithValues: statuses.map { ($0.status, $0) })

  static func row(status: UInt16) -> ReplyRule {
    if let row = byStatus["\(status)"] { return row }
    return switch status {
    case 200...299: accepted
    case 300...399: redirect
    case 500...599: otherServerError
    default: otherClientError
    }
  }

  /// A row that is not in the table: a subscription made with another application server's key,
  /// reported by a service that has accepted this key's messages for others
  /// (docs/protocol/push-services/web-push.md, section 5, refinement).
  static let foreignSubscription = ReplyRule(
    "403", "made with another application server key", .never, .remove, .badChannel)

  /// - Parameters:
  ///   - hadSuccess: Whether a service of this origin has recently accepted a push with the same
  ///     key: then a key that does not match is the subscription's fault, not the credential's.
  ///   - now: In seconds since 1970.
  static func verdict(_ answer: LinkReply, hadSuccess: Bool, now: Int64) -> PushVerdict {
    switch answer.trouble {
    case .unreachable(let reason): return PushVerdict(.unreachable, reason: reason)
    case .refusedAddress:
      return PushVerdict(
        .notAllowed,
        reason: PushResult.refusedHere
          + "the subscription's host has no public address (setting channelHosts)")
    case nil: break
    }
    var verdict = verdict(status: answer.status, body: answer.body)
    verdict.retryAfter = answer.retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
    if isForeignKey(verdict, answer.body) {
      verdict.rule = hadSuccess ? foreignSubscription : forbidden
    }
    return verdict
  }

  static func verdict(status: UInt16, body: ArraySlice<UInt8>) -> PushVerdict {
    var verdict = PushVerdict(row(status: status), status: status, reason: "status \(status)")
    guard !(200...299).contains(status) else { return verdict }
    let said = try? JSONValue.parse(body)
    if let word = PushVerdict.word(said?["reason"]?.scalarText) {
      verdict.reason = word  // Apple
    } else if let number = PushVerdict.word(said?["errno"]?.scalarText) {
      verdict.reason = "status \(status), errno \(number)"  // Mozilla
    }
    return verdict
  }

  /// Whether the service says that the subscription was made with another application server key.
  private static func isForeignKey(_ verdict: PushVerdict, _ body: ArraySlice<UInt8>) -> Bool {
    switch verdict.status {
    case 400: verdict.reason == "VapidPkHashMismatch"
    case 403:  // Google's prose
      String(decoding: body.prefix(2048), as: UTF8.self).contains("do not correspond")
    default: false
    }
  }
}
