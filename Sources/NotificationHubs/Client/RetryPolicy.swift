/// The rules by which a client retries, matching the official clients (docs/protocol/rest.md,
/// section 1.7).
///
/// A request is retried if there was no reply, on status 408, 500, 502, 503 or 504, and on 403 or
/// 429 with a `Retry-After` header. A send whose reply was lost may therefore happen twice.
public struct RetryPolicy: Sendable {
  /// The maximum number of retries after the first attempt.
  public var retries: Int
  /// The delay before the first retry; each further delay is twice as long.
  public var firstDelay: Duration
  /// The maximum delay. If a server asks for a longer one, its error is thrown instead.
  public var longestDelay: Duration
  /// A random number from 0 to 1 that lengthens delays by up to a fifth, so that clients that
  /// failed together do not retry together.
  public var jitter: @Sendable () -> Double
  /// Called before each retry with the error and the delay: with ``standard`` an unreachable hub
  /// becomes an error only after about six seconds.
  public var report: @Sendable (NotificationHubError, Duration) -> Void
  /// Waits for the delay; tests pass their own.
  public var sleep: @Sendable (Duration) async throws -> Void

  /// Creates a policy; the default values are those of ``standard``.
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

  /// Three retries after 0.8, 1.6 and 3.2 seconds, each up to a fifth longer: if nothing listens, a
  /// call throws after 5.6 to 6.7 seconds. If packets are dropped, each attempt also takes the
  /// transport's timeout (``URLSessionTransport``: 30 seconds).
  public static let standard = RetryPolicy()
  /// No retries.
  public static let none = RetryPolicy(retries: 0)

  /// Returns the delay before the next attempt.
  ///
  /// - Parameters:
  ///   - failures: The number of failed attempts so far, at least 1.
  ///   - retryAfter: The delay that the server asks for, in seconds; used unchanged.
  /// - Returns: `nil` if there is no further attempt.
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
