import Foundation
import HTTP2

/// Where requests to APNs go.
struct APNsRoute: Sendable {
  /// What requests name as their host.
  let authority: String
  let connections: HTTP2Pool
}

extension HTTP2ReplyBatch {
  /// What APNs says at `position`; `retry-after` is the first of the headers that were asked for.
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
  /// Does to the token what APNs' answer asks for.
  /// - Returns: Whether the connection should not be used again.
  func endsConnection(_ token: ProviderToken?, shown value: ProviderToken.Value?) -> Bool {
    switch rule.retry {
    case .refreshOnce:
      // The connection goes as well: it may keep refusing (docs/protocol/push-services/apns.md,
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
