public import Foundation

/// A message for Xiaomi Push: the parameters of its API, without the device.
///
/// - SeeAlso: <https://dev.mi.com/distribute/doc/details?pId=1163>
public struct XiaomiMessage: PushPayload {
  public static var platform: PushPlatform { .xiaomi }
  /// What the service counts: the data text.
  public let size: Int
  public var limit: Int { 4096 }
  /// A JSON object of the parameters' names.
  public let body: Data

  /// What the notification bar shows.
  public struct Notification: Hashable, Sendable {
    /// How it draws attention.
    public struct Effects: OptionSet, Hashable, Sendable {
      public let rawValue: Int
      public init(rawValue: Int) { self.rawValue = rawValue }
      public static let sound = Effects(rawValue: 1)
      public static let vibration = Effects(rawValue: 2)
      public static let lights = Effects(rawValue: 4)
    }

    /// What a tap does.
    public enum Action: Hashable, Sendable {
      case openApp
      /// An activity, as Android's `Intent.toURI()` writes it.
      case openActivity(String)
      case openPage(URL)
    }

    /// Fewer than 50 characters.
    public var title: String
    /// Fewer than 128 characters.
    public var description: String
    /// `nil` for all.
    public var effects: Effects?
    /// A newer one of the same id replaces it.
    public var id: Int?
    public var action: Action?
    /// The notification channel, where the app must name one.
    public var channelID: String?

    public init(
      title: String, description: String, effects: Effects? = nil, id: Int? = nil,
      action: Action? = nil, channelID: String? = nil
    ) {
      self.title = title
      self.description = description
      self.effects = effects
      self.id = id
      self.action = action
      self.channelID = channelID
    }

    func members() throws(PayloadError) -> [String: PayloadValue] {
      for (name, text, most) in [("title", title, 49), ("description", description, 127)] {
        try PayloadError.check(text, name)
        guard text.count <= most else {
          throw PayloadError(
            .outOfRange, name, "has \(text.count) characters; at most \(most) are allowed")
        }
      }
      try PayloadError.check(effects?.rawValue, in: 0...7, "notify_type")
      try PayloadError.check(id, in: 0...Int(Int32.max), "notify_id")
      try PayloadError.check(channelID, "extra.channel_id")
      var members: [String: PayloadValue] = [
        "title": .string(title), "description": .string(description), "pass_through": 0,
        "notify_type": .int(Int64(effects?.rawValue ?? -1)),
      ]
      members["notify_id"] = id.map { .int(Int64($0)) }
      members["extra.channel_id"] = channelID.map { .string($0) }
      switch action {
      case nil: break
      case .openApp: members["extra.notify_effect"] = "1"
      case .openActivity(let intent):
        try PayloadError.check(intent, "extra.intent_uri")
        members["extra.notify_effect"] = "2"
        members["extra.intent_uri"] = .string(intent)
      case .openPage(let url):
        members["extra.notify_effect"] = "3"
        members["extra.web_uri"] = .string(url.absoluteString)
      }
      return members
    }
  }

  /// What holds for either kind of message.
  public struct Delivery: Hashable, Sendable {
    /// How long it is kept for a device that is offline: more than 0, at most 10 days.
    public var ttl: Duration?
    /// Not before then; at most seven days ahead.
    public var sendTime: Date?
    /// Only the newest message of a key is kept.
    public var jobKey: String?
    /// Only that app gets it.
    public var packageName: String?

    public init(
      ttl: Duration? = nil, sendTime: Date? = nil, jobKey: String? = nil,
      packageName: String? = nil
    ) {
      self.ttl = ttl
      self.sendTime = sendTime
      self.jobKey = jobKey
      self.packageName = packageName
    }

    func add(to members: inout [String: PayloadValue]) throws(PayloadError) {
      if let ttl {
        guard ttl >= .milliseconds(1), ttl <= .seconds(10 * 86_400) else {
          throw PayloadError(.outOfRange, "time_to_live", "must be more than 0, at most 10 days")
        }
        let (seconds, attoseconds) = ttl.components
        members["time_to_live"] = .int(seconds * 1000 + attoseconds / 1_000_000_000_000_000)
      }
      if let sendTime {
        try PayloadError.check(sendTime.timeIntervalSince1970, in: 0...1e12, "time_to_send")
        members["time_to_send"] = .int(Int64(sendTime.timeIntervalSince1970 * 1000))
      }
      try PayloadError.check(jobKey, "extra.jobkey")
      try PayloadError.check(packageName, "restricted_package_name")
      members["extra.jobkey"] = jobKey.map { .string($0) }
      members["restricted_package_name"] = packageName.map { .string($0) }
    }
  }

  /// A message for the notification bar.
  ///
  /// - Parameter payload: Text for the app when it is opened; at most 4096 bytes.
  /// - Throws: ``PayloadError``.
  public init(
    _ notification: Notification, payload: String? = nil, delivery: Delivery = Delivery()
  ) throws(PayloadError) {
    try self.init(try notification.members(), payload: payload, delivery: delivery)
  }

  /// A message that only the app sees.
  ///
  /// - Parameter payload: At most 4096 bytes of text.
  /// - Throws: ``PayloadError``.
  public init(
    passThrough payload: String, delivery: Delivery = Delivery()
  ) throws(PayloadError) {
    try self.init(["pass_through": 1], payload: payload, delivery: delivery)
  }

  private init(
    _ members: [String: PayloadValue], payload: String?, delivery: Delivery
  ) throws(PayloadError) {
    var members = members
    try PayloadError.check(payload, "payload")
    try delivery.add(to: &members)
    members["payload"] = payload.map { .string($0) }
    size = payload?.utf8.count ?? 0
    try PayloadError.check(size: size, limit: 4096, of: "payload")
    body = Data(try PayloadValue.object(members).encoded(as: "message"))
  }
}
