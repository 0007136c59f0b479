import HubCore
import NotificationHubs
import Wire

/// The table of FCM's replies (docs/protocol/push-services/fcm.md, section 4), and the lookup of a
/// row. The rows of the token service are with the access tokens that all services share. Where the
/// table distinguishes several uses of a word, the row has the table's suffix.
enum FCMReply {
  static let success = ReplyRule("200", "", .none, .keep, .success)
  static let badToken = ReplyRule("400", "INVALID_ARGUMENT:token", .never, .remove, .badChannel)
  static let tooLarge = ReplyRule(
    "400", "INVALID_ARGUMENT:size", .fix, .keep, .invalidNotificationSize)
  static let badArgument = ReplyRule(
    "400", "INVALID_ARGUMENT", .fix, .keep, .invalidNotificationFormat)
  static let unauthenticated = ReplyRule(
    "401", "UNAUTHENTICATED", .refreshOnce, .keep, .invalidCredentials)
  static let thirdPartyAuthError = ReplyRule(
    "401", "THIRD_PARTY_AUTH_ERROR", .fix, .keep, .invalidCredentials)
  static let senderMismatch = ReplyRule(
    "403", "SENDER_ID_MISMATCH", .never, .keep, .invalidCredentials)
  static let permissionDenied = ReplyRule(
    "403", "PERMISSION_DENIED", .pauseCredential, .keep, .invalidCredentials)
  static let unregistered = ReplyRule("404", "UNREGISTERED", .never, .remove, .badChannel)
  static let notFound = ReplyRule("404", "NOT_FOUND", .pauseCredential, .keep, .invalidCredentials)
  /// Google asks for at least a minute where it names no time.
  /// - SeeAlso: <https://firebase.google.com/docs/cloud-messaging/scale-fcm>
  static let quotaExceeded = ReplyRule(
    "429", "QUOTA_EXCEEDED", .backoff, .keep, .throttled, leastPause: 60)
  static let serverError = ReplyRule("500", "INTERNAL", .backoff, .keep, .pnsServerError)
  static let unavailable = ReplyRule("503", "UNAVAILABLE", .backoff, .keep, .pnsUnavailable)
  static let unspecified = ReplyRule("any", "UNSPECIFIED_ERROR", .never, .keep, .unknownError)
  static let otherClientError = ReplyRule("4xx", "(other)", .never, .keep, .unknownError)
  static let otherServerError = ReplyRule("5xx", "(other)", .backoff, .keep, .pnsServerError)

  /// The complete table.
  static let all: [ReplyRule] = [
    success, badToken, tooLarge, badArgument, unauthenticated, thirdPartyAuthError, senderMismatch,
    permissionDenied, unregistered, notFound, quotaExceeded, serverError, unavailable, unspecified,
    otherClientError, otherServerError, .unreachable,
  ]

  /// The row of the error code in an `FcmError` detail; `nil` for a code newer than this build, and
  /// for INVALID_ARGUMENT, which ``argument(_:)`` examines further.
  static func row(errorCode word: String) -> ReplyRule? {
    switch word {
    case "THIRD_PARTY_AUTH_ERROR": thirdPartyAuthError
    case "SENDER_ID_MISMATCH": senderMismatch
    case "UNREGISTERED": unregistered
    case "QUOTA_EXCEEDED": quotaExceeded
    case "INTERNAL": serverError
    case "UNAVAILABLE": unavailable
    case "UNSPECIFIED_ERROR": unspecified
    default: nil
    }
  }

  /// The row of an error's `status`, where no detail was more specific; `nil` for a word newer than
  /// this build.
  static func row(statusWord word: String) -> ReplyRule? {
    switch word {
    case "UNAUTHENTICATED": unauthenticated
    case "PERMISSION_DENIED": permissionDenied
    case "NOT_FOUND": notFound
    case "RESOURCE_EXHAUSTED": quotaExceeded
    case "INTERNAL": serverError
    case "UNAVAILABLE": unavailable
    default: nil
    }
  }

