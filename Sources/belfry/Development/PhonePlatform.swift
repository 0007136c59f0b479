import Foundation
import NotificationHubs
import PushDemo

/// The kind of device that a virtual phone is.
enum PhonePlatform: String, CaseIterable, Sendable {
  case apns, fcm, web, wns, adm, baidu, xiaomi

  static let words = allCases.map(\.rawValue)

  /// The name of the push service in the emulator.
  var service: String {
    switch self {
    case .apns: "apns"
    case .fcm: "fcm"
    case .web: "webpush"
    case .wns, .adm, .baidu, .xiaomi: rawValue
    }
  }

  /// The option of `belfry send` for a payload of the service.
  var payloadOption: String { "--" + rawValue }

  /// The name of the service for people.
  var serviceName: String {
    switch self {
    case .apns: "APNs (JSON)"
    case .fcm: "FCM v1 (JSON with message)"
    case .web: "browsers (what the page's service worker reads)"
    case .wns: "WNS (XML; plain text with --raw)"
    case .adm: "ADM (JSON)"
    case .baidu: "Baidu (JSON)"
    case .xiaomi: "Xiaomi (JSON)"
    }
  }

  /// The vendor's term for a handle.
  var handleName: String {
    switch self {
    case .apns: "device token"
    case .fcm: "token"
    case .web: "subscription"
    case .wns: "channel URI"
    case .adm, .xiaomi: "registration id"
    case .baidu: "user-channel"
    }
  }

  /// The platform in a hub.
  var platform: PushPlatform {
    switch self {
    case .apns: .apns
    case .fcm: .fcmv1
    case .web: .browser
    case .wns: .wns
    case .adm: .adm
    case .baidu: .baidu
    case .xiaomi: .xiaomi
    }
  }

  /// The tutorial's template, or its equivalent for this kind of device.
  var templates: [String: PushTemplate] {
    switch self {
    case .apns: DemoDevice.templates
    case .fcm:
      [
        "genericTemplate": PushTemplate(
          body: #"{"message":{"notification":{"title":"PushDemo","body":"$(message)"}}}"#)
      ]
    case .web:
      ["genericTemplate": PushTemplate(body: #"{"title":"PushDemo","body":"$(message)"}"#)]
    case .wns:
      [
        "genericTemplate": PushTemplate(
          body: #"<toast><visual><binding template="ToastGeneric"><text>PushDemo</text>"#
            + "<text>$(message)</text></binding></visual></toast>",
          headers: ["X-WNS-Type": "wns/toast"])
      ]
    case .adm:
      [
        "genericTemplate": PushTemplate(
          body: #"{"data":{"title":"PushDemo","message":"$(message)"}}"#)
      ]
    case .baidu:
      [
        "genericTemplate": PushTemplate(
          body: #"{"title":"PushDemo","description":"$(message)"}"#,
          headers: ["X-Baidu-Message-Type": "1"])
      ]
    case .xiaomi:
      [
        "genericTemplate": PushTemplate(
          body: #"{"title":"PushDemo","description":"$(message)","payload":"$(message)"}"#)
      ]
    }
  }

  /// Returns the emulator's app for the phone.
  ///
  /// - Parameter topic: The bundle id, for APNs.
  func app(
    among apps: [EmulatorControl.App], topic: String
  ) throws -> EmulatorControl.App {
    let own = apps.filter { ($0.pns ?? "apns") == service }
    let found =
      switch self {
      case .apns: own.first { $0.bundleId == topic }
      case .fcm: own.first { $0.projectId == StandInCredentials.project } ?? own.last
      // A hub that has joined the emulator has added its own app.
      case .web, .wns, .adm, .baidu, .xiaomi: own.last
      }
    if let found { return found }
    guard self == .apns else {
      throw CommandFailure("the emulator has no app for the platform '\(rawValue)'")
    }
    let known = apps.compactMap(\.bundleId).joined(separator: ", ")
    throw CommandFailure(
      "the emulator has no app '\(topic)'; its apps: \(known.isEmpty ? "none" : known)")
  }

  /// The push channel of the device.
  func channel(_ handle: EmulatorControl.Device.Handle) throws -> PushChannel {
    switch self {
    case .apns, .fcm:
      if let token = handle.token { return .handle(token) }
    case .web:
      if let endpoint = handle.endpoint, let p256dh = handle.p256dh, let auth = handle.auth {
        return .subscription(endpoint: endpoint, p256dh: p256dh, auth: auth)
      }
    case .wns:
      if let channel = handle.channelUri { return .wns(channelURI: channel) }
    case .adm:
      if let id = handle.registrationId { return .adm(registrationID: id) }
    case .baidu:
      if let user = handle.userId, let channel = handle.channelId {
        return .baidu(userID: user, channelID: channel)
      }
    case .xiaomi:
      if let id = handle.regId { return .xiaomi(registrationID: id) }
    }
    throw CommandFailure("the emulator returned no handle for this platform", exitCode: .defect)
  }

  /// The visible parts of a notification.
  struct Shown: Decodable, Sendable {
    let title: String?
    var subtitle: String?
    let body: String?
  }

  /// The parts of a payload that this kind of device shows; `nil` if it shows nothing.
  func shown(_ payload: Data) -> Shown? {
    switch self {
    case .apns:
      guard let shown = ShownNotification(payload: payload), shown.isVisible else { return nil }
      return Shown(title: shown.title, subtitle: shown.subtitle, body: shown.body)
    case .fcm:
      struct Message: Decodable {
        let notification: Shown?
        let data: [String: String]?
      }
      guard let message = try? JSONDecoder().decode(Message.self, from: payload) else {
        return nil
      }
      return message.notification
        ?? message.data?["message"].map { Shown(title: message.data?["title"], body: $0) }
    case .web:
      if let shown = try? JSONDecoder().decode(Shown.self, from: payload),
        shown.title != nil || shown.body != nil
      {
        return shown
      }
      return Self.text(payload)
    case .wns:
      let lines = Self.toastLines(payload)
      guard let first = lines.first else { return Self.text(payload) }
      return Shown(title: first, body: lines.dropFirst().joined(separator: "\n"))
    case .adm:
      struct Message: Decodable { let data: [String: String]? }
      guard let data = (try? JSONDecoder().decode(Message.self, from: payload))?.data else {
        return nil
      }
      return data["message"].map { Shown(title: data["title"], body: $0) }
    case .baidu:
      struct Message: Decodable {
        let title: String?
        let description: String
      }
      guard let shown = try? JSONDecoder().decode(Message.self, from: payload) else {
        return Self.text(payload)
      }
      return Shown(title: shown.title, body: shown.description)
    case .xiaomi: return Self.text(payload)
    }
  }

  /// The text of a payload without a prescribed format.
  private static func text(_ payload: Data) -> Shown? {
    let text = String(decoding: payload, as: UTF8.self)
    return text.isEmpty ? nil : Shown(title: nil, body: text)
  }

  /// The lines of text in a toast.
  private static func toastLines(_ payload: Data) -> [String] {
    String(decoding: payload, as: UTF8.self).components(separatedBy: "<text").dropFirst()
      .compactMap { part in
        guard let start = part.firstIndex(of: ">"), let end = part.range(of: "</text>"),
          start < end.lowerBound
        else { return nil }
        let escaped = String(part[part.index(after: start)..<end.lowerBound])
        return [
          ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&"),
        ].reduce(escaped) { $0.replacingOccurrences(of: $1.0, with: $1.1) }
      }
  }
}
