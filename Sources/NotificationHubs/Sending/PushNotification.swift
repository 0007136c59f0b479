public import Foundation
import Wire

/// A notification to send: properties for the templates of the devices, or a payload for one push
/// service.
///
/// ```swift
/// let hello = PushNotification.template(["message": "Hello!"])
/// let alert = PushNotification.apple(#"{"aps":{"alert":"Hello!"}}"#, headers: .init(priority: 10))
/// ```
/// (The name `Notification` is taken by Foundation.)
public struct PushNotification: Hashable, Sendable {
  /// The kind of devices that a notification addresses.
  public enum Format: Hashable, Sendable {
    /// Template registrations on every platform; each template fills in the properties.
    case template
    /// Native registrations of one platform, with a payload in that platform's format.
    case native(PushPlatform)

    /// The value of the header `ServiceBusNotification-Format`.
    package var wireWord: String {
      switch self {
      case .template: WireName.templateFormat
      case .native(let platform): platform.sendFormat
      }
    }
  }

  /// The kind of devices that the notification addresses.
  public var format: Format
  /// The properties as a JSON object, or the payload; at most 64 KB.
  public var body: Data
  /// The media type of ``body``.
  public var contentType: String
  /// Headers for the push service, such as `apns-…` on Apple or `X-WNS-…` on Windows.
  public var headers: [String: String]

  /// Creates a notification; a content type of `nil` stands for the default of the format.
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

  /// A notification for templates, with the properties that they refer to, such as `$(message)`.
  ///
  /// - Parameter headers: Headers for the push services; a template's own headers take precedence.
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

  /// A payload for one platform, in that platform's format.
  public static func native(
    _ platform: PushPlatform, _ payload: String, headers: [String: String] = [:]
  ) -> PushNotification {
    PushNotification(format: .native(platform), body: Data(payload.utf8), headers: headers)
  }

  /// Headers for APNs; the hub derives or omits those that are `nil`.
  public struct AppleHeaders: Hashable, Sendable {
    /// The push type: `alert`, `background`, `voip`, `location` …; `nil` derives it from the
    /// payload.
    public var pushType: String?
    /// The priority: 10 for immediate delivery, 5 to consider the battery, 1 to never wake the
    /// device.
    public var priority: Int?
    /// The time at which APNs may give up.
    public var expiration: Date?
    /// The topic, if it is not the hub's bundle id.
    public var topic: String?
    /// An id with which a newer notification replaces an older one; at most 64 bytes.
    public var collapseID: String?

    /// Creates headers.
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

/// The reply of a hub to a send.
public struct SendReceipt: Hashable, Sendable {
  /// The id for ``NotificationHubClient/telemetry(of:)``. Belfry always returns one; Azure's lower
  /// tiers do not.
  public let notificationID: String?
  /// The URL of the notification.
  public let location: URL?
  /// The id of the request in the hub's logs.
  public let trackingID: String?

  init(reply: TransportReply) {
    location = reply.header(WireName.location).flatMap { URL(string: $0) }
    let id = location?.lastPathComponent
    notificationID = id == "" || id == "/" ? nil : id
    trackingID = reply.header(WireName.trackingID) ?? reply.header(WireName.correlationID)
  }
}
