import Foundation
import NotificationHubs
import PushDevice
import Wire

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
  /// - Parameter topic: The bundle id, for APNs; `nil` for the tutorial's, or that of the only app.
  func app(
    among apps: [EmulatorControl.App], topic: String?
  ) throws -> EmulatorControl.App {
    let own = apps.filter { ($0.pns ?? "apns") == traits.phone?.service }
    let found =
      switch self {
      case .apns:
        own.first { $0.bundleId == topic ?? StandIns.standardTopic }
          ?? (topic == nil && own.count == 1 ? own.first : nil)
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
      "the emulator has no app '\(topic ?? StandIns.standardTopic)'; name one with --topic. Its apps: "
        + (known.isEmpty ? "none" : known))
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
  func shown(_ payload: Data) -> NotificationText? {
    guard let phone = traits.phone else { return nil }
    guard case .alert = phone.reading else {
      return PayloadWords(payload, for: self).map {
        NotificationText(title: $0.title, body: $0.body)
      }
    }
    guard let message = PushMessage(json: payload), message.isVisible else { return nil }
    return message.text
  }
}
