#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A device as its app sees it: one push channel, its tags and its templates
/// (docs/protocol/rest.md, section 4).
///
/// ```swift
/// let installation = Installation(
///   installationID: "7f0c…", platform: .apns, pushChannel: .apns(deviceToken),
///   tags: ["12345"],
///   templates: ["main": PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)])
/// ```
public struct Installation: Hashable, Sendable {
  /// Letters, digits and `-_@#.:=`; unique in the hub. A UUID kept by the app is usual.
  public var installationID: String
  /// The signed-in user, if any; reached by the tag `$UserId:{…}`.
  public var userID: String?
  public var platform: PushPlatform
  public var pushChannel: PushChannel
  /// Set by the hub when the push service has reported the channel dead; ignored on writing.
  public var pushChannelExpired: Bool
  /// When the hub forgets the installation; `nil` means as late as the hub allows.
  public var expirationTime: Date?
  /// At most 60.
  public var tags: [Tag]
  /// Values that templates can use beside those of the message.
  public var pushVariables: [String: String]
  /// By name. A template's name is also a tag of it.
  public var templates: [String: PushTemplate]
  /// Windows only, by tile id.
  public var secondaryTiles: [String: SecondaryTile]
  /// A Web Push subscription travels as an object, or as text that holds that object; it goes back
  /// in the form in which it came, because not every client reads both (docs/protocol/rest.md,
  /// section 4.1).
  package var writesSubscriptionAsText = false

  public init(
    installationID: String, userID: String? = nil, platform: PushPlatform,
    pushChannel: PushChannel, pushChannelExpired: Bool = false, expirationTime: Date? = nil,
    tags: [Tag] = [], pushVariables: [String: String] = [:],
    templates: [String: PushTemplate] = [:], secondaryTiles: [String: SecondaryTile] = [:]
  ) {
    self.installationID = installationID
    self.userID = userID
    self.platform = platform
    self.pushChannel = pushChannel
    self.pushChannelExpired = pushChannelExpired
    self.expirationTime = expirationTime
    self.tags = tags
    self.pushVariables = pushVariables
    self.templates = templates
    self.secondaryTiles = secondaryTiles
  }
}

/// A text with expressions such as `$(message)` that the hub fills for each device
/// (docs/protocol/templates.md).
public struct PushTemplate: Hashable, Sendable {
  /// The document as text: JSON, or XML on Windows.
  public var body: String
  /// Header values, expressions allowed: `apns-…` on Apple, `X-WNS-…` on Windows.
  public var headers: [String: String]
  /// A date, or an expression; kept as given.
  public var expiry: String?
  public var tags: [Tag]

  public init(
    body: String, headers: [String: String] = [:], expiry: String? = nil, tags: [Tag] = []
  ) {
    self.body = body
    self.headers = headers
    self.expiry = expiry
    self.tags = tags
  }
}

/// A second live tile of a Windows app, with a channel of its own.
public struct SecondaryTile: Hashable, Sendable {
  public var pushChannel: String
  public var pushChannelExpired: Bool
  public var tags: [Tag]
  public var templates: [String: PushTemplate]

  public init(
    pushChannel: String, pushChannelExpired: Bool = false, tags: [Tag] = [],
    templates: [String: PushTemplate] = [:]
  ) {
    self.pushChannel = pushChannel
    self.pushChannelExpired = pushChannelExpired
    self.tags = tags
    self.templates = templates
  }
}
