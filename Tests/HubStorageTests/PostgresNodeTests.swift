import Foundation
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Synchronization
import Testing

@testable import HubCore
@testable import HubStorage

@Suite(
  "Nodes on one PostgreSQL",
  .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"))
struct PostgresNodeTests {
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)
  private static let success = OutcomeKey(platform: .apns, isTemplate: false, outcome: .success)

  /// Runs `body` with two nodes and a hub; a broadcast to its devices has a part for each slot, and
  /// one more.
  /// - Parameter lease: With a long one no heartbeat comes between the calls of a test.
  private func scene(
    devices: Int = 0, lease: TimeInterval = StoreNode.usualLease,
    _ body: (PostgresHubStore, PostgresHubStore, Hub.ID) async throws -> Void
  ) async throws {
    try await PostgresStores.withNodes(2, lease: lease) { nodes in
      let hub = try await nodes[0].createHub(
        named: "hub1", registrationTTL: nil, policies: [], at: Self.now)
      // One page is the most that is not divided.
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<devices {
          group.addTask {
            let device = SampleDevice("i-\(number)")
            try await nodes[0].put(device, hub: hub.id, at: Self.now)
          }
        }
        try await group.waitForAll()
      }
      try await body(nodes[0], nodes[1], hub.id)
    }
  }

  private static let broadcast = 1_001
  private static let parts = 17
  private static let longLease = 600.0

  private func record(
    _ id: String, _ hub: Hub.ID, to expression: TagExpression? = nil
  ) -> NotificationRecord {
    NotificationRecord(
      id: NotificationID(rawValue: id), hub: hub,
      request: NotificationRequest(
        format: .native(.apns), body: Array("{}".utf8), expression: expression),
      state: .enqueued, enqueuedAt: Self.now)
  }

  private func checkpoint(
    _ record: NotificationRecord, counts: [OutcomeKey: Int] = [:], ends: Bool = false
  ) -> Checkpoint {
    var page = Checkpoint(
      notification: record.id, hub: record.hub, lease: record.lease, at: Self.now)
    page.counts = counts
    page.state = ends ? .completed : .processing
    page.isAudienceRead = ends
    return page
  }

  /// As another node does that has not seen a heartbeat of this one for a lease.
  private func silence(_ node: PostgresHubStore) async throws {
    let id = try #require(node.heartbeat?.id)
    _ = try await node.write { session in
      try session.execute("UPDATE node SET is_dead = 1 WHERE id = ?1", id)
    }
  }

  private func expectLeaseLost(_ body: () async throws -> Void) async {
    do {
      try await body()
      Issue.record("it was written")
    } catch {
      #expect(error as? StoreError == .leaseLost)
    }
  }

  @Test("work counts as unclaimed until a living node has some of it, and once it is given back")
  func unclaimed() async throws {
    try await scene { one, two, hub in
      func count(
        at node: PostgresHubStore, beside known: Set<WorkID> = []
      ) async throws -> Int {
        try await node.unclaimedWork(dueBy: Self.now, beside: known).count
      }
      func count() async throws -> Int { try await count(at: two) }
      try await one.accept(record("n-1", hub))
      #expect(try await count() == 1, "its node has not begun with it")
      let mine = try #require(try await one.claimWork(limit: 9).records.first)
      #expect(try await count() == 0)
      #expect(try await count(at: one, beside: [mine.workID]) == 0)
      #expect(try await count(at: one) == 1, "it has forgotten what it has claimed")
      var older = mine.lease
      older.epoch -= 1
      try await one.releaseWork(older, of: mine.id, hub: hub)
      try await two.releaseWork(mine.lease, of: mine.id, hub: hub)
      #expect(try await count() == 0, "only its owner gives it back, and only what it has now")
      try await one.releaseWork(mine.lease, of: mine.id, hub: hub)
      #expect(try await count() == 1)
      let again = try #require(try await one.claimWork(limit: 9).records.first)
      await expectLeaseLost { _ = try await one.checkpoint(checkpoint(mine)) }
      try await one.checkpoint(checkpoint(again))
      try await silence(one)
      #expect(try await count() == 1)
    }
  }

  @Test("two nodes that claim at the same time get different parts, and together all of them")
  func disjoint() async throws {
    try await scene(devices: Self.broadcast) { one, two, hub in
      try await one.accept(record("n-1", hub))
      var seen: [WorkLease] = []
      while seen.count < Self.parts {
        async let first = one.claimWork(limit: 256)
        async let second = two.claimWork(limit: 256)
        let claimed = try await first.records + second.records
        try #require(!claimed.isEmpty, "\(seen.count) parts were claimed, and no others are free")
        seen += claimed.map(\.lease)
        // No node gets all of one notification: room for others comes with what is done.
        for (node, part) in zip([one, two], [try await first, try await second]) {
          #expect(part.count <= 4)
          for record in part { try await node.checkpoint(checkpoint(record, ends: true)) }
        }
      }
      #expect(Set(seen.map(\.part)).count == Self.parts && seen.count == Self.parts)
      #expect(try await one.claimWork(limit: 256).isEmpty)
    }
  }

  @Test("a new send gets its turn, however many parts of older ones are free and not for this node")
  func fairTurn() async throws {
    try await scene(devices: Self.broadcast) { one, _, hub in
      // More free parts than a thousand are left when the node has its four of each.
      let older = 80
      for number in 0..<older { try await one.accept(record("n-\(number)", hub)) }
      var claimed = 0
      while case let some = try await one.claimWork(limit: 1_000), !some.isEmpty {
        claimed += some.count
      }
      #expect(claimed == older * 4)
      try await one.accept(record("new", hub))
      let found = try await one.claimWork(limit: 1_000).records
      #expect(found.map(\.id.rawValue) == Array(repeating: "new", count: 4))
    }
  }

  @Test("a narrow send is the accepting node's; another node gets it only when that is gone")
  func narrow() async throws {
    try await scene { one, two, hub in
      try await one.accept(record("n-1", hub))
      #expect(try await two.claimWork(limit: 9).isEmpty)
      let mine = try await one.claimWork(limit: 9)
      #expect(mine.map(\.lease.part) == [0])
      #expect(try await one.claimWork(limit: 9).isEmpty, "once is enough")
      try await one.releaseWork()
      let theirs = try await two.claimWork(limit: 9)
      #expect(theirs.map(\.lease.epoch) == [2])
      await expectLeaseLost { try await one.checkpoint(checkpoint(mine[0])) }
    }
  }

  @Test("what asks for no tag, or for one that many have, is divided without a count")
  func broad() async throws {
    try await scene(devices: Self.broadcast) { one, _, hub in
      _ = try await one.write { session in
        try session.execute("UPDATE registration SET tags = ARRAY['all']")
        try session.execute(
          "UPDATE registration SET tags = ARRAY['all', 'few'] WHERE handle = 'HANDLE-i-7'")
      }
      for (number, (expression, parts)) in [
        ("!all", Self.parts), ("all && !all", Self.parts), ("all || few", Self.parts),
        ("few", 1), ("all && few && !none", 1), ("few || none", 1),
      ].enumerated() {
        try await one.accept(record("n-\(number)", hub, to: try TagExpression(parsing: expression)))
        let found = try await one.read { session in
          try session.first(
            """
            SELECT COUNT(*) FROM work JOIN notification n ON n.id = work.notification
            WHERE n.public_id = ?1
            """, "n-\(number)")
        }
        #expect(found == Int64(parts), "\(expression)")
      }
    }
  }

  @Test("while the database takes connections and answers nothing, work that waits is refused")
  func hung() async throws {
    try await scene { one, two, hub in
      let isOver = DispatchSemaphore(value: 0)
      let (holding, isHolding) = AsyncStream<Void>.makeStream()
      // No heartbeat of the first gets through, and its readers are busy.
      let id = try #require(one.heartbeat?.id)
      async let holder: Void = two.write { session in
        try session.execute("SELECT id FROM node WHERE id = ?1 FOR UPDATE", id)
        isHolding.finish()
        isOver.wait()
      }
      for await _ in holding {}
      try await withThrowingTaskGroup(of: Void.self) { group in
        let (busy, isBusy) = AsyncStream<Void>.makeStream()
        for _ in 0..<2 {
          group.addTask {
            try await one.read { _ in
              isBusy.yield()
              isOver.wait()
            }
          }
        }
        var readers = busy.makeAsyncIterator()
        for _ in 0..<2 { await readers.next() }
        let isRefused = Atomic(false)
        group.addTask {
          // Behind the gate, as what came before the database was given up.
          await #expect(throws: StoreError.self) {
            let engine = one.engine
            try await engine.perform(.single, on: engine.readers, ifUnclear: .again) { _ in }
          }
          isRefused.store(true, ordering: .relaxed)
        }
        one.engine.shared.health.loseTime(.seconds(60))
        await #expect(throws: StoreError.self) {
          try await one.put(SampleDevice("i-1"), hub: hub, at: Self.now)
        }
        let limit = ContinuousClock.now + .seconds(8)
        while !isRefused.load(ordering: .relaxed), ContinuousClock.now < limit {
          guard case .unavailable = await one.condition() else {
            Issue.record("it counts as well")
            break
          }
          await Task.yield()
        }
        let wasRefused = isRefused.load(ordering: .relaxed)
        #expect(wasRefused, "what waits goes on waiting")
        for _ in 0..<3 { isOver.signal() }
        try await group.waitForAll()
      }
      try await holder
      try await one.heartbeat?.beat()
      try await one.put(SampleDevice("i-1"), hub: hub, at: Self.now)
      #expect(await one.condition() == .healthy)
    }
  }

  @Test("a node without heartbeat loses its work, and what it wants to write then is not written")
  func fenced() async throws {
    try await scene { one, two, hub in
      try await one.accept(record("n-1", hub))
      let mine = try await one.claimWork(limit: 9)
      var page = checkpoint(mine[0], counts: [Self.success: 5])
      page.cursor = 7
      try await one.checkpoint(page)
      try await silence(one)
      let theirs = try await two.claimWork(limit: 9)
      #expect(theirs.map(\.id) == mine.map(\.id))
      #expect(theirs.first?.cursor == 7, "it goes on where the other was")
      page.retries = [.init(registration: 1, platform: .apns, attempts: 1, due: Self.now)]
      page.failures = [.init(registration: 1, outcome: .badChannel, status: 400, reason: nil)]
      page.state = .completed
      await expectLeaseLost { try await one.checkpoint(page) }
      let found = try #require(try await two.notification(mine[0].id, hub: hub))
      #expect(found.counts == [Self.success: 5] && found.cursor == 7 && found.endedAt == nil)
      #expect(try await two.waitingRetries(found.id, hub: hub) == 0)
      let kept = try await two.outcomes(
        of: found.id, hub: hub, OutcomeFilter(), after: 0, limit: 9)
      #expect(kept.outcomes.isEmpty)
      let answer = try await two.checkpoint(checkpoint(theirs[0], ends: true))
      #expect(answer.isFinished)
    }
  }

  @Test("a checkpoint, a claim and a send whose answer is lost with the commit are done once")
  func lostAnswers() async throws {
    try await scene(lease: Self.longLease) { one, _, hub in
      let shared = one.engine.shared
      let claim = IdempotencyClaim(
        key: "k", fingerprint: [1], expiresAt: Self.now.addingTimeInterval(60))
      shared.losesAnswer.store(true, ordering: .relaxed)
      let accepted = try await one.accept(
        Submission(record: record("n-1", hub), idempotency: claim))
      #expect(accepted == .accepted)
      let isLost = !shared.losesAnswer.load(ordering: .relaxed)
      #expect(isLost, "the answer was not lost")
      shared.losesAnswer.store(true, ordering: .relaxed)
      await #expect(throws: StoreError.self) { try await one.claimWork(limit: 9) }
      let mine = try await one.claimWork(limit: 9)
      #expect(mine.map(\.lease) == [WorkLease(part: 0, epoch: 2)], "what the lost claim has taken")
      shared.losesAnswer.store(true, ordering: .relaxed)
      try await one.checkpoint(checkpoint(mine[0], counts: [Self.success: 5]))
      shared.losesAnswer.store(true, ordering: .relaxed)
      let last = try await one.checkpoint(
        checkpoint(mine[0], counts: [Self.success: 2], ends: true))
      let isLostAgain = !shared.losesAnswer.load(ordering: .relaxed)
      #expect(last.isFinished && isLostAgain)
      let found = try await one.notification(mine[0].id, hub: hub)
      #expect(found?.counts == [Self.success: 7])
      #expect(found?.state == .completed)
    }
  }

  @Test("a hub, a change of it and its end whose answer is lost are done once, and told")
  func lostDirectoryAnswers() async throws {
    try await scene(lease: Self.longLease) { one, _, _ in
      let isLost = { !one.engine.shared.losesAnswer.load(ordering: .relaxed) }
      one.engine.shared.losesAnswer.store(true, ordering: .relaxed)
      let hub = try await one.createHub(named: "hub2", HubContents(), at: Self.now)
      #expect(isLost() && hub.name == "hub2")
      #expect(try await one.hubs().map(\.id).filter { $0 == hub.id }.count == 1)
      one.engine.shared.losesAnswer.store(true, ordering: .relaxed)
      let changed = try await one.updateHub(
        hub.id, HubContents(userMetadata: "told"), at: Self.now)
      #expect(isLost() && changed.userMetadata == "told")
      one.engine.shared.losesAnswer.store(true, ordering: .relaxed)
      #expect(try await one.deleteHub(named: "hub2"), "the second look would find none")
      #expect(isLost())
    }
  }

  @Test("a schedule that is released while its user is erased leaves no work behind")
  func erasureBesideRelease() async throws {
    try await scene { one, two, hub in
      try await one.put(SampleDevice("i-1", user: "bob"), hub: hub, at: Self.now)
      var waiting = record("s-1", hub, to: .tag("$UserId:{bob}"))
      waiting.state = .scheduled
      waiting.scheduledFor = Self.now
      try await one.accept(waiting)
      let (released, isReleased) = AsyncStream<Void>.makeStream()
      async let release: Void = two.write { session in
        _ = try PostgresNotifications(session).releaseSchedules(
          asOf: Self.now, steadily: Self.now, limit: 9, at: nil)
        isReleased.finish()
        // Until the erasure waits for this transaction.
        let limit = ContinuousClock.now + .seconds(60)
        while try session.first(
          """
          SELECT COUNT(*) FROM pg_stat_activity
          WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))
          """) == 0
        {
          try #require(ContinuousClock.now < limit, "the erasure does not wait")
          try session.execute("SELECT pg_stat_clear_snapshot()")
        }
      }
      for await _ in released {}
      let erasure = try await one.eraseUser("bob", hub: hub)
      try await release
      #expect(erasure.schedules + erasure.notifications == 1)
      let left = try await one.read { try $0.first("SELECT COUNT(*) FROM work") }
      #expect(left == 0)
    }
  }

  /// Erases bob on one node, and writes a page on the other before that is committed.
  private func page(
    _ page: Checkpoint, _ eraser: PostgresHubStore, _ writer: PostgresHubStore,
    duringErasureOf notifications: [String], _ hub: Hub.ID
  ) async throws {
    let (erased, isErased) = AsyncStream<Void>.makeStream()
    async let erasure: Void = eraser.write { session in
      try session.lockHub(hub)
      let numbers = try notifications.compactMap {
        try NotificationTable(session.connection).notificationNumber(
          NotificationID(rawValue: $0), hub: hub)
      }
      _ = try NotificationTable(session.connection).erase(numbers)
      let devices = try PostgresTargets(session).installations(ofUser: "bob", hub: hub)
      _ = try PostgresErasure(session).erase(devices: devices, of: "bob", hub: hub)
      isErased.finish()
      let limit = ContinuousClock.now + .seconds(60)
      while try session.first(
        """
        SELECT COUNT(*) FROM pg_stat_activity
        WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))
        """) == 0
      {
        try #require(ContinuousClock.now < limit, "the page does not wait")
        try session.execute("SELECT pg_stat_clear_snapshot()")
      }
    }
    for await _ in erased {}
    _ = try? await writer.checkpoint(page)
    try await erasure
  }

  @Test(
    "a page of a notification without work leaves none behind when its user is erased meanwhile")
  func erasureBesideBegin() async throws {
    try await scene { one, two, hub in
      try await one.put(SampleDevice("i-1", user: "bob"), hub: hub, at: Self.now)
      var waiting = record("s-1", hub, to: .tag("$UserId:{bob}"))
      waiting.state = .scheduled
      waiting.scheduledFor = Self.now
      try await one.accept(waiting)
      try await page(
        checkpoint(waiting, counts: [Self.success: 1]), one, two, duringErasureOf: ["s-1"], hub)
      for table in ["notification", "work", "notification_count"] {
        let left = try await one.read { try $0.first("SELECT COUNT(*) FROM \(table)") }
        #expect(left == 0, "\(table)")
      }
    }
  }

  @Test("a page that tells of a dead handle keeps nothing of a user who is erased meanwhile")
  func erasureBesideDeath() async throws {
    try await scene { one, two, hub in
      try await one.put(SampleDevice("i-1", user: "bob"), hub: hub, at: Self.now)
      try await two.accept(record("n-1", hub))
      let record = try #require(try await two.claimWork(limit: 1).records.first)
      let audience = try await two.targets(record.audience, after: 0, limit: 10)
      let target = try #require(audience.targets.first)
      var dead = checkpoint(record)
      dead.failures = [
        .init(
          registration: target.registration, outcome: .expiredChannel, status: 410, reason: nil)
      ]
      dead.deadHandles = [
        .init(
          registration: target.registration, platform: .apns, handle: "HANDLE-i-1",
          revision: audience.revision, outcome: .expiredChannel)
      ]
      try await page(dead, one, two, duringErasureOf: [], hub)
      let kept = try await one.read { session in
        try session.connection.rows(
          "SELECT handle, installation FROM notification_failure"
        ) { [$0.optionalText(0), $0.optionalText(1)] }
      }
      #expect(kept == [[nil, nil]])
      for table in ["feedback", "removed_registration"] {
        let left = try await one.read { try $0.first("SELECT COUNT(*) FROM \(table)") }
        #expect(left == 0, "\(table)")
      }
    }
  }

  @Test("as many parts as a node may have are found again when the answer to their claim was lost")
  func lostClaim() async throws {
    try await scene(devices: Self.broadcast, lease: Self.longLease) { one, _, hub in
      try await one.accept(record("n-1", hub))
      one.engine.shared.losesAnswer.store(true, ordering: .relaxed)
      await #expect(throws: StoreError.self) { try await one.claimWork(limit: 256) }
      var seen: Set<Int> = []
      while seen.count < Self.parts {
        let found = try await one.claimWork(limit: 256).records
        try #require(!found.isEmpty, "\(seen.count) parts were found")
        seen.formUnion(found.map(\.lease.part))
        for record in found { try await one.checkpoint(checkpoint(record, ends: true)) }
      }
    }
  }

  @Test("a node that is dead, or forgotten by a failover, takes nothing before it beats")
  func forgotten() async throws {
    try await scene(lease: Self.longLease) { one, _, hub in
      try await one.accept(record("n-1", hub))
      for change in ["UPDATE node SET is_dead = 1", "DELETE FROM node"] {
        let old = one.nodeID
        _ = try await one.write { try $0.execute("\(change) WHERE id = ?1", old) }
        #expect(one.holdsLeases)
        #expect(try await one.claimWork(limit: 9).isEmpty)
        try await one.heartbeat?.beat()
        #expect(one.nodeID > old)
        #expect(try await one.claimWork(limit: 9).count == 1)
        #expect(try await one.claimWork(limit: 9).isEmpty, "once is enough")
      }
    }
  }

  @Test("a node that is asked for the retries of a part that it has lost is told so")
  func lostRetries() async throws {
    try await scene { one, two, hub in
      try await one.accept(record("n-1", hub))
      let mine = try await one.claimWork(limit: 9)
      #expect(try await one.waitingRetries(mine[0].id, part: 0, hub: hub) == 0)
      try await silence(one)
      _ = try await two.claimWork(limit: 9)
      await expectLeaseLost { _ = try await one.waitingRetries(mine[0].id, part: 0, hub: hub) }
      #expect(try await one.waitingRetries(mine[0].id, hub: hub) == 0)
    }
  }

  @Test("the same key on two nodes at once becomes one notification")
  func idempotency() async throws {
    try await scene { one, two, hub in
      for round in 0..<20 {
        let claim = IdempotencyClaim(
          key: "k-\(round)", fingerprint: [1], expiresAt: Self.now.addingTimeInterval(60))
        let answers = try await withThrowingTaskGroup(of: Acceptance.self) { group in
          for (number, node) in [one, two, one, two].enumerated() {
            group.addTask {
              try await node.accept(
                Submission(record: record("n-\(round)-\(number)", hub), idempotency: claim))
            }
          }
          return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers.filter { $0 == .accepted }.count == 1)
        let repeated = answers.compactMap { if case .repeated(let id) = $0 { id } else { nil } }
        #expect(repeated.count == 3 && Set(repeated).count == 1)
      }
    }
  }

  @Test("nodes that release schedules at the same time release each once")
  func schedules() async throws {
    try await scene { one, two, hub in
      for number in 0..<50 {
        var waiting = record("s-\(number)", hub)
        waiting.state = .scheduled
        waiting.scheduledFor = Self.now
        try await one.accept(waiting)
      }
      let released = try await withThrowingTaskGroup(of: [NotificationID].self) { group in
        for node in [one, two, one, two] {
          group.addTask {
            var found: [NotificationID] = []
            while case let some = try await node.releaseSchedules(asOf: Self.now, limit: 7),
              !some.isEmpty
            { found += some.map(\.id) }
            return found
          }
        }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      // One may pass over what another is at, and end; what is left comes with the next look.
      let rest = try await one.releaseSchedules(asOf: Self.now, limit: 99).map(\.id)
      #expect((released + rest).count == 50 && Set(released + rest).count == 50)
      #expect(try await two.nextSchedule() == nil)
    }
  }

  @Test("the last part to end, on whichever node, ends the notification with the sum of all")
  func lastPart() async throws {
    try await scene(devices: Self.broadcast) { one, two, hub in
      try await one.accept(record("n-1", hub))
      let id = NotificationID(rawValue: "n-1")
      var ended = 0
      var answers: [CheckpointAnswer] = []
      while ended < Self.parts {
        let all = try await [
          (one, one.claimWork(limit: 9).records), (two, two.claimWork(limit: 9).records),
        ]
        answers += try await withThrowingTaskGroup(of: CheckpointAnswer.self) { group in
          for (node, parts) in all {
            for part in parts {
              #expect(part.counts.isEmpty, "those of other parts")
              group.addTask {
                try await node.checkpoint(
                  checkpoint(part, counts: [Self.success: part.lease.part], ends: true))
              }
            }
          }
          return try await group.reduce(into: []) { $0.append($1) }
        }
        try #require(answers.count > ended, "nothing was left to claim")
        ended = answers.count
      }
      #expect(answers.filter(\.isFinished).count == 1 && answers.count == Self.parts)
      let found = try #require(try await two.notification(id, hub: hub))
      #expect(found.state == .completed && found.endedAt == Self.now)
      #expect(found.counts == [Self.success: Self.parts * (Self.parts + 1) / 2])
    }
  }

  @Test("retries belong to the part: its owner sends them, and the node that takes it over")
  func retries() async throws {
    try await scene(devices: 1) { one, two, hub in
      let lane = LaneKey(hub: hub, platform: .apns)
      let query = AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: Self.now)
      let target = try #require(
        try await one.targets(query, after: 0, limit: 9).targets.first?.registration)
      try await one.accept(record("n-1", hub))
      let mine = try await one.claimWork(limit: 9)
      var page = checkpoint(mine[0])
      page.retries = [.init(registration: target, platform: .apns, attempts: 1, due: Self.now)]
      try await one.checkpoint(page)
      #expect(try await one.dueRetries(of: lane, asOf: Self.now, limit: 9).count == 1)
      #expect(try await two.dueRetries(of: lane, asOf: Self.now, limit: 9).isEmpty)
      #expect(try await two.retryLanes().isEmpty)
      #expect(try await two.nextRetry(of: lane) == nil)
      try await silence(one)
      #expect(try await two.claimWork(limit: 9).count == 1)
      #expect(try await two.dueRetries(of: lane, asOf: Self.now, limit: 9).count == 1)
      #expect(try await two.retryLanes() == [lane: Self.now])
    }
  }

  @Test("a clock of a node that is wrong by five minutes changes no lease")
  func clocks() async throws {
    try await scene { one, two, hub in
      for (number, offset) in [-300.0, 300].enumerated() {
        var sent = record("n-\(number)", hub)
        sent.enqueuedAt = Self.now.addingTimeInterval(offset)
        try await one.accept(sent)
        let mine = try await one.claimWork(limit: 9)
        var page = checkpoint(mine[0])
        page.at = Self.now.addingTimeInterval(offset)
        try await one.checkpoint(page)
        #expect(try await two.claimWork(limit: 9).isEmpty)
        page.state = .completed
        #expect(try await one.checkpoint(page).isFinished)
      }
    }
  }

  @Test(
    "a node is dead once another has watched it be silent for its lease, whatever its last time was",
    arguments: [-3_600_000, 0, 3_600_000])
  func watched(offset: Int64) async throws {
    try await scene { one, _, _ in
      let heartbeat = try #require(one.heartbeat)
      _ = try await one.write { session in
        try session.execute(
          """
          INSERT INTO node (name, address, version, started_at, heartbeat, keys, lease)
          SELECT 'silent', '', '', 0, heartbeat + ?1, '', 50 FROM node LIMIT 1
          """, offset)
      }
      func silent() async throws -> Bool? {
        try await one.nodes().first { $0.name == "silent" }?.isDead
      }
      try await heartbeat.beat()
      #expect(try await silent() == false, "it has only been seen once")
      let limit = ContinuousClock.now + .seconds(60)
      while try await silent() == false, ContinuousClock.now < limit { try await heartbeat.beat() }
      #expect(try await silent() == true)
      let others = try await one.nodes().filter { $0.name != "silent" }
      #expect(others.count == 2 && others.allSatisfy { !$0.isDead })
    }
  }

  @Test("a node that was found dead comes back under another number, and its work is not its own")
  func comesBack() async throws {
    try await scene { one, _, hub in
      try await one.accept(record("n-1", hub))
      let mine = try await one.claimWork(limit: 9)
      let id = try #require(one.heartbeat?.id)
      try await silence(one)
      try await one.heartbeat?.beat()
      #expect(one.heartbeat?.livingID != id && one.heartbeat?.livingID != nil)
      await expectLeaseLost { try await one.checkpoint(checkpoint(mine[0])) }
      #expect(try await one.claimWork(limit: 9).count == 1)
    }
  }

  @Test("a node that comes takes no work before it knows the time of those that were there before")
  func newcomer() async throws {
    try await scene { one, two, hub in
      // The elder has not been heard of since the clock was set.
      _ = try await one.write { session in
        try session.execute(
          """
          INSERT INTO node (id, name, address, version, started_at, heartbeat, keys, lease)
          SELECT 0, 'elder', '', '', 0, heartbeat - 3600000, '', 3600000 FROM node LIMIT 1
          """)
      }
      try await silence(two)
      try await two.heartbeat?.beat()
      var sent = record("n-1", hub)
      sent.steadyRelease = two.clock.steady().addingTimeInterval(3_600)
      try await two.accept(sent)
      #expect(two.heartbeat?.livingID == nil && two.heartbeat?.trouble == nil)
      #expect(try await two.claimWork(limit: 9).isEmpty)
      let found = try #require(try await one.claimWork(limit: 9).records.first?.steadyRelease)
      #expect(abs(found.timeIntervalSince(one.clock.steady())) < 60)
      _ = try await one.write { session in
        try session.execute(
          "UPDATE node SET heartbeat = (SELECT MAX(heartbeat) FROM node) WHERE id = 0")
      }
      try await two.heartbeat?.beat()
      #expect(two.heartbeat?.livingID != nil)
    }
  }

  @Test(
    "a step of the database's clock that was told of, and set right again, moves nothing that has a window"
  )
  func steps() async throws {
    try await scene { one, two, hub in
      let ahead = { one.clock.now().timeIntervalSince(one.clock.steady()) }
      #expect(abs(ahead()) < 5)
      // Another node has told of an hour; the clock is right again before this one beats.
      _ = try await two.write { try $0.execute("UPDATE store_state SET clock_steps = 3600000") }
      try await one.heartbeat?.beat()
      #expect(abs(ahead()) < 5)
      let told = try await one.read { try $0.first("SELECT clock_steps FROM store_state") } ?? .max
      #expect(abs(told) < 5_000, "it tells of the second step")
      var sent = record("n-1", hub)
      sent.enqueuedAt = one.clock.now().addingTimeInterval(-7_200)
      sent.steadyRelease = one.clock.steady()
      try await one.accept(sent)
      try await silence(one)
      let found = try #require(try await two.claimWork(limit: 9).records.first)
      try await two.heartbeat?.beat()
      let context = DispatchContext(found, limits: DispatchLimits(), at: DispatchMoment(two.clock))
      let left = context.deadline.timeIntervalSince(two.clock.steady())
      #expect(left > 1_700 && left <= 1_801, "its window has not passed")
    }
  }

  @Test("nodes are listed with how long they were silent, and one that leaves is gone")
  func list() async throws {
    try await scene { one, two, hub in
      try await one.publish(address: "http://127.0.0.1:1")
      try await one.accept(record("n-1", hub))
      _ = try await one.claimWork(limit: 9)
      #expect(try await two.nodes().map(\.name) == ["node-1", "node-2"])
      #expect(try await two.nodes().first?.address == "http://127.0.0.1:1")
      #expect(try await two.nodes().allSatisfy(\.isAlive))
      await one.heartbeat?.stop()
      #expect(try await two.nodes().map(\.name) == ["node-2"])
      #expect(try await two.claimWork(limit: 9).count == 1, "what it had is free at once")
    }
  }

  @Test("each node says after how long a silence others take its work")
  func leases() async throws {
    try await scene { one, two, _ in
      try await one.join(as: StoreNode(name: "short", lease: 2))
      var short = try #require(try await two.nodes().first { $0.name == "short" })
      var usual = try #require(try await two.nodes().first { $0.name == "node-2" })
      #expect(short.lease == 2 && usual.lease == 10 && short.isAlive)
      short.silence = 3
      usual.silence = 3
      #expect(!short.isAlive && usual.isAlive)
    }
  }

  @Test("a database that has been away for long is tried once for each call")
  func longAway() async throws {
    try await PostgresStores.withNodes(1) { nodes in
      let address = nodes[0].engine.shared.address
      let name = try #require(address.split(separator: "dbname=").last)
      let server = try PostgresConnection(
        address: PostgresServer.shared().address(), component: "test")
      defer { server.close() }
      try server.execute("ALTER DATABASE \(name) ALLOW_CONNECTIONS false")
      try server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'")

      await #expect(throws: StoreError.self) { try await nodes[0].hub(named: "hub1") }
      // Each that waited again would be as long as the first.
      let patience = PostgresStores.options.patience
      let start = ContinuousClock.now
      await #expect(throws: StoreError.self) { try await nodes[0].hub(named: "hub1") }
      #expect(start.duration(to: .now) < patience)

      try server.execute("ALTER DATABASE \(name) ALLOW_CONNECTIONS true")
      #expect(try await nodes[0].hub(named: "hub1") == nil)
    }
  }

  @Test("a push service's reason may hold any character")
  func reasons() async throws {
    try await scene { one, _, hub in
      try await one.accept(record("n-1", hub))
      let mine = try await one.claimWork(limit: 9)
      var page = checkpoint(mine[0])
      let reason = "it's \"over\" \0 \\ {x} '; DROP TABLE hub; --"
      page.failures = [.init(registration: 1, outcome: .badChannel, status: 400, reason: reason)]
      page.retries = [
        .init(
          registration: 2, platform: .apns, attempts: 1, due: Self.now,
          answer: .init(outcome: .throttled, status: 429, reason: reason))
      ]
      try await one.checkpoint(page)
      let kept = try await one.outcomes(
        of: mine[0].id, hub: hub, OutcomeFilter(), after: 0, limit: 9)
      #expect(
        kept.outcomes.map(\.failure.reason) == [reason.replacing("\0", with: "\u{FFFD}")])
      #expect(try await one.hubs().count == 1)
    }
  }

  @Test("a job is done by one node, and by another when that is gone")
  func jobs() async throws {
    try await scene { one, two, hub in
      var job = HubJob(
        id: HubJob.newID(at: Self.now, random: .system), hub: hub, kind: .exportRegistrations,
        outputContainer: "file:///c", importFile: nil, createdAt: Self.now)
      try await one.addJob(job, forgetting: .distantPast)
      #expect(try await two.unfinishedJobs().isEmpty)
      job.status = .running
      try await one.updateJob(job)
      try await silence(one)
      #expect(try await two.unfinishedJobs().map(\.id) == [job.id])
      await expectLeaseLost { try await one.updateJob(job) }
      try await two.updateJob(job)
    }
  }

  @Test("who looks at the directory during a change of this process does not hide it from the next")
  func changeOfDirectory() async throws {
    try await PostgresStores.withNodes(1) { nodes in
      let node = nodes[0]
      let before = try await node.directoryVersion()
      let isChanged = Gate()
      let mayCommit = DispatchSemaphore(value: 0)
      async let change: Void = node.writing("change") { session in
        try session.changeDirectory()
        isChanged.open()
        mayCommit.wait()
      }
      await isChanged.wait()
      #expect(try await node.directoryVersion() == before)
      mayCommit.signal()
      try await change
      #expect(try await node.directoryVersion() > before)
    }
  }

  @Test("what one node changes of the directory, another sees within a moment")
  func directory() async throws {
    try await scene { one, two, hub in
      let before = try await two.directoryVersion()
      _ = try await one.createHub(named: "hub2", registrationTTL: nil, policies: [], at: Self.now)
      #expect(try await one.directoryVersion() > before)
      let limit = ContinuousClock.now + .seconds(60)
      while try await two.directoryVersion() == before {
        try #require(ContinuousClock.now < limit, "the other node does not see it")
      }
    }
  }
}
