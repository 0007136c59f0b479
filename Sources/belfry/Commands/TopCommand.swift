import Dispatch
import Foundation
import HubCore
import NotificationHubs
import Synchronization

struct TopCommand: Subcommand {
  static let about = CommandHelp(
    "top", "show a server live: lanes, rates, failures, notifications under way, warnings",
    discussion: """
      Shows `/metrics`, `/health/ready` and the lists of notifications, and updates them until
      Ctrl-C. Rates are changes since the last update. If standard output is not a terminal, or with
      --once or --json, it samples twice, prints one snapshot and exits.

      A connection string must have a key of the namespace with Manage. With several nodes the
      figures are those of the node that answers; nodes and notifications under way are those of
      all.
      """,
    examples: [
      "belfry top", "belfry top --data /var/lib/belfry --interval 5",
      "belfry top --once --hub news",
      "BELFRY_CONNECTION_STRING='Endpoint=sb://push.example.com/;SharedAccessKeyName=…' belfry top",
    ])

  private let client = ClientOptions(belfryOnly: "Manage", directoryAccess: .server)
  @Option("--interval", "SECONDS", "how long between two looks", .integer(1...3600))
  var interval = 2
  @Flag("--once", "print one picture and end") var once

  func run(in context: CommandContext) async throws {
    let source = try await source(context)
    let hub = client.hub ?? context.environment["BELFRY_HUB"]
    guard context.isTerminal, !once, !client.json else {
      let first = try await source.look(hub)
      try await Task.sleep(for: .seconds(interval))
      let frame = TopFrame(sample: try await source.look(hub), previous: first, hub: hub)
      let width = context.environment["COLUMNS"].flatMap { Int($0) } ?? 100
      return try CommandResult(frame.report, frame.lines(width: width).map(\.text))
        .print(asJSON: client.json, in: context)
    }
    // Initial errors are reported before switching the screen.
    let first = try await source.look(hub)
    let signal = ShutdownSignal(report: context.note)
    let watching = Task {
      try await watch(source, first, hub: hub, screen: TerminalScreen(isStyled: context.isStyled))
    }
    let ending = Task {
      _ = await signal.wait()
      watching.cancel()
    }
    defer { ending.cancel() }
    do { try await watching.value } catch is CancellationError {}
  }

  private func watch(
    _ source: TopSource, _ first: TopSample, hub: String?, screen: TerminalScreen
  ) async throws {
    defer { screen.leave() }
    var frame = TopFrame(sample: first, previous: nil, hub: hub)
    var noticed = ContinuousClock.now
    while true {
      screen.show(frame)
      try await Task.sleep(for: .seconds(interval))
      if ContinuousClock.now - noticed > .seconds(60) { frame.notice = nil }
      do {
        let next = try await source.look(hub)
        let isSame = next.start == frame.sample.start
        if !isSame || frame.isAway {
          frame.notice =
            (isSame ? "the server answers again" : "the server was started again") + ", seen at "
            + next.time.formatted(.iso8601)
          noticed = .now
        }
        frame = TopFrame(
          sample: next, previous: isSame ? frame.sample : nil, hub: hub, notice: frame.notice)
      } catch let failure as CommandFailure {
        frame.isAway = true
        frame.notice = "\(failure); asking again"
        noticed = .now
      }
    }
  }

  private func source(_ context: CommandContext) async throws -> TopSource {
    let target = try client.location.target(in: context)
    switch target.location {
    case .connection(let connection):
      let access = try client.access(connection, hub: "", in: context)
      return TopSource(access: access, endpoint: { access.connection.endpoint })
    case .directory(let directory):
      _ = try DataDirectory.existing(at: directory.path)
      // Looked up each time: a restarted server may have another port, and the port of a stopped
      // one may belong to another program, which must not receive a token.
      let endpoint: @Sendable () throws -> ServiceEndpoint = { try directory.requiredEndpoint() }
      let first = try endpoint()
      let policy = try await client.location.open(directory, in: context) { runtime in
        try await runtime.service.policies.root()
      }
      let access = HubAccess(
        connection: policy.connectionString(endpoint: first), hub: "")
      return TopSource(access: access, endpoint: endpoint)
    }
  }
}

/// Reads the data of `belfry top` from a server.
private struct TopSource {
  let access: HubAccess
  /// Throws ``CommandFailure`` if no server is running.
  let endpoint: @Sendable () throws -> ServiceEndpoint
  /// More would take longer than the interval of refreshes.
  private static let hubLimit = 20
  private static let notificationLimit = 8

