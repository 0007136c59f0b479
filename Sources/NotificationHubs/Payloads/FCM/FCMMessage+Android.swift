public import Foundation
import Wire

extension FCMMessage {
  /// What Android devices get.
  ///
  /// - SeeAlso:
  ///   <https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages#androidconfig>
  public struct Android: Hashable, Sendable {
    public enum Priority: String, CaseIterable, Hashable, Sendable {
      case normal = "NORMAL"
      /// At once, also from sleep; meant for what the user sees.
      case high = "HIGH"
    }

    /// `nil`: high with a notification, normal without.
    public var priority: Priority?
    /// How long it is kept for a device that is offline: 0 to 28 days; `nil` for 28 days, 0 for now
    /// or never.
    public var ttl: Duration?
    /// The newest of a key replaces the others; at most four keys wait for a device.
    public var collapseKey: String?
    /// Only that app gets it.
    public var restrictedPackageName: String?
    /// Before the device was unlocked for the first time as well.
    public var directBoot: Bool?
    /// Takes the place of the message's `data`.
    public var data: [String: String]
    public var notification: AndroidNotification?

    public init(
      priority: Priority? = nil, ttl: Duration? = nil, collapseKey: String? = nil,
      restrictedPackageName: String? = nil, directBoot: Bool? = nil, data: [String: String] = [:],
      notification: AndroidNotification? = nil
    ) {
      self.priority = priority
      self.ttl = ttl
      self.collapseKey = collapseKey
      self.restrictedPackageName = restrictedPackageName
      self.directBoot = directBoot
      self.data = data
      self.notification = notification
    }

    func value() throws(PayloadError) -> PayloadValue {
      let path = "message.android"
      try FCMMessage.check(data, "\(path).data")
      try PayloadError.check(collapseKey, "\(path).collapse_key")
      try PayloadError.check(restrictedPackageName, "\(path).restricted_package_name")
      var members: [String: PayloadValue] = [:]
      members["priority"] = priority.map { .string($0.rawValue) }
      if let ttl { members["ttl"] = .string(try Self.text(of: ttl)) }
      members["collapse_key"] = collapseKey.map { .string($0) }
      members["restricted_package_name"] = restrictedPackageName.map { .string($0) }
      members["direct_boot_ok"] = directBoot.map { .bool($0) }
      if !data.isEmpty { members["data"] = .object(.init(data)) }
      if let notification { members["notification"] = try notification.value() }
      return .object(members)
    }

    /// Whole seconds, or with up to nine digits behind the point, and an `s`.
    private static func text(of ttl: Duration) throws(PayloadError) -> String {
      guard ttl >= .zero, ttl <= .seconds(28 * 86_400) else {
        throw PayloadError(.outOfRange, "message.android.ttl", "must be 0 to 28 days")
      }
      let (seconds, attoseconds) = ttl.components
      let nanoseconds = attoseconds / 1_000_000_000
      guard nanoseconds > 0 else { return "\(seconds)s" }
      let digits = String(nanoseconds)
      return "\(seconds)." + String(repeating: "0", count: 9 - digits.count) + digits + "s"
    }
  }

  /// How Android shows it.
  ///
  /// - SeeAlso:
  ///   <https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages#androidnotification>
  public struct AndroidNotification: Hashable, Sendable {
    /// A text as it is, or a string resource of the app with arguments.
    public enum Text: Hashable, Sendable, ExpressibleByStringInterpolation {
      case plain(String)
      case localized(key: String, arguments: [String] = [])

      public init(stringLiteral value: String) { self = .plain(value) }
      public init(_ text: String) { self = .plain(text) }
    }

    /// How much it asks for attention before Android 8; afterwards the channel decides.
    public enum Importance: String, CaseIterable, Hashable, Sendable {
      case min = "PRIORITY_MIN"
      case low = "PRIORITY_LOW"
      case standard = "PRIORITY_DEFAULT"
      case high = "PRIORITY_HIGH"
      case max = "PRIORITY_MAX"
    }

