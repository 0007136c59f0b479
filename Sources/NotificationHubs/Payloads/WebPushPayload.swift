public import Foundation
import Wire

/// A message for browsers' service workers. The hub encrypts it for each subscription.
///
/// The body is JSON: in the service worker `event.data.json()` gives the value back.
///
/// ```swift
/// let payload = try WebPushPayload(["title": "Tea", "pot": 2], urgency: .high, topic: "tea")
/// ```
/// - SeeAlso: RFC 8030; <https://developer.mozilla.org/docs/Web/API/PushMessageData>
public struct WebPushPayload: PushPayload {
  public static var platform: PushPlatform { .browser }
  /// What encryption leaves of the 4096 bytes that a push service must take (RFC 8291, section 4).
  public var limit: Int { 3993 }
  public let body: Data
  public let headers: [String: String]

  /// How much the message is worth the battery (RFC 8030, section 5.3).
  public enum Urgency: String, CaseIterable, Hashable, Sendable {
    /// On power and Wi-Fi.
    case veryLow = "very-low"
    /// On either.
    case low
    /// On neither.
    case normal
    /// Also when the battery is low.
    case high
  }

  /// - Parameters:
  ///   - content: Any JSON value, a text too.
  ///   - ttl: How long the push service keeps it, in seconds, at most 28 days; 0 for now or never.
  ///     `nil` leaves it to the hub.
  ///   - topic: A newer message of the same topic replaces one that waits; 1 to 32 letters, digits,
  ///     `-` and `_`.
  /// - Throws: ``PayloadError``.
  public init(
    _ content: PayloadValue, ttl: Int? = nil, urgency: Urgency? = nil, topic: String? = nil
  ) throws(PayloadError) {
    let bytes = try content.encoded(as: "payload")
    try PayloadError.check(size: bytes.count, limit: 3993, of: "payload")
    body = Data(bytes)
    headers = try Self.headers(ttl: ttl, urgency: urgency, topic: topic)
  }

  static func headers(
    ttl: Int?, urgency: Urgency?, topic: String?
  ) throws(PayloadError) -> [String: String] {
    try PayloadError.check(ttl, in: 0...28 * 86_400, WireName.webPushTTL)
    if let topic {
      guard topic.utf8.allSatisfy(\.isBase64URL), (1...32).contains(topic.utf8.count) else {
        throw PayloadError(
          .malformed, WireName.webPushTopic, "takes 1 to 32 letters, digits, '-' and '_'")
      }
    }
    var headers: [String: String] = [:]
    headers[WireName.webPushTTL] = ttl.map(String.init)
    headers[WireName.webPushUrgency] = urgency?.rawValue
    headers[WireName.webPushTopic] = topic
    return headers
  }
}