  func look(_ hub: String?) async throws -> TopSample {
    let endpoint = try endpoint()
    let connection = ConnectionString(
      endpoint: endpoint, keyName: access.connection.keyName, key: access.connection.key)
    let tokens = TokenProvider(connectionString: connection, hub: "")
    let page = try await get("/metrics", endpoint, token: tokens.token().text)
    guard page.status == 200, let text = String(data: page.body, encoding: .utf8) else {
      throw CommandFailure(
        page.status == 401 || page.status == 403
          ? "the metrics are for a key of the namespace with Manage: a connection string of "
            + "RootManageSharedAccessKey, or --data DIR"
          : "\(endpoint.url) answered \(page.status), but it is not a Belfry server")
    }
    let time = Date()
    let health = try await get("/health/ready", endpoint)
    let report = try? JSONDecoder().decode(ServerHealth.Report.self, from: health.body)
    var sample = TopSample(
      address: endpoint.url, time: time, metrics: ServerMetrics(text),
      status: report?.status ?? "no health",
      findings: ((report?.reasons ?? []) + (report?.warnings ?? [])).map { ($0.code, $0.text) },
      broadcasts: [])
    try await HubAccess(connection: connection, hub: "").calling {
      let namespace = NamespaceClient(
        connectionString: connection, transport: access.transport, retry: .none)
      let all = try await namespace.hubs().map(\.name)
      let names = all.filter { hub == nil || $0.lowercased() == hub?.lowercased() }
      if let hub, names.isEmpty { throw CommandFailure(unknownHub: hub, of: all) }
      sample.unasked = max(0, names.count - Self.hubLimit)
      for name in names.prefix(Self.hubLimit) {
        let client = NotificationHubClient(
          connectionString: connection, hub: name, transport: access.transport, retry: .none)
        let room = Self.notificationLimit - sample.broadcasts.count
        if room <= 0 { break }
        let query = NotificationQuery(states: [.processing], pageSize: room)
        for one in try await client.notifications(query).first(room) {
          sample.broadcasts.append(
            .init(hub: name, progress: try await client.progress(of: one.notificationID)))
        }
      }
    }
    return sample
  }

  private func get(
    _ path: String, _ endpoint: ServiceEndpoint, token: String? = nil
  ) async throws -> TransportReply {
    guard let url = URL(string: endpoint.url + path) else {
      throw CommandFailure("\(endpoint.url) is not a valid address", exitCode: .usage)
    }
    do {
      return try await access.transport.send(
        TransportRequest(
          method: "GET", url: url, headers: token.map { ["Authorization": $0] } ?? [:]))
    } catch {
      throw CommandFailure("\(endpoint.url) does not answer: \(error)", exitCode: .unreachable)
    }
  }
}

extension TopSample {
  /// The start time of the process, which distinguishes runs of the server.
  fileprivate var start: Double { metrics.value("belfry_process_start_time_seconds") }
}

/// The terminal's alternate screen, active until ``leave()``.
private final class TerminalScreen: Sendable {
  private let isStyled: Bool
  private let shown = Mutex<TopFrame?>(nil)
  // Owned by the screen: set once in `init`, and cancelled by `leave()`.
  nonisolated(unsafe) private let resizes: any DispatchSourceSignal

  init(isStyled: Bool) {
    self.isStyled = isStyled
    resizes = DispatchSource.makeSignalSource(signal: SIGWINCH, queue: .global())
    resizes.setEventHandler { [weak self] in self?.shown.withLock { self?.draw($0) } }
    resizes.resume()
    Self.write("\u{1B}[?1049h\u{1B}[?25l")
  }

  func leave() {
    resizes.cancel()
    shown.withLock { frame in
      frame = nil
      Self.write("\u{1B}[?25h\u{1B}[?1049l")
    }
  }

  func show(_ frame: TopFrame) {
    shown.withLock { shown in
      shown = frame
      draw(frame)
    }
  }

  private func draw(_ frame: TopFrame?) {
    guard let frame else { return }
    var size = winsize()
    let isKnown = ioctl(1, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 && size.ws_row > 0
    let (width, height) = isKnown ? (Int(size.ws_col), Int(size.ws_row)) : (80, 24)
    var lines = frame.lines(width: width)
    if lines.count > height {
      let rest = lines.count - height + 1
      lines = lines.prefix(height - 1) + [("\(rest) more lines", .title)]
    }
    let text = lines.map { line in
      guard isStyled, line.style != .plain else { return line.text }
      return (line.style == .title ? "\u{1B}[1m" : "\u{1B}[31m") + line.text + "\u{1B}[0m"
    }
    Self.write("\u{1B}[H" + text.joined(separator: "\u{1B}[K\r\n") + "\u{1B}[K\u{1B}[J")
  }

  private static func write(_ text: String) {
    try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
  }
}
