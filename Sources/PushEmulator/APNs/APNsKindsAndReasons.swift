/// The environment in which a device token, or a key, is valid.
package enum APNsEnvironment: String, CaseIterable, Sendable, Codable {
  case production, sandbox
}

extension EmulatorListener {
  package static let apnsProduction = Self(.apns, "production", port: 9443)
  package static let apnsSandbox = Self(.apns, "sandbox", port: 9444)
  /// The address that manages broadcast channels.
  package static let apnsChannelsProduction = Self(.apns, "channelsProduction", port: 9446)
  package static let apnsChannelsSandbox = Self(.apns, "channelsSandbox", port: 9445)
}

/// The environments a key or an app may use.
enum APNsEnvironmentScope: String, CaseIterable, Sendable, Codable {
  case production, sandbox, both

  func allows(_ environment: APNsEnvironment) -> Bool {
    self == .both || rawValue == environment.rawValue
  }
}

/// Whether a key signs for all apps of its team, or for listed topics only.
enum APNsKeyScope: String, CaseIterable, Sendable, Codable {
  case team, topic
}

/// The purpose of a device token; each kind of an app has tokens of its own
/// (docs/protocol/emulator.md, section 2.2).
enum APNsKind: String, CaseIterable, Sendable, Codable {
  /// Also used for background pushes.
  case alert
  case voip, complication, pushtotalk, fileprovider, liveactivity, location, controls, widgets

  /// The topic's suffix after the bundle id (docs/protocol/push-services/apns.md, section 3).
  var topicSuffix: String {
    switch self {
    case .alert: ""
    case .voip: ".voip"
    case .complication: ".complication"
    case .pushtotalk: ".voip-ptt"
    case .fileprovider: ".pushkit.fileprovider"
    case .liveactivity: ".push-type.liveactivity"
    case .location: ".location-query"
    case .controls: ".push-type.controls"
    case .widgets: ".push-type.widgets"
    }
  }

  /// Maximum payload in bytes; more is refused.
  var payloadLimit: Int { self == .voip ? 5120 : 4096 }
}

/// The values of `apns-push-type` (docs/protocol/push-services/apns.md, section 3).
enum APNsPushType: String, CaseIterable, Sendable {
  case alert, background, voip, complication, fileprovider, liveactivity, location, pushtotalk
  case controls, widgets, mdm

  /// The kind of token that it is sent to.
  var kind: APNsKind { APNsKind(rawValue: rawValue) ?? .alert }

  init?(_ bytes: ArraySlice<UInt8>) {
    guard bytes.count <= 12 else { return nil }
    self.init(rawValue: String(decoding: bytes, as: UTF8.self))
  }
}

/// The reasons for which APNs refuses a request, spelled as on the wire
/// (docs/protocol/push-services/apns.md, sections 4 and 8). `BadRequest` is used where Apple
/// documents no reason: for a body of a new channel that cannot be read.
enum APNsReason: String, CaseIterable, Sendable {
  case badChannelID = "BadChannelId"
  case badCollapseID = "BadCollapseId"
  case badDeviceToken = "BadDeviceToken"
  case badExpirationDate = "BadExpirationDate"
  case badMessageID = "BadMessageId"
  case badPriority = "BadPriority"
  case badRequest = "BadRequest"
  case badTopic = "BadTopic"
  case cannotCreateChannelConfig = "CannotCreateChannelConfig"
  case channelNotRegistered = "ChannelNotRegistered"
  case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
  case duplicateHeaders = "DuplicateHeaders"
  case featureNotEnabled = "FeatureNotEnabled"
  case idleTimeout = "IdleTimeout"
  case invalidPushType = "InvalidPushType"
  case missingChannelID = "MissingChannelId"
  case missingDeviceToken = "MissingDeviceToken"
  case missingPushType = "MissingPushType"
  case missingTopic = "MissingTopic"
  case payloadEmpty = "PayloadEmpty"
  case topicDisallowed = "TopicDisallowed"
  case topicMismatch = "TopicMismatch"
  case badCertificate = "BadCertificate"
  case badCertificateEnvironment = "BadCertificateEnvironment"
  case badEnvironmentKeyID = "BadEnvironmentKeyIdInToken"
  case expiredProviderToken = "ExpiredProviderToken"
  case forbidden = "Forbidden"
  case invalidProviderToken = "InvalidProviderToken"
  case missingProviderToken = "MissingProviderToken"
  case unrelatedKeyID = "UnrelatedKeyIdInToken"
  case badPath = "BadPath"
  case methodNotAllowed = "MethodNotAllowed"
  case expiredToken = "ExpiredToken"
  case unregistered = "Unregistered"
  case payloadTooLarge = "PayloadTooLarge"
  case tooManyProviderTokenUpdates = "TooManyProviderTokenUpdates"
  case tooManyRequests = "TooManyRequests"
  case internalServerError = "InternalServerError"
  case serviceUnavailable = "ServiceUnavailable"
  case shutdown = "Shutdown"

