import Foundation
import NotificationHubs

/// A sample of a server's state.
struct TopSample: Sendable {
  struct Broadcast: Sendable {
    var hub: String
    var progress: NotificationProgress
  }

  var address: String
  var time: Date
  var metrics: ServerMetrics
  /// The status at `/health/ready`: `ready`, or another.
  var status: String
  var findings: [(code: String, text: String)]
  var broadcasts: [Broadcast]
  /// The number of hubs that were not queried for broadcasts.
  var unasked = 0
}

/// A parser of Prometheus' text format (0.0.4), as `/metrics` writes it; lines in other formats are
/// ignored.
struct ServerMetrics: Sendable {
  struct Sample: Sendable, Equatable {
    var labels: [String: String]
    var value: Double
  }

  private var samples: [String: [Sample]] = [:]

  init(_ text: String) {
    for line in text.split(separator: "\n") where line.first != "#" {
      guard let match = line.wholeMatch(of: #/([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([^ ]+)/#),
        let value = Double(match.3), abs(value) < 1e18
      else { continue }
      var labels: [String: String] = [:]
      for label in (match.2 ?? "").matches(of: #/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/#) {
        labels[String(label.1)] = String(
          label.2.replacing(#/\\(.)/#) { $0.1 == "n" ? "\n" : String($0.1) })
      }
      samples[String(match.1), default: []].append(Sample(labels: labels, value: value))
    }
  }

  subscript(name: String) -> [Sample] { samples[name] ?? [] }

  func value(_ name: String) -> Double { self[name].reduce(0) { $0 + $1.value } }
}

/// The output of `belfry top --json`. Values that the server does not report are omitted.
struct TopReport: Encodable {
  struct Lane: Encodable {
    let hub, platform, state: String
    let waiting, inFlight, connections, streams, streamLimit: Double?
  }
  struct Failure: Encodable {
    let platform, outcome: String
    let count: Double
    let perSecond: Double?
  }
  struct Notification: Encodable {
    let hub, notificationID: String
    let audience: Int?
    let done, retrying: Int

    enum CodingKeys: String, CodingKey {
      case hub, audience, done, retrying
      case notificationID = "notificationId"
    }
  }
  struct Finding: Encodable { let code, text: String }
  struct Node: Encodable {
    let name, address: String
    let silenceSeconds: Double
  }

  let address, status: String
  let version: String?
  let upSeconds: Double?
  let memoryBytes: Double
  let acceptedPerSecond, deliveredPerSecond, failedPerSecond: Double?
  let retriesWaiting: Double
  let lanes: [Lane]
  let failures: [Failure]
  let underWay: [Notification]
  let findings: [Finding]
  let nodes: [Node]
}

/// A frame of `belfry top`, as a function of a sample, so that it can be tested without a server.
struct TopFrame {
  var sample: TopSample
  /// The previous sample of the same run of the server, from which rates are computed.
  var previous: TopSample?
  /// The only hub to show; `nil` for all.
  var hub: String?
  /// A sentence about an event of the server.
  var notice: String?
  /// Whether the server does not reply; the last known state is then shown.
  var isAway = false

  enum Style { case plain, title, alarm }

  /// The lines, of at most `width` columns, without control characters.
  func lines(width: Int) -> [(text: String, style: Style)] {
    var lines: [(String, Style)] = []
    func add(_ text: String, _ style: Style = .plain) {
      lines.append((text.harmless.cut(to: max(width, 20)), style))
    }
    func section(_ title: String, _ rows: [(String, Style)]) {
      guard !rows.isEmpty else { return }
      add("")
      add(title, .title)
      for row in rows { add(row.0, row.1) }
    }
    add(head, .title)
    if let notice { add(notice, .alarm) }
    for line in summary { add(line) }
    section(laneTitle(width), lanes(width))
    section("FAILED".padded(to: 31) + "all     rate", failures)
    section("UNDER WAY", broadcasts(width))
    section("HEALTH", sample.findings.map { ("\($0.code): \($0.text)", .alarm) })
    section("NODES", nodes)
    return lines
  }

  private var head: String {
    let metrics = sample.metrics
    let version = metrics["belfry_build_info"].first?.labels["version"] ?? "?"
    let start = metrics.value("belfry_process_start_time_seconds")
    var parts = ["belfry \(version) at \(sample.address)", isAway ? "no answer" : sample.status]
    if start > 0 { parts.append("up " + Self.span(sample.time.timeIntervalSince1970 - start)) }
    let memory = metrics.value("belfry_process_resident_memory_bytes")
    if memory > 0 { parts.append("\(Int(memory / 1_000_000)) MB") }
    parts.append(sample.time.formatted(.iso8601))
    return parts.joined(separator: "  ")
  }

  private var summary: [String] {
    let metrics = sample.metrics
    func count(_ name: String) -> String { Self.number(metrics.value(name)) }
    let delivered: (ServerMetrics.Sample) -> Bool = { $0.labels["outcome"] == Self.success }
    return [
      "accepted " + rate("belfry_sends_accepted_total")
        + "   delivered " + rate("belfry_outcomes_total", where: delivered)
        + "   failed " + rate("belfry_outcomes_total", where: Self.isFailure),
      "notifications under way \(count("belfry_notifications_unfinished"))   devices in hand "
        + "\(count("belfry_targets_in_memory"))   retries \(count("belfry_retries_waiting"))",
    ]
  }

  private static let success = NotificationOutcome.success.name

  private static func isFailure(_ sample: ServerMetrics.Sample) -> Bool {
    guard let outcome = sample.labels["outcome"], outcome != success else { return false }
    return NotificationOutcome.unsent(in: [outcome: 1]) == 0
  }

  /// The rate, such as `12/s`, or `-` without a previous sample.
  private func rate(
    _ name: String, where isMeant: (ServerMetrics.Sample) -> Bool = { _ in true }
  ) -> String {
    change(name, where: isMeant).map(Self.perSecond) ?? "-"
  }

  /// The change per second since the previous sample; `nil` without one.
  private func change(
    _ name: String, where isMeant: (ServerMetrics.Sample) -> Bool = { _ in true }
  ) -> Double? {
    func sum(_ sample: TopSample) -> Double {
      sample.metrics[name].filter(isMeant).reduce(0) { $0 + $1.value }
    }
    guard let previous else { return nil }
    let seconds = sample.time.timeIntervalSince(previous.time)
    return seconds > 0 ? (sum(sample) - sum(previous)) / seconds : nil
  }

  // MARK: Lanes

  /// The title of the lanes; hub and platform get the width that the numbers leave.
  private func laneTitle(_ width: Int) -> String {
    laneRow(width, "LANES", "platform", ["waiting", "in flight", "conns", "streams"], "state")
  }

  private func laneRow(
    _ width: Int, _ hub: String, _ platform: String, _ numbers: [String], _ state: String
  ) -> String {
    // Connections are dropped first if the width is small.
    let numbers = width < 76 ? Array(numbers.prefix(2)) : numbers
    let room = max(8, min(32, width - 9 - 10 * numbers.count - 18))
    return hub.harmless.cut(to: room, padded: true) + " "
      + platform.harmless.cut(to: 8, padded: true)
      + numbers.map { String(repeating: " ", count: max(1, 10 - $0.count)) + $0 }.joined()
      + "  " + state
  }

  private var lanes: [TopReport.Lane] {
    struct Key: Hashable {
      let hub: String
      let platform: String
    }
    func table(_ name: String) -> [Key: Double] {
      Dictionary(
        sample.metrics[name].map {
          (Key(hub: $0.labels["hub"] ?? "", platform: $0.labels["platform"] ?? ""), $0.value)
        }, uniquingKeysWith: +)
    }
    let waiting = table("belfry_lane_waiting")
    let flying = table("belfry_lane_in_flight")
    let connections = table("belfry_gateway_connections")
    let (streams, limits) = (table("belfry_gateway_streams"), table("belfry_gateway_stream_limit"))
    let resting = table("belfry_lane_resting")
    let refused = table("belfry_credential_refused")
    let alarmed = table("belfry_dead_handle_alarm")
    let keys = Set(waiting.keys).union(connections.keys).filter { hub == nil || $0.hub == hub }
    return keys.sorted { ($0.hub, $0.platform) < ($1.hub, $1.platform) }.map { key in
      let state =
        refused[key] == 1
        ? "refused" : alarmed[key] == 1 ? "dead handles" : resting[key] == 1 ? "rests" : "ok"
      return TopReport.Lane(
        hub: key.hub, platform: key.platform, state: state, waiting: waiting[key],
        inFlight: flying[key], connections: connections[key], streams: streams[key],
        streamLimit: limits[key])
    }
  }

  private func lanes(_ width: Int) -> [(String, Style)] {
    lanes.map { lane in
      func number(_ value: Double?) -> String { value.map(Self.number) ?? "-" }
      let open = number(lane.streams) + (lane.streamLimit.map { "/" + Self.number($0) } ?? "")
      return (
        laneRow(
          width, lane.hub, lane.platform,
          [number(lane.waiting), number(lane.inFlight), number(lane.connections), open],
          lane.state),
        lane.state == "ok" ? .plain : .alarm
      )
    }
  }

  // MARK: What fails, what is under way, who works

  private var failed: [TopReport.Failure] {
    let failed = sample.metrics["belfry_outcomes_total"].filter(Self.isFailure)
    return failed.filter { $0.value > 0 }.sorted { $0.value > $1.value }.prefix(10).map { one in
      TopReport.Failure(
        platform: one.labels["platform"] ?? "", outcome: one.labels["outcome"] ?? "",
        count: one.value,
        perSecond: change("belfry_outcomes_total") { $0.labels == one.labels })
    }
  }

  private var failures: [(String, Style)] {
    failed.map { one in
      let name = "\(one.platform) \(one.outcome)"
      let count = Self.number(one.count)
      let rate = one.perSecond.map(Self.perSecond) ?? "-"
      return (
        name.harmless.cut(to: 24, padded: true)
          + String(repeating: " ", count: max(1, 10 - count.count)) + count
          + String(repeating: " ", count: max(1, 9 - rate.count)) + rate, .plain
      )
    }
  }

  private func broadcasts(_ width: Int) -> [(String, Style)] {
    var rows = sample.broadcasts.filter { hub == nil || $0.hub == hub }.map { one in
      let progress = one.progress
      let before = previous?.broadcasts.first {
        $0.progress.notificationID == progress.notificationID
      }
      let seconds = previous.map { sample.time.timeIntervalSince($0.time) } ?? 0
      let pace = before.map { Double(progress.done - $0.progress.done) / max(seconds, 0.001) }
      var bar = ""
      if width >= 100, let audience = progress.audience, audience > 0 {
        let share = min(1, max(0, Double(progress.done) / Double(audience)))
        let full = Int((20 * share).rounded())
        bar =
          "[" + String(repeating: "#", count: full) + String(repeating: " ", count: 20 - full)
          + "]  "
      }
      let id = width >= 140 ? progress.notificationID : String(progress.notificationID.prefix(8))
      return (
        id + "  " + one.hub.harmless.cut(to: 16) + "  " + bar
          + ProgressView.text(progress, rate: pace.flatMap { $0 > 0 ? $0 : nil }), Style.plain
      )
    }
    if sample.unasked > 0 {
      rows.append(("\(sample.unasked) more hubs are not looked at; name one with --hub", .plain))
    }
    return rows
  }

  private var nodes: [(String, Style)] {
    sample.metrics["belfry_node_silence_seconds"].map { node in
      let isAlive = node.value < 10
      let name = (node.labels["name"] ?? "").harmless.cut(to: 24, padded: true)
      let state = isAlive ? "alive" : "silent for " + Self.span(node.value)
      return (
        name + " " + state.padded(to: 20) + " " + (node.labels["address"] ?? ""),
        isAlive ? .plain : .alarm
      )
    }
  }

  // MARK: For scripts

  /// The same data as a JSON object.
  var report: TopReport {
    let metrics = sample.metrics
    let start = metrics.value("belfry_process_start_time_seconds")
    return TopReport(
      address: sample.address, status: sample.status,
      version: metrics["belfry_build_info"].first?.labels["version"],
      upSeconds: start > 0 ? sample.time.timeIntervalSince1970 - start : nil,
      memoryBytes: metrics.value("belfry_process_resident_memory_bytes"),
      acceptedPerSecond: change("belfry_sends_accepted_total"),
      deliveredPerSecond: change("belfry_outcomes_total") {
        $0.labels["outcome"] == Self.success
      },
      failedPerSecond: change("belfry_outcomes_total", where: Self.isFailure),
      retriesWaiting: metrics.value("belfry_retries_waiting"), lanes: lanes, failures: failed,
      underWay: sample.broadcasts.filter { hub == nil || $0.hub == hub }.map {
        TopReport.Notification(
          hub: $0.hub, notificationID: $0.progress.notificationID,
          audience: $0.progress.audience, done: $0.progress.done, retrying: $0.progress.retrying)
      },
      findings: sample.findings.map { TopReport.Finding(code: $0.code, text: $0.text) },
      nodes: metrics["belfry_node_silence_seconds"].map {
        TopReport.Node(
          name: $0.labels["name"] ?? "", address: $0.labels["address"] ?? "",
          silenceSeconds: $0.value)
      })
  }

  // MARK: Words

  private static func number(_ value: Double) -> String {
    switch value {
    case ..<100_000: String(Int(max(value, 0).rounded()))
    case ..<10_000_000: "\(Int((value / 1000).rounded()))k"
    default: "\(Int((min(value, 1e15) / 1_000_000).rounded()))M"
    }
  }

  private static func perSecond(_ value: Double) -> String {
    value > 0 && value < 10 ? String(format: "%.1f/s", value) : number(max(0, value)) + "/s"
  }

  /// `42 s`, `3 min`, `5 h 2 min`, `8 d`
  static func span(_ seconds: TimeInterval) -> String {
    let seconds = Int(min(max(seconds, 0), 1e12))
    switch seconds {
    case ..<120: return "\(seconds) s"
    case ..<3600: return "\(seconds / 60) min"
    case ..<172_800: return "\(seconds / 3600) h \(seconds % 3600 / 60) min"
    default: return "\(seconds / 86_400) d"
    }
  }
}

extension String {
  /// The text with question marks in place of characters that would move a terminal's cursor or
  /// change the text direction.
  var harmless: String {
    String(
      String.UnicodeScalarView(
        unicodeScalars.map { scalar in
          switch scalar.properties.generalCategory {
          case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse,
            .unassigned:
            "?"
          default: scalar
          }
        }))
  }

  /// The text truncated to a number of terminal columns, with `…` in place of the omitted part.
  /// - Parameter isPadded: Whether to pad with blanks.
  func cut(to width: Int, padded isPadded: Bool = false) -> String {
    var (text, used, end) = ("", 0, 0)
    var isCut = false
    // `end` is the position to cut at so that the ellipsis fits.
    var short = ""
    for character in self {
      let columns = character.columnCount
      if used + columns > width {
        isCut = true
        break
      }
      text.append(character)
      used += columns
      if used < width { (short, end) = (text, used) }
    }
    if isCut { (text, used) = (short + "…", end + 1) }
    return isPadded ? text + String(repeating: " ", count: max(0, width - used)) : text
  }

  /// The number of terminal columns.
  var columnCount: Int { reduce(0) { $0 + $1.columnCount } }
}

extension Character {
  /// 2 for East Asian scripts and emoji, 0 for characters that only modify their neighbor.
  fileprivate var columnCount: Int {
    guard let scalar = unicodeScalars.first else { return 0 }
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark: return 0
    default: break
    }
    if unicodeScalars.contains(where: { $0.properties.isEmojiPresentation || $0 == "\u{FE0F}" }) {
      return 2
    }
    // Blocks that consist of wide characters (Unicode Standard Annex 11).
    switch scalar.value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF,
      0xA000...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
      0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
      return 2
    default: return 1
    }
  }
}
