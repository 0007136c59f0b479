public import Foundation

/// A message for Baidu Cloud Push.
///
/// - SeeAlso: <https://push.baidu.com/doc/restapi/msg_struct>
public struct BaiduMessage: PushPayload {
  public static var platform: PushPlatform { .baidu }
  public var limit: Int { 4096 }
  /// A JSON object.
  public let body: Data
  /// Says whether the app or the notification bar gets it.
  public let headers: [String: String]

  /// What Android shows.
  public struct Notification: Hashable, Sendable {
    /// What a tap does.
    public enum Action: Hashable, Sendable {
      case open(URL)
      /// An intent, as Android's `Intent.toURI()` writes it.
      case intent(String)
    }

    /// How it draws attention.
    public struct Style: OptionSet, Hashable, Sendable {
      public let rawValue: Int
      public init(rawValue: Int) { self.rawValue = rawValue }
      /// The user can wipe it away.
      public static let clearable = Style(rawValue: 1)
      public static let vibrates = Style(rawValue: 2)
      public static let sounds = Style(rawValue: 4)
    }

    /// `nil` for the app's name.
    public var title: String?
    public var description: String
    public var style: Style?
    /// One of the app's own layouts.
    public var builderID: Int?
    public var action: Action?
    /// For the app.
    public var custom: [String: PayloadValue]

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

  /// A message for the notification bar of Android.
  /// - Throws: ``PayloadError``.
  public init(_ notification: Notification) throws(PayloadError) {
    try self.init(try notification.value(), type: "1")
  }

  /// A message that only the app sees.
  ///
  /// - Parameter message: A JSON object in the app's own form.
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
