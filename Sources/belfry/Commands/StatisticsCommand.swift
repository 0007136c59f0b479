import Foundation
import NotificationHubs
import Wire

struct StatisticsCommand: ResultCommand {
  static let about = CommandHelp(
    "statistics", "show what a hub has sent over time: accepted, delivered, failed, registrations",
    discussion: """
      One line for each step with any activity, then the sum. Times are UTC. Steps of minutes
      are kept for a day, steps of hours for a year.
      """,
    examples: [
      "belfry statistics",
      "belfry statistics --from -24h --step 900",
      "belfry statistics --from -30d --step 86400 --json",
    ])

  let client = ClientOptions(belfryOnly: "Send or the Manage")
  @Option(
    "--from", "TIME",
    "from then on: 2030-01-05T10:00:00Z, or back from now: -90s, -2h, -3d (default: -1h)",
    .instant)
  var from: Date?
  @Option("--until", "TIME", "until then (default: now)", .instant) var until: Date?
  @Option(
    "--step", "SECONDS", "the length of a step, a multiple of 60 (default: 60)",
    .integer(60...31_622_400)) var step: Int?

  func result(in context: CommandContext) async throws -> CommandResult {
    if let step, !step.isMultiple(of: 60) {
      throw UsageError("--step must be a multiple of 60 seconds")
    }
    return try await client.withHub(in: context) { access in
      let found = try await access.client.statistics(from: from, to: until, step: step)
      var lines = found.points.compactMap { point in
        Self.line(point).map { Self.time(point.time) + "  " + $0 }
      }
      let total = HubStatistics.Point(
        time: found.from, accepted: found.accepted, delivered: found.delivered,
        failed: found.failed)
      lines.append(
        "hub \(access.hub) from \(Self.time(found.from)) to \(Self.time(found.to)): "
          + (Self.line(total) ?? "nothing was sent"))
      if let last = found.points.last, !last.registrations.isEmpty {
        lines.append("registrations: " + Self.list(last.registrations))
      }
      return CommandResult(written: found.json, lines)
    }
  }

  private static func time(_ date: Date) -> String { WireDate.seconds(date) }

  /// `3 accepted, 120 delivered (apns 120), 2 failed (apns BadChannel 2)`; `nil` for nothing.
  private static func line(_ point: HubStatistics.Point) -> String? {
    var parts: [String] = []
    if point.accepted > 0 { parts.append("\(point.accepted) accepted") }
    let delivered = point.delivered.values.reduce(0, +)
    if delivered > 0 { parts.append("\(delivered) delivered (\(list(point.delivered)))") }
    let failures = point.failed.sorted { $0.key < $1.key }.flatMap { platform, outcomes in
      outcomes.sorted { $0.key < $1.key }.map { ("\(platform) \($0.key)", $0.value) }
    }
    if !failures.isEmpty {
      let text = failures.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
      parts.append("\(failures.reduce(0) { $0 + $1.1 }) failed (\(text))")
    }
    return parts.isEmpty ? nil : parts.joined(separator: ", ")
  }

  private static func list(_ counts: [String: Int]) -> String {
    counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
  }
}
