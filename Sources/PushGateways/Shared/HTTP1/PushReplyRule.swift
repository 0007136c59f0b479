import NotificationHubs

/// What one answer of a push service, or its absence, means: a row of the table in the service's
/// file under spec `pns`.
struct PushReplyRule: Hashable, Sendable {
  /// What becomes of the message; the raw values are the specification's words.
  enum Retry: String, Sendable {
    case none
    case never
    case fix
    case refreshOnce = "refresh-once"
    case backoff
    case pauseCredential = "pause-credential"
  }

  /// What becomes of the stored handle; the raw values are the specification's words.
  enum Handle: String, Sendable {
    case keep
    case remove
    case replace
  }

  /// An HTTP status, a group of them or a stage, as in the specification: `404`, `5xx`, `transport`.
  let status: String
  /// The service's words or codes for it, `|` between them, or what else tells the row; may be empty.
  let reason: String
  let retry: Retry
  let handle: Handle
  let outcome: NotificationOutcome

  init(
    _ status: String, _ reason: String, _ retry: Retry, _ handle: Handle,
    _ outcome: NotificationOutcome
  ) {
    self.status = status
    self.reason = reason
    self.retry = retry
    self.handle = handle
    self.outcome = outcome
  }

  /// Every service's last row: no connection, or no reply.
  static let unreachable = PushReplyRule(
    "transport", "connect-or-timeout", .backoff, .keep, .pnsUnreachable)

  /// For an answer that no table has: a status or a body that is not the service's.
  static let notUnderstood = PushReplyRule("any", "", .never, .keep, .pnsInterfaceError)

  /// The rows by each of their words.
  static func byReason(_ rules: [PushReplyRule]) -> [String: PushReplyRule] {
    var found: [String: PushReplyRule] = [:]
    for rule in rules {
      for word in rule.reason.split(separator: "|") { found[String(word)] = rule }
    }
    return found
  }
}
