import HTTPClient
import HubCore
import NotificationHubs

/// What sets one push service with HTTP/1.1 apart from the others: how a push is written and how the
/// reply is read. What they share (connections, tokens, when to stop) is ``HTTPPushGateway``'s.
protocol HTTPPushService: Sendable {
  /// A body made ready for this service.
  associatedtype Message: Sendable

  /// Shapes and checks a body; asked once for each body of a batch.
  /// - Parameter now: In seconds since 1970.
  func message(_ body: PushBody, now: Int64) throws(PushRefusal) -> Message

  /// Writes one push.
  /// - Parameter token: `nil` for services without access tokens.
  func call(
    _ message: Message, to handle: String, id: PushID, token: String?, now: Int64
  ) throws(PushRefusal) -> HTTPPushCall

  /// How a credential is tried.
  var trial: ServiceTrial { get }

  /// Reads the answer to one push.
  func verdict(_ reply: HTTPReply, to handle: String, now: Int64) -> PushVerdict
}

/// A push that is written, and where it goes.
struct HTTPPushCall: Sendable {
  let call: HTTPCall
  /// Calls with the same host fail together.
  let host: String
  /// The operator has not allowed the host by name, so it must not lead into a private network.
  let isPublicOnly: Bool
}

/// A push that cannot be sent: nobody was asked.
struct PushRefusal: Error {
  let result: PushResult

  init(_ outcome: NotificationOutcome, _ reason: String) {
    result = PushResult(outcome: outcome, reason: reason)
  }

  static func badFormat(_ reason: String) -> PushRefusal {
    PushRefusal(.invalidNotificationFormat, reason)
  }

  static func tooLarge(_ count: Int, limit: Int) -> PushRefusal {
    PushRefusal(
      .invalidNotificationSize, "the payload has \(count) bytes, more than \(limit)")
  }
}
