import NotificationHubs
import Testing

@testable import HubCore

@Suite("Retry policy")
struct RetryPolicyTests {
  @Test(
    "a pause doubles with the tries, spreads over its own length, and ends at ten minutes",
    arguments: [
      (1, NotificationOutcome.pnsUnreachable, 1.0, 2.0), (2, .pnsUnreachable, 2, 4),
      (5, .pnsUnreachable, 16, 32), (1, .pnsServerError, 10, 20), (2, .pnsUnavailable, 20, 40),
      (6, .throttled, 300, 600), (40, .throttled, 300, 600), (0, .pnsServerError, 10, 20),
      (1, .tokenProviderUnreachable, 1, 2), (1, .channelThrottled, 10, 20),
    ])
  func pauseDoubles(attempts: Int, outcome: NotificationOutcome, least: Double, most: Double) {
    func pause(_ jitter: Double) -> Double {
      RetryPolicy.pause(attempts: attempts, outcome: outcome, retryAfter: nil, jitter: jitter)
    }
    #expect(pause(0) == least)
    #expect(pause(1) == most)
  }

  @Test(
    "Retry-After is the least pause; what is not positive does not count",
    arguments: [
      (Int32(60), 0.0, 60.0), (60, 1, 66), (5, 0, 10), (3600, 1, 3630), (0, 0, 10), (-7, 0, 10),
    ])
  func retryAfterIsObeyed(seconds: Int32, jitter: Double, expected: Double) {
    #expect(
      RetryPolicy.pause(
        attempts: 1, outcome: .throttled, retryAfter: seconds, jitter: jitter)
        == max(expected, 10 * (1 + jitter)))
  }

  @Test("a vendor's least pause takes the place of ours and doubles with the tries")
  func leastPause() {
    func pause(_ attempts: Int) -> Double {
      RetryPolicy.pause(
        attempts: attempts, outcome: .throttled, retryAfter: nil, leastPause: 60, jitter: 0)
    }
    #expect(pause(1) == 60)
    #expect(pause(2) == 120)
    #expect(pause(9) == 300)
  }

  @Test(
    "a refused credential rests a minute, doubling up to ten",
    arguments: [(1, 60.0), (2, 120), (3, 240), (4, 480), (5, 600), (99, 600)])
  func credentialRests(refusals: Int, seconds: Double) {
    #expect(RetryPolicy.credentialPause(refusals: refusals) == seconds)
  }

  @Test(
    "a push service without an answer rests a second, doubling up to a minute",
    arguments: [(1, 1.0), (2, 2), (6, 32), (7, 60), (99, 60)])
  func connectionRests(failures: Int, seconds: Double) {
    #expect(RetryPolicy.connectionPause(failures: failures) == seconds)
  }
}
