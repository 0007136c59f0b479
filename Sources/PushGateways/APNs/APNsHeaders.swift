import HTTP2
import HubCore
import NotificationHubs
import Wire

/// The request headers of a push, apart from the ones that differ per push or prove who we are.
struct APNsHeaders: Equatable, Sendable {
  /// In the order they are sent.
  private(set) var fields: [HTTP2Field]
  /// Decides the size limit and the topic's suffix; `nil` when the sender named one we do not know.
  private(set) var pushType: APNsPayload.PushType?
  /// Whether the topic sent is the credential's own, to the letter: not one that the sender named,
  /// nor one whose suffix comes from the kind of push.
  private(set) var isOwnTopic: Bool
  /// Whether the sender gave an `apns-id`; then the push's own id is not sent.
  private(set) var hasID: Bool

  private static let prefix = "apns-"
  private static let olderPrefix = "x-apns-"

  /// - Parameters:
  ///   - body: Its headers `apns-…` go out as they are; the older `x-apns-…` forms and the expiry
  ///     fill what those leave open.
  ///   - derivedType: The kind that the payload itself suggests.
  ///   - topic: The credential's own topic.
  /// - Returns: `nil` when a header cannot be sent: a name or value with characters that have no
  ///   place in a header.
  init?(body: PushBody, derivedType: APNsPayload.PushType, topic ownTopic: String) {
    var given: [String: String] = [:]
    for (name, value) in body.headers where name.hasPrefix(Self.olderPrefix) {
      given[String(name.dropFirst(2))] = Self.sent(value)
    }
    for (name, value) in body.headers where name.hasPrefix(Self.prefix) {
      given[name] = Self.sent(value)
    }
    guard given.allSatisfy({ Self.isSendable($0.key, $0.value) }) else { return nil }

    let word = given["apns-push-type"]
    let givenTopic = given["apns-topic"]
    let type =
      word.map { APNsPayload.PushType(rawValue: $0) }
      ?? givenTopic.flatMap { APNsPayload.PushType(topic: $0) } ?? derivedType
    pushType = type
    let topic = givenTopic ?? ownTopic + (type?.topicSuffix ?? "")
    isOwnTopic = topic == ownTopic
    hasID = given["apns-id"] != nil

    given["apns-topic"] = topic
    given["apns-push-type"] = word ?? type?.rawValue
    given["apns-priority"] = given["apns-priority"] ?? type?.defaultPriority
    if given["apns-expiration"] == nil {
      // Apple advises not to store a push-to-talk invitation: it is stale once late.
      given["apns-expiration"] = body.expiry.map { String($0) } ?? (type == .pushtotalk ? "0" : nil)
    }
    fields = given.sorted { $0.key < $1.key }.map { name, value in
      HTTP2Field(name, value, indexing: Self.varying.contains(name) ? .never : .allowed)
    }
  }

  /// Values that differ from send to send have no place in the peer's header table (vendor advice,
  /// docs/protocol/push-services/apns.md, section 3).
  private static let varying: Set<String> = ["apns-id", "apns-expiration", "apns-collapse-id"]

  /// HTTP/2 takes no blank at either end of a value (RFC 9113, section 8.2.1).
  private static func sent(_ value: String) -> String? {
    let value = value.trimmingBlanks
    return value.isEmpty ? nil : value
  }

  private static func isSendable(_ name: String, _ value: String) -> Bool {
    name.utf8.allSatisfy { byte in
      (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || byte == UInt8(ascii: "-")
        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    } && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } && value.utf8.count <= 1024
  }

  /// In bytes; a kind we do not know gets the usual one.
  var payloadLimit: Int { (pushType ?? .alert).payloadLimit }
}

extension APNsPayload.PushType {
  /// `apns-priority` when nobody asked for one: background must be 5.
  fileprivate var defaultPriority: String { self == .background ? "5" : "10" }
}
