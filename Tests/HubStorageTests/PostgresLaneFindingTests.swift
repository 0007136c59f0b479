import Foundation
import HubTesting
import NotificationHubs
import StoreContract
import Synchronization
import Testing

@testable import HubCore
@testable import HubStorage

/// What nodes tell each other of their lanes, by their stores and by their dispatchers.
@Suite(
  "What nodes of one hub tell each other",
  .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"),
  .timeLimit(.minutes(5)))
struct PostgresLaneFindingTests {
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)
  private static let lane = LaneKey(hub: 1, platform: .apns)

  private func finding(
    _ kind: LaneFinding.Kind, _ seconds: Double = 60, reason: String? = nil
  ) -> LaneFinding {
    LaneFinding(
      Self.lane, kind, credential: Self.now, time: Self.now.addingTimeInterval(seconds), count: 2,
      judged: 3, reason: reason)
  }

  // MARK: The rows

  @Test("what one node says the others hear, until it takes it back or is gone")
  func rows() async throws {
    try await PostgresStores.withNodes(3) { nodes in
      let said = [finding(.refused, reason: "it's \"over\" \0"), finding(.pause), finding(.alarm)]
      let first = try await nodes[0].exchange(Set(said), recovered: [])
      #expect(first.findings.isEmpty && first.lifted.isEmpty && first.nodes == 3)
      func heard(by node: Int) async throws -> PeerReport {
        try await nodes[node].exchange([], recovered: [])
      }
      let heard1 = try await heard(by: 1)
      #expect(Set(heard1.findings.map(\.kind)) == [.refused, .pause, .alarm])
      #expect(heard1.findings.first { $0.kind == .refused }?.reason == "it's \"over\" \u{FFFD}")
      #expect(Set(heard1.findings).contains(said[1]) && heard1.lifted.isEmpty)
      // The pause is over, the alarm has others in it.
      let later = LaneFinding(
        Self.lane, .alarm, credential: Self.now, time: Self.now, count: 5, judged: 9)
      _ = try await nodes[0].exchange([said[0], later], recovered: [])
      let heard2 = try await heard(by: 2).findings
      #expect(heard2.count == 2 && heard2.contains(later))
      let id = try #require(nodes[0].heartbeat?.id)
      _ = try await nodes[1].write { session in
        try session.execute("UPDATE node SET is_dead = 1 WHERE id = ?1", id)
      }
      #expect(try await heard(by: 1).findings.isEmpty, "it may be dead")
      // It lives after all, under another number: what it says is told once more.
      try await nodes[0].heartbeat?.beat()
      _ = try await nodes[0].exchange([said[0], later], recovered: [])
      #expect(try await heard(by: 1).findings.count == 2)
      await nodes[0].heartbeat?.stop()
      let without = try await heard(by: 1)
      #expect(without.findings.isEmpty && without.nodes == 2)
    }
  }

  @Test("a refusal of all nodes is over when a push of one of them has succeeded")
  func lifted() async throws {
    try await PostgresStores.withNodes(3) { nodes in
      let other = LaneFinding(
        LaneKey(hub: 1, platform: .wns), .refused, credential: Self.now, time: Self.now)
      _ = try await nodes[0].exchange([finding(.refused), finding(.alarm), other], recovered: [])
      _ = try await nodes[1].exchange([finding(.refused)], recovered: [])
      _ = try await nodes[2].exchange([], recovered: [Self.lane])
      for node in 0..<2 {
        let own: Set<LaneFinding> =
          node == 0 ? [finding(.refused), finding(.alarm), other] : [finding(.refused)]
        let news = try await nodes[node].exchange(own, recovered: [])
        #expect(news.lifted == [Self.lane])
      }
      let heard = try await nodes[2].exchange([], recovered: []).findings
      #expect(Set(heard.map(\.kind)) == [.refused, .alarm] && heard.contains(other))
    }
  }

  // MARK: The dispatchers

  private struct Node {
    let store: PostgresHubStore
    let gateway: FakeGateway
    let dispatcher: Dispatcher

    func lane() async -> DispatchStatus.Lane? {
      await dispatcher.status().lanes.first { $0.platform == .apns }
    }
  }

  /// What the push service answers, as long as nothing else is said.
  private final class Service: Sendable {
    private let state = Mutex(PushResult.success)
    var answer: PushResult {
      get { state.withLock { $0 } }
      set { state.withLock { $0 = newValue } }
    }
  }

  /// Two nodes whose time the test moves, on a hub with devices `d-0` and so on, tagged `n0` and so
  /// on.
  private func scene(
    devices: Int, _ body: (Node, Node, Service, Turn) async throws -> Void
  ) async throws {
    try await PostgresStores.withNodes(2) { stores in
      let clock = ManualClock(now: Self.now)
      let hub = try await stores[0].createHub(
        named: "hub1", registrationTTL: nil, policies: [], at: Self.now)
      try #require(hub.id == Self.lane.hub)
      try await stores[0].putCredential(
        PushCredential(platform: .apns, properties: [:], modifiedAt: Self.now), hub: hub.id)
      for number in 0..<devices {
        let device = SampleDevice("d-\(number)", tags: [Tag(rawValue: "n\(number)")])
        try await stores[0].put(device, hub: hub.id, at: Self.now)
      }
      let service = Service()
      let nodes = stores.map { store in
        let gateway = FakeGateway(answer: { _, _ in service.answer })
        return Node(
          store: store, gateway: gateway,
          dispatcher: Dispatcher(
            store: store, gateways: FakeGateways([.apns: gateway]), clock: clock.hubClock,
            random: .always(0)))
      }
      for node in nodes { try await node.dispatcher.start() }
      try await body(nodes[0], nodes[1], service, Turn(clock: clock, nodes: nodes))
      for node in nodes { await node.dispatcher.stop(within: .seconds(10)) }
    }
  }

  private struct Turn {
    let clock: ManualClock
    let nodes: [Node]

    /// Lets time pass, a quarter of a second at a time, until something is so.
    func until(_ what: String, _ isSo: () async throws -> Bool) async throws {
      let limit = ContinuousClock.now + .seconds(120)
      while try await !isSo() {
        try #require(ContinuousClock.now < limit, "\(what): not within the limit")
        try await pass()
      }
    }

    /// A quarter of a second, and what is to be done in it.
    func pass() async throws {
      for node in nodes {
        while await !node.dispatcher.isQuiet { try await Task.sleep(for: .milliseconds(1)) }
      }
      clock.advance(by: .milliseconds(250))
      try await Task.sleep(for: .milliseconds(1))
    }

    func send(_ tag: Int?, through node: Node) async throws -> NotificationRecord {
      let record = NotificationRecord(
        id: NotificationID(at: clock.now, random: .system), hub: PostgresLaneFindingTests.lane.hub,
        request: NotificationRequest(
          format: .native(.apns), body: Array(#"{"aps":{}}"#.utf8),
          expression: tag.map { .tag(Tag(rawValue: "n\($0)")) }),
        state: .enqueued, enqueuedAt: clock.now)
      try await node.store.accept(record)
      await node.dispatcher.submit(record)
      return record
    }

    func finished(_ record: NotificationRecord) async throws -> [NotificationOutcome: Int] {
      try await until("the end of \(record.id.rawValue)") {
        try await nodes[0].store.notification(record.id, hub: record.hub)?.state.isFinal == true
      }
      let found = try await nodes[0].store.notification(record.id, hub: record.hub)
      return (found?.counts ?? [:]).reduce(into: [:]) { $0[$1.key.outcome, default: 0] += $1.value }
    }
  }

  @Test("a credential that one node has had refused rests on all, until one succeeds")
  func refused() async throws {
    try await scene(devices: 2) { one, two, service, turn in
      service.answer = PushResult(
        outcome: .invalidCredentials, retry: .pauseCredential, status: 403,
        reason: "InvalidProviderToken")
      let lost = try await turn.send(0, through: one)
      #expect(try await turn.finished(lost) == [.invalidCredentials: 1])
      try await turn.until("the other hears of it") { await two.lane()?.isRefused == true }
      #expect(await two.lane()?.reason == "InvalidProviderToken")
      let end = try #require(await two.lane()?.restsUntil)
      #expect((50...62).contains(end.timeIntervalSince(Self.now)))
      let kept = try await turn.send(1, through: two)
      try await turn.until("it waits") { await two.dispatcher.status().notifications == 1 }
      for _ in 0..<20 { try await turn.pass() }
      #expect(turn.clock.now < end && two.gateway.pushes.isEmpty)
      service.answer = .success
      #expect(try await turn.finished(kept) == [.success: 1])
      #expect(turn.clock.now >= end && two.gateway.pushes.count == 1)
      // The one that had found it hears that it is over, although it has sent nothing since.
      try await turn.until("the first goes on") { await one.lane()?.isRefused == false }
      let next = try await turn.send(0, through: one)
      #expect(try await turn.finished(next) == [.success: 1])
    }
  }

  @Test("the pause that a push service has asked one node for is kept by all")
  func paused() async throws {
    try await scene(devices: 2) { one, two, service, turn in
      service.answer = PushResult(
        outcome: .throttled, retry: .backoff, status: 429, retryAfter: 40)
      let first = try await turn.send(0, through: one)
      try await turn.until("the other hears of it") { await two.lane()?.restsUntil != nil }
      service.answer = .success
      let end = try #require(await two.lane()?.restsUntil)
      let second = try await turn.send(1, through: two)
      try await turn.until("it waits") { await two.dispatcher.status().notifications == 1 }
      for _ in 0..<20 { try await turn.pass() }
      #expect(turn.clock.now < end && two.gateway.pushes.isEmpty)
      #expect(try await turn.finished(second) == [.success: 1])
      #expect(turn.clock.now >= Self.now.addingTimeInterval(40))
      #expect(try await turn.finished(first) == [.success: 1])
    }
  }

  @Test("while one node doubts what a push service says of handles, no node removes any")
  func alarmed() async throws {
    try await scene(devices: 24) { one, two, service, turn in
      // Both trust the credential.
      for node in [one, two] {
        #expect(try await turn.finished(turn.send(0, through: node)) == [.success: 1])
      }
      service.answer = PushResult(
        outcome: .expiredChannel, handle: .remove, status: 410, reason: "Unregistered")
      #expect(try await turn.finished(turn.send(nil, through: one)) == [.expiredChannel: 24])
      #expect(await one.lane()?.isAlarmed == true)
      try await turn.until("the other hears of it") { await two.lane()?.isAlarmed == true }
      // Alone it would have let the handle go: it is its first that is dead.
      #expect(try await turn.finished(turn.send(1, through: two)) == [.expiredChannel: 1])
      let hub = Self.lane.hub
      #expect(try await two.store.installation("d-1", hub: hub)?.pushChannelExpired == false)
      let query = AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: Self.now)
      #expect(try await two.store.count(query) == 24)
      // With another credential the doubt is over, on both.
      turn.clock.advance(by: .seconds(1))
      try await one.store.putCredential(
        PushCredential(platform: .apns, properties: ["a": "b"], modifiedAt: turn.clock.now),
        hub: hub)
      await one.dispatcher.credentialChanged(.apns, hub: hub)
      try await turn.until("the other hears of that") { await two.lane()?.isAlarmed != true }
    }
  }

  @Test("rates that are meant for all nodes are divided by those that live")
  func shares() async throws {
    try await scene(devices: 0) { one, two, _, turn in
      try await turn.until("they know each other") {
        one.dispatcher.nodes.value == 2 && two.dispatcher.nodes.value == 2
      }
      #expect(one.dispatcher.nodes.share(of: 10) == 5)
      await two.dispatcher.stop(within: .seconds(10))
      await two.store.heartbeat?.stop()
      try await turn.until("one is alone") { one.dispatcher.nodes.value == 1 }
    }
  }
}