    /// What the lock screen shows of it.
    public enum Visibility: String, CaseIterable, Hashable, Sendable {
      case `private` = "PRIVATE"
      case `public` = "PUBLIC"
      case secret = "SECRET"
    }

    public var title: Text?
    public var body: Text?
    /// A drawable of the app.
    public var icon: String?
    /// `#rrggbb`.
    public var color: String?
    /// A sound of the app, or `default`.
    public var sound: String?
    /// A newer one of the same tag takes its place in the drawer.
    public var tag: String?
    /// The intent filter of the activity that a tap opens.
    public var clickAction: String?
    /// The notification channel (from Android 8).
    public var channelID: String?
    /// Of a picture; `https`.
    public var image: URL?
    public var importance: Importance?
    public var visibility: Visibility?
    /// The number at the app's icon, from 0.
    public var count: Int?
    /// Stays when it is tapped.
    public var isSticky: Bool?

    public init(
      title: Text? = nil, body: Text? = nil, icon: String? = nil, color: String? = nil,
      sound: String? = nil, tag: String? = nil, clickAction: String? = nil,
      channelID: String? = nil, image: URL? = nil, importance: Importance? = nil,
      visibility: Visibility? = nil, count: Int? = nil, isSticky: Bool? = nil
    ) {
      self.title = title
      self.body = body
      self.icon = icon
      self.color = color
      self.sound = sound
      self.tag = tag
      self.clickAction = clickAction
      self.channelID = channelID
      self.image = image
      self.importance = importance
      self.visibility = visibility
      self.count = count
      self.isSticky = isSticky
    }

    /// For texts computed at run time.
    @_disfavoredOverload  // Literals, and a mere `nil`, are `Text`.
    public init(
      title: String? = nil, body: String? = nil, icon: String? = nil, color: String? = nil,
      sound: String? = nil, tag: String? = nil, clickAction: String? = nil,
      channelID: String? = nil, image: URL? = nil, importance: Importance? = nil,
      visibility: Visibility? = nil, count: Int? = nil, isSticky: Bool? = nil
    ) {
      self.init(
        title: title.map { .plain($0) }, body: body.map { .plain($0) }, icon: icon, color: color,
        sound: sound, tag: tag, clickAction: clickAction, channelID: channelID, image: image,
        importance: importance, visibility: visibility, count: count, isSticky: isSticky)
    }

    func value() throws(PayloadError) -> PayloadValue {
      let path = "message.android.notification"
      var members: [String: PayloadValue] = [:]
      for (name, text) in [("title", title), ("body", body)] {
        switch text {
        case nil: break
        case .plain(let text)?: members[name] = .string(text)
        case .localized(let key, let arguments)?:
          try PayloadError.check(key, "\(path).\(name)_loc_key")
          members["\(name)_loc_key"] = .string(key)
          if !arguments.isEmpty {
            members["\(name)_loc_args"] = .array(arguments.map { .string($0) })
          }
        }
      }
      if let color, !Self.isColor(color) {
        throw PayloadError(.malformed, "\(path).color", "must be written #rrggbb")
      }
      try PayloadError.check(count, in: 0...Int(Int32.max), "\(path).notification_count")
      let texts = [
        ("icon", icon), ("color", color), ("sound", sound), ("tag", tag),
        ("click_action", clickAction), ("channel_id", channelID),
      ]
      for (name, text) in texts {
        try PayloadError.check(text, "\(path).\(name)")
        members[name] = text.map { .string($0) }
      }
      if let image { members["image"] = .string(try FCMMessage.https(image, "\(path).image")) }
      members["notification_priority"] = importance.map { .string($0.rawValue) }
      members["visibility"] = visibility.map { .string($0.rawValue) }
      members["notification_count"] = count.map { .int(Int64($0)) }
      members["sticky"] = isSticky.map { .bool($0) }
      return .object(members)
    }

    private static func isColor(_ text: String) -> Bool {
      text.utf8.count == 7 && text.utf8.first == UInt8(ascii: "#")
        && text.utf8.dropFirst().allSatisfy { Hex.value($0) != nil }
    }
  }
}
