import Foundation
import NotificationHubs
import Synchronization
import Wire

/// The common part of `notification list` and `schedule list`.
private struct NotificationListing: ParameterGroup {
  let client = ClientOptions(belfryOnly: "Send or the Manage")
  @Option("--tag", "TAG", "only those whose tag expression names this tag", .tag) var tag: Tag?
  @Option("--search", "TEXT", "only those with this in title, text, tags or id") var search: String?
  @Option(
    "--from", "TIME", "not before: 2030-01-05T10:00:00Z, or back from now: -90s, -2h, -3d", .instant
  )
  var from: Date?
  @Option("--until", "TIME", "before; also +2h from now", .instant) var until: Date?
  @Option("--limit", "N", "at most so many", .integer(1...1_000_000)) var limit = 100

  func result(
    of operation: HubOperation, in context: CommandContext,
    states: [NotificationTelemetry.State] = [], kind: NotificationSummary.Kind? = nil
  ) async throws -> CommandResult {
    let query = NotificationQuery(
      states: states, kind: kind, tag: tag, search: search, from: from, until: until,
      pageSize: min(100, limit + 1))
    return try await client.withHub(in: context) { access in
      let passed = Atomic(0)
      let found = try await access.client.notifications(operation, query) {
        passed.add($0, ordering: .relaxed)
      }.first(limit + 1)
      let unsearched = passed.load(ordering: .relaxed)
      let shown = Array(found.prefix(limit))
      let hasMore = found.count > limit
      return CommandResult(
        written: NotificationList.json(shown, hasMore: hasMore, unsearched: unsearched),
        shown.map(Self.line) + [
          shown.count.counted("notification")
            + " in hub \(access.hub)" + (hasMore ? "; there are more: raise --limit" : "")
        ],
        notes: unsearched == 0
          ? []
          : ["the text of \(unsearched) was not kept, so the search could not find them"])
    }
  }

  private static func line(_ one: NotificationSummary) -> String {
    var parts = [one.notificationID, one.state.rawValue.padded(to: 13)]
    if let due = one.dueTime {
      parts.append("due \(due.formatted(.iso8601))")
    } else if let taken = one.enqueueTime {
      parts.append(taken.formatted(.iso8601))
    }
    parts.append(one.format)
    parts.append(one.tags.map { "to \($0)" } ?? (one.kind == .direct ? "to handles" : "to all"))
    let outcomes = one.outcomes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
    if !outcomes.isEmpty { parts.append("(" + outcomes.joined(separator: ", ") + ")") }
    if let said = one.said { parts.append(said) }
    return parts.joined(separator: "  ")
  }
}

extension NotificationWords {
  /// The words for a person, or why there are none; `nil` if that is not known.
  fileprivate var said: String? {
    switch textState {
    case .off?: return "Text not kept"
    case .sealed?: return "Sealed message"
    case .silent?: return "Silent push"
    default:
      let words = [title, text].compactMap(\.self).joined(separator: ": ")
      return words.isEmpty ? nil : "“\(words.harmless.cut(to: 80))”"
    }
  }
}

extension NotificationTelemetry.State {
  fileprivate static let all: [Self] = [
    .enqueued, .scheduled, .processing, .completed, .noTargetFound, .abandoned, .canceled,
  ]
}

struct NotificationListCommand: ResultCommand {
  static let about = CommandHelp(
    "notification list", "list what was sent, is under way or waits, the newest first",
    examples: [
      "belfry notification list --state Processing",
      "belfry notification list --from -2h --tag news --json",
    ])

