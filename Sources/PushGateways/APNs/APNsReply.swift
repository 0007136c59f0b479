import HTTP2
import HubCore
import NotificationHubs
import Wire

/// The complete table of APNs' replies (docs/protocol/push-services/apns.md, section 4), and the
/// lookup of a row.
enum APNsReply {
  /// The whole table of pushes to devices.
  static let all: [ReplyRule] =
    answers + [
      success, otherClientError, otherServerError, certificateRejected, streamRefused, .unreachable,
    ]

  static let success = ReplyRule("200", "", .none, .keep, .success)
  static let otherClientError = ReplyRule("4xx", "(other)", .never, .keep, .unknownError)
  static let otherServerError = ReplyRule("5xx", "(other)", .backoff, .keep, .pnsServerError)
  static let certificateRejected = ReplyRule(
    "transport", "tls-certificate-rejected", .pauseCredential, .keep, .invalidCredentials)
  static let streamRefused = ReplyRule(
    "transport", "stream-refused", .newConnection, .keep, .pnsUnavailable)

  static let invalidProviderToken = ReplyRule(
    "403", "InvalidProviderToken", .refreshOnce, .keep, .invalidCredentials)
  static let badPath = ReplyRule("404", "BadPath", .fix, .keep, .pnsInterfaceError)
  static let badDeviceToken = ReplyRule("400", "BadDeviceToken", .never, .remove, .badChannel)
  static let notForTopic = ReplyRule(
    "400", "DeviceTokenNotForTopic", .never, .remove, .wrongChannel)
  static let unregistered = ReplyRule(
    "410", "Unregistered", .never, .removeIfOlder, .expiredChannel)
  static let payloadTooLarge = ReplyRule(
    "413", "PayloadTooLarge", .fix, .keep, .invalidNotificationSize)
  static let tooManyTokenUpdates = ReplyRule(
    "429", "TooManyProviderTokenUpdates", .backoff, .keep, .throttled)

  static let channelNotRegistered = ReplyRule(
    "400", "ChannelNotRegistered", .never, .keep, .badChannel)
  static let cannotCreateChannel = ReplyRule(
    "400", "CannotCreateChannelConfig", .fix, .keep, .throttled)

