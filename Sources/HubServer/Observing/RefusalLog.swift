import HTTPServer
import HubCore
import Synchronization

/// Limits the log lines about refusals. Anyone can cause any number of refusals, so only the first
/// few per minute and network are logged; the others are counted and reported in one line at the
/// end of the minute.
///
/// Callers with a valid token get a higher limit; at the level `debug` all of theirs are logged.
final class RefusalLog: Sendable {
  struct Source: Hashable, Comparable {
    /// Whether the token was valid.
    let isKnown: Bool
    /// The network; empty for all beyond ``Minute/networks``.
    let network: String

    static func < (left: Source, right: Source) -> Bool {
      (left.isKnown ? 1 : 0, left.network) < (right.isKnown ? 1 : 0, right.network)
    }
  }

  /// The refusals of one minute.
  struct Minute {
    /// The maximum number of networks counted separately.
    static let networks = 256
    /// The maximum number of lines per minute and network, for known and unknown callers.
    static let lines = (known: 120, unknown: 5)

    private var counts: [Source: Int] = [:]

    /// - Returns: Whether this refusal is logged.
    mutating func add(isKnown: Bool, network: String) -> Bool {
      var source = Source(isKnown: isKnown, network: network)
      if counts[source] == nil, counts.count >= Self.networks {
        source = Source(isKnown: isKnown, network: "")
      }
      counts[source, default: 0] += 1
      return counts[source, default: 0] <= Self.limit(source)
    }

    /// Ends the minute.
    /// - Returns: The refusals that were not logged.
    mutating func end() -> [(source: Source, count: Int)] {
      defer { counts = [:] }
      return counts.compactMap { source, count in
        count > Self.limit(source) ? (source, count - Self.limit(source)) : nil
      }.sorted { $0.source < $1.source }
    }

    private static func limit(_ source: Source) -> Int {
      source.isKnown ? lines.known : lines.unknown
    }
  }

  private let state = Mutex((minute: Minute(), hasLeftOut: false, end: ContinuousClock.Instant.now))

  /// Whether a refusal is to be logged.
  func admits(isKnown: Bool, from address: String, in log: HubLog) -> Bool {
    if isKnown, log.admits(.debug) { return true }
    // IPv6 addresses are counted by network: one machine can have any number of them.
    let network = address.contains(":") ? ClientNetwork(address)?.description ?? address : address
    let now = ContinuousClock.now
    let (hasLine, leftOut, tells) = state.withLock { state in
      var leftOut: [(source: Source, count: Int)] = []
      if now >= state.end {
        leftOut = state.minute.end()
        state.end = now + .seconds(60)
        state.hasLeftOut = false
      }
      let hasLine = state.minute.add(isKnown: isKnown, network: network)
      let tells = !hasLine && !state.hasLeftOut
      if tells { state.hasLeftOut = true }
      return (hasLine, leftOut, tells ? state.end : nil)
    }
    tell(leftOut, in: log)
    if let tells {
      // Reported even if no further refusal occurs.
      Task { [self] in
        try? await Task.sleep(until: tells, clock: .continuous)
        tell(state.withLock { $0.end == tells ? $0.minute.end() : [] }, in: log)
      }
    }
    return hasLine
  }

  private func tell(_ leftOut: [(source: Source, count: Int)], in log: HubLog) {
    for (source, count) in leftOut {
      log(
        .info, "requests.refused", "more of them, without a line each",
        [
          ("count", .number(count)),
          ("from", .text(source.network.isEmpty ? "others" : source.network)),
          ("token", .text(source.isKnown ? "good" : "none")),
        ])
    }
  }
}
