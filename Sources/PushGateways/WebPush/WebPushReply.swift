import NotificationHubs

/// What one answer of a browser's push service, its absence, or our own look at the subscription
/// means: a row of the table of spec `pns/web-push.md` section 5, which stands here once, whole.
struct WebPushReply: Hashable, Sendable {
  /// What the row is found by.
  enum Origin: Hashable, Sendable {
    case status(UInt16)
    /// 200, 202, 204.
    case otherSuccess
    case redirect
    /// Any other 4xx.
    case clientError
    /// Any other 5xx.
    case serverError
    case transport
    /// Found before anything was sent.
    case local
  }

  let origin: Origin
  /// The specification's word, where it has one.
  let reason: String
  let retry: ReplyRetry
  let handle: ReplyHandle
  let outcome: NotificationOutcome

  private init(
    _ origin: Origin, _ reason: String, _ retry: ReplyRetry, _ handle: ReplyHandle,
    _ outcome: NotificationOutcome
  ) {
    self.origin = origin
    self.reason = reason
    self.retry = retry
    self.handle = handle
    self.outcome = outcome
  }

  private init(
    _ status: UInt16, _ retry: ReplyRetry, _ handle: ReplyHandle, _ outcome: NotificationOutcome
  ) {
    self.init(.status(status), "", retry, handle, outcome)
  }

  static let success = WebPushReply(201, .none, .keep, .success)
  static let accepted = WebPushReply(.otherSuccess, "", .none, .keep, .success)
  static let redirect = WebPushReply(.redirect, "", .fix, .keep, .pnsInterfaceError)
  static let forbidden = WebPushReply(403, .fix, .keep, .invalidCredentials)
  static let otherClientError = WebPushReply(.clientError, "(other)", .never, .keep, .unknownError)
  static let otherServerError = WebPushReply(
    .serverError, "(other)", .backoff, .keep, .pnsServerError)
  static let unreachable = WebPushReply(
    .transport, "connect-or-timeout", .backoff, .keep, .pnsUnreachable)
  static let badSubscription = WebPushReply(
    .local, "bad-subscription-key", .never, .remove, .badChannel)
  static let tooLong = WebPushReply(
    .local, "too-long-plaintext", .fix, .keep, .invalidNotificationSize)

  /// The whole table.
  static let all: [WebPushReply] =
    statuses + [
      accepted, redirect, otherClientError, otherServerError, unreachable, badSubscription, tooLong,
    ]

  private static let statuses: [WebPushReply] = [
    success,
    WebPushReply(400, .fix, .keep, .invalidNotificationFormat),
    WebPushReply(401, .fix, .keep, .invalidCredentials),
    forbidden,
    WebPushReply(404, .never, .remove, .expiredChannel),
    WebPushReply(406, .backoff, .keep, .throttled),
    WebPushReply(410, .never, .remove, .expiredChannel),
    WebPushReply(413, .fix, .keep, .invalidNotificationSize),
    WebPushReply(429, .backoff, .keep, .throttled),
    WebPushReply(500, .backoff, .keep, .pnsServerError),
    WebPushReply(502, .backoff, .keep, .pnsServerError),
    WebPushReply(503, .backoff, .keep, .pnsUnavailable),
  ]

  private static let byStatus: [UInt16: WebPushReply] = Dictionary(
    uniqueKeysWithValues: statuses.compactMap { row in
      if case .status(let status) = row.origin { (status, row) } else { nil }
    })

  static func row(status: UInt16) -> WebPushReply {
    if let row = byStatus[status] { return row }
    return switch status {
    case 200...299: accepted
    case 300...399: redirect
    case 500...599: otherServerError
    default: otherClientError
    }
  }

  /// Not of the table: a subscription at a host or address that is not allowed. Nothing was sent; the
  /// handle stays, since the operator may allow the host yet.
  static let notAllowed = WebPushReply(
    .local, "the subscription's host is not allowed", .never, .keep, .badChannel)
  /// Not of the table: a subscription made with another application server's key, told by a service
  /// that has taken this key's messages for others (spec `pns/web-push.md` section 5, refinement).
  static let foreignSubscription = WebPushReply(
    .status(403), "made with another application server key", .never, .remove, .badChannel)
}
