public import Foundation
import Wire

/// A message for a browser's service worker. The hub encrypts it for each subscription.
///
/// The body is JSON: in the service worker `event.data.json()` returns the value.
///
/// ```swift
/// let payload = try WebPushPayload(["title": "Tea", "pot": 2], urgency: .high, topic: "tea")
/// ```
/// - SeeAlso: RFC 8030; <https://developer.mozilla.org/docs/Web/API/PushMessageData>
public struct WebPushPayload: PushPayload {
  /// Web Push.
  public static var platform: PushPlatform { .browser }
  /// 3993 bytes, the remainder after encryption of the 4096 bytes that a push service must accept
  /// (RFC 8291, section 4).
  public var limit: Int { 3993 }
  /// The content as JSON.
  public let body: Data
  /// The headers `TTL`, `Urgency` and `Topic`, as far as they are set.
  public let headers: [String: String]

  /// The urgency, which the push service weighs against the battery (RFC 8030, section 5.3).
  public enum Urgency: String, CaseIterable, Hashable, Sendable {
    /// Delivered on power and Wi-Fi.
    case veryLow = "very-low"
    /// Delivered on power or Wi-Fi.
    case low
    /// Delivered without power and Wi-Fi as well.
    case normal
    /// Delivered even if the battery is low.
    case high
  }

  /// Creates a message.
  ///
  /// - Parameters:
  ///   - content: Any JSON value, including a plain string.
  ///   - ttl: The time for which the push service stores the message, in seconds, at most 28 days;
  ///     0 for immediate delivery only. `nil` leaves it to the hub.
  ///   - topic: A topic with which a newer message replaces an undelivered one; 1 to 32 letters,
  ///     digits, `-` and `_`.
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
