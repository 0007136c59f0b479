package import NotificationHubs

/// Our client of APNs' broadcast channels under one credential.
///
/// Every call is one request, retried at once only where that is harmless: with a fresh token, over
/// another connection if it was not processed, and after a short pause if APNs deferred it.
package protocol BroadcastGateway: Sendable {
  func createChannel(
    _ storage: BroadcastChannel.Storage
  ) async throws(BroadcastRefusal) -> BroadcastChannel
  func channel(_ id: String) async throws(BroadcastRefusal) -> BroadcastChannel
  /// The ids of all channels of the credential's app and environment.
  func channels() async throws(BroadcastRefusal) -> [String]
  func deleteChannel(_ id: String) async throws(BroadcastRefusal)
  func send(
    _ message: BroadcastMessage, to channel: String
  ) async throws(BroadcastRefusal) -> BroadcastReceipt
  /// Closes the connections; requests in flight get `unavailable` as their result.
  func close() async
}

/// A message to all subscribers of a channel.
package struct BroadcastMessage: Hashable, Sendable {
  /// Maximum size of a payload in bytes
  /// (https://developer.apple.com/documentation/usernotifications/sending-broadcast-push-notification-requests-to-apns).
  package static let payloadLimit = 5120

  /// A JSON object.
  package let payload: [UInt8]
  /// Unix seconds; 0: try once.
  package let expiration: Int64
  /// 1, 5 or 10.
  package let priority: Int

  package init(payload: [UInt8], expiration: Int64, priority: Int) {
    self.payload = payload
    self.expiration = expiration
    self.priority = priority
  }
}

/// The reason that APNs has refused a channel operation.
package struct BroadcastRefusal: Error, Hashable {
  package enum Kind: Hashable, Sendable {
    /// There is no such channel in this app and environment.
    case unknownChannel
    /// The request itself is invalid.
    case badRequest
    case tooLarge
    /// The app has its maximum number of channels.
    case limitReached
    /// APNs does not permit this for the credential, or the app.
    case notAllowed
    case throttled
    /// No reply, or one that asks to retry later.
    case unavailable
  }

  package let kind: Kind
  /// APNs' own reason, or the transport's; never a secret.
  package let reason: String
  /// In seconds.
  package let retryAfter: Int32?

  package init(_ kind: Kind, reason: String, retryAfter: Int32? = nil) {
    self.kind = kind
    self.reason = reason
    self.retryAfter = retryAfter
  }
}
