public import Foundation

extension FCMMessage {
  /// What browsers get that are reached through FCM.
  ///
  /// - SeeAlso: <https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages#webpushconfig>
  public struct WebPush: Hashable, Sendable {
    /// `nil`: the service's own 28 days.
    public var ttl: Int?
    public var urgency: WebPushPayload.Urgency?
    /// 1 to 32 letters, digits, `-` and `_`.
    public var topic: String?
    /// Takes the place of the message's `data`.
    public var data: [String: String]
    /// The options of the browser's `Notification`, with `title` and `body` beside them.
    public var notification: [String: PayloadValue]
    /// What a click opens; `https`.
    public var link: URL?

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
