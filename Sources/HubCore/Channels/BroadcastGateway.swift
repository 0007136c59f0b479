package import NotificationHubs

/// Our client of APNs' broadcast channels under one credential.
///
/// Every call is one request, tried again at once only where that can do no harm: with a fresh
/// token, over another connection what was not processed, and after a short pause what APNs put
/// off.
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
  /// Ends the connections; what is in flight is answered as unreachable.
  func close() async
}

/// What goes to all who follow a channel.
package struct BroadcastMessage: Hashable, Sendable {
  /// The most bytes of a payload
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

/// Why APNs did not do what was asked of a channel.
package struct BroadcastRefusal: Error, Hashable {
  package enum Kind: Hashable, Sendable {
    /// No such channel in this app and environment.
    case unknownChannel
    /// The request itself is wrong.
    case badRequest
    case tooLarge
    /// The app has as many channels as it may have.
    case limitReached
    /// APNs does not let the credential, or the app, do this.
    case notAllowed
    case throttled
    /// No answer, or one that says to try later.
    case unavailable
  }

  package let kind: Kind
  /// APNs' own word, or the transport's; never a secret.
  package let reason: String
  /// In seconds.
  package let retryAfter: Int32?

  package init(_ kind: Kind, reason: String, retryAfter: Int32? = nil) {
    self.kind = kind
    self.reason = reason
    self.retryAfter = retryAfter
  }
}
