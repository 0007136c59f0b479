import HTTP2
import HubCore
import NotificationHubs
import Wire

/// The request headers of a push, except those that differ per push or authenticate the sender.
struct APNsHeaders: Equatable, Sendable {
  /// In the order they are sent.
  private(set) var fields: [HTTP2Field]
  /// Determines the size limit and the topic's suffix; `nil` when the sender named an unknown one.
  private(set) var pushType: APNsPayload.PushType?
  /// Whether the topic is exactly the credential's own, neither named by the sender nor extended by
  /// a suffix for the kind of push.
  private(set) var isOwnTopic: Bool
  /// Whether the sender gave an `apns-id`; then the push's own id is not sent.
  private(set) var hasID: Bool

  private static let prefix = "apns-"
  private static let olderPrefix = "x-apns-"

  /// - Parameters:
  ///   - body: Its headers `apns-…` are passed on unchanged; missing ones are taken from the older
  ///     `x-apns-…` forms and the expiry.
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

  /// Headers with values that differ from send to send are kept out of the peer's header table
  /// (vendor advice, docs/protocol/push-services/apns.md, section 3).
  private static let varying: Set<String> = ["apns-id", "apns-expiration", "apns-collapse-id"]

  /// Removes blanks at both ends, which HTTP/2 forbids in a value (RFC 9113, section 8.2.1).
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

  /// The payload limit in bytes; an unknown kind gets the usual one.
  var payloadLimit: Int { (pushType ?? .alert).payloadLimit }
}

extension APNsPayload.PushType {
  /// The `apns-priority` when none was requested: background pushes must have 5.
  fileprivate var defaultPriority: String { self == .background ? "5" : "10" }
}