  /// Further replies to requests about broadcast channels
  /// (https://developer.apple.com/documentation/usernotifications/handling-error-responses-from-apns).
  private static let channelAnswers: [ReplyRule] = [
    ReplyRule("400", "BadChannelId", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("400", "BadRequest", .fix, .keep, .invalidNotificationFormat),
    cannotCreateChannel,
    channelNotRegistered,
    ReplyRule("400", "FeatureNotEnabled", .fix, .keep, .invalidCredentials),
    ReplyRule("400", "MissingChannelId", .fix, .keep, .pnsInterfaceError),
    ReplyRule("400", "MissingPushType", .fix, .keep, .pnsInterfaceError),
    ReplyRule("400", "TopicMismatch", .fix, .keep, .invalidCredentials),
  ]

  private static let answers: [ReplyRule] = [
    ReplyRule("400", "BadCollapseId", .fix, .keep, .invalidNotificationFormat),
    badDeviceToken,
    ReplyRule("400", "BadExpirationDate", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("400", "BadMessageId", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("400", "BadPriority", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("400", "BadTopic", .fix, .keep, .invalidNotificationFormat),
    notForTopic,
    ReplyRule("400", "DuplicateHeaders", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("400", "IdleTimeout", .newConnection, .keep, .pnsUnavailable),
    ReplyRule("400", "InvalidPushType", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("400", "MissingDeviceToken", .fix, .keep, .pnsInterfaceError),
    ReplyRule("400", "MissingTopic", .fix, .keep, .pnsInterfaceError),
    ReplyRule("400", "PayloadEmpty", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("400", "TopicDisallowed", .fix, .keep, .invalidCredentials),
    ReplyRule("403", "BadCertificate", .pauseCredential, .keep, .invalidCredentials),
    ReplyRule("403", "BadCertificateEnvironment", .pauseCredential, .keep, .invalidCredentials),
    ReplyRule("403", "BadEnvironmentKeyIdInToken", .pauseCredential, .keep, .invalidCredentials),
    ReplyRule("403", "ExpiredProviderToken", .refreshOnce, .keep, .invalidCredentials),
    ReplyRule("403", "Forbidden", .never, .keep, .invalidCredentials),
    invalidProviderToken,
    ReplyRule("403", "MissingProviderToken", .fix, .keep, .invalidCredentials),
    ReplyRule("403", "UnrelatedKeyIdInToken", .newConnection, .keep, .invalidCredentials),
    badPath,
    ReplyRule("405", "MethodNotAllowed", .fix, .keep, .pnsInterfaceError),
    ReplyRule("410", "ExpiredToken", .never, .removeIfOlder, .expiredChannel),
    unregistered,
    payloadTooLarge,
    tooManyTokenUpdates,
    ReplyRule("429", "TooManyRequests", .backoff, .keep, .channelThrottled),
    ReplyRule("500", "InternalServerError", .backoff, .keep, .pnsServerError),
    ReplyRule("503", "ServiceUnavailable", .backoff, .keep, .pnsUnavailable),
    ReplyRule("503", "Shutdown", .newConnection, .keep, .pnsUnavailable),
  ]

  private static let byReason: [String: ReplyRule] = {
    var rows = Dictionary(
      uniqueKeysWithValues: (answers + channelAnswers).map { ($0.reason, $0) })
    // Also observed in practice.
    rows["BadEnvironmentKeyInToken"] = rows["BadEnvironmentKeyIdInToken"]
    return rows
  }()

  /// Whether Apple's reason says that the credential is for the other environment.
  static func isOfEnvironment(_ word: String?) -> Bool {
    switch word {
    case "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken", "BadCertificateEnvironment": true
    default: false
    }
  }

  /// The row of a reason; `nil` for a reason newer than this build.
  static func row(reason: String) -> ReplyRule? { byReason[reason] }

  /// The row of a reply without a readable reason.
  static func row(status: UInt16) -> ReplyRule {
    switch status {
    case 200: success
    case 403: invalidProviderToken
    case 404, 405: badPath
    case 410: unregistered
    case 413: payloadTooLarge
    // Presumably the sender as a whole is limited.
    case 429: tooManyRequestsUnexplained
    case 400...499: otherClientError
    case 500...599: otherServerError
    // A status unknown to this protocol.
    default: badPath
    }
  }

  private static let tooManyRequestsUnexplained = ReplyRule("429", "", .backoff, .keep, .throttled)

  /// - Parameter body: The body of a reply other than 200: `{"reason":"…","timestamp":…}`, or
  ///   anything.
  static func verdict(
    status: UInt16, body: ArraySlice<UInt8>, retryAfter: Int32? = nil
  ) -> PushVerdict {
    let said = read(body)
    let word = status == 200 ? nil : said.reason
    let rule = word.map { row(reason: $0) ?? unknown(status) } ?? row(status: status)
    var verdict = PushVerdict(
      rule, status: status, reason: word ?? "status \(status)", retryAfter: retryAfter)
    verdict.deadSince = said.timestamp
    return verdict
  }

  private static func unknown(_ status: UInt16) -> ReplyRule {
    (500...599).contains(status) ? otherServerError : otherClientError
  }

  /// - Parameters:
  ///   - goAway: The GOAWAY received on the connection, if any: its reason explains streams that
  ///     were not processed.
  ///   - connectionError: The reason that the connection ended, for the reader of the outcome.
  static func verdict(
    failure: HTTP2Failure, goAway: HTTP2GoAway?, connectionError: HTTP2ConnectionError?
  ) -> PushVerdict {
    switch failure {
    case .tlsRejectedCertificate: PushVerdict(certificateRejected)
    case .refused, .connectFailed:
      if let row = goAway.flatMap(explanation) {
        PushVerdict(row)
      } else if failure == .refused {
        PushVerdict(streamRefused)
      } else {
        PushVerdict(.unreachable, reason: connectionError?.reason)
      }
    case .reset(code: cancelCode): PushVerdict(streamRefused)
    case .reset(let code):
      PushVerdict(.unreachable, reason: "the stream was reset with code \(code)")
    case .timedOut: PushVerdict(.unreachable, reason: "no reply in time")
    case .connectionLost:
      PushVerdict(.unreachable, reason: "the connection was lost before the reply")
    case .cancelled: PushVerdict(.unreachable, reason: "stopped before the reply")
    }
  }

  /// The verdict when a pool will not connect for now.
  static func verdict(unavailable error: HTTP2ConnectionError?) -> PushVerdict {
    PushVerdict(
      error?.kind == .tlsRejectedCertificate ? certificateRejected : .unreachable,
      reason: error?.reason)
  }

  /// RST_STREAM CANCEL (RFC 9113, section 7).
  private static let cancelCode: UInt32 = 8

  /// The row that a GOAWAY's debug data names, if it determines what to do with unprocessed
  /// requests.
  private static func explanation(_ goAway: HTTP2GoAway) -> ReplyRule? {
    guard let word = read(goAway.debugData[...]).reason, let row = row(reason: word)
    else { return nil }
    switch row.retry {
    case .newConnection, .refreshOnce, .pauseCredential: return row
    case .none, .never, .fix, .backoff: return nil
    }
  }

  private static func read(_ body: ArraySlice<UInt8>) -> (reason: String?, timestamp: Int64?) {
    let said = body.withUnsafeBufferPointer { bytes -> (reason: String?, timestamp: Int64?)? in
      var scanner = JSONScanner(bytes)
      return try? read(&scanner)
    }
    return said ?? (nil, nil)
  }

  private static func read(
    _ scanner: inout JSONScanner
  ) throws(SyntaxFault) -> (reason: String?, timestamp: Int64?) {
    var said: (reason: String?, timestamp: Int64?) = (nil, nil)
    guard try scanner.next() == .objectStart else { return said }
    while let name = try scanner.nextMember() {
      let isReason = scanner.matches(name, "reason")
      let isTime = scanner.matches(name, "timestamp")
      switch scanner.peek() {
      case UInt8(ascii: "{"), UInt8(ascii: "["): try scanner.skipValue()
      default:
        switch try scanner.next() {
        case .string(let text) where isReason:
          said.reason = PushVerdict.word(
            String(decoding: scanner.bytes[text.range], as: UTF8.self))
        case .number(let digits) where isTime:
          said.timestamp = Int64(String(decoding: scanner.bytes[digits], as: UTF8.self))
        default: break
        }
      }
    }
    return said
  }
}

extension PushVerdict {
  /// The result of a push, from APNs' reply.
  ///
  /// - Parameters:
  ///   - confirmedAt: When the handle was last confirmed, in milliseconds since 1970.
  ///   - isOwnTopic: Whether the topic was exactly the credential's own; that a handle does not fit
  ///     another one, or one with a suffix, says nothing against the handle.
  func result(confirmedAt: Int64, isOwnTopic: Bool) -> PushResult {
    var result = result(confirmedAt: confirmedAt)
    // `Unregistered` refers to the topic, and a caller can name any.
    if !isOwnTopic, rule == APNsReply.notForTopic || rule == APNsReply.unregistered {
      result.handle = .keep
    }
    return result
  }

  /// Whether every push on this connection would get the same reply. (A push without a reply says
  /// nothing about the others while the connection lives.)
  var concernsConnection: Bool {
    concernsCredential || rule.retry == .newConnection || rule == APNsReply.tooManyTokenUpdates
  }

  /// The error for the caller of a channel operation.
  var broadcastRefusal: BroadcastRefusal {
    BroadcastRefusal(kind, reason: reason ?? "", retryAfter: retryAfter)
  }

  private var kind: BroadcastRefusal.Kind {
    if rule == APNsReply.channelNotRegistered { return .unknownChannel }
    if rule == APNsReply.cannotCreateChannel { return .limitReached }
    switch rule.outcome {
    case .invalidCredentials: return .notAllowed
    case .invalidNotificationSize: return .tooLarge
    case .throttled, .channelThrottled: return .throttled
    case .pnsServerError, .pnsUnavailable, .pnsUnreachable: return .unavailable
    default: return (500...599).contains(status) ? .unavailable : .badRequest
    }
  }
}
