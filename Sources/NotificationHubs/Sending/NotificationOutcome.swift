/// What became of a notification for one target (docs/protocol/push-services/README.md, section 1).
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
  /// Hub and push service do not agree on the protocol.
  case pnsInterfaceError = 3
  /// The handle is not known to, or not valid for, the push service.
  case badChannel = 4
  /// The handle was valid and has ended.
  case expiredChannel = 5
  /// The push service answered with its own fault.
  case pnsServerError = 6
  /// The push service says it cannot serve now.
  case pnsUnavailable = 7
  /// The push service limits this sender.
  case throttled = 8
  /// The token service answered something not understood.
  case tokenProviderInterfaceError = 9
  /// No connection to the token service, or no reply from it.
  case tokenProviderUnreachable = 10
  /// The access token was refused as invalid or expired.
  case invalidToken = 11
  /// The access token is valid but for another app.
  case wrongToken = 12
  /// The message has a wrong form for the push service.
  case invalidNotificationFormat = 13
  /// The message is too large.
  case invalidNotificationSize = 14
  /// The push service limits this one handle.
  case channelThrottled = 15
  /// The device is offline and the message was not kept.
  case channelDisconnected = 16
  /// The push service took the request but threw the message away.
  case dropped = 17
  /// The handle belongs to another app.
  case wrongChannel = 18
  /// The push service gave a replacement handle.
  case refreshToken = 19
  /// Its sender called the notification off before this device's turn. Belfry only.
  case aborted = 95
  /// The hub gave up after its processing window.
  case abandonedNotificationMessages = 96
  /// Nothing matched the tag expression.
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

  /// The outcome as telemetry shows it: names that only feedback knows are folded into their
  /// nearest relative (docs/protocol/push-services/README.md, section 1).
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

  /// The outcome as Belfry's own documents show it: as in telemetry, but that of an aborted
  /// notification has its own name.
  package var inExtendedTelemetry: NotificationOutcome { self == .aborted ? self : inTelemetry }

  /// Of counts by name, those of devices that were left out on purpose.
  package static func unsent(in counts: [String: Int]) -> Int {
    [skipped, aborted].reduce(0) { $0 + (counts[$1.name] ?? 0) }
  }
}