  private let listing = NotificationListing()
  @Option(
    "--state", "A,B", "only in these states, such as Processing,Completed",
    Reader(words: NotificationTelemetry.State.all.map(\.rawValue)) {
      text, name throws(UsageError) in
      var states: [NotificationTelemetry.State] = []
      for word in TextInput.list(text) {
        let all = NotificationTelemetry.State.all
        guard let state = all.first(where: { $0.rawValue.lowercased() == word.lowercased() }) else {
          throw UsageError(
            "\(name): '\(word)' is not a state; the states are "
              + all.map(\.rawValue).joined(separator: ", "))
        }
        states.append(state)
      }
      return states
    }) var states: [NotificationTelemetry.State]?
  @Option("--kind", "WORD", "only of this kind", .one(of: NotificationSummary.Kind.all))
  var kind: NotificationSummary.Kind?

  func result(in context: CommandContext) async throws -> CommandResult {
    try await listing.result(
      of: .listNotifications, in: context, states: states ?? [], kind: kind)
  }
}

struct ScheduleListCommand: ResultCommand {
  static let about = CommandHelp(
    "schedule list", "list the notifications that wait for their time, the soonest first",
    discussion: "`belfry notification cancel ID` takes one back.",
    examples: ["belfry schedule list", "belfry schedule list --until +1d --json"])

  private let listing = NotificationListing()

  func result(in context: CommandContext) async throws -> CommandResult {
    try await listing.result(of: .listScheduled, in: context)
  }
}

struct NotificationShowCommand: ResultCommand {
  static let about = CommandHelp(
    "notification show", "show the state and the outcomes of a notification",
    discussion: """
      With --wait the exit code is 1 if no device was reached, or the time is up.
      """,
    examples: [
      "belfry notification show 2e7f83cc61d44e3d9397c86939918508-20200723042753-1-1",
      "belfry notification show 2e7f", "belfry notification show --last --wait",
    ])

  private let choice = NotificationChoice()
  let client = ClientOptions()
  @Flag("--wait", "wait until every device has its outcome") var waits
  @Option("--timeout", "SECONDS", "how long --wait waits", .integer(1...86_400)) var timeout = 60

  func result(in context: CommandContext) async throws -> CommandResult {
    try choice.check()
    let id: String
    let telemetry: NotificationTelemetry
    if waits {
      let access = try await client.access(in: context)
      id = try await access.calling { try await choice.wholeID(in: access) }
      telemetry = try await access.finalTelemetry(
        of: id, within: .seconds(timeout), json: client.json, in: context)
    } else {
      (id, telemetry) = try await client.withHub(in: context) { access in
        let id = try await choice.wholeID(in: access)
        return (id, try await access.client.telemetry(of: id))
      }
    }
    let end = NotificationEnd(id: id, location: client.location)
    return ShownTelemetry(telemetry).result(
      waits ? end.failure(telemetry, after: timeout) : nil)
  }
}

struct NotificationCancelCommand: ResultCommand {
  static let about = CommandHelp(
    "notification cancel", "cancel a scheduled notification",
    discussion: """
      A notification whose time has come cannot be cancelled: the hub refuses, and the exit code is
      1.
      """,
    examples: [
      "belfry notification cancel af14e491a7994a65b7b3a5681a373337_20300105100000_1_1_Q-S1"
    ])

  private let choice = NotificationChoice()
  let client = ClientOptions(directoryAccess: .server)

  func result(in context: CommandContext) async throws -> CommandResult {
    try choice.check(changes: true)
    let id = try await client.withHub(.changes, in: context) { access in
      let id = try await choice.wholeID(in: access)
      try await access.client.cancel(scheduled: id)
      return id
    }
    return CommandResult(["notificationId": id, "state": "Canceled"], ["cancelled: \(id)"])
  }
}

struct NotificationAbortCommand: ResultCommand {
  static let about = CommandHelp(
    "notification abort", "stop a notification that is under way",
    discussion: """
      Pushes that a push service already has are delivered; all other devices get nothing, and count
      as Aborted. A scheduled notification is cancelled. For one that has ended the exit code is 1.
      """,
    examples: ["belfry notification abort 2e7f83cc61d44e3d9397c86939918508-20200723042753-1-1"])

  private let choice = NotificationChoice()
  let client = ClientOptions(belfryOnly: "Send", directoryAccess: .server)

