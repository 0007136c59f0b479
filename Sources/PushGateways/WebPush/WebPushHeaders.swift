import HTTP2
import HubCore

/// The request headers of a push that its body decides (RFC 8030, section 5).
struct WebPushHeaders: Sendable {
  /// In the order they are sent.
  let fields: [HTTP2Field]

  /// Four weeks: what most services keep a message at most, and what a message gets that names no
  /// time. In seconds.
  private static let longestTTL: Int64 = 2_419_200
  private static let urgencies = ["very-low", "low", "normal", "high"]

  /// Why a push cannot be sent.
  struct Refusal: Error {
    let reason: String
  }

  /// - Parameters:
  ///   - body: Its headers `ttl`, `urgency` and `topic` count; without a `ttl` its expiry does.
  ///   - size: Of the encrypted body, in bytes; 0 for a push without one.
  ///   - now: In seconds since 1970.
  init(_ body: PushBody, size: Int, now: Int64) throws(Refusal) {
    var fields = [HTTP2Field("ttl", try Self.ttl(body, now: now))]
    if let urgency = body.headers["urgency"]?.lowercased() {
      guard Self.urgencies.contains(urgency) else {
        throw Refusal(reason: "Urgency is none of \(Self.urgencies.joined(separator: ", "))")
      }
      fields.append(HTTP2Field("urgency", urgency))
    }
    if let topic = body.headers["topic"] {
      guard (1...32).contains(topic.utf8.count), topic.utf8.allSatisfy(Self.isTopicByte) else {
        throw Refusal(reason: "Topic is not 1 to 32 letters, digits, - and _")
      }
      fields.append(HTTP2Field("topic", topic))
    }
    if size > 0 {
      fields.append(HTTP2Field("content-encoding", "aes128gcm"))
      fields.append(HTTP2Field("content-type", "application/octet-stream"))
    }
    fields.append(HTTP2Field("content-length", String(size)))
    self.fields = fields
  }

  private static func ttl(_ body: PushBody, now: Int64) throws(Refusal) -> String {
    if let text = body.headers["ttl"] {
      guard (1...10).contains(text.utf8.count),
        text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
      else { throw Refusal(reason: "TTL is no number of seconds") }
      return text
    }
    guard let expiry = body.expiry else { return String(longestTTL) }
    return String(expiry > now ? min(longestTTL, expiry - max(0, now)) : 0)
  }

  private static func isTopicByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
