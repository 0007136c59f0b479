package import NotificationHubs

/// What the hub does with a stored handle after a reply (docs/protocol/push-services/README.md,
/// section 2). `remove-if-older` has been decided by the gateway: it answers ``remove`` or
/// ``keep``.
package enum HandleAction: UInt8, Sendable {
  case keep
  case remove
  /// Store ``PushResult/newHandle`` in its place.
  case replace
}

/// What the hub does with the message after a reply (docs/protocol/push-services/README.md,
/// section 2). What a gateway does by itself (a refused stream, one fresh provider token) has
/// happened already.
package enum RetryAdvice: UInt8, Sendable {
  /// The outcome is final.
  case final
  /// Send again later, with growing pauses.
  case backoff
  /// The outcome is final, and nothing more is to be sent with this credential until it is replaced
  /// or a probe succeeds.
  case pauseCredential
}

/// The reply to one push, in the order of ``PushBatch/requests``.
package struct PushResult: Sendable {
  package var outcome: NotificationOutcome
  package var handle: HandleAction
  package var retry: RetryAdvice
  /// The push service's HTTP status; 0 when there was no reply.
  package var status: UInt16
  /// The push service's own word (`Unregistered`), or the transport's; `nil` on success.
  package var reason: String?
  /// The push service's `Retry-After`, in seconds.
  package var retryAfter: Int32?
  /// Where the push succeeded, when that was not where the request said.
  package var environment: PushEnvironment?
  /// The handle that takes the place of the one sent to; only with ``HandleAction/replace``.
  package var newHandle: String?
  /// The least time before this message is tried again, in seconds, where the push service's rules
  /// ask for more than the hub's own and its answer named none.
  package var leastPause: Int32?

  package init(
    outcome: NotificationOutcome, handle: HandleAction = .keep, retry: RetryAdvice = .final,
    status: UInt16 = 0, reason: String? = nil, retryAfter: Int32? = nil,
    newHandle: String? = nil
  ) {
    self.outcome = outcome
    self.handle = handle
    self.retry = retry
    self.status = status
    self.reason = reason
    self.retryAfter = retryAfter
    self.newHandle = newHandle
  }

  package static let success = PushResult(outcome: .success, status: 200)
}
