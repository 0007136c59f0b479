import Foundation
import NotificationHubs
import PushDevice
import Wire

/// The visible parts of a notification.
struct PhoneShown: Sendable {
  let title: String?
  var subtitle: String?
  let body: String?
}

/// A platform's device, as a virtual phone is one.
extension PushPlatform {
  /// The platforms that have a virtual phone.
  static let phones = running.filter { $0.traits.phone != nil }

  /// The tutorial's tag, which a phone has unless told otherwise.
  static let phoneTags: Set<Tag> = ["12345"]

  /// The option of `belfry send` for a payload of the service.
  var payloadOption: String { "--" + word }

  /// The tutorial's template, or its equivalent for this kind of device.
  var phoneTemplates: [String: PushTemplate] {
    guard let phone = traits.phone else { return [:] }
    return ["genericTemplate": PushTemplate(body: phone.template, headers: phone.templateHeaders)]
  }

  /// Returns the emulator's app for the phone.
  ///
  /// - Parameter topic: The bundle id, for APNs.
  func app(
    among apps: [EmulatorControl.App], topic: String
  ) throws -> EmulatorControl.App {
    let own = apps.filter { ($0.pns ?? "apns") == traits.phone?.service }
    let found =
      switch self {
      case .apns: own.first { $0.bundleId == topic }
      case .fcmv1: own.first { $0.projectId == StandInCredentials.project } ?? own.last
      // A hub that has joined the emulator has added its own app.
      default: own.last
      }
    if let found { return found }
    guard self == .apns else {
      throw CommandFailure("the emulator has no app for the platform '\(word)'")
    }
    let known = apps.compactMap(\.bundleId).joined(separator: ", ")
    throw CommandFailure(
      "the emulator has no app '\(topic)'; its apps: \(known.isEmpty ? "none" : known)")
  }

  /// The push channel of the device.
  func channel(_ handle: EmulatorControl.Device.Handle) throws -> PushChannel {
    let parts = (traits.phone?.handle ?? []).compactMap { handle.members[$0] }
    if let phone = traits.phone, parts.count == phone.handle.count {
      switch (self, parts.count) {
      case (.browser, 3):
        return .subscription(endpoint: parts[0], p256dh: parts[1], auth: parts[2])
      case (.baidu, 2): return .baidu(userID: parts[0], channelID: parts[1])
      case (_, 1): return .handle(parts[0])
      default: break
      }
    }
    throw CommandFailure("the emulator returned no handle for this platform", exitCode: .defect)
  }

  /// The parts of a payload that this kind of device shows; `nil` if it shows nothing.
  func shown(_ payload: Data) -> PhoneShown? {
    guard let phone = traits.phone else { return nil }
    switch phone.reading {
    case .alert:
      guard let message = PushMessage(json: payload), message.isVisible else { return nil }
      let text = message.text
      return PhoneShown(title: text.title, subtitle: text.subtitle, body: text.body)
    case .toast:
      let lines = Self.toastLines(payload)
      if let first = lines.first {
        return PhoneShown(title: first, body: lines.dropFirst().joined(separator: "\n"))
      }
    case .members(let pairs):
      guard let json = try? JSONValue.parse(Array(payload)) else { break }
      func text(_ path: String) -> String? {
        path.split(separator: ".").reduce(json as JSONValue?) { $0?[String($1)] }?.scalarText
      }
      for pair in pairs {
        let shown = PhoneShown(title: text(pair.title), body: text(pair.body))
        if shown.title != nil || shown.body != nil { return shown }
      }
    case .text: break
    }
    return phone.showsText ? Self.text(payload) : nil
  }

  /// The text of a payload without a prescribed format.
  private static func text(_ payload: Data) -> PhoneShown? {
    let text = String(decoding: payload, as: UTF8.self)
    return text.isEmpty ? nil : PhoneShown(title: nil, body: text)
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
