public import Foundation
import Wire

extension APNsPayload {
  /// The type of a push, which also determines the tokens that it can be sent to.
  ///
  /// The raw value is the header `apns-push-type`.
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/usernotifications/sending-notification-requests-to-apns>
  public enum PushType: String, CaseIterable, Hashable, Sendable {
    /// Shows an alert, plays a sound or sets the badge.
    case alert
    /// Wakes the app without notifying the user.
    case background
    /// A call, through PushKit.
    case voip
    /// New data for a watch face, through PushKit.
    case complication
    /// A change in the domain of a file provider, through PushKit.
    case fileprovider
    /// Starts, updates or ends a Live Activity.
    case liveactivity
    /// Asks a location push service extension for the device's location.
    case location
    /// An event in a Push to Talk channel.
    case pushtotalk
    /// New content for a control.
    case controls
    /// New content for a widget.
    case widgets
    /// Tells a managed device to contact its server.
    case mdm

    /// The suffix that the topic adds to the bundle id.
    public var topicSuffix: String {
      switch self {
      case .alert, .background, .mdm: ""
      case .voip: ".voip"
      case .complication: ".complication"
      case .fileprovider: ".pushkit.fileprovider"
      case .liveactivity: ".push-type.liveactivity"
      case .location: ".location-query"
      case .pushtotalk: ".voip-ptt"
      case .controls: ".push-type.controls"
      case .widgets: ".push-type.widgets"
      }
    }

    /// The type that the suffix of a topic denotes; `nil` for a plain bundle id.
    package init?(topic: String) {
      let match = Self.allCases.first {
        !$0.topicSuffix.isEmpty && topic.hasSuffix($0.topicSuffix)
      }
      guard let match else { return nil }
      self = match
    }

    /// The maximum payload, in bytes.
    public var payloadLimit: Int { self == .voip ? 5120 : 4096 }
  }

  /// The delivery priority.
  public enum Priority: Int, CaseIterable, Hashable, Sendable {
    /// Immediate delivery. Not allowed for a background push.
    case immediate = 10
    /// Delivery that considers the battery.
    case powerAware = 5
    /// Delivery that never wakes the device.
    case low = 1
  }

  /// The time for which APNs retries.
  public enum Expiration: Hashable, Sendable {
    /// A single attempt.
    case once
    /// Until the given time, which is not before 1970.
    case at(Date)

    /// The header `apns-expiration` in Unix seconds.
    var text: String {
      switch self {
      case .once: "0"
      case .at(let date): String(Int64(min(max(date.timeIntervalSince1970, 1), 1e12)))
      }
    }
  }

  /// Delivery options; the hub derives or omits those that are `nil`.
  public struct Delivery: Hashable, Sendable {
    /// The priority; `nil` means 10, or 5 for a background push.
    public var priority: Priority?
    /// The expiration; `nil` leaves it to APNs, except that a Push to Talk push is tried once.
    public var expiration: Expiration?
    /// An id with which a newer push replaces an older one; 1 to 64 bytes of ASCII.
    public var collapseID: String?
    /// The app's bundle id, if it is not that of the hub's credential. The suffix for the push type
    /// is added.
    public var bundleID: String?

    /// Creates delivery options.
    public init(
      priority: Priority? = nil, expiration: Expiration? = nil, collapseID: String? = nil,
      bundleID: String? = nil
    ) {
      self.priority = priority
      self.expiration = expiration
      self.collapseID = collapseID
      self.bundleID = bundleID
    }

    func headers(of type: PushType) throws(PayloadError) -> [String: String] {
      try PayloadError.check(header: collapseID, upTo: 64, "apns-collapse-id")
      if let bundleID { try Self.check(bundleID: bundleID, type) }
      if type == .background, priority == .immediate {
        throw PayloadError(
          .conflicting, "apns-priority", "of a background push must be 5 or 1, not 10")
      }
      var headers = ["apns-push-type": type.rawValue]
      headers["apns-priority"] = priority.map { String($0.rawValue) }
      headers["apns-expiration"] = expiration?.text
      headers["apns-collapse-id"] = collapseID
      headers["apns-topic"] = bundleID.map { $0 + type.topicSuffix }
      return headers
    }

    private static func check(bundleID: String, _ type: PushType) throws(PayloadError) {
      let isTopic = bundleID.utf8.allSatisfy { $0.isBase64URL || $0 == UInt8(ascii: ".") }
      guard isTopic, !bundleID.isEmpty, bundleID.utf8.count + type.topicSuffix.utf8.count <= 255
      else {
        throw PayloadError(
          .malformed, "apns-topic", "takes a bundle id: letters, digits, '.', '-' and '_'")
      }
      guard type.topicSuffix.isEmpty || !bundleID.hasSuffix(type.topicSuffix) else {
        throw PayloadError(
          .malformed, "apns-topic",
          "gets its suffix '\(type.topicSuffix)' from the kind of push; give the bundle id alone")
      }
    }
  }
}