  func result(in context: CommandContext) async throws -> CommandResult {
    try choice.check(changes: true)
    let (id, end) = try await client.withHub(.changes, in: context) { access in
      let id = try await choice.wholeID(in: access)
      return (id, try await access.client.abort(id))
    }
    return CommandResult(
      written: end.json,
      ["\(end.state): \(id)", end.aborted.counted("device") + " not sent to"],
      notes: end.state.isFinal
        ? []
        : [
          "nothing more is sent; the rest is being counted: belfry notification show \(id)"
            + client.location.options
        ])
  }
}

struct NotificationDevicesCommand: Subcommand {
  static let about = CommandHelp(
    "notification devices", "list the outcomes of a notification by device",
    discussion: """
      A server keeps failures for a week unless it is configured otherwise (keepOutcomes in `belfry
      serve --help`); devices that are not listed have then got the notification.

      With --json each device is a separate line.
      """,
    examples: ["belfry notification devices --last --outcome ExpiredChannel --json"])

  private let choice = NotificationChoice()
  let client = ClientOptions(belfryOnly: "Send")
  @Option(
    "--outcome", "NAME", "only devices with this outcome, such as ExpiredChannel",
    Reader(words: NotificationOutcome.allCases.map(\.name)) { text, name throws(UsageError) in
      let known = NotificationOutcome.allCases
      if let outcome = known.first(where: { $0.name.lowercased() == text.lowercased() }) {
        return outcome
      }
      throw UsageError(
        "\(name): '\(text)' is not an outcome"
          + Suggestion.text(for: text, among: known.map(\.name))
          + "\nthe outcomes are " + known.map(\.name).joined(separator: ", "))
    }) var outcome: NotificationOutcome?
  @Option("--platform", "NAME", "only devices of this platform, such as apns", .platform)
  var platform: PushPlatform?
  @Option("--installation", "ID", "only this installation") var installation: String?
  @Option("--limit", "N", "the most devices to list", .integer(1...1_000_000_000)) var limit = 1000

  func run(in context: CommandContext) async throws {
    try choice.check()
    var query = DeviceOutcomeQuery(installation: installation)
    query.outcome = outcome
    query.platform = platform
    let (id, count) = try await client.withHub(in: context) { access in
      let id = try await choice.wholeID(in: access)
      var count = 0
      for try await device in access.client.devices(of: id, query) {
        if count == limit {
          context.note("there are more; --limit lists them")
          break
        }
        count += 1
        try CommandResult(
          written: JSONWriter.object { device.write(to: &$0) }, [Self.line(device)]
        ).print(asJSON: client.json, in: context)
      }
      return (id, count)
    }
    if !client.json { context.print(count.counted("device")) }
    if count == 0 {
      context.note("devices with success are not listed: belfry notification show \(id) counts it")
    }
  }

  private static func line(_ device: DeviceOutcome) -> String {
    var parts = [
      (device.installationID ?? device.registrationID ?? device.handle ?? "?").padded(to: 38),
      (device.platform?.rawValue ?? "?").padded(to: 8), device.outcomeName,
    ]
    var details: [String] = []
    if device.status > 0 { details.append(String(device.status)) }
    if let reason = device.reason { details.append(reason) }
    if device.attempts > 1 { details.append("after \(device.attempts) tries") }
    if !details.isEmpty { parts.append("(" + details.joined(separator: " ") + ")") }
    return parts.joined(separator: " ")
  }
}

extension HubAccess {
  /// Polls a notification's telemetry until its state is final.
  ///
  /// - Returns: The last telemetry, final or not.
  func finalTelemetry(
    of id: String, within limit: Duration, json: Bool, in context: CommandContext
  ) async throws -> NotificationTelemetry {
    var shown = ""
    return try await calling {
      try await client.finalTelemetry(of: id, within: limit) { telemetry in
        let line = "\(telemetry.state): \(ShownTelemetry(telemetry).total) devices so far"
        if context.isTerminal && !json && line != shown { context.note(line) }
        shown = line
      }
    }
  }
}

