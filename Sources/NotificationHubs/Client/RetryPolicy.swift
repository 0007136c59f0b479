/// When and how a client tries again, as the official clients do (docs/protocol/rest.md,
/// section 1.7).
///
/// Tried again is what found no server or a busy one: no reply at all, the statuses 408, 500, 502,
/// 503 and 504, and 403 or 429 with a `Retry-After` header. A send whose reply was lost may thus
/// happen twice.
public struct RetryPolicy: Sendable {
  /// Tries after the first one.
  public var retries: Int
  /// The pause before the first of them; each further pause is twice as long.
  public var firstDelay: Duration
  /// The longest pause; a server that asks for a longer one gets its refusal passed on instead.
  public var longestDelay: Duration
  /// Stretches pauses by up to a fifth so that clients that failed together do not return together:
  /// a number from 0 to 1.
  public var jitter: @Sendable () -> Double
  /// Told before each further try what failed and how long the pause is: with ``standard`` a hub
  /// that cannot be reached is an error only after some six seconds.
  public var report: @Sendable (NotificationHubError, Duration) -> Void
  /// Waits; tests pass their own.
  public var sleep: @Sendable (Duration) async throws -> Void

  public init(
    retries: Int = 3, firstDelay: Duration = .milliseconds(800),
    longestDelay: Duration = .seconds(60),
    jitter: @escaping @Sendable () -> Double = { Double.random(in: 0...1) },
    report: @escaping @Sendable (NotificationHubError, Duration) -> Void = { _, _ in },
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    self.retries = retries
    self.firstDelay = firstDelay
    self.longestDelay = longestDelay
    self.jitter = jitter
    self.report = report
    self.sleep = sleep
  }

  /// Three more tries after 0.8, 1.6 and 3.2 seconds, up to a fifth longer: where nobody listens
  /// a call throws after 5.6 to 6.7 seconds. Where packets are dropped each try also takes the
  /// transport's time limit (``URLSessionTransport``: 30 seconds).
  public static let standard = RetryPolicy()
  /// No second try.
  public static let none = RetryPolicy(retries: 0)

  /// The pause before the next try.
  ///
  /// - Parameters:
  ///   - failures: Failed tries so far, from 1.
  ///   - retryAfter: What the server asks for, in seconds; obeyed as it is.
  /// - Returns: `nil` when there is no next try.
  func delay(afterFailures failures: Int, retryAfter: Int?) -> Duration? {
    guard failures <= retries else { return nil }
    if let retryAfter {
      let asked = Duration.seconds(max(retryAfter, 0))
      return asked <= longestDelay ? asked : nil
    }
    let doubled = firstDelay * (1 << min(failures - 1, 16))
    return min(doubled, longestDelay) * (1 + jitter() / 5)
  }
}
