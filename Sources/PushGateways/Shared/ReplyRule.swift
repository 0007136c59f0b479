import HTTPClient
import HubCore
import NotificationHubs
import Wire

/// The meaning of one reply of a push service, or of its absence: a row of the table in the
/// service's page of docs/protocol/push-services. The code contains each complete table once.
struct ReplyRule: Hashable, Sendable {
  /// The retry rule for the message; the raw values are the words of
  /// docs/protocol/push-services/README.md, section 2.
  enum Retry: String, Sendable {
    case none
    case never
    case fix
    case refreshOnce = "refresh-once"
    case newConnection = "new-connection"
    case backoff
    case pauseCredential = "pause-credential"

    /// The advice that remains when the gateway has applied its own remedies: after a fresh token
    /// that was also refused, the credential is wrong.
    var advice: RetryAdvice {
      switch self {
      case .none, .never, .fix: .final
      case .newConnection, .backoff: .backoff
      case .refreshOnce, .pauseCredential: .pauseCredential
      }
    }
  }

  /// The action on the stored handle; the raw values are the words of
  /// docs/protocol/push-services/README.md, section 2.
  enum Handle: String, Sendable {
    case keep
    case remove
    case removeIfOlder = "remove-if-older"
    case replace
  }

  /// An HTTP status, a group of them or a stage, as in the tables of docs/protocol/push-services:
  /// `404`, `5xx`, `transport`.
  let status: String
  /// The service's words or codes for it, separated by `|`, or another characteristic of
  /// the row; may be empty.
  let reason: String
  let retry: Retry
  let handle: Handle
  let outcome: NotificationOutcome
  /// Minimum pause before the next attempt where the reply names none (`Retry-After`), in seconds;
  /// `nil` for the hub's default.
  let leastPause: Int32?

  init(
    _ status: String, _ reason: String, _ retry: Retry, _ handle: Handle,
    _ outcome: NotificationOutcome, leastPause: Int32? = nil
  ) {
    self.status = status
    self.reason = reason
    self.retry = retry
    self.handle = handle
    self.outcome = outcome
    self.leastPause = leastPause
  }

  /// The last row of every service: no connection, or no reply.
  static let unreachable = ReplyRule(
    "transport", "connect-or-timeout", .backoff, .keep, .pnsUnreachable)

  /// The row for a reply that no table has: a status or a body that is not the service's.
  static let notUnderstood = ReplyRule("any", "", .never, .keep, .pnsInterfaceError)

  /// The row for an address that must not be called. The service did not say so, so the handle is
  /// kept; the operator may still allow the host.
  static let notAllowed = ReplyRule("local", "", .never, .keep, .badChannel)

  /// The rows by each of their words.
  static func byReason(_ rules: [ReplyRule]) -> [String: ReplyRule] {
    var found: [String: ReplyRule] = [:]
    for rule in rules {
      for word in rule.reason.split(separator: "|") { found[String(word)] = rule }
    }
    return found
  }
}

/// The reply of a push service to one push: the table's row, and the relevant details.
struct PushVerdict: Sendable {
  var rule: ReplyRule
  /// 0 when there was no answer.
  var status: UInt16 = 0
  /// The service's word or code, or the transport's.
  var reason: String?
  /// In seconds.
  var retryAfter: Int32?
  /// The handle that replaces the one sent to.
  var newHandle: String?
  /// The time since which the service knows the handle to be dead, in milliseconds since 1970.
  var deadSince: Int64?
  /// Whether the connection to the host failed, as it would for others of the same host.
  var concernsHost = false

  /// - Parameter reason: `nil` for the row's own.
  init(
    _ rule: ReplyRule, status: UInt16 = 0, reason: String? = nil, retryAfter: Int32? = nil,
    newHandle: String? = nil
  ) {
    self.rule = rule
    self.status = status
    self.reason = reason ?? (rule.reason.isEmpty ? nil : rule.reason)
    self.retryAfter = retryAfter
    self.newHandle = newHandle
  }

  /// Whether a text of a push service's reply can become a handle: the database must be able to
  /// store it, and requests to carry it.
  static func isHandle(_ text: String) -> Bool {
    (1...4096).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
  }

  /// The verdict when there was no reply.
  init(_ failure: HTTPFailure) {
    let rule: ReplyRule =
      switch failure.kind {
      case .refusedAddress: .notAllowed
      case .badCall, .tooLarge: ReplyRule("local", "", .never, .keep, .pnsInterfaceError)
      default: .unreachable
      }
    let isRefusedHere = failure.kind == .refusedAddress
    self.init(
      rule, reason: (isRefusedHere ? PushResult.refusedHere : "") + failure.description)
    concernsHost = [.resolve, .connect, .tls].contains(failure.kind)
  }

  /// Whether every push with this credential would get the same reply.
  var concernsCredential: Bool { rule.retry == .refreshOnce || rule.retry == .pauseCredential }

  /// As ``concernsCredential``, or temporarily.
  var concernsSender: Bool {
    concernsCredential
      || rule.retry == .backoff
        && (rule.outcome == .throttled || rule.outcome == .pnsUnavailable && retryAfter != nil)
  }

  /// The result for the hub.
  var result: PushResult { result(confirmedAt: 0) }

  /// - Parameter confirmedAt: When the handle was last confirmed, in milliseconds since 1970.
  func result(confirmedAt: Int64) -> PushResult {
    let handle: HandleAction =
      switch rule.handle {
      case .keep: .keep
      case .remove: .remove
      case .removeIfOlder: deadSince.map { confirmedAt < $0 } ?? true ? .remove : .keep
      case .replace: newHandle == nil ? .keep : .replace
      }
    var result = PushResult(
      outcome: rule.outcome, handle: handle, retry: rule.retry.advice, status: status,
      reason: rule.outcome == .success ? nil : reason, retryAfter: retryAfter,
      newHandle: newHandle)
    result.leastPause = retryAfter == nil ? rule.leastPause : nil
    return result
  }

  /// A text fit to be stored with an outcome and shown: short, printable ASCII, and unlike an
  /// address or token; otherwise `nil`.
  static func shown(_ text: some StringProtocol) -> String? {
    guard (1...100).contains(text.utf8.count),
      text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }), !text.contains("://"),
      text.split(separator: " ").allSatisfy({ $0.utf8.count <= 40 })
    else { return nil }
    return String(text)
  }

  /// As ``shown(_:)``, for a single word.
  static func word(_ text: String?) -> String? {
    guard let text, (1...64).contains(text.utf8.count),
      text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else { return nil }
    return text
  }
}

/// The `Retry-After` header (RFC 9110, section 10.2.3).
enum RetryAfter {
  /// The seconds to wait: the number given, or the time left to the date given (0 when past).
  ///
  /// - Parameter now: In seconds since 1970.
  /// - Returns: `nil` for anything unreadable, which leaves the pause to the caller. A number too
  ///   large comes back as the largest there is, for the caller to cap at what is left.
  static func seconds(_ value: some StringProtocol, now: Int64) -> Int32? {
    let text = Array(value.utf8)
    guard !text.isEmpty else { return nil }
    if text.allSatisfy(\.isDigit) {
      return Int32(value) ?? .max
    }
    guard let date = WireDate.parseHTTP(value) else { return nil }
    return Int32(clamping: max(0, Int64(date) - now))
  }
}
