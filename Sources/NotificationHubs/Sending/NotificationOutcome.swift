/// The outcome of a notification for one target (docs/protocol/push-services/README.md, section 1).
///
/// The names are those of Azure Notification Hubs; the raw value is the number in its error
/// enumeration.
public enum NotificationOutcome: UInt8, CaseIterable, Hashable, Sendable, Codable {
  /// The push service accepted the message for this handle.
  case success = 0
  /// The push service or its token service does not accept the hub's credential.
  case invalidCredentials = 1
  /// No connection to the push service, or no reply from it.
  case pnsUnreachable = 2
  /// Hub and push service disagree on the protocol.
  case pnsInterfaceError = 3
  /// The push service does not know the handle, or considers it invalid.
  case badChannel = 4
  /// The handle was valid but has expired.
  case expiredChannel = 5
  /// The push service replied with a fault of its own.
  case pnsServerError = 6
  /// The push service is temporarily unavailable.
  case pnsUnavailable = 7
  /// The push service throttles this sender.
  case throttled = 8
  /// The reply of the token service could not be understood.
  case tokenProviderInterfaceError = 9
  /// No connection to the token service, or no reply from it.
  case tokenProviderUnreachable = 10
  /// The access token was rejected as invalid or expired.
  case invalidToken = 11
  /// The access token is valid but belongs to another app.
  case wrongToken = 12
  /// The push service rejects the format of the message.
  case invalidNotificationFormat = 13
  /// The message is too large.
  case invalidNotificationSize = 14
  /// The push service throttles this handle.
  case channelThrottled = 15
  /// The device is offline, and the message was not stored.
  case channelDisconnected = 16
  /// The push service accepted the request but discarded the message.
  case dropped = 17
  /// The handle belongs to another app.
  case wrongChannel = 18
  /// The push service issued a replacement handle.
  case refreshToken = 19
  /// The sender aborted the notification before this device's turn. Belfry only.
  case aborted = 95
  /// The hub gave up after its processing window.
  case abandonedNotificationMessages = 96
  /// No device matched the tag expression.
  case noTargets = 97
  /// A duplicate: another registration with the same handle already got the message.
  case skipped = 98
  /// Anything else.
  case unknownError = 99

  /// The wire name, as in telemetry and feedback documents: `PnsUnreachable`.
  public var name: String {
    let word = String(describing: self)
    return word.prefix(1).uppercased() + word.dropFirst()
  }

  /// The outcome with this wire name; `nil` for a name newer than this build.
  public init?(name: String) {
    guard let match = Self.byName[name] else { return nil }
    self = match
  }

  private static let byName = Dictionary(uniqueKeysWithValues: allCases.map { ($0.name, $0) })

  /// The outcome as telemetry shows it: outcomes that only exist in feedback are mapped to the
  /// closest one (docs/protocol/push-services/README.md, section 1).
  public var inTelemetry: NotificationOutcome {
    switch self {
    case .invalidToken: .invalidCredentials
    case .wrongChannel: .badChannel
    case .invalidNotificationFormat: .pnsInterfaceError
    case .tokenProviderInterfaceError: .pnsServerError
    case .tokenProviderUnreachable: .pnsUnreachable
    case .refreshToken: .success
    case .aborted: .abandonedNotificationMessages
    default: self
    }
  }

  /// The outcome as Belfry's own documents show it: as in telemetry, except that an aborted
  /// notification keeps its own name.
  package var inExtendedTelemetry: NotificationOutcome { self == .aborted ? self : inTelemetry }

  /// The number of devices that were deliberately left out, from counts by name.
  package static func unsent(in counts: [String: Int]) -> Int {
    [skipped, aborted].reduce(0) { $0 + (counts[$1.name] ?? 0) }
  }
}
