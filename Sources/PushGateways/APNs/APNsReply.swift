import NotificationHubs

/// What one answer of APNs, or its absence, means: a row of the table of spec `pns/apns.md`
/// section 4, which stands here once, whole.
struct APNsReply: Hashable, Sendable {
  /// What the row is found by, beside its reason.
  enum Origin: Hashable, Sendable {
    case status(UInt16)
    /// Any other 4xx.
    case clientError
    /// Any other 5xx.
    case serverError
    /// There was no answer.
    case transport
  }

  let origin: Origin
  /// Apple's word; for the transport and the remaining statuses the specification's.
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
    _ status: UInt16, _ reason: String, _ retry: ReplyRetry, _ handle: ReplyHandle,
    _ outcome: NotificationOutcome
  ) {
    self.init(.status(status), reason, retry, handle, outcome)
  }

  /// The whole table of pushes to devices.
  static let all: [APNsReply] =
    answers + [
      success, otherClientError, otherServerError, certificateRejected, streamRefused, unreachable,
    ]

  static let success = APNsReply(200, "", .none, .keep, .success)
  static let otherClientError = APNsReply(.clientError, "(other)", .never, .keep, .unknownError)
  static let otherServerError = APNsReply(.serverError, "(other)", .backoff, .keep, .pnsServerError)
  static let certificateRejected = APNsReply(
    .transport, "tls-certificate-rejected", .pauseCredential, .keep, .invalidCredentials)
  static let streamRefused = APNsReply(
    .transport, "stream-refused", .newConnection, .keep, .pnsUnavailable)
  static let unreachable = APNsReply(
    .transport, "connect-or-timeout", .backoff, .keep, .pnsUnreachable)

  static let invalidProviderToken = APNsReply(
    403, "InvalidProviderToken", .refreshOnce, .keep, .invalidCredentials)
  static let badPath = APNsReply(404, "BadPath", .fix, .keep, .pnsInterfaceError)
  static let badDeviceToken = APNsReply(400, "BadDeviceToken", .never, .remove, .badChannel)
  static let notForTopic = APNsReply(400, "DeviceTokenNotForTopic", .never, .remove, .wrongChannel)
  static let unregistered = APNsReply(410, "Unregistered", .never, .removeIfOlder, .expiredChannel)
  static let payloadTooLarge = APNsReply(
    413, "PayloadTooLarge", .fix, .keep, .invalidNotificationSize)
  static let tooManyTokenUpdates = APNsReply(
    429, "TooManyProviderTokenUpdates", .backoff, .keep, .throttled)

  static let channelNotRegistered = APNsReply(
    400, "ChannelNotRegistered", .never, .keep, .badChannel)
  static let cannotCreateChannel = APNsReply(
    400, "CannotCreateChannelConfig", .fix, .keep, .throttled)

  /// What requests about broadcast channels may hear beside the table
  /// (https://developer.apple.com/documentation/usernotifications/handling-error-responses-from-apns).
  private static let channelAnswers: [APNsReply] = [
    APNsReply(400, "BadChannelId", .fix, .keep, .invalidNotificationFormat),
    APNsReply(400, "BadRequest", .fix, .keep, .invalidNotificationFormat),
    cannotCreateChannel,
    channelNotRegistered,
    APNsReply(400, "FeatureNotEnabled", .fix, .keep, .invalidCredentials),
    APNsReply(400, "MissingChannelId", .fix, .keep, .pnsInterfaceError),
    APNsReply(400, "MissingPushType", .fix, .keep, .pnsInterfaceError),
    APNsReply(400, "TopicMismatch", .fix, .keep, .invalidCredentials),
  ]

  private static let answers: [APNsReply] = [
    APNsReply(400, "BadCollapseId", .fix, .keep, .invalidNotificationFormat),
    badDeviceToken,
    APNsReply(400, "BadExpirationDate", .fix, .keep, .invalidNotificationFormat),
    APNsReply(400, "BadMessageId", .fix, .keep, .invalidNotificationFormat),
    APNsReply(400, "BadPriority", .fix, .keep, .invalidNotificationFormat),
    APNsReply(400, "BadTopic", .fix, .keep, .invalidNotificationFormat),
    notForTopic,
    APNsReply(400, "DuplicateHeaders", .fix, .keep, .invalidNotificationFormat),
    APNsReply(400, "IdleTimeout", .newConnection, .keep, .pnsUnavailable),
    APNsReply(400, "InvalidPushType", .fix, .keep, .invalidNotificationFormat),
    APNsReply(400, "MissingDeviceToken", .fix, .keep, .pnsInterfaceError),
    APNsReply(400, "MissingTopic", .fix, .keep, .pnsInterfaceError),
    APNsReply(400, "PayloadEmpty", .fix, .keep, .invalidNotificationFormat),
    APNsReply(400, "TopicDisallowed", .fix, .keep, .invalidCredentials),
    APNsReply(403, "BadCertificate", .pauseCredential, .keep, .invalidCredentials),
    APNsReply(403, "BadCertificateEnvironment", .pauseCredential, .keep, .invalidCredentials),
    APNsReply(403, "BadEnvironmentKeyIdInToken", .pauseCredential, .keep, .invalidCredentials),
    APNsReply(403, "ExpiredProviderToken", .refreshOnce, .keep, .invalidCredentials),
    APNsReply(403, "Forbidden", .never, .keep, .invalidCredentials),
    invalidProviderToken,
    APNsReply(403, "MissingProviderToken", .fix, .keep, .invalidCredentials),
    APNsReply(403, "UnrelatedKeyIdInToken", .newConnection, .keep, .invalidCredentials),
    badPath,
    APNsReply(405, "MethodNotAllowed", .fix, .keep, .pnsInterfaceError),
    APNsReply(410, "ExpiredToken", .never, .removeIfOlder, .expiredChannel),
    unregistered,
    payloadTooLarge,
    tooManyTokenUpdates,
    APNsReply(429, "TooManyRequests", .backoff, .keep, .channelThrottled),
    APNsReply(500, "InternalServerError", .backoff, .keep, .pnsServerError),
    APNsReply(503, "ServiceUnavailable", .backoff, .keep, .pnsUnavailable),
    APNsReply(503, "Shutdown", .newConnection, .keep, .pnsUnavailable),
  ]

  private static let byReason: [String: APNsReply] = {
    var rows = Dictionary(
      uniqueKeysWithValues: (answers + channelAnswers).map { ($0.reason, $0) })
    // Also seen in the field.
    rows["BadEnvironmentKeyInToken"] = rows["BadEnvironmentKeyIdInToken"]
    return rows
  }()

  /// The credential is for the other environment.
  var isOfEnvironment: Bool {
    reason == "BadEnvironmentKeyIdInToken" || reason == "BadCertificateEnvironment"
  }

  /// The row of Apple's own word; `nil` for a word newer than this build.
  static func row(reason: String) -> APNsReply? { byReason[reason] }

  /// The row of an answer without a readable reason.
  static func row(status: UInt16) -> APNsReply {
    switch status {
    case 200: success
    case 403: invalidProviderToken
    case 404, 405: badPath
    case 410: unregistered
    case 413: payloadTooLarge
    // The sender as a whole is limited, so far as one can tell.
    case 429: tooManyRequestsUnexplained
    case 400...499: otherClientError
    case 500...599: otherServerError
    // No status that this protocol knows.
    default: badPath
    }
  }

  private static let tooManyRequestsUnexplained = APNsReply(
    429, "", .backoff, .keep, .throttled)
}
