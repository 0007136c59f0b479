import Foundation
import HTTP2

/// The destination of requests to APNs.
struct APNsRoute: Sendable {
  let endpoint: APNsEndpoint
  let connections: HTTP2Pool
}

extension HTTP2ReplyBatch {
  /// The verdict of APNs' reply at `position`; `retry-after` is the first of the requested headers.
  func apnsVerdict(at position: Int, now: Date) -> PushVerdict {
    let reply = replies[position]
    if let failure = reply.failure {
      return APNsReply.verdict(
        failure: failure, goAway: goAway, connectionError: connectionError)
    }
    let retryAfter = value(ofHeader: 0, in: position).flatMap {
      RetryAfter.seconds($0, now: Int64(now.timeIntervalSince1970))
    }
    return APNsReply.verdict(
      status: reply.status, body: body(of: position), retryAfter: retryAfter)
  }
}

extension PushVerdict {
  /// Updates the token after APNs' reply.
  /// - Returns: Whether the connection should not be used again.
  func endsConnection(_ token: ProviderToken?, shown value: ProviderToken.Value?) -> Bool {
    switch rule.retry {
    case .refreshOnce:
      // The connection is also given up: it may keep refusing (docs/protocol/push-services/apns.md,
      // section 2.1).
      if let value { token?.invalidate(value) }
      return true
    case .newConnection: return rule != APNsReply.streamRefused
    case .pauseCredential: return true
    case .backoff where rule == APNsReply.tooManyTokenUpdates:
      token?.keepForNow()
      return true
    case .none, .never, .fix, .backoff: return false
    }
  }
}
