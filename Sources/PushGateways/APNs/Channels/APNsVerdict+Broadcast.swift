import HubCore
import NotificationHubs

extension APNsVerdict {
  /// What an answer means to the caller of a channel operation.
  var broadcastRefusal: BroadcastRefusal {
    BroadcastRefusal(kind, reason: reason, retryAfter: retryAfter)
  }

  private var kind: BroadcastRefusal.Kind {
    if reply == .channelNotRegistered { return .unknownChannel }
    if reply == .cannotCreateChannel { return .limitReached }
    switch reply.outcome {
    case .invalidCredentials: return .notAllowed
    case .invalidNotificationSize: return .tooLarge
    case .throttled, .channelThrottled: return .throttled
    case .pnsServerError, .pnsUnavailable, .pnsUnreachable: return .unavailable
    default: return (500...599).contains(status) ? .unavailable : .badRequest
    }
  }
}
