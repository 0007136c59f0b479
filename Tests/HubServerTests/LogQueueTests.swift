import Foundation
import HubCore
import HubTesting
import Synchronization
import Testing

@testable import HubServer

@Suite("Lines on their way to a reader")
struct LogQueueTests {
  /// A reader who takes a line when told to.
  private final class Reader: Sendable {
    private let gate = DispatchSemaphore(value: 0)
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }

    func read(_ line: String) {
      gate.wait()
      lines.withLock { $0.append(line) }
    }

    func go(_ count: Int = 100_000) { for _ in 0..<count { gate.signal() } }
  }

  @Test(
    "a reader that stops holds up nobody, and what does not fit is dropped and told in its place")
  func stopped() {
    let reader = Reader()
    let queue = LogQueue(limit: 10 * 74) { reader.read($0) }
    queue.tells { "\($0) missing" }
    // Ten lines of ten bytes fit, whether or not the first is with the reader already.
    for number in 0..<100 { queue.add("line \(number + 10000)") }
    #expect(queue.state == LogState(dropped: 90, isStuck: true))
    #expect(reader.all.isEmpty)
    reader.go()
    queue.close(within: .seconds(60))
    #expect(reader.all == (0..<10).map { "line \($0 + 10000)" } + ["90 missing"])
    #expect(queue.state == LogState(dropped: 90, isStuck: false))
  }

  @Test("after a gap lines go on in order")
  func goesOn() async throws {
    let reader = Reader()
    let queue = LogQueue(limit: 10 * 74) { reader.read($0) }
    queue.tells { "\($0) missing" }
    for number in 0..<12 { queue.add("line \(number + 10000)") }
    reader.go()
    try await withLimit(.seconds(60), "the gap to be told") {
      while queue.state.isStuck { try await Task.sleep(for: .milliseconds(1)) }
    }
    queue.add("later")
    queue.close(within: .seconds(60))
    #expect(Array(reader.all.suffix(3)) == ["line 10009", "2 missing", "later"])
  }

  @Test("a line beyond the whole room is dropped and told, and the end waits for no reader")
  func tooLong() {
    let reader = Reader()
    let queue = LogQueue(limit: 1000) { reader.read($0) }
    queue.tells { "\($0) missing" }
    queue.add(String(repeating: "x", count: 2000))
    #expect(queue.state.dropped == 1)
    // Nobody reads: this returns all the same.
    queue.close(within: .milliseconds(10))
    reader.go()
    queue.close(within: .seconds(60))
    #expect(reader.all == ["1 missing"])
  }

  @Test("of many refusals the first of each network have lines, the rest is counted")
  func refusals() {
    var minute = RefusalLog.Minute()
    let limits = RefusalLog.Minute.lines
    var lines: [String: Int] = [:]
    for _ in 0..<1000 {
      for (network, isKnown) in [("192.0.2.1", false), ("192.0.2.2", true)]
      where minute.add(isKnown: isKnown, network: network) { lines[network, default: 0] += 1 }
    }
    #expect(lines == ["192.0.2.1": limits.unknown, "192.0.2.2": limits.known])
    let rest = minute.end()
    #expect(rest.map(\.source.network) == ["192.0.2.1", "192.0.2.2"])
    #expect(rest.map(\.count) == [1000 - limits.unknown, 1000 - limits.known])
    #expect(minute.end().isEmpty)
  }

  @Test("however many networks there are, the lines of a minute are bounded")
  func manyNetworks() {
    var minute = RefusalLog.Minute()
    var lines = 0
    for number in 0..<10_000 {
      for _ in 0..<10 where minute.add(isKnown: false, network: "\(number)") { lines += 1 }
    }
    let (networks, each) = (RefusalLog.Minute.networks, RefusalLog.Minute.lines.unknown)
    #expect(lines == (networks + 1) * each)
    let rest = minute.end()
    #expect(rest.count == networks + 1)
    #expect(rest.reduce(lines) { $0 + $1.count } == 100_000)
  }
}
