public import Foundation
import Wire

/// A message for Firebase Cloud Messaging, without the device: the hub inserts each device's token.
///
/// ```swift
/// let message = try FCMMessage(
///   data: ["order": "4711"], notification: .init(title: "Tea", body: "It is ready."),
///   android: .init(priority: .high, ttl: .seconds(600), collapseKey: "tea"))
/// ```
/// - SeeAlso: <https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages>
public struct FCMMessage: PushPayload {
  /// Firebase Cloud Messaging.
  public static var platform: PushPlatform { .fcmv1 }
  /// The size in bytes of what the service counts: `data`, `notification` and the platforms'
  /// blocks.
  public let size: Int
  /// 4096 bytes.
  public var limit: Int { 4096 }
  /// The JSON object `{"message":{…}}`.
  public let body: Data

  /// The notification that the system shows, on every platform.
  public struct Notification: Hashable, Sendable {
    /// The title.
    public var title: String?
    /// The text.
    public var body: String?
    /// The URL of a picture; `https`.
    public var image: URL?

    /// Creates a notification.
    public init(title: String? = nil, body: String? = nil, image: URL? = nil) {
      self.title = title
      self.body = body
      self.image = image
    }

    func value() throws(PayloadError) -> PayloadValue {
      var members: [String: PayloadValue] = [:]
      members["title"] = title.map { .string($0) }
      members["body"] = body.map { .string($0) }
      if let image {
        members["image"] = .string(try FCMMessage.https(image, "message.notification.image"))
      }
      guard !members.isEmpty else {
        throw PayloadError(.missing, "message.notification", "needs a title, a body or an image")
      }
      return .object(members)
    }
  }

  /// Creates a message.
  ///
  /// - Parameters:
  ///   - data: Data for the app. The names `from` and `message_type`, and those that begin with
  ///     `google` or `gcm`, are reserved by the service.
  ///   - apns: The payload for Apple devices that are reached through FCM.
  ///   - analyticsLabel: 1 to 50 letters, digits and `-_.~%`.
  /// - Throws: ``PayloadError``, also if the message would be empty.
  public init(
    data: [String: String] = [:], notification: Notification? = nil, android: Android? = nil,
    apns: APNsPayload? = nil, webpush: WebPush? = nil, analyticsLabel: String? = nil
  ) throws(PayloadError) {
    var message: [String: PayloadValue] = [:]
    try Self.check(data, "message.data")
    if !data.isEmpty { message["data"] = .object(.init(data)) }
    if let notification { message["notification"] = try notification.value() }
    if let android { message["android"] = try android.value() }
    if let apns {
      message["apns"] = [
        "headers": .object(.init(apns.headers)), "payload": try Self.value(of: apns),
      ]
    }
    if let webpush { message["webpush"] = try webpush.value() }
    guard !message.isEmpty else {
      throw PayloadError(.missing, "message", "needs data, a notification or a platform's block")
    }
    var size = 0
    for (name, value) in message { size += try value.encoded(as: "message.\(name)").count }
    try PayloadError.check(size: size, limit: 4096, of: "message")
    self.size = size
    if let analyticsLabel {
      let isLabel = analyticsLabel.utf8.allSatisfy { byte in
        byte.isLetterOrDigit || "-_.~%".utf8.contains(byte)
      }
      guard isLabel, (1...50).contains(analyticsLabel.utf8.count) else {
        throw PayloadError(
          .malformed, "message.fcm_options.analytics_label",
          "takes 1 to 50 letters, digits and -_.~%")
      }
      message["fcm_options"] = ["analytics_label": .string(analyticsLabel)]
    }
    let whole: PayloadValue = ["message": .object(message)]
    body = Data(try whole.encoded(as: "message"))
  }

  static func check(_ data: [String: String], _ member: String) throws(PayloadError) {
    for name in data.keys.sorted() {
      let isReserved =
        name == "from" || name == "message_type" || name.hasPrefix("google")
        || name.hasPrefix("gcm")
      guard !isReserved else {
        throw PayloadError(
          .reserved, "\(member).\(name)",
          "is the service's own: not 'from', 'message_type', 'google…' or 'gcm…'")
      }
      guard !name.isEmpty else {
        throw PayloadError(.malformed, member, "has a member without a name")
      }
    }
  }

  static func https(_ url: URL, _ member: String) throws(PayloadError) -> String {
    guard url.scheme?.lowercased() == "https", url.host() != nil else {
      throw PayloadError(.malformed, member, "must be an https address")
    }
    return url.absoluteString
  }

  private static func value(of payload: APNsPayload) throws(PayloadError) -> PayloadValue {
    do { return PayloadValue(try JSONValue.parse(payload.body)) } catch {
      throw PayloadError(.malformed, "message.apns.payload", error.message)
    }
  }
}

extension FCMMessage {
  /// Options and content for browsers that are reached through FCM.
  ///
  /// - SeeAlso:
  ///   <https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages#webpushconfig>
  public struct WebPush: Hashable, Sendable {
    /// The time for which the message is stored, in seconds; `nil` for the service's default of 28
    /// days.
    public var ttl: Int?
    /// The urgency; `nil` leaves it to the service.
    public var urgency: WebPushPayload.Urgency?
    /// A topic of 1 to 32 letters, digits, `-` and `_`.
    public var topic: String?
    /// Data for the app, which replaces the message's `data`.
    public var data: [String: String]
    /// The options of the browser's `Notification`, including `title` and `body`.
    public var notification: [String: PayloadValue]
    /// The URL to open on a click; `https`.
    public var link: URL?

    /// Creates options for browsers.
    public init(
      ttl: Int? = nil, urgency: WebPushPayload.Urgency? = nil, topic: String? = nil,
      data: [String: String] = [:], notification: [String: PayloadValue] = [:], link: URL? = nil
    ) {
      self.ttl = ttl
      self.urgency = urgency
      self.topic = topic
      self.data = data
      self.notification = notification
      self.link = link
    }

    func value() throws(PayloadError) -> PayloadValue {
      try FCMMessage.check(data, "message.webpush.data")
      let headers = try WebPushPayload.headers(ttl: ttl, urgency: urgency, topic: topic)
      var members: [String: PayloadValue] = [:]
      if !headers.isEmpty { members["headers"] = .object(.init(headers)) }
      if !data.isEmpty { members["data"] = .object(.init(data)) }
      if !notification.isEmpty { members["notification"] = .object(notification) }
      if let link {
        members["fcm_options"] = [
          "link": .string(try FCMMessage.https(link, "message.webpush.fcm_options.link"))
        ]
      }
      return .object(members)
    }
  }
}
