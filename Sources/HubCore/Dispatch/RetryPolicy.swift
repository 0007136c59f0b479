import NotificationHubs

/// When a target is tried again (docs/protocol/push-services/README.md, section 3, rules 1 and 2).
///
/// A pause doubles from 1 s (no connection or no reply) or 10 s (any other answer that may pass)
/// and is drawn evenly between that and twice that, never more than 10 minutes: the jitter is as
/// wide as the pause, so devices that failed together do not return together, and the least pause
/// that services ask for still holds.
enum RetryPolicy {
  static let longest = 600.0

  /// - Parameters:
  ///   - attempts: Tries so far, from 1.
  ///   - retryAfter: The push service's `Retry-After` in seconds: the least pause; a tenth of it
  ///     (at most 30 s) is spread on top.
  ///   - leastPause: As ``PushResult/leastPause``.
  ///   - jitter: 0 up to 1, drawn by the caller.
  /// - Returns: Seconds.
  static func pause(
    attempts: Int, outcome: NotificationOutcome, retryAfter: Int32?, leastPause: Int32? = nil,
    jitter: Double
  ) -> Double {
    let least = least(outcome, asked: leastPause)
    let base = least * Double(1 << min(max(attempts, 1) - 1, 10))
    let pause = min(base, longest / 2) * (1 + jitter)
    guard let retryAfter, retryAfter > 0 else { return pause }
    let asked = Double(retryAfter)
    return max(pause, asked + jitter * min(asked / 10, 30))
  }

  /// The first pause without jitter, in seconds.
  /// - Parameter asked: As ``PushResult/leastPause``.
  static func least(_ outcome: NotificationOutcome, asked: Int32?) -> Double {
    switch outcome {
    case .pnsUnreachable, .tokenProviderUnreachable: max(1, Double(asked ?? 0))
    default: max(10, Double(asked ?? 0))
    }
  }

  /// How long a credential rests before its next probe: one minute, doubling up to ten.
  /// - Parameter refusals: Refused probes in a row, the first refusal included; from 1.
  static func credentialPause(refusals: Int) -> Double {
    min(60 * Double(1 << min(max(refusals, 1) - 1, 4)), longest)
  }

  /// How long a push service that does not answer, or only with faults, is left alone before its
  /// next probe: a second, doubling up to half a minute, so that what waits is on its way within a
  /// minute of its return.
  /// - Parameter failures: In a row, from 1.
  static func outagePause(failures: Int) -> Double { min(connectionPause(failures: failures), 30) }

  /// How long a push service that throttles without a word how long is spared: a second, doubling
  /// up to a minute.
  /// - Parameter failures: In a row, from 1.
  static func connectionPause(failures: Int) -> Double {
    min(Double(1 << min(max(failures, 1) - 1, 6)), 60)
  }
}
