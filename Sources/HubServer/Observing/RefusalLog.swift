import HTTPServer
import HubCore
import Synchronization

/// Which refusals have a line in the log. Anybody can be refused as often as they like, so that the
/// first few of a minute have one, by the network that they come from; the others are counted, and
/// one line says at the minute's end how many there were.
///
/// Callers whose token was good have many more, and all of them at the level `debug`.
final class RefusalLog: Sendable {
  struct Source: Hashable, Comparable {
    /// Of a token that was good.
    let isKnown: Bool
    /// A network; empty for all beyond ``Book/networks``.
    let network: String

    static func < (left: Source, right: Source) -> Bool {
      (left.isKnown ? 1 : 0, left.network) < (right.isKnown ? 1 : 0, right.network)
    }
  }

  /// A minute's refusals.
  struct Book {
    /// So many networks are told apart.
    static let networks = 256
    /// Lines of a minute: of a network whose callers are known, and of one whose are not.
    static let lines = (known: 120, unknown: 5)

    private var counts: [Source: Int] = [:]

    /// - Returns: Whether this one has a line.
    mutating func add(isKnown: Bool, network: String) -> Bool {
      var source = Source(isKnown: isKnown, network: network)
      if counts[source] == nil, counts.count >= Self.networks {
        source = Source(isKnown: isKnown, network: "")
      }
      counts[source, default: 0] += 1
      return counts[source, default: 0] <= Self.limit(source)
    }

    /// Ends the minute.
    /// - Returns: What had no line.
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

  private let state = Mutex((book: Book(), hasLeftOut: false, end: ContinuousClock.Instant.now))

  /// Whether a refusal is to be logged.
  func admits(isKnown: Bool, from address: String, in log: HubLog) -> Bool {
    if isKnown, log.admits(.debug) { return true }
    // Of an IPv6 address the network: one machine has as many addresses as it likes.
    let network = address.contains(":") ? ClientNetwork(address)?.description ?? address : address
    let now = ContinuousClock.now
    let (hasLine, leftOut, tells) = state.withLock { state in
      var leftOut: [(source: Source, count: Int)] = []
      if now >= state.end {
        leftOut = state.book.end()
        state.end = now + .seconds(60)
        state.hasLeftOut = false
      }
      let hasLine = state.book.add(isKnown: isKnown, network: network)
      let tells = !hasLine && !state.hasLeftOut
      if tells { state.hasLeftOut = true }
      return (hasLine, leftOut, tells ? state.end : nil)
    }
    tell(leftOut, in: log)
    if let tells {
      // Told also when nothing more comes.
      Task { [self] in
        try? await Task.sleep(until: tells, clock: .continuous)
        tell(state.withLock { $0.end == tells ? $0.book.end() : [] }, in: log)
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
