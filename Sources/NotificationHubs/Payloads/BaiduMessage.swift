public import Foundation

/// A message for Baidu Cloud Push.
///
/// - SeeAlso: <https://push.baidu.com/doc/restapi/msg_struct>
public struct BaiduMessage: PushPayload {
  /// Baidu Cloud Push.
  public static var platform: PushPlatform { .baidu }
  /// 4096 bytes.
  public var limit: Int { 4096 }
  /// A JSON object.
  public let body: Data
  /// Headers that direct the message to the app or to the notification bar.
  public let headers: [String: String]

  /// The notification that Android shows.
  public struct Notification: Hashable, Sendable {
    /// The action when the notification is tapped.
    public enum Action: Hashable, Sendable {
      /// Opens a URL.
      case open(URL)
      /// Starts an intent, in the format of Android's `Intent.toURI()`.
      case intent(String)
    }

    /// The ways in which a notification attracts attention.
    public struct Style: OptionSet, Hashable, Sendable {
      /// The sum of the flags.
      public let rawValue: Int
      /// Creates a style from the sum of its flags.
      public init(rawValue: Int) { self.rawValue = rawValue }
      /// The user can dismiss the notification.
      public static let clearable = Style(rawValue: 1)
      /// The device vibrates.
      public static let vibrates = Style(rawValue: 2)
      /// The device plays a sound.
      public static let sounds = Style(rawValue: 4)
    }

    /// The title; `nil` for the app's name.
    public var title: String?
    /// The text of the notification.
    public var description: String
    /// The ways in which it attracts attention.
    public var style: Style?
    /// The number of one of the app's own layouts.
    public var builderID: Int?
    /// The action on a tap.
    public var action: Action?
    /// Data for the app.
    public var custom: [String: PayloadValue]

    /// Creates a notification.
    public init(
      title: String? = nil, description: String, style: Style? = nil, builderID: Int? = nil,
      action: Action? = nil, custom: [String: PayloadValue] = [:]
    ) {
      self.title = title
      self.description = description
      self.style = style
      self.builderID = builderID
      self.action = action
      self.custom = custom
    }

    func value() throws(PayloadError) -> PayloadValue {
      try PayloadError.check(title, "title")
      try PayloadError.check(description, "description")
      try PayloadError.check(style?.rawValue, in: 0...7, "notification_basic_style")
      try PayloadError.check(builderID, in: 0...Int(Int32.max), "notification_builder_id")
      var members: [String: PayloadValue] = ["description": .string(description)]
      members["title"] = title.map { .string($0) }
      members["notification_basic_style"] = style.map { .int(Int64($0.rawValue)) }
      members["notification_builder_id"] = builderID.map { .int(Int64($0)) }
      switch action {
      case nil: break
      case .open(let url):
        members["open_type"] = 1
        members["url"] = .string(url.absoluteString)
      case .intent(let text):
        try PayloadError.check(text, "pkg_content")
        members["open_type"] = 2
        members["pkg_content"] = .string(text)
      }
      if !custom.isEmpty { members["custom_content"] = .object(custom) }
      return .object(members)
    }
  }

  /// Creates a message for the notification bar of Android.
  /// - Throws: ``PayloadError``.
  public init(_ notification: Notification) throws(PayloadError) {
    try self.init(try notification.value(), type: "1")
  }

  /// Creates a message that only the app receives.
  ///
  /// - Parameter message: A JSON object in the app's own format.
  /// - Throws: ``PayloadError``.
  public init(transparent message: [String: PayloadValue]) throws(PayloadError) {
    guard !message.isEmpty else { throw PayloadError(.missing, "message", "is empty") }
    try self.init(.object(message), type: "0")
  }

  private init(_ value: PayloadValue, type: String) throws(PayloadError) {
    let bytes = try value.encoded(as: "message")
    try PayloadError.check(size: bytes.count, limit: 4096, of: "message")
    body = Data(bytes)
    headers = [WireName.baiduMessageType: type]
  }
}
