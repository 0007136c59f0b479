public import NotificationHubs
import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The part of a secure message that travels through the hub and the push service: its id and, for
/// a device with a key, the sealed payload. It never contains the plain payload.
public struct SecureMessage: Hashable, Sendable {
  /// The member names of the payloads; the first is that of the tutorial "Azure Notification Hubs
  /// Secure Push".
  private enum Word {
    static let id = "secureId"
    static let sealed = "sealed"
  }

  /// The member with the id of the message.
  package static let idName = Word.id

  /// The text shown when the app cannot open or fetch the payload.
  public static let genericAlert = "You have a message"

  /// The id of the message at the backend.
  public var id: String
  public var sealed: SealedPayload?

  public init(id: String, sealed: SealedPayload? = nil) {
    self.id = id
    self.sealed = sealed
  }

  // MARK: To the hub

  /// The way in which the device is notified of the message.
  public enum Presentation: Hashable, Sendable {
    /// In the background: the app wakes, fetches the payload and shows it. The push service may
    /// delay such pushes.
    case background
    /// As an alert with this text, which a notification service extension replaces with the
    /// payload.
    case alert(String)
  }

  /// The notification for one platform. Apple: a background push, or an alert with
  /// `mutable-content`; FCM and the legacy GCM: data; Windows: a raw notification, which is the id
  /// alone if nothing is sealed; Baidu and Xiaomi: a message to the app instead of its notification
  /// bar; browsers: a JSON object.
  ///
  /// - Returns: `nil` for a platform that cannot carry data (MPNS).
  public func notification(
    for platform: PushPlatform, as presentation: Presentation = .background
  ) -> PushNotification? {
    switch platform {
    case .apns: apple(presentation)
    case .fcmv1:
      native(
        platform,
        .object([
          .init("message", .object([.init("data", data(presentation)), highPriority]))
        ]))
    case .gcm, .adm: native(platform, .object([.init("data", data(presentation))]))
    case .xiaomi:
      native(
        platform,
        .object([
          .init("payload", .string(data(presentation).jsonText)),
          .init("pass_through", .number("1")),
        ]))
    case .wns:
      PushNotification(
        format: .native(.wns),
        body: sealed == nil ? Data(id.utf8) : Data(data(presentation).jsonBytes),
        contentType: "application/octet-stream", headers: ["X-WNS-Type": "wns/raw"])
    case .browser: native(platform, data(presentation))
    case .baidu:
      .native(
        platform, data(presentation).jsonText,
        headers: ["X-Baidu-Message-Type": "0"])
    case .mpns: nil
    }
  }

  /// The maximum body that each platform's push service accepts, in bytes
  /// (docs/protocol/push-services).
  public static func sizeLimit(of platform: PushPlatform) -> Int {
    platform.traits.payloadLimit ?? 4_096
  }

  /// The message with its sealed payload if it fits the platform's limit, otherwise without it:
  /// then the device fetches it by id.
  public func fitting(
    _ platform: PushPlatform, as presentation: Presentation = .background
  ) -> SecureMessage {
    guard sealed != nil, let notification = notification(for: platform, as: presentation),
      notification.body.count > Self.sizeLimit(of: platform)
    else { return self }
    return SecureMessage(id: id)
  }

  private func apple(_ presentation: Presentation) -> PushNotification {
    var aps: [JSONValue.Member]
    let headers: PushNotification.AppleHeaders
    switch presentation {
    case .background:
      aps = [.init("content-available", .number("1"))]
      headers = .init(pushType: "background", priority: 5)
    case .alert(let text):
      aps = [
        .init("alert", .object([.init("body", .string(text))])),
        .init("mutable-content", .number("1")), .init("sound", .string("default")),
      ]
      headers = .init(pushType: "alert", priority: 10)
    }
    let payload = JSONValue.object([.init("aps", .object(aps))] + members)
    return .apple(payload.jsonText, headers: headers)
  }

  private func native(_ platform: PushPlatform, _ body: JSONValue) -> PushNotification {
    .native(platform, body.jsonText)
  }

  private var highPriority: JSONValue.Member {
    .init("android", .object([.init("priority", .string("HIGH"))]))
  }

  private var members: [JSONValue.Member] {
    var members = [JSONValue.Member(Word.id, .string(id))]
    if let sealed { members.append(.init(Word.sealed, .string(sealed.description))) }
    return members
  }

  private func data(_ presentation: Presentation) -> JSONValue {
    guard case .alert(let text) = presentation else { return .object(members) }
    return .object(members + [.init("alert", .string(text))])
  }

  // MARK: On the device

  /// Parses a received push: the JSON object of an Apple payload, of FCM's data, or the bytes of a
  /// raw notification.
  ///
  /// - Returns: `nil` if it is not a secure message.
  public init?(payload: Data) {
    guard let document = try? JSONValue.parse(payload), case .object = document else {
      // A raw notification that consists of an id alone.
      guard let text = String(data: payload, encoding: .utf8), Self.isID(text) else { return nil }
      self.init(id: text)
      return
    }
    let data = document["data"] ?? document["message"]?["data"] ?? document
    guard case .string(let id)? = data[Word.id], Self.isID(id) else { return nil }
    self.init(id: id)
    if case .string(let text)? = data[Word.sealed] { sealed = SealedPayload(text) }
  }

  /// Whether the text can be used in a URL's path without encoding.
  private static func isID(_ text: String) -> Bool {
    (1...128).contains(text.utf8.count) && text.utf8.allSatisfy(\.isBase64URL)
  }
}
