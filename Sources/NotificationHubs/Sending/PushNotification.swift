public import Foundation
import Wire

/// What is sent: properties for the templates of the devices, or a payload for one push service.
///
/// ```swift
/// let hello = PushNotification.template(["message": "Hello!"])
/// let alert = PushNotification.apple(#"{"aps":{"alert":"Hello!"}}"#, headers: .init(priority: 10))
/// ```
/// (It is not called `Notification` because Foundation has a type of that name.)
public struct PushNotification: Hashable, Sendable {
  /// The devices that a notification addresses.
  public enum Format: Hashable, Sendable {
    /// Every template, on every platform; each fills in the properties.
    case template
    /// Devices of one platform, with a payload in that platform's own form.
    case native(PushPlatform)

    /// The word of the header `ServiceBusNotification-Format`.
    package var wireWord: String {
      switch self {
      case .template: WireName.templateFormat
      case .native(let platform): platform.sendFormat
      }
    }
  }

  public var format: Format
  /// At most 64 KB.
  public var body: Data
  public var contentType: String
  /// Headers for the push service: `apns-…` on Apple, `X-WNS-…` on Windows.
  public var headers: [String: String]

  public init(
    format: Format, body: Data, contentType: String? = nil, headers: [String: String] = [:]
  ) {
    self.format = format
    self.body = body
    self.contentType = contentType ?? Self.contentType(of: format)
    self.headers = headers
  }

  private static func contentType(of format: Format) -> String {
    if case .native(let platform) = format, platform.traits.form == .xml {
      return "application/xml"
    }
    return WireName.json
  }

  /// Properties that templates refer to, such as `$(message)`.
  ///
  /// - Parameter headers: For the push services; a template's own headers win.
  public static func template(
    _ properties: [String: String], headers: [String: String] = [:]
  ) -> PushNotification {
    var writer = JSONWriter()
    writer.map(properties)
    return PushNotification(format: .template, body: Data(writer.bytes), headers: headers)
  }

  /// An APNs payload: a JSON object with `aps`.
  public static func apple(
    _ payload: String, headers: AppleHeaders = AppleHeaders()
  ) -> PushNotification {
    native(.apns, payload, headers: headers.fields)
  }

  /// A payload for one platform, in that platform's own form.
  public static func native(
    _ platform: PushPlatform, _ payload: String, headers: [String: String] = [:]
  ) -> PushNotification {
    PushNotification(format: .native(platform), body: Data(payload.utf8), headers: headers)
  }

  /// What APNs is told beside the payload; what is `nil` the hub derives or leaves out.
  public struct AppleHeaders: Hashable, Sendable {
    /// `alert`, `background`, `voip`, `location` …; derived from the payload when `nil`.
    public var pushType: String?
    /// 10 at once, 5 with regard to the battery, 1 never waking the device.
    public var priority: Int?
    /// When APNs may give up.
    public var expiration: Date?
    /// Another bundle id than the hub's.
    public var topic: String?
    /// A newer notification of the same id replaces an older one; at most 64 bytes.
    public var collapseID: String?

    public init(
      pushType: String? = nil, priority: Int? = nil, expiration: Date? = nil,
      topic: String? = nil, collapseID: String? = nil
    ) {
      self.pushType = pushType
      self.priority = priority
      self.expiration = expiration
      self.topic = topic
      self.collapseID = collapseID
    }

    var fields: [String: String] {
      var fields: [String: String] = [:]
      fields["apns-push-type"] = pushType
      fields["apns-priority"] = priority.map(String.init)
      fields["apns-expiration"] = expiration.map {
        String(Int64(min(max($0.timeIntervalSince1970, 0), 1e12)))
      }
      fields["apns-topic"] = topic
      fields["apns-collapse-id"] = collapseID
      return fields
    }
  }
}

/// What a hub answers to a send.
public struct SendReceipt: Hashable, Sendable {
  /// For ``NotificationHubClient/telemetry(of:)``; Belfry always gives one, Azure's lower tiers give
  /// none.
  public let notificationID: String?
  /// The address of the notification.
  public let location: URL?
  /// What the hub's logs know the request by.
  public let trackingID: String?

  init(reply: TransportReply) {
    location = reply.header(WireName.location).flatMap { URL(string: $0) }
    let id = location?.lastPathComponent
    notificationID = id == "" || id == "/" ? nil : id
    trackingID = reply.header(WireName.trackingID) ?? reply.header(WireName.correlationID)
  }
}
