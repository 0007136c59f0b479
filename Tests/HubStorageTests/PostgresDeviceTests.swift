import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Synchronization
import Testing

@testable import HubStorage

@Suite(
  "Devices on PostgreSQL",
  .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"))
struct PostgresDeviceTests {
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)

  /// Runs `body` on as many nodes, on a new database with one hub, of number 1.
  private func withStores(
    _ count: Int = 1, _ body: ([PostgresHubStore]) async throws -> Void
  ) async throws {
    try await PostgresStores.withNodes(count) { stores in
      let hub = try await stores[0].createHub(named: "hub1", HubContents(), at: Self.now)
      #expect(hub.id == 1)
      try await body(stores)
    }
  }

  private func put(_ store: PostgresHubStore, _ device: SampleDevice) async throws {
    try await store.putInstallation(
      device.installation, registrations: device.registrations, request: nil, hub: 1, at: Self.now)
  }

  private func query(_ expression: TagExpression? = nil) -> AudienceQuery {
    AudienceQuery(hub: 1, kind: .native(.apns), expression: expression, asOf: Self.now)
  }

  @Test("an installation is there as it was written, and its registrations reach it")
  func roundTrip() async throws {
    try await withStores { stores in
      let device = SampleDevice(
        "i-1", user: "Bob", tags: ["Red", "it's \"so\", \\ {x}"],
        templates: ["main": PushTemplate(body: "{}")], variables: ["a": "b"])
      try await put(stores[0], device)
      #expect(try await stores[0].installation("i-1", hub: 1) == device.installation)
      for tag in ["red", "it's \"so\", \\ {x}", "$UserId:{bob}"] as [NotificationHubs.Tag] {
        let page = try await stores[0].targets(query(.tag(tag)), after: 0, limit: 10)
        #expect(page.handleTexts == ["HANDLE-i-1"])
      }
    }
  }

  @Test("a lock that somebody else holds costs a write some seconds and 503, not a hub its nodes")
  func heldLock() async throws {
    try await withStores { stores in
      let store = stores[0]
      let other = try PostgresConnection(
        address: store.engine.shared.address, component: "somebody")
      defer { other.close() }
      #expect(store.lockWarning == nil)
      try other.execute("SELECT pg_advisory_lock(1, 1)")
      let error = await #expect(throws: StoreError.self) {
        try await put(store, SampleDevice("i-1"))
      }
      #expect(error == .locked && error.map { HubFailure($0).retryAfter } == 2)
      #expect(store.lockWarning?.code == "database-lock-held")
      #expect(await store.condition() == .healthy, "other hubs go on")
      try other.execute("SELECT pg_advisory_unlock(1, 1)")
      try await put(store, SampleDevice("i-1"))
    }
  }

  @Test("a batch waits twice for a hub whose lock is held, and writes those of other hubs")
  func heldLockInBatch() async throws {
    try await withStores { stores in
      _ = try await stores[0].createHub(named: "hub2", HubContents(), at: Self.now)
      let engine = stores[0].engine
      let ends = Mutex<[String]>([])
      try await engine.perform(.single, on: engine.writers, ifUnclear: .again) { session in
        // Used by the thread of this session alone.
        nonisolated(unsafe) let other = try PostgresConnection(
          address: engine.shared.address, component: "somebody")
        defer { other.close() }
        try other.execute("SELECT pg_advisory_lock(1, 1)")
        try session.connection.execute("SET lock_timeout = '50ms'")
        PostgresInstallations(session).perform(
          ([1, 1, 1, 1, 2, 1] as [Hub.ID]).enumerated().map { number, hub in
            let device = SampleDevice("i-\(number)")
            return InstallationWork(
              content: InstallationContent(
                device.installation, registrations: device.registrations, hub: hub, at: Self.now,
                shared: engine.shared),
              resume: { ends.withLock { $0.append("\(number) written") } },
              fail: { error in
                let count = ends.withLock {
                  $0.append("\(number) \(error as? StoreError == .locked ? "locked" : "?")")
                  return $0.count
                }
                // From here on one that waited again would be written.
                if count == 2 { try? other.execute("SELECT pg_advisory_unlock(1, 1)") }
              })
          })
      }
      #expect(
        ends.withLock { $0 } == [
          "0 locked", "1 locked", "2 locked", "3 locked", "4 written", "5 locked",
        ])
    }
  }

  @Test(
    "after a restore into another cluster dead handles leave as before, also when it is interrupted"
  )
  func otherCluster() async throws {
    try await withStores { stores in
      let store = stores[0]
      for id in ["i-1", "i-2"] { try await put(store, SampleDevice(id)) }
      // As a dump of a cluster that has given out many more numbers.
      try await store.write { session in
        try session.connection.execute(
          """
          UPDATE registration SET confirmed = '9000000000000'::xid8, written = '9000000000000'::xid8;
          UPDATE registration SET confirmed = '3'::xid8 WHERE slot =
            (SELECT MIN(slot) FROM registration);
          UPDATE store_state SET cluster = 1
          """)
      }
      func late(_ store: PostgresHubStore) async throws -> Int64? {
        try await store.read {
          try $0.first(
            """
            SELECT COUNT(*) FROM registration WHERE NOT (
              pg_visible_in_snapshot(confirmed, pg_current_snapshot())
              AND pg_visible_in_snapshot(written, pg_current_snapshot()))
            """)
        }
      }
      #expect(try await late(store) == 2)
      let again = try await PostgresStores.open(store.engine.shared.address)
      #expect(try await late(again) == 0)
      // What is written from here on counts by its own number.
      try await put(again, SampleDevice("i-3"))
      #expect(try await late(again) == 0)
      let known = try await again.read { try $0.first("SELECT cluster FROM store_state") }
      let here = try await again.read {
        try $0.first("SELECT system_identifier FROM pg_control_system()")
      }
      #expect(known == here)
      // As of a replica that had been opened before it took the first server's place.
      _ = try await store.write { session in
        try session.execute(
          "UPDATE registration SET written = '9000000000000'::xid8 WHERE handle = 'HANDLE-i-2'")
      }
      let third = try await PostgresStores.open(store.engine.shared.address)
      #expect(try await late(third) == 1, "nothing tells")
      #expect(try await third.adoptServer().registrations == 1)
      #expect(try await late(third) == 0)
      #expect(try await third.adoptServer().registrations == 0)
      try await third.close()
      try await again.close()
    }
  }

  @Test("a database whose server cannot be told from another is a warning")
  func unknownServer() async throws {
    try await withStores { stores in
      let code = "database-server-unknown"
      let before = try await stores[0].warnings()
      #expect(!before.map(\.code).contains(code))
      // Undone with the transaction.
      await #expect(throws: StoreError.noHub) {
        try await stores[0].write { session in
          try session.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
          try session.execute("CREATE ROLE belfry_test_stranger NOLOGIN")
          try session.execute("SET LOCAL ROLE belfry_test_stranger")
          let cluster = try PostgresSchema.cluster(of: session.connection)
          let warning = try PostgresWarnings(session).serverWarning()
          #expect(cluster == nil && warning?.code == code)
          throw StoreError.noHub
        }
      }
    }
  }

  @Test("a database is open to every role of its server until that is revoked")
  func openToAll() async throws {
    try await withStores { stores in
      let store = stores[0]
      #expect(try await store.isOpenToAll())
      try await store.write { session in
        try session.connection.execute(
          """
          DO $$ BEGIN
            EXECUTE format('REVOKE CONNECT ON DATABASE %I FROM PUBLIC', current_database());
          END $$
          """)
      }
      #expect(try await !store.isOpenToAll())
    }
  }

  @Test("every constraint of a device table begins with the hub and the slot")
  func slotRule() async throws {
    try await withStores { stores in
      let found = try await stores[0].read { session in
        try session.connection.rows(
          """
          SELECT t.relname, string_agg(a.attname, ',' ORDER BY k.n)
          FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
          CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, n)
          JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number
          WHERE i.indisunique AND NOT t.relispartition AND t.relname IN
            ('installation', 'registration', 'registration_handle', 'removed_registration')
          GROUP BY i.indexrelid, t.relname
          """
        ) { ($0.text(0), $0.text(1)) }
      }
      #expect(Set(found.map(\.0)).count == 4)
      for (table, columns) in found {
        #expect(columns.hasPrefix("hub,slot,"), "\(table): \(columns)")
      }
    }
  }

  @Test("an audience that takes too long to count is told from the slots that were counted")
  func estimates() async throws {
    var options = PostgresStores.options
    options.countTime = .zero
    try await PostgresStores.withNodes(1, options: options) { stores in
      let hub = try await stores[0].createHub(
        named: "hub1", registrationTTL: nil, policies: [], at: .now
      ).id
      let body = PushTemplate(body: "{}")
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<400 {
          group.addTask {
            try await stores[0].put(
              SampleDevice("i-\(number)", templates: ["main": body]), hub: hub, at: .now)
          }
        }
        try await group.waitForAll()
      }
      let all = try await stores[0].counts(of: nil, hub: hub, asOf: .now)
      let slots = stores[0].engine.shared.slots.count
      #expect(all.isEstimate)
      let native = try #require(all.native[.apns])
      #expect(native % slots == 0 && (200...800).contains(native))
      #expect(all.templates == [TemplateKey(platform: .apns, name: "main"): native])
      // A few devices are counted, however long it takes.
      let one = try await stores[0].counts(of: .installation("i-7"), hub: hub, asOf: .now)
      #expect(one.native == [.apns: 1] && !one.isEstimate)
    }
  }

  @Test("nodes that write the same devices at once leave each once, as one of them has written it")
  func manyWriters() async throws {
    try await withStores(2) { stores in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, store) in stores.enumerated() {
          for round in 0..<4 {
            for device in 0..<60 {
              group.addTask {
                try await put(
                  store,
                  SampleDevice(
                    "i-\(device)", handle: "H\(device % 20)",
                    tags: ["n\(number)", "r\(round)"].map { NotificationHubs.Tag(rawValue: $0) }))
              }
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(try await stores[0].count(query()) == 60)
      for device in 0..<60 {
        let found = try await stores[1].installation("i-\(device)", hub: 1)
        let tags = try #require(found?.tags)
        let reached = try await stores[0].count(
          query(.and(.and(.tag(tags[0]), .tag(tags[1])), .installation("i-\(device)"))))
        #expect(reached == 1)
      }
      let total = try await stores[0].read { session in
        try session.first("SELECT SUM(total)::int8 FROM registration_count")
      }
      #expect(total == 60)
      // Of the three devices with one handle all but the first are duplicates.
      let page = try await stores[0].targets(query(), after: 0, limit: 100)
      #expect(page.targets.filter { !$0.isDuplicate }.count == 20)
    }
  }

  @Test("the parts of a broadcast have everybody who was there once, whatever is written meanwhile")
  func parts() async throws {
    try await withStores { stores in
      let store = stores[0]
      let slots = store.engine.shared.slots
      var random = SeededGenerator(seed: 0x9a27)
      // Those below 30 and from 90 on change while pages are read; the others stay as they are.
      func write(_ numbers: Range<Int>) async throws {
        for number in numbers {
          try await put(
            store, SampleDevice("i-\(number)", handle: "H\(Int.random(in: 0..<50, using: &random))")
          )
        }
      }
      try await write(0..<90)
      let before = try await store.targets(query(), after: 0, limit: 1_000)
      var staying: Set<String> = []
      for number in 30..<90 {
        let device = try #require(try await store.installation("i-\(number)", hub: 1))
        staying.insert(device.pushChannel.handle)
      }
      try await store.accept(record())
      var sent: [String: Int] = [:]
      var seen: [RegistrationID] = []
      for part in AudiencePart.all(slots).shuffled(using: &random) {
        var query = query()
        (query.notification, query.part) = (Self.id, part.number(in: slots))
        var after: RegistrationID? = 0
        while let first = after {
          let page = try await store.targets(query, after: first, limit: 2)
          for (target, handle) in zip(page.targets, page.handleTexts) {
            seen.append(target.registration)
            if !target.isDuplicate { sent[handle, default: 0] += 1 }
          }
          after = page.next
          let number =
            (Bool.random(using: &random) ? 0 : 90) + Int.random(in: 0..<30, using: &random)
          try await write(number..<number + 1)
        }
      }
      #expect(Set(seen).count == seen.count, "a registration stood in two parts")
      #expect(Set(before.targets.map(\.registration)).isSubset(of: seen), "somebody was left out")
      for handle in staying {
        #expect(sent[handle, default: 0] >= 1, "\(handle) was passed over")
      }
    }
  }

  @Test("without writes beside it a broadcast in parts reaches each handle once")
  func partsReachOnce() async throws {
    try await withStores { stores in
      for number in 0..<80 {
        try await put(stores[0], SampleDevice("i-\(number)", handle: "H\(number % 33)"))
      }
      try await stores[0].accept(record())
      let slots = stores[0].engine.shared.slots
      var sent: [String] = []
      for part in AudiencePart.all(slots) {
        var query = query()
        (query.notification, query.part) = (Self.id, part.number(in: slots))
        let page = try await stores[0].targets(query, after: 0, limit: 100)
        sent += zip(page.targets, page.handleTexts).filter { !$0.0.isDuplicate }.map(\.1)
      }
      #expect(sent.sorted() == (0..<33).map { "H\($0)" }.sorted())
    }
  }

  @Test("a database of 256 slots has few tables, and each part the devices of its slot")
  func manySlots() async throws {
    var options = PostgresStores.options
    (options.slots, options.countTime) = (256, .seconds(600))
    let store = try await PostgresStores.open(
      try PostgresServer.shared().makeDatabase(), options: options)
    _ = try await store.createHub(named: "hub1", HubContents(), at: Self.now)
    for number in 0..<80 {
      try await put(store, SampleDevice("i-\(number)", handle: "H\(number % 33)"))
    }
    try await store.accept(record())
    var sent: [String] = []
    for part in AudiencePart.all(store.engine.shared.slots) {
      var query = query()
      (query.notification, query.part) = (Self.id, part.number(in: store.engine.shared.slots))
      let page = try await store.targets(query, after: 0, limit: 100)
      sent += zip(page.targets, page.handleTexts).filter { !$0.0.isDuplicate }.map(\.1)
    }
    #expect(sent.sorted() == (0..<33).map { "H\($0)" }.sorted())
    let tables = try await store.read { session in
      try session.first(
        "SELECT COUNT(*) FROM pg_inherits WHERE inhparent = 'registration'::regclass")
    }
    #expect(tables == 32)
    #expect(try await store.count(query()) == 80)
    #expect(try await store.counts(of: nil, hub: 1, asOf: Self.now).native == [.apns: 80])
    #expect(try await store.deleteHub(named: "hub1"))
    while try await store.clear(expiredBy: Self.now) {}
    #expect(try await store.read { try $0.first("SELECT COUNT(*) FROM registration") } == 0)
    try await store.close()
  }

  @Test("a text that the database cannot keep is the fault of its request alone")
  func unfitText() async throws {
    try await withStores { stores in
      try await withThrowingTaskGroup(of: Bool.self) { group in
        for number in 0..<40 {
          group.addTask {
            let handle = number == 7 ? "H\u{0}7" : "H\(number)"
            do {
              try await put(stores[0], SampleDevice("i-\(number)", handle: handle))
              return true
            } catch let refusal as HubFailure {
              #expect(refusal.status == 400)
              return false
            }
          }
        }
        let written = try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        #expect(written == 39)
      }
      let refusal = await #expect(throws: HubFailure.self) {
        try await stores[0].installation("i\u{0}", hub: 1)
      }
      #expect(refusal?.status == 400)
    }
  }

  @Test("a batch with such a text is written in a few transactions, not one for each device")
  func unfitTextInBatch() async throws {
    try await withStores { stores in
      let engine = stores[0].engine
      let devices = (0..<64).map { SampleDevice("i-\($0)", handle: $0 == 7 ? "H\u{0}7" : "H\($0)") }
      let failed = Mutex<[String]>([])
      try await engine.perform(.single, on: engine.writers, ifUnclear: .again) { session in
        PostgresInstallations(session).perform(
          devices.map { device in
            InstallationWork(
              content: InstallationContent(
                device.installation, registrations: device.registrations, hub: 1, at: Self.now,
                shared: engine.shared),
              resume: {},
              fail: { _ in failed.withLock { $0.append(device.installation.installationID) } })
          })
      }
      #expect(failed.withLock { $0 } == ["i-7"])
      let (rows, transactions) = try await stores[0].read { session in
        try session.connection.rows(
          "SELECT COUNT(*), COUNT(DISTINCT written) FROM registration"
        ) { ($0.integer(0), $0.integer(1)) }[0]
      }
      #expect(rows == 63)
      // Of 32, 16, 8, 4, 2 and 1.
      #expect(transactions == 6)
    }
  }

  @Test("installations with a hundred tiles are written in transactions of few locks")
  func boundedLocks() async throws {
    try await withStores { stores in
      let engine = stores[0].engine
      let contents = (0..<40).map { number in
        InstallationContent(
          SampleDevice("i-\(number)").installation,
          registrations: (0..<100).map { tile in
            RegistrationDraft(
              kind: .native, platform: .apns, channel: .handle("H\(number)-\(tile)"),
              secondaryTileName: "t\(tile)")
          }, hub: 1, at: Self.now, shared: engine.shared)
      }
      let written = Mutex(0)
      try await engine.perform(.single, on: engine.writers, ifUnclear: .again) { session in
        PostgresInstallations(session).perform(
          contents.map { content in
            InstallationWork(
              content: content, resume: { written.withLock { $0 += 1 } }, fail: { _ in })
          })
      }
      #expect(written.withLock { $0 } == contents.count)
      let (transactions, most) = try await stores[0].read { session in
        try session.connection.rows(
          """
          SELECT COUNT(*), MAX(locks) FROM (
            SELECT COUNT(DISTINCT handle_hash) + COUNT(DISTINCT installation) AS locks
            FROM registration GROUP BY written) AS t
          """
        ) { ($0.integer(0), $0.integer(1)) }[0]
      }
      #expect(transactions == 8 && most <= PostgresInstallations.lockLimit)
    }
  }

  @Test("the devices of a user go slice by slice, and an erasure that was interrupted goes on")
  func erasureInSlices() async throws {
    try await withStores { stores in
      let count = 450
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<count {
          group.addTask {
            let tags = ["bobs", "t\(number)"].map { NotificationHubs.Tag(rawValue: $0) }
            try await put(stores[0], SampleDevice("i-\(number)", user: "Bob", tags: tags))
          }
        }
        try await group.waitForAll()
      }
      try await stores[0].accept(record(to: .tag("t7")))
      let hook = StoreHook()
      // After the look, the notifications and two slices.
      hook.die(afterCalls: 4)
      await #expect(throws: StoreError.closed) {
        try await stores[0].intercepted(by: hook).eraseUser("bob", hub: 1)
      }
      #expect(try await stores[0].notification(Self.id, hub: 1) == nil)
      #expect(try await stores[0].count(query()) == 50)
      let rest = try await stores[0].eraseUser("bob", hub: 1)
      #expect(rest.installations == 50 && rest.tags == 51 && rest.notifications == 0)
      #expect(try await stores[0].count(query()) == 0)
    }
  }

  @Test("what was removed comes back slice by slice")
  func restorationInSlices() async throws {
    try await withStores { stores in
      let store = stores[0]
      let count = 250
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<count {
          group.addTask { try await put(store, SampleDevice("i-\(number)")) }
        }
        try await group.waitForAll()
      }
      let page = try await store.targets(query(), after: 0, limit: count)
      try await store.write { session in
        let words = zip(page.targets, page.handleTexts).map { target, handle in
          Checkpoint.Condemned(
            registration: target.registration, platform: .apns, handle: handle, revision: .newest,
            outcome: .expiredChannel)
        }
        try PostgresRemovals(session).removeDead(words, hub: 1, at: Self.now.milliseconds)
      }
      #expect(try await store.count(query()) == 0)
      let first = try await store.restoreRemoved(
        RemovalWave(), hub: 1, asOf: Self.now, limit: 1_000)
      #expect(first == DeviceRestoration(restored: 200, hasMore: true))
      let second = try await store.restoreRemoved(
        RemovalWave(), hub: 1, asOf: Self.now, limit: 1_000)
      #expect(second == DeviceRestoration(restored: 50))
      #expect(try await store.count(query()) == count)
    }
  }

  @Test("the longest user id stands within what is read of a document")
  func longUserID() async throws {
    try await withStores { stores in
      // Letters of four bytes each, and a large document behind them.
      let user = String(repeating: "\u{10400}", count: (Tag.maximumLength - 10) / 2)
      let big = ["a": String(repeating: "x", count: 100_000)]
      try await put(stores[0], SampleDevice("i-1", user: user, variables: big))
      try await put(stores[0], SampleDevice("i-2", user: user + "x", variables: big))
      let found = try await stores[0].read {
        try PostgresTargets($0).installations(ofUser: user, hub: 1)
      }
      #expect(found.map(\.id) == ["i-1"])
      #expect(InstallationDocument.userIDLimit < 1_000)
    }
  }

  @Test("of a handle with many registrations a new one looks at few")
  func sharedHandle() async throws {
    try await withStores { stores in
      func marked() async throws -> Int64? {
        try await stores[0].read { session in
          try session.first("SELECT COUNT(*) FROM registration WHERE shared_at IS NOT NULL")
        }
      }
      for number in 0..<9 { try await put(stores[0], SampleDevice("i-\(number)", handle: "H")) }
      #expect(try await marked() == 9)
      _ = try await stores[0].write { session in
        try session.execute("UPDATE registration SET shared_at = NULL")
      }
      try await put(stores[0], SampleDevice("i-9", handle: "H"))
      let count = try #require(try await marked())
      #expect((2...3).contains(count))
    }
  }

  @Test("a registration that does not fit its installation is left out of lists, which say so")
  func unfitRegistration() async throws {
    try await withStores { stores in
      for number in 0..<5 { try await put(stores[0], SampleDevice("i-\(number)")) }
      _ = try await stores[0].write { session in
        try session.execute("UPDATE registration SET tile = 'x' WHERE handle = 'HANDLE-i-2'")
      }
      var (seen, unreadable): (Int, Set<RegistrationID>) = (0, [])
      var after: RegistrationID = 0
      var hasMore = true
      while hasMore {
        let page = try await stores[0].registrations(
          .all, hub: 1, asOf: Self.now, after: after, limit: 2)
        seen += page.registrations.count
        unreadable.formUnion(page.unreadable.map(\.registration))
        (after, hasMore) = (page.registrations.last?.number ?? after, page.hasMore)
      }
      #expect(seen == 4 && unreadable.count == 1)
    }
  }

  @Test("who skips numbers waits for another who does, and never sets them back")
  func skippedNumbers() async throws {
    try await withStores(2) { stores in
      let (first, isFirst) = AsyncStream<Void>.makeStream()
      async let ahead: Void = stores[0].write { session in
        try session.shared.numbers.skip(.registration, to: 9_000_000, session)
        isFirst.finish()
        let limit = ContinuousClock.now + .seconds(60)
        while try session.first(
          """
          SELECT COUNT(*) FROM pg_stat_activity
          WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))
          """) == 0
        {
          try #require(ContinuousClock.now < limit, "the other does not wait")
          try session.execute("SELECT pg_stat_clear_snapshot()")
        }
        // As one who looked before the other's change would have found it.
        _ = try session.first("SELECT setval('registration_number', 20000000)")
      }
      for await _ in first {}
      try await stores[1].write { session in
        try session.shared.numbers.skip(.registration, to: 10_000_000, session)
      }
      try await ahead
      let last = try await stores[0].read { session in
        try session.first("SELECT last_value FROM registration_number")
      }
      #expect(last == 20_000_000)
    }
  }

  @Test("too little room for locks is told, with the value to set")
  func lockWarning() async throws {
    try await withStores { stores in
      let lock = "database-locks"
      #expect(!(try await stores[0].warnings().map(\.code).contains(lock)))
      _ = try await stores[0].write { session in
        try session.execute(
          """
          INSERT INTO node (name, address, version, started_at, heartbeat, keys)
          SELECT name, address, version, started_at, heartbeat + 60000, keys
          FROM node, generate_series(1, 99)
          """)
      }
      let warnings = try await stores[0].warnings()
      let text = try #require(warnings.first { $0.code == lock }?.text)
      #expect(text.contains("100 nodes") && text.contains("set max_locks_per_transaction to "))
      #expect(!warnings.map(\.code).contains("database-not-encrypted"), "it is on this machine")
    }
  }

  @Test("a connection that was lost is made again, and the work done")
  func lostConnections() async throws {
    try await withStores { stores in
      let kill = """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
        """
      for round in 0..<3 {
        let address = stores[0].engine.shared.address
        let other = try PostgresConnection(address: address, component: "test")
        try other.statement(kill).run()
        other.close()
        try await put(stores[0], SampleDevice("i-\(round)"))
        #expect(try await stores[0].count(query()) == round + 1)
        _ = try await stores[0].createRegistration(
          RegistrationDraft(
            kind: .template(PushTemplate(body: "{}"), name: nil), platform: .apns,
            channel: .handle("T\(round)")), hub: 1, at: Self.now)
      }
      var templates = query()
      templates.kind = .template
      #expect(try await stores[0].count(templates) == 3)
    }
  }

  @Test("a database keeps the number of slots that it was made with")
  func slotCount() async throws {
    let address = try PostgresServer.shared().makeDatabase()
    var options = PostgresStores.options
    for (asked, found) in [(4, 4), (16, 4)] {
      options.slots = asked
      let store = try await PostgresHubStore.open(
        address: address, sealing: TestSealing(), options: options)
      #expect(store.engine.shared.slots.count == found)
      try await store.close()
    }
    options.slots = 12
    await #expect(throws: StoreError.self) {
      try await PostgresHubStore.open(address: address, sealing: TestSealing(), options: options)
    }
  }

  @Test("a database that cannot be opened is told in words that help, and without a password")
  func openingSentences() async throws {
    let server = try PostgresServer.shared()
    let good = try server.makeDatabase()
    let connection = try PostgresConnection(address: good, component: "hub")
    try connection.execute("CREATE ROLE guest LOGIN")
    try connection.writing { try connection.setSchemaVersion(9_999) }
    connection.close()
    let other = try server.makeDatabase()
    for (address, words) in [
      (good, ["schema version 9999", "newer belfry"]),
      (server.address("nowhere"), ["nowhere", "createdb"]),
      (other.replacing("user=belfry", with: "user=stranger"), ["stranger", "user"]),
      (other.replacing("user=belfry", with: "user=guest"), ["GRANT CREATE"]),
      (
        "postgresql://kim:secret%ZZ@host/belfry", ["cannot be read", "postgresql://user@host"]
      ),
      ("postgresql://kim:secret@host:nonsense/belfry", ["cannot be read"]),
      ("host=/nowhere password=secret", ["check host and port"]),
    ] {
      let refusal = await #expect(throws: StoreError.self, "\(address)") {
        try await PostgresHubStore.open(address: address, sealing: TestSealing())
      }
      let text = refusal?.description ?? ""
      for word in words { #expect(text.contains(word), "\(text)") }
      #expect(!text.contains("secret"), "\(text)")
    }
    try await PostgresHubStore.open(address: other, sealing: TestSealing()).close()
    let sealed = await #expect(throws: StoreError.self) {
      try await PostgresHubStore.open(address: other, sealing: TestSealing(keys: ["another"]))
    }
    #expect(sealed == .sealedSecret)
  }

  private static let id = NotificationID(rawValue: "n-1")

  private func record(to expression: TagExpression? = nil) -> NotificationRecord {
    NotificationRecord(
      id: Self.id, hub: 1,
      request: NotificationRequest(
        format: .native(.apns), body: Array("{}".utf8), expression: expression),
      state: .enqueued, enqueuedAt: Self.now)
  }
}
