package import NotificationHubs

/// The action on a stored handle after a reply (docs/protocol/push-services/README.md, section 2).
/// The gateway has already resolved `remove-if-older` to ``remove`` or ``keep``.
package enum HandleAction: UInt8, Sendable {
  case keep
  case remove
  /// Store ``PushResult/newHandle`` in its place.
  case replace
}

/// The action on the message after a reply (docs/protocol/push-services/README.md, section 2). The
/// gateway has already applied its own remedies (a refused stream, one fresh provider token).
package enum RetryAdvice: UInt8, Sendable {
  /// The outcome is final.
  case final
  /// Send again later, with growing pauses.
  case backoff
  /// The outcome is final, and nothing more must be sent with this credential until it is replaced
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
  /// The environment in which the push succeeded, if it differs from the request's.
  package var environment: PushEnvironment?
  /// The handle that replaces the one sent to; only with ``HandleAction/replace``.
  package var newHandle: String?
  /// Minimum time before this message is retried, in seconds, where the push service's rules
  /// require more than the hub's own and its reply named none.
  package var leastPause: Int32?
  /// Whether it says something of the platform's push service; `false` for the answer of a server that
  /// the subscriber chose, which neither pauses the lane nor vouches for it.
  package var concernsOthers = true

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

  /// The beginning of the reason of a push that this server did not send because of its settings.
  /// The push service was not asked, and the handle stays.
  package static let refusedHere = "refused by this server: "

  package static let success = PushResult(outcome: .success, status: 200)
}
