import Foundation
import NotificationHubs
import PushDevice
import Wire

/// A simulated phone or browser: the emulator issues its handle, the tutorial app's logic registers
/// it with a hub, and the pushes that arrive are passed on.
struct VirtualPhone: Sendable {
  /// A notification that reached the phone.
  struct Arrival: Sendable {
    /// The visible part; `nil` if there is none.
    let shown: NotificationText?
    let payload: String
    let headers: [String: String]
    /// The time at which the stand-in delivered it to the phone.
    let deliveredAt: Date
  }

  let control: EmulatorControl
  let device: EmulatorControl.Device
  let platform: PushPlatform
  /// The push channel of the phone.
  let channel: PushChannel
  /// The app's bundle id; `nil` for other services than APNs, and for a phone that was known.
  var topic: String?
  /// The event after which its pushes are new; `nil` for the present one.
  var firstEvent: Int? = 0

  /// Creates a phone for an app, as iOS issues a token when the app asks for remote notifications.
  ///
  /// - Parameters:
  ///   - known: The id of a phone to use again, if the emulator still has it.
  ///   - topic: The app's bundle id, for APNs; `nil` for the tutorial's, or that of the only app.
  ///   - isSandbox: Whether it is a development build, whose token APNs' production does not
  ///     accept.
  static func make(
    control: EmulatorControl, platform: PushPlatform = .apns, topic: String? = nil,
    isSandbox: Bool = false, known: String? = nil
  ) async throws -> VirtualPhone {
    if let known, let device = try await control.device(known),
      let channel = try? platform.channel(device.handle)
    {
      return VirtualPhone(
        control: control, device: device, platform: platform, channel: channel, firstEvent: nil)
    }
    let app = try platform.app(among: try await control.apps(), topic: topic)
    let device = try await control.createDevice(
      app: app.appId, isSandbox: isSandbox && platform == .apns)
    return VirtualPhone(
      control: control, device: device, platform: platform,
      channel: try platform.channel(device.handle), topic: app.bundleId)
  }

  /// The handle as text: a token, or a subscription's endpoint.
  var token: String {
    switch channel {
    case .handle(let text): text
    case .subscription(let endpoint, _, _): endpoint
    }
  }

  /// The installation of the tutorial's app on this phone.
  func installation(id: String) -> Installation {
    Installation(
      installationID: id, platform: platform, pushChannel: channel,
      tags: Array(PushPlatform.phoneTags), templates: platform.phoneTemplates)
  }

  /// Gets another handle, as after a system update; the old one is dead.
  func rotated() async throws -> VirtualPhone {
    try changed(try await control.rotate(device.deviceId))
  }

  private func changed(_ device: EmulatorControl.Device) throws -> VirtualPhone {
    VirtualPhone(
      control: control, device: device, platform: platform,
      channel: try platform.channel(device.handle), topic: topic, firstEvent: firstEvent)
  }

  /// The notifications that arrive from now on. The phone is online during the iteration.
  func arrivals() -> AsyncThrowingStream<Arrival, any Error> {
    let events = control.events(device: device.deviceId, after: firstEvent)
    let platform = platform
    return .whileIterated { yield in
      for try await event in events where event.name == "notification" {
        if let arrival = Arrival(event: event.data, platform: platform) { yield(arrival) }
      }
    }
  }
}

extension VirtualPhone.Arrival {
  fileprivate init?(event: String, platform: PushPlatform) {
    struct Event: Decodable {
      let headers: [String: String]
      let payloadBase64: String
      let deliveredAt: Double
    }
    guard let event = try? JSONDecoder().decode(Event.self, from: Data(event.utf8)),
      let payload = Data(base64Encoded: event.payloadBase64)
    else { return nil }
    self.payload = String(decoding: payload, as: UTF8.self)
    shown = platform.shown(payload)
    headers = event.headers
    deliveredAt = Date(timeIntervalSince1970: event.deliveredAt / 1000)
  }

  /// The notification on the phone's screen.
  func banner(app: String) -> [String] {
    let lines: [String]
    if let activity = LiveActivityShown(payload) {
      lines = activity.lines + alertLines
    } else if shown != nil {
      lines = alertLines
    } else {
      lines = ["(nothing to see: \(headers["apns-push-type"] ?? "a push") wakes the app)"]
    }
    return PhoneScreen.banner(lines, app: app)
  }

  private var alertLines: [String] {
    guard let shown else { return [] }
    return [shown.title, shown.subtitle, shown.body].compactMap(\.self)
      .flatMap { $0.split(separator: "\n").map(String.init) }
  }
}

/// A phone's screen as drawn in a terminal.
enum PhoneScreen {
  /// - Parameter app: The name of the app that shows the notification.
  static func banner(_ lines: [String], app: String) -> [String] {
    let width = max(28, app.columns + 6, lines.map(\.columns).max() ?? 0)
    let bar = String(repeating: "─", count: width + 2)
    let head = app + String(repeating: " ", count: width - app.columns - 3) + "now"
    let rows = lines.map { "│ \($0)\(String(repeating: " ", count: width - $0.columns)) │" }
    return ["╭\(bar)╮", "│ \(head) │"] + rows + ["╰\(bar)╯"]
  }
}

extension String {
  /// The number of terminal columns: emoji and East Asian letters take two.
  var columns: Int { reduce(0) { $0 + $1.columns } }
}

extension Character {
  fileprivate var columns: Int {
    guard let first = unicodeScalars.first else { return 0 }
    if first.properties.isEmojiPresentation || unicodeScalars.contains("\u{FE0F}") { return 2 }
    switch first.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format, .control: return 0
    default: break
    }
    // The wide blocks of Unicode's East Asian Width.
    let wide: [ClosedRange<UInt32>] = [
      0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
      0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD,
    ]
    return wide.contains { $0.contains(first.value) } ? 2 : 1
  }
}

/// The view of a Live Activity on the Lock Screen. The app's own view is not available, so the
/// state is shown as text.
struct LiveActivityShown: Sendable {
  /// `start`, `update` or `end`.
  let event: String
  /// The content state, one line per member.
  let state: [String]

  /// - Returns: `nil` for any other payload.
  init?(_ payload: String) {
    guard let aps = try? JSONValue.parse(Array(payload.utf8))["aps"],
      let event = aps["event"]?.scalarText, case .object(let members)? = aps["content-state"]
    else { return nil }
    self.event = event
    state = members.map { "\($0.name): \($0.value.scalarText ?? $0.value.jsonText)" }
  }

  var lines: [String] { ["Live Activity: \(event)"] + state }
}
