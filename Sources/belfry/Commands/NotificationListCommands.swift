import Foundation
import NotificationHubs

/// What `notification list` and `schedule list` have in common.
private struct NotificationListing: Sendable {
  static let options: [Option] =
    ClientOptions.options + [
      .value("--tag", "TAG", "only those whose tag expression names this tag"),
      .value(
        "--from", "TIME", "not before: 2030-01-05T10:00:00Z, or back from now: -90s, -2h, -3d"),
      .value("--until", "TIME", "before; also +2h from now"),
      .value("--limit", "N", "at most so many (default 100)"),
    ]

  let client: ClientOptions
  let limit: Int
  var query: NotificationQuery

  init(_ words: Words) throws {
    client = ClientOptions(words: words)
    limit = try words.integer("--limit", in: 1...1_000_000) ?? 100
    let now = Date()
    query = NotificationQuery(
      tag: words.value("--tag").map { Tag(rawValue: $0) },
      from: try words.value("--from").map {
        try SendDestination.time($0, of: "--from", now: now, words)
      },
      until: try words.value("--until").map {
        try SendDestination.time($0, of: "--until", now: now, words)
      }, pageSize: min(100, limit + 1))
  }

  func run(
    in context: CommandContext,
    _ list: (NotificationHubClient) -> PagedList<NotificationSummary>
  ) async throws {
    let access = try await client.access(.looks("Send"), in: context)
    var found: [NotificationSummary] = []
    try await access.calling {
      // One more than asked for tells whether there are more.
      for try await one in list(access.client) {
        found.append(one)
        if found.count > limit { break }
      }
    }
    let shown = Array(found.prefix(limit))
    let hasMore = found.count > limit
    if client.json {
      context.print(String(decoding: NotificationList.json(shown, hasMore: hasMore), as: UTF8.self))
      return
    }
    for one in shown { context.print(Self.line(one)) }
    context.print(
      (shown.count == 1 ? "1 notification" : "\(shown.count) notifications")
        + " in hub \(access.hub)" + (hasMore ? "; there are more: raise --limit" : ""))
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
    return parts.joined(separator: "  ")
  }
}

/// `belfry notification list`
struct NotificationListCommand: Subcommand {
  static let help = CommandHelp(
    "notification list", "list what was sent, is under way or waits, the newest first",
    options: NotificationListing.options + [
      .value(
        "--state", "A,B", "only in these states, such as Processing,Completed",
        words: states.map(\.rawValue)),
      .value(
        "--kind", "WORD",
        "only of this kind: "
          + NotificationSummary.Kind.all.map(\.rawValue).joined(separator: ", "),
        words: NotificationSummary.Kind.all.map(\.rawValue)),
    ],
    discussion: "Belfry only; needs the Send or the Manage right. \(HubTarget.note)",
    examples: [
      "belfry notification list --state Processing",
      "belfry notification list --from -2h --tag news --json",
    ])

  private static let states: [NotificationTelemetry.State] = [
    .enqueued, .scheduled, .processing, .completed, .noTargetFound, .abandoned, .canceled,
  ]

  private let listing: NotificationListing

  init(_ words: Words) throws {
    var listing = try NotificationListing(words)
    listing.query.states = try TextInput.list(words.value("--state")).map { word in
      guard let state = Self.states.first(where: { $0.rawValue.lowercased() == word.lowercased() })
      else {
        throw words.fault(
          "--state: '\(word)' is none; they are "
            + Self.states.map(\.rawValue).joined(separator: ", "))
      }
      return state
    }
    if let word = words.value("--kind") {
      guard let kind = NotificationSummary.Kind.all.first(where: { $0.rawValue == word }) else {
        throw words.fault(
          "--kind: '\(word)' is none; they are "
            + NotificationSummary.Kind.all.map(\.rawValue).joined(separator: ", "))
      }
      listing.query.kind = kind
    }
    self.listing = listing
  }

  func run(in context: CommandContext) async throws {
    try await listing.run(in: context) { $0.notifications(listing.query) }
  }
}

/// `belfry schedule list`
struct ScheduleListCommand: Subcommand {
  static let help = CommandHelp(
    "schedule list", "list the notifications that wait for their time, the soonest first",
    options: NotificationListing.options,
    discussion: """
      `belfry notification cancel ID` takes one back.

      Belfry only; needs the Send or the Manage right. \(HubTarget.note)
      """,
    examples: ["belfry schedule list", "belfry schedule list --until +1d --json"])

  private let listing: NotificationListing

  init(_ words: Words) throws { listing = try NotificationListing(words) }

  func run(in context: CommandContext) async throws {
    try await listing.run(in: context) { $0.scheduledNotifications(listing.query) }
  }
}