/// The check whether a notification ended as intended, which sets the exit code of every command
/// that waits for it.
struct NotificationEnd {
  let id: String
  let location: HubLocation
  /// The tag expression of the audience, if known.
  var tags: TagExpression?

  /// The failure if no device was reached.
  func failure(_ state: NotificationTelemetry.State, succeeded: Int) -> CommandFailure? {
    guard state == .completed else {
      return CommandFailure(
        "the notification ended as \(state)" + (state == .noTargetFound ? nobody : ""))
    }
    guard succeeded > 0 else {
      return CommandFailure(
        "no device was reached; why: belfry notification devices \(id)\(location.options)")
    }
    return nil
  }

  /// The failure if it has not ended in time, or no device was reached.
  /// - Parameter hint: The command that shows it later; empty where it was just used.
  func failure(
    _ telemetry: NotificationTelemetry, after timeout: Int, hint: String = ""
  ) -> CommandFailure? {
    guard telemetry.state.isFinal else {
      return CommandFailure(
        "still \(telemetry.state) after \(timeout) s; delivery continues\(hint)")
    }
    return failure(telemetry.state, succeeded: telemetry.count(of: .success))
  }

  /// Advice for a send that finds no device.
  var nobody: String {
    let tags = tags.map { " --tags \(CurlCommand.word($0.description))" } ?? ""
    return
      "; whom tags reach: belfry audience count\(tags)\(location.options), who is there: belfry "
      + "installation list\(location.options)"
  }
}

/// Telemetry as printed for people and scripts.
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
    let title: String?
    let text: String?
    let textState: String?
  }

  /// The number of targets with an outcome.
  var total: Int { telemetry.outcomes.values.flatMap(\.values).reduce(0, +) }

  /// - Parameter failure: The failure of the command that follows.
  func result(_ failure: CommandFailure?) -> CommandResult {
    CommandResult(
      JSON(
        notificationId: telemetry.notificationID, state: telemetry.state.rawValue,
        enqueueTime: Self.text(telemetry.enqueueTime),
        startTime: Self.text(telemetry.startTime), endTime: Self.text(telemetry.endTime),
        dueTime: Self.text(telemetry.dueTime), tags: telemetry.tags,
        targetPlatforms: telemetry.targetPlatforms,
        outcomes: Dictionary(
          uniqueKeysWithValues: telemetry.outcomes.map { ($0.key.rawValue, $0.value) }),
        title: telemetry.title, text: telemetry.text, textState: telemetry.textState?.rawValue),
      lines, failure: failure)
  }

  /// The store has a precision of milliseconds.
  static func duration(_ seconds: TimeInterval) -> String {
    seconds < 0.001 ? "less than 1 ms" : String(format: "%.3f s", seconds)
  }

  private static func text(_ date: Date?) -> String? {
    date?.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
  }

  private var lines: [String] {
    var lines = ["state         \(telemetry.state)"]
    if let said = telemetry.said { lines.append("says          \(said)") }
    if let enqueued = telemetry.enqueueTime {
      var line = "accepted      \(enqueued.formatted(.iso8601))"
      // Measured from the start, since the time of acceptance is in whole seconds.
      if let start = telemetry.startTime, let end = telemetry.endTime {
        line += ", ended after " + Self.duration(end.timeIntervalSince(start))
      }
      lines.append(line)
    }
    if let due = telemetry.dueTime { lines.append("to be sent    \(due.formatted(.iso8601))") }
    // Without tags it went to every device or to handles; telemetry does not show which.
    if let tags = telemetry.tags { lines.append("to            \(tags)") }
    for (platform, counts) in telemetry.outcomes.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      for (name, count) in counts.sorted(by: { $0.key < $1.key }) {
        lines.append("\(platform.rawValue.padded(to: 14))\(name.padded(to: 30)) \(count)")
      }
    }
    lines.append(total.counted("device"))
    return lines
  }
}