  /// The row of a reply without a readable body.
  static func row(status: UInt16) -> ReplyRule {
    switch status {
    case 200...299: success
    case 400: badArgument
    case 401: unauthenticated
    case 403: permissionDenied
    case 404: notFound
    case 429: quotaExceeded
    case 500: serverError
    case 503: unavailable
    case 500...599: otherServerError
    default: otherClientError
    }
  }

  /// - Parameter now: In seconds since 1970.
  static func verdict(_ answer: LinkReply, now: Int64) -> PushVerdict {
    switch answer.trouble {
    case .unreachable(let reason): return PushVerdict(.unreachable, reason: reason)
    case .refusedAddress:
      return PushVerdict(
        .unreachable, reason: "FCM's name leads to an address that is not allowed")
    case nil:
      var verdict = verdict(status: answer.status, body: answer.body)
      verdict.retryAfter = answer.retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
      return verdict
    }
  }

  static func verdict(status: UInt16, body: ArraySlice<UInt8>) -> PushVerdict {
    if (200...299).contains(status) { return PushVerdict(success, status: status) }
    let error = FCMError(body)
    return PushVerdict(
      error.flatMap(row) ?? row(status: status), status: status,
      reason: error?.word ?? "status \(status)")
  }

  /// Looks up the detail's code, then the error's status (docs/protocol/push-services/fcm.md,
  /// section 4).
  private static func row(_ error: FCMError) -> ReplyRule? {
    if let code = error.errorCode, let row = row(errorCode: code) { return row }
    if error.errorCode == invalidArgument || error.status == invalidArgument {
      return argument(error)
    }
    return error.status.flatMap(row(statusWord:))
  }

  private static let invalidArgument = "INVALID_ARGUMENT"

  /// The one place where FCM's message text decides: a bad token, a message too large, or another
  /// fault. In doubt the handle is kept.
  private static func argument(_ error: FCMError) -> ReplyRule {
    let text = error.message.lowercased()
    let fields = error.violations
    let isSize =
      text.contains("too big") || text.contains("too large") || text.contains("too long")
      || fields.contains { $0.description.lowercased().contains("too big") }
    if isSize { return tooLarge }
    if fields.contains(where: { $0.field == "message.token" || $0.field == "message.fid" }) {
      return badToken
    }
    if error.errorCode == invalidArgument, fields.isEmpty,
      text.contains("registration token") || text.contains("installation id")
    {
      return badToken
    }
    return badArgument
  }
}

/// The error document of Google's services, as far as it is used.
struct FCMError: Sendable {
  let status: String?
  let message: String
  /// From the detail `google.firebase.fcm.v1.FcmError`.
  let errorCode: String?
  /// From the detail `google.rpc.BadRequest`.
  let violations: [(field: String, description: String)]

  /// The most specific word, if it is fit for a report.
  var word: String? {
    [errorCode, status].compactMap { $0 }.first { word in
      (1...64).contains(word.utf8.count)
        && word.utf8.allSatisfy { (0x41...0x5A).contains($0) || $0 == UInt8(ascii: "_") }
    }
  }

  /// - Returns: `nil` for anything but such a document.
  init?(_ body: ArraySlice<UInt8>) {
    guard let error = (try? JSONValue.parse(body))?["error"] else { return nil }
    status = error["status"]?.scalarText
    message = error["message"]?.scalarText ?? ""
    var code: String?
    var found: [(field: String, description: String)] = []
    if case .array(let details)? = error["details"] {
      for detail in details {
        let type = detail["@type"]?.scalarText ?? ""
        if type.hasSuffix("google.firebase.fcm.v1.FcmError") {
          code = detail["errorCode"]?.scalarText
        } else if type.hasSuffix("google.rpc.BadRequest"),
          case .array(let violations)? = detail["fieldViolations"]
        {
          found += violations.map {
            ($0["field"]?.scalarText ?? "", $0["description"]?.scalarText ?? "")
          }
        }
      }
    }
    errorCode = code
    violations = found
  }
}
