import Foundation
import NotificationHubs
import Wire

/// To whom, and when: what `belfry send` was told beside the notification.
struct SendDestination: Sendable {
  enum Target: Sendable {
    /// `nil` is every device of the hub.
    case audience(TagExpression?)
    /// Devices by their handles; one stands alone, several make a batch.
    case devices([PushChannel])
  }

  static let options: [Option] = [
    .value("--tags", "EXPR", "to the devices that this tag or tag expression matches"),
    .flag("--broadcast", "to every device of the hub"),
    .value("--handle", "HANDLE", "to one device by its push handle, registered or not"),
    .value(
      "--handles", "FILE",
      "to up to 1000 devices, 10 000 of Belfry: a file or - with a handle in each line, or a "
        + "JSON array"),
    .value(
      "--at", "TIME",
      "later: 2030-01-05T10:00:00Z (UTC without Z), or from now: +90s, +10m, +2h, +3d"
    ),
    .flag("--test", "to at most ten of the devices, and wait for what the push services say"),
    .value("--key", "KEY", "of your own for this send: with the same again nothing is sent twice"),
  ]

  let target: Target
  let time: Date?
  let isTest: Bool
  let key: String?

  /// - Parameter platform: That of the payload; `nil` for template properties.
  init(_ words: Words, platform: PushPlatform?, now: Date) throws {
    target = try Self.target(words, platform)
    time = try words.value("--at").map { try Self.time($0, of: "--at", now: now, words) }
    if let time, time <= now {
      throw words.fault("--at: \(WireDate.seconds(time)) has passed; leave --at out to send now")
    }
    isTest = words.flag("--test")
    key = words.value("--key")
    if case .devices = target, time != nil || isTest {
      throw words.fault("--at and --test go with --tags or --broadcast, not with handles")
    }
    if isTest, time != nil || key != nil || words.flag("--wait") {
      throw words.fault(
        "--test sends at once and waits by itself; leave --at, --key and --wait out")
    }
  }

  private static func target(_ words: Words, _ platform: PushPlatform?) throws -> Target {
    let given = ["--tags", "--broadcast", "--handle", "--handles"].filter(words.flag)
    guard given.count == 1 else {
      throw words.fault(
        given.isEmpty
          ? "say to whom: --tags EXPR, --handle HANDLE, or --broadcast for every device"
          : "\(given.joined(separator: " and ")) exclude each other")
    }
    if let text = words.value("--tags") {
      do {
        // Whether it is too long is for the hub to say.
        let limits = TagExpressionLimits(alternatives: 1000, combinations: 1000)
        return .audience(try TagExpression(parsing: text, limits: limits))
      } catch {
        throw words.fault("--tags: \(error)")
      }
    }
    if let handle = words.value("--handle") {
      return .devices([try TextInput.channel(handle, of: "--handle", platform, in: words)])
    }
    guard let file = words.value("--handles") else { return .audience(nil) }
    let handles = try handles(TextInput.read(file))
    // Whether there are too many is for the hub to say.
    guard !handles.isEmpty else { throw words.fault("--handles: the file has no handle") }
    if platform == .browser {
      throw words.fault("--handles has no subscriptions; send to one with --handle")
    }
    return .devices(handles.map { .handle($0) })
  }

  private static func handles(_ data: Data) throws -> [String] {
    if let array = try? JSONDecoder().decode([String].self, from: data) { return array }
    return String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline)
      .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
  }

  /// The value of an option that is a time.
  static func time(
    _ text: String, of option: String, now: Date, _ words: Words
  ) throws(UsageError) -> Date {
    let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    if ["+", "-"].contains(text.first), let unit = text.last.flatMap({ units[$0] }),
      let count = Int(text.dropFirst().dropLast()), (0...100_000_000).contains(count)
    {
      // The protocol knows whole seconds; never early.
      let seconds = now.timeIntervalSince1970 + Double(count) * unit * (text.first == "-" ? -1 : 1)
      return Date(timeIntervalSince1970: seconds.rounded(.up))
    }
    guard let time = WireDate.parse(text) else {
      throw words.fault(
        "\(option) wants a time such as 2030-01-05T10:00:00Z or +10m, not '\(text)'")
    }
    return time
  }

  /// Sends; not for tests.
  func send(
    _ notification: PushNotification, through client: NotificationHubClient
  ) async throws -> SendReceipt {
    switch target {
    case .devices(let devices) where devices.count == 1:
      try await client.sendDirect(notification, to: devices[0], idempotencyKey: key)
    case .devices(let devices):
      try await client.sendDirect(notification, to: devices, idempotencyKey: key)
    case .audience(let audience):
      if let time {
        try await client.schedule(notification, at: time, to: audience, idempotencyKey: key)
      } else if let audience {
        try await client.send(notification, to: audience, idempotencyKey: key)
      } else {
        try await client.broadcast(notification, idempotencyKey: key)
      }
    }
  }

  /// The request's headers beside the notification's, its path below the hub, and its flag.
  ///
  /// - Returns: `nil` for a batch, whose body is no text to copy.
  var request: (fields: [(String, String)], resource: String, flag: String?)? {
    var fields: [(String, String)] = []
    if let key { fields.append((WireName.idempotencyKey, key)) }
    switch target {
    case .devices(let devices):
      guard devices.count == 1, case .handle = devices[0] else { return nil }
      return (fields + [(WireName.deviceHandle, devices[0].handle)], "messages", WireName.direct)
    case .audience(let audience):
      if let audience { fields.append((WireName.tags, audience.description)) }
      guard let time else { return (fields, "messages", isTest ? WireName.test : nil) }
      fields.append((WireName.scheduleTime, WireDate.seconds(time)))
      return (fields, "schedulednotifications", nil)
    }
  }
}
