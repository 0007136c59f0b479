import Foundation
import HubTesting
import StoreContract
import Testing

@testable import HubStorage

/// A statement that the engine sends, as it first comes in a scene over the whole interface.
struct FaultPoint: Hashable, Sendable, CustomTestStringConvertible {
  let number: Int
  /// Of a commit, in which call of the scene: each is another. `nil` where the text alone counts.
  let call: String?
  let text: String

  var testDescription: String {
    "statement \(number), \(text.prefix(100))\(call.map { " in \($0)" } ?? "")"
  }

  func matches(_ sent: PostgresProxy.Sent) -> Bool {
    sent.text == text && (call == nil || sent.call == call)
  }
}

/// The connection is lost at each statement that the engine sends to PostgreSQL: before it gets
/// there or once it has run, with an end that shows or with silence. Calls that are refused are made
/// again. Afterwards all is as without the fault.
///
/// A seed that is another each day draws one statement in eight, and a fault for each; the commits of
/// writes all come, one in two with its answer lost, the others with a fault that is drawn: more take
/// minutes on a busy machine. `BELFRY_SEED=N` draws the same again, and
/// `BELFRY_STATEMENT_FAULTS=all` takes all faults of all statements.
@Suite(
  "When the connection breaks at a statement",
  .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"))
struct StatementFaultTests {
  /// The scene without any fault.
  struct Recording: Sendable {
    var points: [FaultPoint] = []
    var lines: [String] = []
  }

  static let recording = Task { try await record() }

  private static let seed: UInt64 = {
    let own = ProcessInfo.processInfo.environment["BELFRY_SEED"].flatMap { UInt64($0) }
    let seed = own ?? UInt64(Date.now.timeIntervalSince1970 / 86_400)
    print("statement faults: BELFRY_SEED=\(seed)")
    return seed
  }()

  private static func faults(at point: FaultPoint) -> Set<PostgresProxy.Fault> {
    var all: Set<PostgresProxy.Fault> = [.cutBefore, .cutAfter, .hangBefore, .hangAfter]
    // Of a call that cannot be made again nothing is known after an outage, and it says so.
    let hasOutage = point.call.map(StatementScene.isRepeatable) ?? false
    if hasOutage { all.insert(.outage) }
    if ProcessInfo.processInfo.environment["BELFRY_STATEMENT_FAULTS"] == "all" { return all }
    var generator = SeededGenerator(seed: seed &+ UInt64(point.number) << 32)
    let drawn =
      all.sorted { $0.rawValue < $1.rawValue }.randomElement(using: &generator) ?? .cutAfter
    guard point.call != nil else {
      return Int.random(in: 0..<8, using: &generator) == 0 ? [drawn] : []
    }
    return Bool.random(using: &generator) ? [drawn] : [hasOutage ? .outage : .cutAfter]
  }

  private static var options: PostgresHubStore.Options {
    var options = PostgresStores.options
    (options.writers, options.batchWriters, options.readers, options.slots) = (1, 1, 1, 2)
    return options
  }

  private static func withScene<Value>(
    _ options: PostgresHubStore.Options,
    _ body: (PostgresProxy, StatementScene) async throws -> Value
  ) async throws -> Value {
    let server = try PostgresServer.shared()
    let address = try await server.makeDatabase(like: "statements") { address in
      try await PostgresHubStore.open(
        address: address, sealing: TestSealing(), options: Self.options
      ).close()
    }
    defer { try? server.removeDatabase(at: address) }
    let proxy = try PostgresProxy(before: server)
    defer { proxy.stop() }
    return try await body(proxy, StatementScene(through: proxy, to: address, options: options))
  }

  private static func record() async throws -> Recording {
    guard PostgresStores.areInstalled else { return Recording() }
    return try await withScene(options) { proxy, scene in
      proxy.record()
      try await scene.run()
      var seen: Set<FaultPoint> = []
      var points: [FaultPoint] = []
      var writing: Set<String> = []
      for sent in proxy.sent {
        if sent.text.hasPrefix("BEGIN"), sent.text.hasSuffix("WRITE") { writing.insert(sent.call) }
        // By chance, and not in each run.
        if sent.text.hasSuffix("LIMIT 1000 FOR UPDATE SKIP LOCKED)") { continue }
        let isOfCall = sent.text == "COMMIT" && writing.contains(sent.call)
        let key = FaultPoint(number: 0, call: isOfCall ? sent.call : nil, text: sent.text)
        guard seen.insert(key).inserted else { continue }
        points.append(FaultPoint(number: points.count, call: key.call, text: key.text))
      }
      return Recording(points: points, lines: scene.lines)
    }
  }

  @Test(
    "what is done is done once, and the store works on", arguments: try await recording.value.points
  )
  func keepsAll(_ point: FaultPoint) async throws {
    let wanted = try await Self.recording.value.lines
    for fault in Self.faults(at: point) {
      var options = Self.options
      // What is silent is given up soon, and callers hear of it.
      if fault.isHang { options.answerTime = .seconds(1) }
      if fault == .outage || fault.isHang && point.call == nil { options.patience = .zero }
      try await Self.withScene(options) { proxy, scene in
        proxy.arm(fault) { point.matches($0) }
        do {
          try await scene.run()
        } catch {
          Issue.record("\(fault): \(error); refused were \(scene.refusals)")
          return
        }
        #expect(proxy.hasStruck, "\(fault): the statement did not come")
        let difference = scene.lines.difference(from: wanted).map { change in
          switch change {
          case .insert(_, let line, _): "found \(line)"
          case .remove(_, let line, _): "wanted \(line)"
          }
        }
        #expect(difference == [], "\(fault); refused were \(scene.refusals)")
        #expect(proxy.longestHang < PostgresProxy.hangLimit, "\(fault): it was not given up")
      }
    }
  }
}
