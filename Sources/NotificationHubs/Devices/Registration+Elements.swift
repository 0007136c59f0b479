/// The names of the payload elements, which client and server share (spec `rest-api.md` 3.1).
enum RegistrationElement {
  static let native = "RegistrationDescription"
  static let template = "TemplateRegistrationDescription"

  static let etag = "ETag"
  static let expirationTime = "ExpirationTime"
  static let registrationID = "RegistrationId"
  static let tags = "Tags"
  static let pushVariables = "PushVariables"

  static let deviceToken = "DeviceToken"
  static let channelURI = "ChannelUri"
  static let secondaryTileName = "SecondaryTileName"
  static let baiduUserID = "BaiduUserId"
  static let baiduChannelID = "BaiduChannelId"
  static let endpoint = "Endpoint"
  static let p256dh = "P256DH"
  static let auth = "Auth"

  static let bodyTemplate = "BodyTemplate"
  static let expiry = "Expiry"
  static let templateName = "TemplateName"
  static let priority = "Priority"
  static let messageType = "MessageType"

  /// The payload elements by name.
  static let roots: [String: (platform: PushPlatform, isTemplate: Bool)] = Dictionary(
    uniqueKeysWithValues: PushPlatform.allCases.flatMap { platform in
      [
        (platform.registrationPrefix + native, (platform, false)),
        (platform.registrationPrefix + template, (platform, true)),
      ]
    })

  /// The element, or the pair or three of them, that hold the handle.
  static func handles(_ platform: PushPlatform) -> [String] {
    platform.traits.handleElements ?? ["\(platform.registrationPrefix)RegistrationId"]
  }

  /// The element of one template header, as in `WnsHeader`; its list has an `s` more.
  static func header(_ platform: PushPlatform) -> String? {
    platform.traits.hasTemplateHeaders ? "\(platform.telemetryPrefix)Header" : nil
  }
}
