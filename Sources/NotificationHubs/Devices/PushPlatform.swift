import Wire

/// A push service.
///
/// The raw value is the value of an installation's `platform` member (docs/protocol/rest.md,
/// section 4.1).
public enum PushPlatform: String, CaseIterable, Hashable, Sendable, Codable {
  /// Apple Push Notification service.
  case apns
  /// Windows Push Notification Services.
  case wns
  /// Microsoft Push Notification Service (Windows Phone; retired).
  case mpns
  /// Google Cloud Messaging, the legacy HTTP protocol (retired).
  case gcm
  /// Firebase Cloud Messaging, HTTP v1.
  case fcmv1
  /// Amazon Device Messaging.
  case adm
  /// Baidu Cloud Push.
  case baidu
  /// Web Push.
  case browser
  /// Xiaomi Push.
  case xiaomi

  /// The platform for an installation's `platform` member, in any letter case; `nil` if it is
  /// unknown.
  public init?(installationWord word: String) {
    self.init(rawValue: word.lowercased())
  }

  /// The value of the header `ServiceBusNotification-Format` for a native send
  /// (docs/protocol/rest.md, sections 3.1 and 5.1).
  public var sendFormat: String { traits.sendFormat ?? rawValue }

  /// The platform with this native send format, in any letter case; `nil` if it is unknown.
  public init?(sendFormat: String) {
    let word = sendFormat.lowercased()
    guard let match = Self.allCases.first(where: { $0.sendFormat == word }) else { return nil }
    self = match
  }

  /// The prefix of this platform's telemetry elements, as in `ApnsOutcomeCounts`
  /// (docs/protocol/rest.md, sections 3.1 and 5.8).
  public var telemetryPrefix: String { traits.prefix }

  /// The prefix of this platform's registration elements, as in `AppleRegistrationDescription`
  /// (docs/protocol/rest.md, section 3.1).
  public var registrationPrefix: String { traits.registrationPrefix ?? traits.prefix }
}

extension JSONValue {
  /// The member `platform`; `nil` if it is absent or newer than this build.
  var platform: PushPlatform? { text("platform").flatMap(PushPlatform.init(installationWord:)) }
}
