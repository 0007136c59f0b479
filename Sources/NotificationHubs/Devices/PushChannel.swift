/// Where a push service reaches a device: what the field calls a handle.
public enum PushChannel: Hashable, Sendable {
  /// A token, a registration id or a channel URI, as the push service gave it.
  case handle(String)
  /// A Web Push subscription.
  case subscription(endpoint: String, p256dh: String, auth: String)

  /// The handle as one text: what a registration stores, and what identifies the device at its
  /// push service. For a subscription that is its endpoint.
  public var handle: String {
    switch self {
    case .handle(let text): text
    case .subscription(let endpoint, _, _): endpoint
    }
  }
}
