#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A device from the view of its app: one push channel with its tags and templates
/// (docs/protocol/rest.md, section 4).
///
/// ```swift
/// let installation = Installation(
///   installationID: "7f0c…", platform: .apns, pushChannel: .apns(deviceToken),
///   tags: ["12345"],
///   templates: ["main": PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)])
/// ```
public struct Installation: Hashable, Sendable {
  /// The id, unique in the hub, of letters, digits and `-_@#.:=`. Usually a UUID that the app
  /// stores.
  public var installationID: String
  /// The signed-in user, if any; addressed by the tag `$UserId:{…}`.
  public var userID: String?
  /// The push service of the device.
  public var platform: PushPlatform
  /// The address of the device at its push service.
  public var pushChannel: PushChannel
  /// Whether the push service has reported the channel dead. Set by the hub; ignored on writing.
  public var pushChannelExpired: Bool
  /// The time at which the hub deletes the installation; `nil` for the latest that the hub allows.
  public var expirationTime: Date?
  /// The tags, at most 60.
  public var tags: [Tag]
  /// Values for templates, in addition to those of the message.
  public var pushVariables: [String: String]
  /// The templates by name. A template's name is also one of its tags.
  public var templates: [String: PushTemplate]
  /// The secondary tiles by id; Windows only.
  public var secondaryTiles: [String: SecondaryTile]
  /// Whether a Web Push subscription is encoded as a text that holds the JSON object instead of as
  /// an object. Hubs return the form that they received, because not every client reads both
  /// (docs/protocol/rest.md, section 4.1).
  package var writesSubscriptionAsText = false

  /// Creates an installation; ``validated()`` checks it.
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

/// A payload with expressions such as `$(message)` that the hub evaluates for each device
/// (docs/protocol/templates.md).
public struct PushTemplate: Hashable, Sendable {
  /// The payload as text: JSON, or XML on Windows.
  public var body: String
  /// Header values, which may contain expressions: `apns-…` on Apple, `X-WNS-…` on Windows.
  public var headers: [String: String]
  /// The expiry, a date or an expression; stored as given.
  public var expiry: String?
  /// The tags of the template, which add to those of its installation.
  public var tags: [Tag]

  /// Creates a template.
  public init(
    body: String, headers: [String: String] = [:], expiry: String? = nil, tags: [Tag] = []
  ) {
    self.body = body
    self.headers = headers
    self.expiry = expiry
    self.tags = tags
  }
}

/// An additional live tile of a Windows app, with its own channel.
public struct SecondaryTile: Hashable, Sendable {
  /// The channel URI of the tile.
  public var pushChannel: String
  /// Whether the push service has reported the channel dead. Set by the hub; ignored on writing.
  public var pushChannelExpired: Bool
  /// The tags of the tile.
  public var tags: [Tag]
  /// The templates of the tile by name.
  public var templates: [String: PushTemplate]

  /// Creates a secondary tile.
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
