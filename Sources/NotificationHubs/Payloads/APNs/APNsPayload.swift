public import Foundation

/// A push for Apple devices: the payload with its headers.
///
/// ```swift
/// let tea = try APNsPayload(
///   .init(alert: .init(title: "Tea", body: "It is ready."), sound: .standard, threadID: "kitchen"),
///   custom: ["pot": 2], delivery: .init(collapseID: "tea"))
/// let refresh = try APNsPayload.background(custom: ["since": "2030-01-05"])
/// ```
/// - SeeAlso:
///   <https://developer.apple.com/documentation/usernotifications/generating-a-remote-notification>
public struct APNsPayload: PushPayload {
  /// Apple Push Notification service.
  public static var platform: PushPlatform { .apns }

  /// The type of the push.
  public let pushType: PushType
  /// A JSON object.
  public let body: Data
  /// The `apns-…` headers, including the push type.
  public let headers: [String: String]
  /// 4096 bytes; 5120 for a VoIP push and a broadcast.
  public let limit: Int

  /// Creates a push that the user notices.
  ///
  /// - Parameters:
  ///   - custom: Members beside `aps`, for the app.
  /// - Throws: ``PayloadError``.
  public init(
    _ content: Content, custom: [String: PayloadValue] = [:], delivery: Delivery = Delivery()
  ) throws(PayloadError) {
    try self.init(.alert, aps: try content.members(), custom: custom, delivery: delivery)
  }

  /// - Parameters:
  ///   - aps: `nil` for a payload without `aps`.
  ///   - limit: The limit in bytes, if it is not that of the push type.
  init(
    _ type: PushType, aps: [String: PayloadValue]?, custom: [String: PayloadValue],
    delivery: Delivery, limit: Int? = nil
  ) throws(PayloadError) {
    var members = custom
    guard members["aps"] == nil else {
      throw PayloadError(.reserved, "aps", "is made from the typed values; use another name")
    }
    members["aps"] = aps.map { .object($0) }
    let bytes = try PayloadValue.object(members).encoded(as: "payload")
    self.limit = limit ?? type.payloadLimit
    try PayloadError.check(size: bytes.count, limit: self.limit, of: "payload")
    pushType = type
    body = Data(bytes)
    headers = try delivery.headers(of: type)
  }
}

extension APNsPayload {
  /// Creates a push that wakes the app in the background; the system decides when and how often.
  ///
  /// - Parameter delivery: Delivery options; the priority cannot be 10.
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/usernotifications/pushing-background-updates-to-your-app>
  public static func background(
    custom: [String: PayloadValue] = [:], delivery: Delivery = Delivery()
  ) throws(PayloadError) -> APNsPayload {
    try APNsPayload(
      .background, aps: ["content-available": 1], custom: custom, delivery: delivery)
  }

  /// Creates a VoIP push, for PushKit tokens; up to 5120 bytes.
  ///
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/pushkit/responding-to-voip-notifications-from-pushkit>
  public static func voip(
    custom: [String: PayloadValue], delivery: Delivery = Delivery()
  ) throws(PayloadError) -> APNsPayload {
    try APNsPayload(.voip, aps: [:], custom: custom, delivery: delivery)
  }

  /// Creates a push with new data for a complication, for PushKit tokens.
  ///
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/clockkit/keeping-your-complications-up-to-date>
  public static func complication(
    custom: [String: PayloadValue], delivery: Delivery = Delivery()
  ) throws(PayloadError) -> APNsPayload {
    try APNsPayload(.complication, aps: [:], custom: custom, delivery: delivery)
  }

  /// Creates a push that signals a change in a file provider's domain, for PushKit tokens.
  ///
  /// - Parameters:
  ///   - container: The container whose enumerator is signaled; `nil` for the working set.
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/fileprovider/using-push-notifications-to-signal-changes>
  public static func fileProvider(
    domain: String, container: String? = nil, delivery: Delivery = Delivery()
  ) throws(PayloadError) -> APNsPayload {
    try PayloadError.check(domain, "domain")
    try PayloadError.check(container, "container-identifier")
    let custom: [String: PayloadValue] = [
      "domain": .string(domain),
      "container-identifier": .string(
        container ?? "NSFileProviderWorkingSetContainerItemIdentifier"),
    ]
    return try APNsPayload(.fileprovider, aps: [:], custom: custom, delivery: delivery)
  }

  /// Creates a push that asks for the device's location. APNs accepts it with token credentials
  /// only.
  ///
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/corelocation/creating-a-location-push-service-extension>
  public static func location(
    custom: [String: PayloadValue] = [:], delivery: Delivery = Delivery()
  ) throws(PayloadError) -> APNsPayload {
    try APNsPayload(.location, aps: [:], custom: custom, delivery: delivery)
  }

  /// Creates a push for an event in a Push to Talk channel, such as a person who speaks or leaves.
  /// It is tried once unless `delivery` says otherwise, since a late one is stale.
  ///
  /// - SeeAlso: <https://developer.apple.com/documentation/pushtotalk/creating-a-push-to-talk-app>
  public static func pushToTalk(
    custom: [String: PayloadValue], delivery: Delivery = Delivery()
  ) throws(PayloadError) -> APNsPayload {
    var delivery = delivery
    delivery.priority = delivery.priority ?? .immediate
    delivery.expiration = delivery.expiration ?? .once
    return try APNsPayload(.pushtotalk, aps: [:], custom: custom, delivery: delivery)
  }

  /// Creates a push that tells the system that a control's content has changed.
  ///
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/widgetkit/updating-controls-locally-and-remotely>
  public static func controls(
    custom: [String: PayloadValue] = [:], delivery: Delivery = Delivery()
  ) throws(PayloadError) -> APNsPayload {
    try APNsPayload(.controls, aps: ["content-changed": true], custom: custom, delivery: delivery)
  }

  /// Creates a push that tells the system that a widget's content has changed.
  ///
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/widgetkit/updating-widgets-with-widgetkit-push-notifications>
  public static func widgets(
    custom: [String: PayloadValue] = [:], delivery: Delivery = Delivery()
  ) throws(PayloadError) -> APNsPayload {
    try APNsPayload(.widgets, aps: ["content-changed": true], custom: custom, delivery: delivery)
  }

  /// Creates a push that tells a managed device to contact its management server.
  ///
  /// - Parameter pushMagic: The value that the device sent in its token update.
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/devicemanagement/sending-mdm-commands-to-a-device>
  public static func deviceManagement(
    pushMagic: String, delivery: Delivery = Delivery()
  ) throws(PayloadError) -> APNsPayload {
    try PayloadError.check(pushMagic, "mdm")
    return try APNsPayload(
      .mdm, aps: nil, custom: ["mdm": .string(pushMagic)], delivery: delivery)
  }
}