  /// The HTTP status the reason comes with.
  var status: Int {
    switch self {
    case .badChannelID, .badCollapseID, .badDeviceToken, .badExpirationDate, .badMessageID,
      .badPriority, .badRequest, .badTopic, .cannotCreateChannelConfig, .channelNotRegistered,
      .deviceTokenNotForTopic, .duplicateHeaders, .featureNotEnabled, .idleTimeout,
      .invalidPushType, .missingChannelID, .missingDeviceToken, .missingPushType, .missingTopic,
      .payloadEmpty, .topicDisallowed, .topicMismatch:
      400
    case .badCertificate, .badCertificateEnvironment, .badEnvironmentKeyID, .expiredProviderToken,
      .forbidden, .invalidProviderToken, .missingProviderToken, .unrelatedKeyID:
      403
    case .badPath: 404
    case .methodNotAllowed: 405
    case .expiredToken, .unregistered: 410
    case .payloadTooLarge: 413
    case .tooManyProviderTokenUpdates, .tooManyRequests: 429
    case .internalServerError: 500
    case .serviceUnavailable, .shutdown: 503
    }
  }

  /// The reason APNs gives most often with a status; `nil` for a status it does not use.
  static func usual(for status: Int) -> APNsReason? {
    switch status {
    case 400: .badDeviceToken
    case 403: .forbidden
    case 404: .badPath
    case 405: .methodNotAllowed
    case 410: .unregistered
    case 413: .payloadTooLarge
    case 429: .tooManyRequests
    case 500: .internalServerError
    case 503: .serviceUnavailable
    default: nil
    }
  }
}

/// The strictness of the APNs stand-in, and the behaviours of the real service that it imitates
/// (docs/protocol/emulator.md, sections 3 and 4).
package struct APNsOptions: Sendable {
  /// Concurrent streams after the first accepted token, and with a certificate.
  package var maxStreams = 1000
  /// Minimum time between two changes of a connection's provider token, in seconds.
  package var tokenUpdateInterval: Int64 = 20 * 60
  /// Whether a topic must have the suffix that its push type requires.
  package var strictSuffix = true
  /// Whether `apns-push-type` is required.
  package var requirePushType = false
  /// Whether a payload that is not a JSON object is refused; otherwise it is accepted and
  /// discarded.
  package var rejectBadJSON = false
  /// Maximum number of waiting notifications per device.
  package var storedPerApp = 1
  /// Maximum time for which a device in low-power mode waits for a push of priority 5 or 1, in
  /// seconds.
  package var groupWindow: Int64 = 15 * 60
  /// Time for which a push without `apns-expiration` is stored, in seconds.
  package var defaultStorage: Int64 = 30 * 86_400
  /// Notifications per second and token; `nil` switches the limit off.
  package var perTokenRate: Double?
  /// Whether a connection with more than 50 BadDeviceToken replies in 10 s is slowed and closed.
  package var errorPenalty = false
  /// Maximum number of broadcast channels of one app in one environment.
  package var maxChannels = 10_000
  /// Time without requests after which a connection gets GOAWAY, in seconds.
  package var idleTimeout: Int64 = 3600

  package init() {}
}
