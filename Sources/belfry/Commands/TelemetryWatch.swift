import Foundation
import NotificationHubs

/// Asks a hub for a notification's telemetry until its state is final.
struct TelemetryWatch: Sendable {
  let access: ClientOptions.Access
  let client: ClientOptions
  let context: CommandContext

  /// - Returns: The last telemetry seen, final or not.
  func finished(_ id: String, within limit: Duration) async throws -> NotificationTelemetry {
    var shown = ""
    return try await access.calling {
      try await access.client.finalTelemetry(of: id, within: limit) { telemetry in
        let line = "\(telemetry.state): \(ShownTelemetry(telemetry).total) devices so far"
        if context.isTerminal && !client.json && line != shown { context.note(line) }
        shown = line
      }
    }
  }
}

/// Whether a notification's end is what the sender wanted: the exit code of every command that waits
/// for it.
enum NotificationEnd {
  /// - Throws: ``CommandFailure`` when nobody was reached.
  static func check(
    _ state: NotificationTelemetry.State, succeeded: Int, _ id: String, _ words: Words
  ) throws {
    guard state == .completed else {
      throw CommandFailure(
        "the notification ended as \(state)" + (state == .noTargetFound ? nobody(words) : ""))
    }
    guard succeeded > 0 else {
      throw CommandFailure(
        "no device was reached; why: belfry notification devices \(id)\(words.sameHub)")
    }
  }

  /// Where to look when a send finds nobody.
  static func nobody(_ words: Words) -> String {
    let tags = words.value("--tags").map { " --tags \(CurlCommand.word($0))" } ?? ""
    return "; whom tags reach: belfry audience count\(tags)\(words.sameHub), who is there: belfry "
      + "installation list\(words.sameHub)"
  }
}

/// Telemetry as people and scripts read it.
struct ShownTelemetry {
  private let telemetry: NotificationTelemetry
  init(_ telemetry: NotificationTelemetry) { self.telemetry = telemetry }

  private struct JSON: Encodable {
    let notificationId: String
    let state: String
    let enqueueTime: String?
    let startTime: String?
    let endTime: String?
    let dueTime: String?
    let tags: String?
    let targetPlatforms: [String]
    let outcomes: [String: [String: Int]]
  }

  /// How many targets have an outcome.
  var total: Int { telemetry.outcomes.values.flatMap(\.values).reduce(0, +) }

  func print(json: Bool, in context: CommandContext) throws {
    if json {
      return try context.printJSON(
        JSON(
          notificationId: telemetry.notificationID, state: telemetry.state.rawValue,
          enqueueTime: Self.text(telemetry.enqueueTime),
          startTime: Self.text(telemetry.startTime), endTime: Self.text(telemetry.endTime),
          dueTime: Self.text(telemetry.dueTime), tags: telemetry.tags,
          targetPlatforms: telemetry.targetPlatforms,
          outcomes: Dictionary(
            uniqueKeysWithValues: telemetry.outcomes.map { ($0.key.rawValue, $0.value) })))
    }
    for line in lines { context.print(line) }
  }

  /// The store keeps milliseconds.
  static func duration(_ seconds: TimeInterval) -> String {
    seconds < 0.001 ? "less than 1 ms" : String(format: "%.3f s", seconds)
  }

  private static func text(_ date: Date?) -> String? {
    date?.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
  }

  private var lines: [String] {
    var lines = ["state         \(telemetry.state)"]
    if let enqueued = telemetry.enqueueTime {
      var line = "accepted      \(enqueued.formatted(.iso8601))"
      // From the start, for the time of acceptance comes in whole seconds.
      if let start = telemetry.startTime, let end = telemetry.endTime {
        line += ", delivered in " + Self.duration(end.timeIntervalSince(start))
      }
      lines.append(line)
    }
    if let due = telemetry.dueTime { lines.append("to be sent    \(due.formatted(.iso8601))") }
    // Without tags it went to every device, or to handles; telemetry does not tell which.
    if let tags = telemetry.tags { lines.append("to            \(tags)") }
    for (platform, counts) in telemetry.outcomes.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      for (name, count) in counts.sorted(by: { $0.key < $1.key }) {
        lines.append("\(platform.rawValue.padded(to: 14))\(name.padded(to: 30)) \(count)")
      }
    }
    lines.append(total == 1 ? "1 device" : "\(total) devices")
    return lines
  }
}
