import Foundation
import NotificationHubs

/// `belfry notification watch`
struct NotificationWatchCommand: Subcommand {
  static let help = CommandHelp(
    "notification watch", "follow a notification until every device has its outcome",
    arguments: [("ID", "what `belfry send` printed")],
    options: ClientOptions.options + [
      .value("--timeout", "SECONDS", "give up after so long (default: never)")
    ],
    discussion: """
      On a terminal one line shows what is done, the rate and the time left; elsewhere a line is
      printed when something has changed; with --json each line is an object.

      Exit code 0 when the notification is completed and somebody was reached, 1 when nobody was,
      when it was cancelled or abandoned, or when the time is up.

      The number of devices is known on Belfry only. \(ClientOptions.note)
      """,
    examples: ["belfry notification watch ID", "belfry notification watch ID --json"])

  let id: String
  let timeout: Int?
  let client: ClientOptions

  init(_ words: Words) throws {
    id = try words.argument(0)
    client = ClientOptions(words: words)
    timeout = try words.integer("--timeout", in: 1...1_000_000)
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.looks("Send"), in: context)
    let deadline = timeout.map { ContinuousClock.now + .seconds($0) }
    var view = ProgressView(json: client.json, context: context)
    var pause = Duration.milliseconds(50)
    while true {
      let found = try await access.calling { try await self.progress(access.client) }
      view.show(found)
      if found.state.isFinal {
        view.end(found)
        return try NotificationEnd.check(
          found.state, succeeded: found.succeeded, id, client.words)
      }
      if let deadline, ContinuousClock.now >= deadline {
        view.clear()
        throw CommandFailure("still \(found.state) after \(timeout ?? 0) s; it goes on")
      }
      // The protocol has no way to be told, so the hub is asked again, ever less often.
      try await Task.sleep(for: pause)
      pause = min(pause * 2, .seconds(1))
    }
  }

  /// A hub of Azure has telemetry only.
  private func progress(_ client: NotificationHubClient) async throws -> NotificationProgress {
    do {
      return try await client.progress(of: id)
    } catch let error as NotificationHubError where error.kind == .notFound {
      let telemetry = try await client.telemetry(of: id)
      var outcomes: [String: Int] = [:]
      for counts in telemetry.outcomes.values {
        outcomes.merge(counts, uniquingKeysWith: +)
      }
      return NotificationProgress(
        notificationID: id, state: telemetry.state, audience: nil,
        done: outcomes.values.reduce(0, +), retrying: 0, outcomes: outcomes,
        startTime: telemetry.startTime, endTime: telemetry.endTime, dueTime: nil)
    }
  }
}

/// Shows progress: in place on a terminal, otherwise line by line.
struct ProgressView {
  private let json: Bool
  private let context: CommandContext
  private var bar: ProgressBar
  private var last: NotificationProgress?
  /// What was done when, for the rate.
  private var marks: [(time: ContinuousClock.Instant, done: Int)] = []
  /// The audience shrinks as dead handles leave; the largest seen is what was there.
  private var audience: Int?

  init(json: Bool, context: CommandContext) {
    self.json = json
    self.context = context
    bar = ProgressBar(isShown: context.isTerminal && !json)
  }

  mutating func show(_ progress: NotificationProgress) {
    var progress = progress
    if let count = progress.audience { audience = max(audience ?? 0, count) }
    progress.audience = audience
    let now = ContinuousClock.now
    marks.append((now, progress.done))
    marks.removeAll { $0.time < now - .seconds(10) }
    defer { last = progress }
    if json {
      if progress != last { context.print(String(decoding: progress.json, as: UTF8.self)) }
    } else if context.isTerminal {
      bar.show(fraction(progress), Self.text(progress, rate: rate))
    } else if progress != last {
      context.print(Self.text(progress, rate: rate))
    }
  }

  func clear() { bar.clear() }

  /// The outcomes, one a line.
  func end(_ progress: NotificationProgress) {
    bar.clear()
    guard !json else { return }
    if context.isTerminal { context.print(Self.text(progress, rate: nil)) }
    for (name, count) in progress.outcomes.sorted(by: { $0.key < $1.key }) {
      context.print("  \(name.padded(to: 30)) \(count)")
    }
    if let start = progress.startTime, let end = progress.endTime {
      context.print("  took " + ShownTelemetry.duration(end.timeIntervalSince(start)))
    }
  }

  private func fraction(_ progress: NotificationProgress) -> Double? {
    progress.audience.flatMap { $0 > 0 ? Double(progress.done) / Double($0) : nil }
  }

  /// Devices a second over the last ten seconds; `nil` until there is something to compare.
  private var rate: Double? {
    guard let first = marks.first, let last = marks.last else { return nil }
    let seconds = first.time.duration(to: last.time) / .seconds(1)
    return seconds > 0.2 && last.done > first.done
      ? Double(last.done - first.done) / seconds : nil
  }

  /// `Processing: 1200 of 5000, 3 failed, 2 retrying, 950/s, 4 s left`
  static func text(_ progress: NotificationProgress, rate: Double?) -> String {
    var parts = ["\(progress.done)" + (progress.audience.map { " of \($0)" } ?? " devices")]
    if progress.failed > 0 { parts.append("\(progress.failed) failed") }
    if progress.retrying > 0 { parts.append("\(progress.retrying) retrying") }
    if let rate {
      parts.append("\(Int(rate.rounded()))/s")
      if let audience = progress.audience, audience > progress.done {
        parts.append("\(Int((Double(audience - progress.done) / rate).rounded(.up))) s left")
      }
    }
    if progress.state == .scheduled, let due = progress.dueTime {
      parts = ["due \(due.formatted(.iso8601))"]
    }
    return "\(progress.state): " + parts.joined(separator: ", ")
  }
}
