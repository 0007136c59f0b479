public import Foundation
import Wire

extension APNsPayload {
  /// What kind of push it is, and with it which tokens of an app it is for.
  ///
  /// The raw value is the header `apns-push-type`.
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/usernotifications/sending-notification-requests-to-apns>
  public enum PushType: String, CaseIterable, Hashable, Sendable {
    /// Shows something, plays a sound or sets the badge.
    case alert
    /// Wakes the app without a word to the user.
    case background
    /// A call, through PushKit.
    case voip
    /// New data for a watch face, through PushKit.
    case complication
    /// A change in a file provider's domain, through PushKit.
    case fileprovider
    /// Starts, updates or ends a Live Activity.
    case liveactivity
    /// Asks a location push service extension where the device is.
    case location
    /// Something happens in a Push to Talk channel.
    case pushtotalk
    /// A control has new content.
    case controls
    /// A widget has new content.
    case widgets
    /// Tells a managed device to contact its server.
    case mdm

    /// What the topic has behind the bundle id.
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

    /// The kind that a topic's suffix tells; `nil` for a plain bundle id.
    package init?(topic: String) {
      let match = Self.allCases.first {
        !$0.topicSuffix.isEmpty && topic.hasSuffix($0.topicSuffix)
      }
      guard let match else { return nil }
      self = match
    }

    /// The largest payload, in bytes.
    public var payloadLimit: Int { self == .voip ? 5120 : 4096 }
  }

  /// How much APNs hurries.
  public enum Priority: Int, CaseIterable, Hashable, Sendable {
    /// At once. Not for a background push.
    case immediate = 10
    /// When it suits the battery.
    case powerAware = 5
    /// Never waking the device.
    case low = 1
  }

  /// How long APNs tries.
  public enum Expiration: Hashable, Sendable {
    /// Once, now.
    case once
    /// Until then; not before 1970.
    case at(Date)

    /// The header `apns-expiration`: Unix seconds.
    var text: String {
      switch self {
      case .once: "0"
      case .at(let date): String(Int64(min(max(date.timeIntervalSince1970, 1), 1e12)))
      }
    }
  }

  /// What APNs is told beside the payload; what is `nil` the hub derives or leaves out.
  public struct Delivery: Hashable, Sendable {
    /// `nil`: 10, or 5 for a background push.
    public var priority: Priority?
    /// `nil`: APNs decides; a Push to Talk push is tried once.
    public var expiration: Expiration?
    /// A newer push of the same id replaces an older one; 1 to 64 bytes of ASCII.
    public var collapseID: String?
    /// The app's bundle id, where it is not that of the hub's credential. The suffix that the kind
    /// of push asks for is added.
    public var bundleID: String?

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
