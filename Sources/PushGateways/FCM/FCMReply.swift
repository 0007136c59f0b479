import NotificationHubs

/// What one answer of FCM, or its absence, means: a row of the table of spec `pns/fcm-v1.md`
/// section 4, which stands here once; the rows of the token service stand with the access tokens
/// that all services share.
struct FCMReply: Hashable, Sendable {
  /// What the row is found by, beside its reason.
  enum Origin: Hashable, Sendable {
    case status(UInt16)
    case anyStatus
    /// Any other 4xx.
    case clientError
    /// Any other 5xx.
    case serverError
    case transport
  }

  let origin: Origin
  /// FCM's word; where the table tells several uses of a word apart, with the table's addition.
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

  static let success = FCMReply(.status(200), "", .none, .keep, .success)
  static let badToken = FCMReply(
    .status(400), "INVALID_ARGUMENT:token", .never, .remove, .badChannel)
  static let tooLarge = FCMReply(
    .status(400), "INVALID_ARGUMENT:size", .fix, .keep, .invalidNotificationSize)
  static let badArgument = FCMReply(
    .status(400), "INVALID_ARGUMENT", .fix, .keep, .invalidNotificationFormat)
  static let unauthenticated = FCMReply(
    .status(401), "UNAUTHENTICATED", .refreshOnce, .keep, .invalidCredentials)
  static let thirdPartyAuthError = FCMReply(
    .status(401), "THIRD_PARTY_AUTH_ERROR", .fix, .keep, .invalidCredentials)
  static let senderMismatch = FCMReply(
    .status(403), "SENDER_ID_MISMATCH", .never, .keep, .invalidCredentials)
  static let permissionDenied = FCMReply(
    .status(403), "PERMISSION_DENIED", .pauseCredential, .keep, .invalidCredentials)
  static let unregistered = FCMReply(
    .status(404), "UNREGISTERED", .never, .remove, .badChannel)
  static let notFound = FCMReply(
    .status(404), "NOT_FOUND", .pauseCredential, .keep, .invalidCredentials)
  static let quotaExceeded = FCMReply(
    .status(429), "QUOTA_EXCEEDED", .backoff, .keep, .throttled)
  static let `internal` = FCMReply(
    .status(500), "INTERNAL", .backoff, .keep, .pnsServerError)
  static let unavailable = FCMReply(
    .status(503), "UNAVAILABLE", .backoff, .keep, .pnsUnavailable)
  static let unspecified = FCMReply(
    .anyStatus, "UNSPECIFIED_ERROR", .never, .keep, .unknownError)
  static let otherClientError = FCMReply(.clientError, "(other)", .never, .keep, .unknownError)
  static let otherServerError = FCMReply(.serverError, "(other)", .backoff, .keep, .pnsServerError)
  static let unreachable = FCMReply(
    .transport, "connect-or-timeout", .backoff, .keep, .pnsUnreachable)

  /// The whole table.
  static let all: [FCMReply] = [
    success, badToken, tooLarge, badArgument, unauthenticated, thirdPartyAuthError, senderMismatch,
    permissionDenied, unregistered, notFound, quotaExceeded, .internal, unavailable, unspecified,
    otherClientError, otherServerError, unreachable,
  ]

  /// The row of an `FcmError` detail's word; `nil` for one newer than this build, and for
  /// INVALID_ARGUMENT, which ``FCMVerdict`` reads on for.
  static func row(errorCode word: String) -> FCMReply? {
    switch word {
    case "THIRD_PARTY_AUTH_ERROR": thirdPartyAuthError
    case "SENDER_ID_MISMATCH": senderMismatch
    case "UNREGISTERED": unregistered
    case "QUOTA_EXCEEDED": quotaExceeded
    case "INTERNAL": .internal
    case "UNAVAILABLE": unavailable
    case "UNSPECIFIED_ERROR": unspecified
    default: nil
    }
  }

  /// The row of an error's `status`, where no detail said more; `nil` for a word newer than this
  /// build.
  static func row(statusWord word: String) -> FCMReply? {
    switch word {
    case "UNAUTHENTICATED": unauthenticated
    case "PERMISSION_DENIED": permissionDenied
    case "NOT_FOUND": notFound
    case "RESOURCE_EXHAUSTED": quotaExceeded
    case "INTERNAL": .internal
    case "UNAVAILABLE": unavailable
    default: nil
    }
  }

  /// The row of an answer that says nothing readable.
  static func row(status: UInt16) -> FCMReply {
    switch status {
    case 200...299: success
    case 400: badArgument
    case 401: unauthenticated
    case 403: permissionDenied
    case 404: notFound
    case 429: quotaExceeded
    case 500: .internal
    case 503: unavailable
    case 500...599: otherServerError
    default: otherClientError
    }
  }
}
