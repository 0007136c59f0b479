public import Foundation
import Wire

extension FCMMessage {
  /// Options and content for Android devices.
  ///
  /// - SeeAlso:
  ///   <https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages#androidconfig>
  public struct Android: Hashable, Sendable {
    /// The delivery priority.
    public enum Priority: String, CaseIterable, Hashable, Sendable {
      /// Delivery that may wait for a sleeping device.
      case normal = "NORMAL"
      /// Immediate delivery, even to a sleeping device; intended for content visible to the user.
      case high = "HIGH"
    }

    /// The priority; `nil` means high with a notification, normal without.
    public var priority: Priority?
    /// The time for which the message is stored for an offline device, 0 to 28 days; `nil` for 28
    /// days, 0 for immediate delivery only.
    public var ttl: Duration?
    /// A key of which the newest message replaces the others; at most four keys are stored per
    /// device.
    public var collapseKey: String?
    /// The package name of the only app to receive the message.
    public var restrictedPackageName: String?
    /// Whether the app may receive the message before the device is first unlocked.
    public var directBoot: Bool?
    /// Data for the app, which replaces the message's `data`.
    public var data: [String: String]
    /// The notification to show on Android.
    public var notification: AndroidNotification?

    /// Creates options for Android.
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

    /// The duration in seconds, with nine decimals if it is not whole, followed by `s`.
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

  /// The appearance of a notification on Android.
  ///
  /// - SeeAlso:
  ///   <https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages#androidnotification>
  public struct AndroidNotification: Hashable, Sendable {
    /// A plain text, or a string resource of the app with arguments.
    public enum Text: Hashable, Sendable, ExpressibleByStringInterpolation {
      /// A plain text.
      case plain(String)
      /// The name of a string resource and the arguments for its placeholders.
      case localized(key: String, arguments: [String] = [])

      /// Creates a plain text from a literal.
      public init(stringLiteral value: String) { self = .plain(value) }
      /// Creates a plain text.
      public init(_ text: String) { self = .plain(text) }
    }

    /// The importance before Android 8; later the channel decides.
    public enum Importance: String, CaseIterable, Hashable, Sendable {
      /// The lowest importance.
      case min = "PRIORITY_MIN"
      /// A low importance.
      case low = "PRIORITY_LOW"
      /// The default importance.
      case standard = "PRIORITY_DEFAULT"
      /// A high importance.
      case high = "PRIORITY_HIGH"
      /// The highest importance.
      case max = "PRIORITY_MAX"
    }

    /// The visibility on the lock screen.
    public enum Visibility: String, CaseIterable, Hashable, Sendable {
      /// Shown with its sensitive content hidden.
      case `private` = "PRIVATE"
      /// Shown in full.
      case `public` = "PUBLIC"
      /// Not shown.
      case secret = "SECRET"
    }

    /// The title.
    public var title: Text?
    /// The text.
    public var body: Text?
    /// The name of a drawable of the app.
    public var icon: String?
    /// The color as `#rrggbb`.
    public var color: String?
    /// The name of a sound of the app, or `default`.
    public var sound: String?
    /// A tag with which a newer notification replaces an older one in the drawer.
    public var tag: String?
    /// The intent filter of the activity to start on a tap.
    public var clickAction: String?
    /// The id of the notification channel (Android 8 and later).
    public var channelID: String?
    /// The URL of a picture; `https`.
    public var image: URL?
    /// The importance before Android 8.
    public var importance: Importance?
    /// The visibility on the lock screen.
    public var visibility: Visibility?
    /// The number at the app's icon, 0 or more.
    public var count: Int?
    /// Whether the notification stays when it is tapped.
    public var isSticky: Bool?

    /// Creates a notification.
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

    /// Creates a notification from texts computed at run time.
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
        && text.utf8.dropFirst().isHex
    }
  }
}
