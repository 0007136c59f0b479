import Foundation
import NotificationHubs
import PushDemo
import Wire

/// A phone or browser that is not there: the emulator gives it a handle, the tutorial app's logic
/// registers it with a hub, and what its push service brings it is handed on.
struct VirtualPhone: Sendable {
  /// One notification as it reached the phone.
  struct Arrival: Sendable {
    /// What a person sees; `nil` for nothing.
    let shown: PhonePlatform.Shown?
    let payload: String
    let headers: [String: String]
    /// When the stand-in gave it to the phone.
    let deliveredAt: Date
  }

  let control: EmulatorControl
  let device: EmulatorControl.Device
  let platform: PhonePlatform
  /// How a hub reaches it.
  let channel: PushChannel

  /// Gets a phone for an app, as iOS gets a token when the app asks for remote notifications.
  ///
  /// - Parameters:
  ///   - topic: The app's bundle id, for APNs.
  ///   - isSandbox: A development build, whose token APNs' production does not know.
  static func make(
    control: EmulatorControl, platform: PhonePlatform = .apns, topic: String,
    isSandbox: Bool = false
  ) async throws -> VirtualPhone {
    let app = try platform.app(among: try await control.apps(), topic: topic)
    let device = try await control.createDevice(
      app: app.appId, isSandbox: isSandbox && platform == .apns)
    return VirtualPhone(
      control: control, device: device, platform: platform,
      channel: try platform.channel(device.handle))
  }

  /// The handle as text: a token, or a subscription's endpoint.
  var token: String {
    switch channel {
    case .handle(let text): text
    case .subscription(let endpoint, _, _): endpoint
    }
  }

  /// The phone as the tutorial's app sees itself.
  func demoDevice(installationID: String) throws -> DemoDevice {
    guard let token = Hex.decode(token) else {
      throw CommandFailure("the emulator gave a token that is not hexadecimal", exitCode: .defect)
    }
    return DemoDevice(installationID: installationID, deviceToken: Data(token))
  }

  /// What arrives from now on. The phone is online while somebody iterates.
  func arrivals() -> AsyncThrowingStream<Arrival, any Error> {
    let events = control.events(device: device.deviceId, after: 0)
    let platform = platform
    return .whileIterated { yield in
      for try await event in events where event.name == "notification" {
        if let arrival = Arrival(event: event.data, platform: platform) { yield(arrival) }
      }
    }
  }
}

extension VirtualPhone.Arrival {
  fileprivate init?(event: String, platform: PhonePlatform) {
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

  /// What the phone's screen shows.
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

/// A phone's screen, as far as a terminal can draw it.
enum PhoneScreen {
  /// - Parameter app: Whose notification it is.
  static func banner(_ lines: [String], app: String) -> [String] {
    let width = max(28, app.columns + 6, lines.map(\.columns).max() ?? 0)
    let bar = String(repeating: "─", count: width + 2)
    let head = app + String(repeating: " ", count: width - app.columns - 3) + "now"
    let rows = lines.map { "│ \($0)\(String(repeating: " ", count: width - $0.columns)) │" }
    return ["╭\(bar)╮", "│ \(head) │"] + rows + ["╰\(bar)╯"]
  }
}

extension String {
  /// How wide a terminal shows it: emoji and the letters of East Asia take two columns.
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

/// What the Lock Screen would make of a Live Activity's payload: the app's own view is not here, so
/// its state is told in words.
struct LiveActivityShown: Sendable {
  /// `start`, `update` or `end`.
  let event: String
  /// The content state, a line for each member.
  let state: [String]

  /// - Returns: `nil` for the payload of anything else.
  init?(_ payload: String) {
    guard let aps = try? JSONValue.parse(Array(payload.utf8))["aps"],
      let event = aps["event"]?.scalarText, case .object(let members)? = aps["content-state"]
    else { return nil }
    self.event = event
    state = members.map { "\($0.name): \($0.value.scalarText ?? $0.value.jsonText)" }
  }

  var lines: [String] { ["Live Activity: \(event)"] + state }
}
