/// Why APNs refuses a request, spelled as on the wire (apns.md, sections 4 and 8). `BadRequest`
/// stands for what Apple has no word for: a body of a new channel that cannot be read.
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
