public import Foundation

/// A message for Xiaomi Push: the parameters of its API, without the device.
///
/// - SeeAlso: <https://dev.mi.com/distribute/doc/details?pId=1163>
public struct XiaomiMessage: PushPayload {
  /// Xiaomi Push.
  public static var platform: PushPlatform { .xiaomi }
  /// The size of the payload text in bytes, which is what the service counts.
  public let size: Int
  /// 4096 bytes.
  public var limit: Int { 4096 }
  /// A JSON object with the parameters by name.
  public let body: Data

  /// The notification in the notification bar.
  public struct Notification: Hashable, Sendable {
    /// The ways in which a notification attracts attention.
    public struct Effects: OptionSet, Hashable, Sendable {
      /// The sum of the flags.
      public let rawValue: Int
      /// Creates effects from the sum of their flags.
      public init(rawValue: Int) { self.rawValue = rawValue }
      /// The device plays a sound.
      public static let sound = Effects(rawValue: 1)
      /// The device vibrates.
      public static let vibration = Effects(rawValue: 2)
      /// The device flashes its light.
      public static let lights = Effects(rawValue: 4)
    }

    /// The action when the notification is tapped.
    public enum Action: Hashable, Sendable {
      /// Opens the app.
      case openApp
      /// Starts an activity, in the format of Android's `Intent.toURI()`.
      case openActivity(String)
      /// Opens a web page.
      case openPage(URL)
    }

    /// The title, fewer than 50 characters.
    public var title: String
    /// The text, fewer than 128 characters.
    public var description: String
    /// The ways in which it attracts attention; `nil` for all.
    public var effects: Effects?
    /// An id with which a newer notification replaces an older one.
    public var id: Int?
    /// The action on a tap.
    public var action: Action?
    /// The id of the notification channel, if the app must name one.
    public var channelID: String?

    /// Creates a notification.
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

  /// Delivery options for either kind of message.
  public struct Delivery: Hashable, Sendable {
    /// The time for which the message is stored for an offline device: more than 0, at most 10
    /// days.
    public var ttl: Duration?
    /// The earliest time of delivery, at most seven days ahead.
    public var sendTime: Date?
    /// A key of which only the newest message is stored.
    public var jobKey: String?
    /// The package name of the only app to receive the message.
    public var packageName: String?

    /// Creates delivery options; `nil` leaves a value to the service.
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

  /// Creates a message for the notification bar.
  ///
  /// - Parameter payload: Text for the app when it is opened; at most 4096 bytes.
  /// - Throws: ``PayloadError``.
  public init(
    _ notification: Notification, payload: String? = nil, delivery: Delivery = Delivery()
  ) throws(PayloadError) {
    try self.init(try notification.members(), payload: payload, delivery: delivery)
  }

  /// Creates a message that only the app receives.
  ///
  /// - Parameter payload: Text of at most 4096 bytes.
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
