import Foundation
import NotificationHubs

struct NotificationWatchCommand: Subcommand {
  static let about = CommandHelp(
    "notification watch", "follow a notification until every device has its outcome",
    discussion: """
      On a terminal one line shows the progress, the rate and the time left; elsewhere a line is
      printed when something has changed; with --json each line is an object.

      The exit code is 0 if the notification is completed and a device was reached, and 1 if none
      was, if it was cancelled or abandoned, or if the time is up.

      The number of devices is known on Belfry only.
      """,
    examples: ["belfry notification watch --last", "belfry notification watch 2e7f --json"])

  private let choice = NotificationChoice()
  let client = ClientOptions(directoryAccess: .server)
  @Option(
    "--timeout", "SECONDS", "give up after so long (default: never)", .integer(1...1_000_000))
  var timeout: Int?

  func run(in context: CommandContext) async throws {
    try choice.check()
    let access = try await client.access(in: context)
    let id = try await access.calling { try await choice.wholeID(in: access) }
    var view = ProgressView(json: client.json, context: context)
    // The time limit may be reached while no update arrives.
    let (updates, continuation) = AsyncThrowingStream<NotificationProgress, any Error>.makeStream()
    let reader = Task {
      do {
        try await Self.updates(of: id, access.client) { continuation.yield($0) }
        continuation.finish()
      } catch {
        continuation.finish(throwing: error)
      }
    }
    let timer = timeout.map { seconds in
      Task {
        try await Task.sleep(for: .seconds(seconds))
        continuation.finish()
      }
    }
    defer {
      reader.cancel()
      timer?.cancel()
    }
    var last: NotificationProgress?
    try await access.calling {
      for try await found in updates {
        view.show(found)
        last = found
        if found.state.isFinal { return }
      }
    }
    guard let last, last.state.isFinal else {
      view.clear()
      throw CommandFailure(
        "still \(last.map { "\($0.state)" } ?? "unknown") after \(timeout ?? 0) s; delivery "
          + "continues")
    }
    view.end(last)
    let end = NotificationEnd(id: id, location: client.location)
    if let failure = end.failure(last.state, succeeded: last.succeeded) { throw failure }
  }

  private static func updates(
    of id: String, _ client: NotificationHubClient, _ tell: (NotificationProgress) -> Void
  ) async throws {
    do {
      for try await found in client.updates(of: id) { tell(found) }
    } catch let error as NotificationHubError where error.kind == .notFound {
      // Azure hubs have telemetry only and no events, so they are polled at growing intervals.
      var pause = Duration.milliseconds(50)
      while true {
        let found = NotificationProgress(try await client.telemetry(of: id), of: id)
        tell(found)
        if found.state.isFinal { return }
        try await Task.sleep(for: pause)
        pause = min(pause * 2, .seconds(1))
      }
    }
  }
}

extension NotificationProgress {
  fileprivate init(_ telemetry: NotificationTelemetry, of id: String) {
    var outcomes: [String: Int] = [:]
    for counts in telemetry.outcomes.values { outcomes.merge(counts, uniquingKeysWith: +) }
    self.init(
      notificationID: id, state: telemetry.state, audience: nil,
      done: outcomes.values.reduce(0, +), retrying: 0, outcomes: outcomes,
      startTime: telemetry.startTime, endTime: telemetry.endTime, dueTime: nil)
  }
}

/// Shows progress: in place on a terminal, otherwise line by line.
struct ProgressView {
  private let json: Bool
  private let context: CommandContext
  private var bar: ProgressBar
  private var last: NotificationProgress?
  /// Past counts with their times, to compute the rate.
  private var marks: [(time: ContinuousClock.Instant, done: Int)] = []
  /// The largest audience seen: it shrinks as dead handles are removed.
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

  /// Prints the outcomes, one per line.
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

  /// The number of devices per second over the last ten seconds; `nil` until there are two counts.
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

/// A progress bar on a terminal, in one line that is overwritten. Shows nothing if standard error
/// is not a terminal.
struct ProgressBar {
  private let isShown: Bool
  private var last = ContinuousClock.now - .seconds(1)
  private static let width = 30

  init(isShown: Bool = isatty(2) == 1) { self.isShown = isShown }

  /// - Parameters:
  ///   - fraction: The fraction done, 0 to 1; `nil` if the total is unknown.
  ///   - text: The amount done so far, such as `12000 lines`.
  mutating func show(_ fraction: Double?, _ text: String) {
    let now = ContinuousClock.now
    guard isShown, now - last > .milliseconds(100) else { return }
    last = now
    var line = "\r\u{1B}[K"
    if let fraction {
      let full = Int((min(max(fraction, 0), 1) * Double(Self.width)).rounded())
      line += "[" + String(repeating: "#", count: full)
      line += String(repeating: " ", count: Self.width - full) + "] \(Int(fraction * 100)) %  "
    }
    write(line + text)
  }

  /// Erases the line.
  func clear() {
    if isShown { write("\r\u{1B}[K") }
  }

  private func write(_ text: String) {
    try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
  }
}
