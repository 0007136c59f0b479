import Foundation
import NotificationHubs
import Wire

extension Reader where Value == String {
  /// A text to look for: every message would have an empty one.
  fileprivate static let wanted = Reader { text, name throws(UsageError) in
    guard !text.isEmpty else {
      throw UsageError("\(name) is empty; leave it out to wait for any message")
    }
    return text
  }
}

struct EmulatorWaitCommand: ResultCommand {
  static let about = CommandHelp(
    "emulator wait", "wait until a virtual phone has got a message",
    discussion: """
      For shell tests: exit code 0 once a message that contains the text has arrived, 1 if none has
      in time, and then what is known of the phone; 64 if no phone has this handle. Web Push is
      looked at as the browser decrypts it.

      Messages that arrived before count, too; --after SEQ, with the seq of an earlier result, looks
      at later ones only.
      """,
    examples: [
      "belfry emulator wait --to TOKEN --contains 'Your order' --timeout 5",
      "belfry emulator wait --to TOKEN --json | jq -r .text",
    ])

  @Option(
    required: "--to", "TOKEN",
    "the phone: its token, Firebase installation id or subscription, as a sender knows it", .text)
  var handle: String
  @Option("--contains", "TEXT", "only a message with this text in its payload", .wanted)
  var text: String?
  @Option(
    "--after", "SEQ", "only messages after this one of the phone", .integer(0...Int(Int32.max)))
  var after = 0
  @Option("--timeout", "SECONDS", "how long to wait", .integer(0...86_400)) var timeout = 5
  @Option(
    "--control", "URL",
    "the emulator's control address (default that of the last `belfry up`, or port 9400)")
  var control: String?
  @Flag("--json", "print the message as one line of JSON") var json

  /// Pause between two looks.
  private static let interval = Duration.milliseconds(25)

  func result(in context: CommandContext) async throws -> CommandResult {
    let emulator = try EmulatorControl(
      control ?? RunningUp.last(context.environment)?.control ?? "http://127.0.0.1:9400")
    guard let device = try await emulator.device(handle: handle) else {
      throw CommandFailure(
        "no phone of the emulator at \(emulator.base.absoluteString) has or had the handle '\(handle)'",
        exitCode: .usage)
    }
    let clock = ContinuousClock()
    let deadline = clock.now + .seconds(timeout)
    var seen = after
    while true {
      // The last look comes after the deadline, so that even with 0 there is one.
      let isLast = clock.now >= deadline
      for message in try await emulator.notifications(device: device, after: seen) {
        seen = max(seen, message.seq)
        if message.contains(text) {
          return CommandResult(message, [message.payload.harmless])
        }
      }
      guard !isLast else { break }
      try await clock.sleep(for: Self.interval)
    }
    throw CommandFailure(try await emulator.explanation(of: device, handle, text, timeout))
  }
}

/// A message that a virtual phone got.
private struct ArrivedMessage: Codable {
  let seq: Int
  let pns: String
  let headers: [String: String]
  let payloadBase64: String
  /// The payload as text, which the emulator gives in base 64 only.
  var text: String?

  var payload: String { text ?? "" }

  /// Whether the text is in the payload as it was sent, or in a string of its JSON.
  func contains(_ wanted: String?) -> Bool {
    guard let wanted else { return true }
    if payload.contains(wanted) { return true }
    func isIn(_ value: JSONValue) -> Bool {
      switch value {
      case .string(let text): text.contains(wanted)
      case .array(let items): items.contains(where: isIn)
      case .object(let members): members.contains { isIn($0.value) }
      default: false
      }
    }
    return (try? JSONValue.read(Array(payload.utf8), uniqueNames: false)).map(isIn) ?? false
  }
}

extension EmulatorControl {
  /// The id of the device that has a handle, or had it.
  fileprivate func device(handle: String) async throws -> String? {
    struct Reply: Decodable {
      struct Device: Decodable { let deviceId: String }
      let devices: [Device]
    }
    let reply: Reply = try await get("v1/devices?handle=" + Self.encoded(handle))
    return reply.devices.first?.deviceId
  }

  fileprivate func notifications(device: String, after: Int) async throws -> [ArrivedMessage] {
    struct Reply: Decodable { let notifications: [ArrivedMessage] }
    let reply: Reply = try await get("v1/devices/\(device)/notifications?after=\(after)")
    return reply.notifications.map { message in
      var message = message
      let payload = Data(base64Encoded: message.payloadBase64) ?? Data()
      message.text = String(decoding: payload, as: UTF8.self)
      return message
    }
  }

  /// The failure of a wait: the state of the phone, and the last request for it.
  fileprivate func explanation(
    of device: String, _ handle: String, _ text: String?, _ timeout: Int
  ) async throws -> String {
    struct Details: Decodable {
      struct Counters: Decodable { let delivered, stored: Int }
      let state: String
      let online: Bool
      let counters: Counters
    }
    struct Requests: Decodable {
      struct Request: Decodable {
        let status: Int?
        let reason: String?
      }
      let requests: [Request]
    }
    let details: Details = try await get("v1/devices/\(device)")
    let requests: Requests = try await get("v1/requests?newest=1&handle=" + Self.encoded(handle))
    var parts = [
      "\(device) is \(details.state) and \(details.online ? "online" : "offline")",
      "it got \(details.counters.delivered) messages, \(details.counters.stored) wait",
    ]
    if let last = requests.requests.last {
      let answer = [last.status.map(String.init) ?? "nothing", last.reason].compactMap(\.self)
      parts.append("the last request for it was answered \(answer.joined(separator: " "))")
    } else {
      parts.append("no request has named it")
    }
    let what = text.map { "no message with '\($0)'" } ?? "no message"
    return "\(what) within \(timeout) s: " + parts.joined(separator: "; ")
  }

  private static func encoded(_ text: String) -> String {
    text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
  }
}
