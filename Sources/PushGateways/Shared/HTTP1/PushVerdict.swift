import HTTPClient
import HubCore
import NotificationHubs

/// What a push service said to one push: the table's row, and what of the answer itself counts.
struct PushVerdict: Sendable {
  let rule: PushReplyRule
  /// 0 when there was no answer.
  var status: UInt16 = 0
  /// The service's word or code, or the transport's; `nil` on success.
  var reason: String?
  /// In seconds.
  var retryAfter: Int32?
  /// The handle that takes the place of the one sent to.
  var newHandle: String?
  /// A failure of the way to the host: others of the same host would meet the same.
  var concernsHost = false

  init(
    _ rule: PushReplyRule, status: UInt16 = 0, reason: String? = nil, retryAfter: Int32? = nil,
    newHandle: String? = nil
  ) {
    self.rule = rule
    self.status = status
    self.reason = reason
    self.retryAfter = retryAfter
    self.newHandle = newHandle
  }

  /// There was no answer.
  init(_ failure: HTTPFailure) {
    switch failure.kind {
    case .refusedAddress:
      // The service did not say so, hence the handle stays.
      self.init(PushReplyRule("local", "", .never, .keep, .badChannel))
    case .badCall, .tooLarge:
      self.init(PushReplyRule("local", "", .never, .keep, .pnsInterfaceError))
    case .resolve, .connect, .tls:
      self.init(.unreachable)
      concernsHost = true
    case .timeout, .reset, .notSent, .cancelled, .closed: self.init(.unreachable)
    }
    reason = failure.description
  }

  /// Whether every push of this credential would hear the same for now.
  var concernsSender: Bool {
    switch rule.retry {
    case .refreshOnce, .pauseCredential: true
    case .backoff:
      rule.outcome == .throttled || rule.outcome == .pnsUnavailable && retryAfter != nil
    case .none, .never, .fix: false
    }
  }

  /// What is left to do when the gateway has done its own part: after a fresh token that was
  /// refused as well, the credential is wrong.
  var result: PushResult {
    let advice: RetryAdvice =
      switch rule.retry {
      case .none, .never, .fix: .final
      case .backoff: .backoff
      case .refreshOnce, .pauseCredential: .pauseCredential
      }
    let handle: HandleAction =
      switch rule.handle {
      case .keep: .keep
      case .remove: .remove
      case .replace: newHandle == nil ? .keep : .replace
      }
    return PushResult(
      outcome: rule.outcome, handle: handle, retry: advice, status: status,
      reason: rule.outcome == .success ? nil : reason, retryAfter: retryAfter,
      newHandle: newHandle)
  }

  /// What may be kept with an outcome and shown: short, plain, and nothing like an address or token.
  static func shown(_ text: some StringProtocol) -> String? {
    guard (1...100).contains(text.utf8.count),
      text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }), !text.contains("://"),
      text.split(separator: " ").allSatisfy({ $0.utf8.count <= 40 })
    else { return nil }
    return String(text)
  }
}
