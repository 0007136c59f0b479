import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Synchronization
import Testing

@testable import HubStorage

// Swift Testing has another.
private typealias Tag = NotificationHubs.Tag

@Suite(
  "Moving a hub between a file and PostgreSQL",
  .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"))
struct HubMoveTests {
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)
  private static let hour = Int64(1_893_456_000 / 3_600)

  // MARK: Stores

  private static func openFile(
    _ path: String, takesMove: Bool = false, key: String = "test key"
  ) async throws -> SQLiteHubStore {
    var options = SQLiteHubStore.Options()
    options.readers = 1
    options.takesMove = takesMove
    return try await SQLiteHubStore.open(
      at: path, sealing: TestSealing(keys: [key]), options: options)
  }

  private static func openDatabase(
    _ address: String, takesMove: Bool = false
  ) async throws -> PostgresHubStore {
    var options = PostgresStores.options
    options.takesMove = takesMove
    return try await PostgresHubStore.open(
      address: address, sealing: TestSealing(), options: options)
  }

  private struct Killed: Error {}

  /// Moves, killed after every so many transactions, until it is done.
  /// - Returns: How often it was killed.
  @discardableResult
  private static func move(
    file: String, database: String, back: Bool = false, killedAfter limit: Int = .max,
    batch: Int = 1_000
  ) async throws -> Int {
    for kills in 0..<1_000 {
      let store = try await openFile(file, takesMove: back)
      let shared = try await openDatabase(database, takesMove: !back)
      var move = back ? HubMove(from: shared, to: store) : HubMove(from: store, to: shared)
      move.batch = batch
      let written = Mutex(0)
      move.committed = { _ in
        try written.withLock { count in
          count += 1
          if count > limit { throw Killed() }
        }
      }
      let result: Result<[MoveDigest], any Error>
      do { result = .success(try await move.run()) } catch { result = .failure(error) }
      try await store.close()
      try await shared.close()
      switch result {
      case .success(let digests):
        #expect(digests.map(\.table) == MovedTable.all.map(\.name))
        return kills
      case .failure(is Killed): continue
      case .failure(let error): throw error
      }
    }
    return .max
  }

  // MARK: A hub with everything

  private static func draft(_ handle: String, _ tags: [Tag]) -> RegistrationDraft {
    RegistrationDraft(
      kind: .native, platform: .fcmv1, channel: .handle(handle), tags: tags,
      pushVariables: ["a": "1"], expiresAt: now.addingTimeInterval(86_400))
  }

  private static func record(
    _ id: String, hub: Hub.ID, _ format: NotificationRequest.Format = .native(.apns),
    state: NotificationState = .enqueued, tags: TagExpression? = nil
  ) -> NotificationRecord {
    NotificationRecord(
      id: NotificationID(rawValue: id), hub: hub,
      request: NotificationRequest(
        format: format, body: Array(#"{"aps":{}}"#.utf8), tags: tags == nil ? nil : "news",
        expression: tags, headers: ["X-A": "b"], expiry: 2_000_000_000),
      state: state, enqueuedAt: now)
  }

  private static func fill(_ store: SQLiteHubStore) async throws {
    let policy = AccessPolicy(
      name: "Full", rights: .all, primaryKey: "first key", secondaryKey: "second key",
      createdAt: now, modifiedAt: now)
    try await store.putAccessPolicy(policy, hub: nil)
    var contents = HubContents(registrationTTL: 86_400, policies: [policy])
    contents.userMetadata = "of mine"
    let hub = try await store.createHub(named: "News", contents, at: now).id
    let gone = try await store.createHub(named: "Gone", contents, at: now).id
    try await store.put(SampleDevice("left"), hub: gone, at: now)
    _ = try await store.createHub(named: "Other", HubContents(), at: now)
    _ = try await store.deleteHub(named: "Gone")
    try await store.putCredential(
      PushCredential(platform: .apns, properties: ["Token": "secret"], modifiedAt: now), hub: hub)
    try await fillDevices(store, hub)
    try await fillWork(store, hub)
    try await store.noteRegistrations(at: now)
    try await store.record([
      ActivityEntry(
        hub: gone,
        HubActivity(
          time: now, hub: "Gone", actor: "policy/Full", via: .key, action: "deleteHub", object: nil)
      )
    ])
    try await store.addSession(
      OperatorSession(
        id: [1, 2, 3], user: "ann", fingerprint: [4], startedAt: now, seenAt: now, confirmedAt: now),
      forgetting: .distantPast, keeping: 10)
    try await store.addJob(
      HubJob(
        id: HubJob.newID(at: now, random: .system), hub: hub, kind: .exportRegistrations,
        outputContainer: "https://h/c?sig=a", importFile: nil, createdAt: now),
      forgetting: .distantPast)
  }

  private static func fillDevices(_ store: SQLiteHubStore, _ hub: Hub.ID) async throws {
    let template = PushTemplate(body: #"{"m":"$(m)"}"#, headers: ["H": "v"], expiry: "$(e)")
    for (index, platform) in PushPlatform.allCases.enumerated() where platform != .browser {
      var device = SampleDevice(
        "i-\(platform.rawValue)", platform: platform, user: "User\(index % 3)",
        tags: ["news", Tag(rawValue: "city:\(index)")], templates: ["first": template],
        variables: ["name": "n\(index)"])
      device.expiresAt = index == 2 ? now.addingTimeInterval(3_600) : nil
      device.installation.expirationTime = device.expiresAt
      try await store.put(device, hub: hub, at: now)
    }
    var browser = SampleDevice("i-browser", platform: .browser, tags: ["news"])
    browser.installation.pushChannel = .subscription(
      endpoint: "https://push.example.com/1", p256dh: "BPk", auth: "a")
    try await store.put(browser, hub: hub, at: now)
    for number in 1...6 {
      try await store.put(
        SampleDevice("a-\(number)", handle: "H\(number % 5)", tags: ["news"]), hub: hub, at: now)
    }
    // Written a second time: another etag.
    try await store.put(
      SampleDevice("a-2", handle: "H2", tags: ["Sport"]), hub: hub, at: now.addingTimeInterval(1))
    _ = try await store.createRegistration(draft("f-1", ["news"]), hub: hub, at: now)
    _ = try await store.putRegistration(
      "my own id", draft("f-2", ["Sport"]), hub: hub, condition: .none, at: now)
    var named = draft("f-1", ["news", "city:1"])
    named.kind = .template(template, name: "second")
    _ = try await store.createRegistration(named, hub: hub, at: now)
  }

  /// The second page of a broadcast is recorded, some of it waits for another try, and some has
  /// ended.
  private static func fillWork(_ store: SQLiteHubStore, _ hub: Hub.ID) async throws {
    var done = record("n-done", hub: hub, .template, tags: .tag("news"))
    done.startedAt = now
    _ = try await store.accept(
      Submission(
        record: done,
        idempotency: IdempotencyClaim(
          key: "once", fingerprint: [7], expiresAt: now.addingTimeInterval(3_600))))
    let broadcast = record("n-broadcast", hub: hub)
    try await store.accept(broadcast)
    let first = try await store.targets(broadcast.audience, after: 0, limit: 3)
    func handle(_ index: Int) -> String { first.handleTexts[index] }
    var page = Checkpoint(notification: broadcast.id, hub: hub, at: now)
    page.state = .processing
    page.cursor = first.next
    page.keeping = .all
    page.counts[OutcomeKey(platform: .apns, isTemplate: false, outcome: .success)] = 1
    page.successes = [.init(registration: first.targets[0].registration, attempts: 1)]
    page.retries = [
      .init(
        registration: first.targets[1].registration, platform: .apns, attempts: 2,
        due: now.addingTimeInterval(30),
        answer: .init(outcome: .throttled, status: 429, reason: "TooManyRequests\u{0}"))
    ]
    page.environments = [(first.targets[0].registration, .other)]
    page.failures = [
      .init(
        registration: first.targets[2].registration, outcome: .expiredChannel, status: 410,
        reason: "Unregistered", attempts: 1)
    ]
    page.deadHandles = [
      .init(
        registration: first.targets[2].registration, platform: .apns, handle: handle(2),
        revision: first.revision, outcome: .expiredChannel)
    ]
    try await store.checkpoint(page)
    var end = Checkpoint(notification: done.id, hub: hub, at: now.addingTimeInterval(1))
    end.state = .completed
    end.isAudienceRead = true
    end.keeping = .failures
    let templates = try await store.targets(done.audience, after: 0, limit: 2)
    end.failures = templates.targets.map {
      .init(registration: $0.registration, outcome: .badChannel, status: 400, reason: "Bad")
    }
    end.counts[OutcomeKey(platform: .apns, isTemplate: true, outcome: .badChannel)] = 2
    try await store.checkpoint(end)
    // Its registration has gone without the failure.
    let second = try #require(templates.targets.last)
    let names = try await store.registrationNames([second.registration], hub: hub)
    _ = try await store.deleteRegistration(
      try #require(names[second.registration]), hub: hub, condition: .none, at: now)
    var direct = record("n-direct", hub: hub)
    direct = NotificationRecord(
      id: direct.id, hub: hub,
      request: NotificationRequest(format: .native(.apns), body: [1], isDirect: true),
      state: .enqueued, enqueuedAt: now)
    _ = try await store.accept(
      Submission(
        record: direct,
        targets: ["A", "B", "A"].enumerated().map {
          DirectTarget(handle: $0.element, isDuplicate: $0.offset == 2)
        }))
    var half = Checkpoint(notification: direct.id, hub: hub, at: now)
    half.cursor = 1
    half.state = .processing
    half.retries = [.init(registration: 1, platform: .apns, attempts: 1, due: now)]
    half.failures = [
      .init(registration: 2, outcome: .badChannel, status: 400, reason: nil, attempts: 1)
    ]
    try await store.checkpoint(half)
    var scheduled = record("n-scheduled", hub: hub, state: .scheduled, tags: .tag("Sport"))
    scheduled.scheduledFor = now.addingTimeInterval(60)
    try await store.accept(scheduled)
    // A device that comes, and a notification that is accepted, after the broadcast.
    try await store.put(SampleDevice("a-7", handle: "H7"), hub: hub, at: now)
    let late = record("n-late", hub: hub)
    try await store.accept(late)
    _ = try await store.abort(late.id, hub: hub, at: now)
    // Of what has ended the payload is cleared, and stays so at the other end.
    while try await store.clearTexts(endedBefore: .distantFuture) {}
    let states = try await store.notifications(
      NotificationFilter(), in: .newestFirst, hub: hub, after: nil, limit: 100
    ).notifications.map(\.textState)
    #expect(states.contains(.off) && states.contains { $0 != .off })
  }

  // MARK: What a store says of it

  private struct Shown: Hashable {
    let id: String
    let draft: RegistrationDraft
    let etag: Int
    let isDerived: Bool
  }

  private struct Work: Hashable {
    let id: String
    let state: NotificationState
    let counts: [OutcomeKey: Int]
    let keeping: OutcomeKeeping?
    let request: NotificationRequest
    let times: [Date?]
    let isAudienceRead: Bool
    /// Whom it goes to from here on, marked when another has the handle.
    let left: [String]
  }

  private struct Outcome: Hashable {
    let words: [String?]
    let numbers: [Int]
    let at: Date?
  }

  /// All that the reading calls of a store tell, but for numbers inside.
  private struct Picture {
    var directory: [AnyHashable] = []
    var installations: [Installation] = []
    var registrations: [Shown] = []
    var audiences: [String: [String]] = [:]
    var counts: [AudienceCounts] = []
    var work: [Work] = []
    var summaries: [NotificationSummary] = []
    var retries: [String: [String]] = [:]
    var outcomes: [String: [Outcome]] = [:]
    var feedback: [HandleFeedback] = []
    var removed: [RemovedDevices.Item] = []
    var statistics: [StatisticPoint] = []
    var rest: [AnyHashable?] = []
  }

  private func picture(_ store: any HubStore & SubjectStore) async throws -> Picture {
    var picture = Picture()
    let hubs = try await store.hubs().sorted { $0.id < $1.id }
    picture.directory = hubs.map { AnyHashable($0) }
    picture.directory.append(AnyHashable(try await store.accessPolicies(hub: nil)))
    let hub = try #require(hubs.first).id
    picture.directory.append(AnyHashable(try await store.accessPolicies(hub: hub)))
    picture.directory.append(AnyHashable(try await store.credentials(hub: hub)))
    picture.installations = try await store.installations(hub: hub)
      .sorted { $0.installationID < $1.installationID }
    let page = try await store.registrations(
      .all, hub: hub, asOf: .distantPast, after: 0, limit: 1_000)
    picture.registrations = page.registrations.map {
      Shown(id: $0.id, draft: $0.draft, etag: Int($0.etag), isDerived: $0.isDerived)
    }.sorted { $0.id < $1.id }
    for one in page.registrations {
      let found = try await store.registration(one.id, hub: hub, asOf: .distantPast)
      #expect(found == one, "\(one.id) is found by its id")
      let names = try await store.registrationNames([one.number], hub: hub)
      #expect(names[one.number] == one.id)
    }
    try await show(&picture, store, hub)
    try await showWork(&picture, store, hub)
    return picture
  }

  private func show(
    _ picture: inout Picture, _ store: any HubStore, _ hub: Hub.ID
  ) async throws {
    let expressions: [TagExpression?] = [
      nil, .tag("news"), .and(.tag("news"), .not(.tag("city:1"))), .tag("$UserId:{user1}"),
      .tag("$InstallationId:{a-3}"), .or(.tag("sport"), .tag("city:4")),
    ]
    for (index, expression) in expressions.enumerated() {
      for kind in [AudienceQuery.Kind.template] + PushPlatform.allCases.map({ .native($0) }) {
        let query = AudienceQuery(
          hub: hub, kind: kind, expression: expression, asOf: Self.now)
        let found = try await store.targets(query, after: 0, limit: 1_000)
        picture.audiences["\(index) \(kind)"] = zip(found.targets, found.handleTexts).map {
          "\($1) \($0.isDuplicate) \($0.environment) \($0.confirmedAt)"
        }
        #expect(try await store.count(query) == found.targets.count)
      }
      picture.counts.append(
        try await store.counts(of: expression, hub: hub, asOf: Self.now))
    }
    picture.feedback = try await store.feedback(hub: hub, hour: Self.hour, after: 0, limit: 100)
    picture.removed = try await store.removals(RemovalWave(), hub: hub)
    picture.statistics = try await store.statistics(
      StatisticSpan(period: .hour, first: Self.hour - 1, step: 1, count: 3), hub: hub)
    picture.rest = [
      try await store.activity(ActivityQuery(), hub: nil, after: nil, limit: 100).lines,
      try await store.session([1, 2, 3]), try await store.jobs(hub: hub),
      try await store.nextSchedule(),
      try await store.devices(
        RegistrationFilter(handle: "H3"), hub: hub, asOf: Self.now, limit: 10
      ).installations,
    ]
  }

  private func showWork(
    _ picture: inout Picture, _ store: any HubStore, _ hub: Hub.ID
  ) async throws {
    picture.summaries = try await store.notifications(
      NotificationFilter(), in: .newestFirst, hub: hub, after: nil, limit: 100
    ).notifications.sorted { $0.notificationID < $1.notificationID }
    for id in ["n-broadcast", "n-direct", "n-done", "n-late", "n-scheduled"] {
      let id = NotificationID(rawValue: id)
      let record = try #require(try await store.notification(id, hub: hub))
      let left =
        record.request.isDirect
        ? try await store.directTargets(of: id, hub: hub, after: record.cursor, limit: 100)
        : try await store.targets(record.audience, after: record.cursor, limit: 100)
      picture.work.append(
        Work(
          id: id.rawValue, state: record.state, counts: record.counts, keeping: record.keeping,
          request: record.request,
          times: [
            record.enqueuedAt, record.scheduledFor, record.startedAt, record.endedAt,
            record.abortedAt,
          ], isAudienceRead: record.isAudienceRead,
          left: zip(left.targets, left.handleTexts).map { "\($1) \($0.isDuplicate)" }))
      let outcomes = try await store.outcomes(
        of: id, hub: hub, OutcomeFilter(), after: 0, limit: 100
      ).outcomes
      picture.outcomes[id.rawValue] = outcomes.map { kept in
        Outcome(
          words: [
            kept.handle, kept.registrationID, kept.installationID, kept.platform?.rawValue,
            kept.failure.reason,
          ],
          numbers: [
            Int(kept.failure.outcome.rawValue), Int(kept.failure.status), kept.failure.attempts,
          ], at: kept.at)
      }
      for kept in outcomes {
        guard let name = kept.registrationID else { continue }
        let one = try await store.outcomes(
          of: id, hub: hub, OutcomeFilter(registrationID: name), after: 0, limit: 100)
        #expect(one.outcomes == [kept], "\(name) is found by its id")
      }
    }
    let lane = LaneKey(hub: hub, platform: .apns)
    let due = Self.now.addingTimeInterval(60)
    for group in try await store.dueRetries(of: lane, asOf: due, limit: 100) {
      for (target, handle) in zip(group.page.targets, group.page.handleTexts) {
        let kept = try await store.retry(
          of: group.notification, hub: hub, registration: target.registration)
        picture.retries[group.notification.rawValue, default: []].append(
          "\(handle) \(group.attempts[target.registration] ?? -1) \(kept?.due as Any) "
            + "\(kept?.answer?.outcome as Any) \(kept?.answer?.reason?.storable ?? "-")")
      }
    }
  }

  private func expectSame(_ picture: Picture, _ wanted: Picture) {
    #expect(picture.directory == wanted.directory)
    #expect(picture.installations == wanted.installations)
    #expect(picture.registrations == wanted.registrations)
    for (name, audience) in wanted.audiences {
      #expect(picture.audiences[name] == audience, "\(name)")
    }
    #expect(picture.counts == wanted.counts)
    #expect(picture.work == wanted.work)
    #expect(picture.summaries == wanted.summaries)
    #expect(picture.retries == wanted.retries)
    #expect(picture.outcomes == wanted.outcomes)
    #expect(picture.feedback == wanted.feedback)
    #expect(picture.removed == wanted.removed)
    #expect(picture.statistics == wanted.statistics)
    #expect(picture.rest == wanted.rest)
  }

  private func picture(ofFile path: String) async throws -> Picture {
    let store = try await Self.openFile(path)
    let found = try await picture(store)
    try await store.close()
    return found
  }

  /// As a node sees it, which has claimed all work.
  private func picture(ofDatabase address: String) async throws -> Picture {
    var options = PostgresStores.options
    // What is counted is compared, however slow the machine.
    options.countTime = .seconds(600)
    let store = try await PostgresStores.open(address, options: options)
    let claimed = try await store.claimWork(limit: 100)
    #expect(Set(claimed.records.map(\.id.rawValue)) == ["n-broadcast", "n-direct", "n-late"])
    let node = store.heartbeat?.id
    _ = try await store.write { try $0.execute("UPDATE work SET owner = ?1", node) }
    let found = try await picture(store)
    try await store.close()
    return found
  }

  /// Numbers, keys, templates and what was removed go on as if nothing had happened.
  private func goOn(_ store: any HubStore) async throws {
    let hub = try #require(try await store.hub(named: "news")).id
    let repeated = Submission(
      record: Self.record("n-new", hub: hub),
      idempotency: IdempotencyClaim(
        key: "once", fingerprint: [7], expiresAt: Self.now.addingTimeInterval(3_600)))
    #expect(try await store.accept(repeated) == .repeated(NotificationID(rawValue: "n-done")))
    try await store.accept(Self.record("n-new", hub: hub))
    let before = try await store.registrations(
      .all, hub: hub, asOf: .distantPast, after: 0, limit: 1_000
    ).registrations
    try await store.put(SampleDevice("b-1", handle: "H3"), hub: hub, at: Self.now)
    let all = try await store.registrations(
      .all, hub: hub, asOf: .distantPast, after: 0, limit: 1_000
    ).registrations
    #expect(all.count == before.count + 1 && Set(all.map(\.id)).count == all.count)
    let known = before.map(\.number)
    let new = try #require(all.first { !known.contains($0.number) })
    #expect(new.number > (known.max() ?? 0))
    // A derived one is changed under the id that it has always had.
    let derived = try #require(before.first { $0.isDerived && $0.draft.platform == .apns })
    let put = try await store.putRegistration(
      derived.id, derived.draft, hub: hub, condition: .tag(String(derived.etag)), at: Self.now)
    guard case .done(let stored) = put else {
      Issue.record("\(put)")
      return
    }
    #expect(stored.id == derived.id && stored.etag == derived.etag + 1)
    let restored = try await store.restoreRemoved(
      RemovalWave(), hub: hub, asOf: Self.now, limit: 100)
    #expect(restored.restored == 1)
    let released = try await store.releaseSchedules(
      asOf: Self.now.addingTimeInterval(61), limit: 10)
    #expect(released.records.map(\.id.rawValue) == ["n-scheduled"])
    let third = try await store.createHub(named: "Third", HubContents(), at: Self.now)
    #expect(third.id > 3)
  }

  // MARK: Tests

  @Test("all of it is there on the other side, and back, and goes on from there")
  func roundTrip() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let (from, back) = (directory.path("from.sqlite"), directory.path("back.sqlite"))
    let store = try await Self.openFile(from)
    try await Self.fill(store)
    try await store.close()
    let wanted = try await picture(ofFile: from)
    #expect(wanted.removed.count == 1 && wanted.retries.count == 2 && wanted.feedback.count == 4)
    let database = try await PostgresStores.makeDatabase()
    try await Self.move(file: from, database: database)
    expectSame(try await picture(ofDatabase: database), wanted)
    expectSame(try await picture(ofFile: from), wanted)
    try await Self.move(file: back, database: database, back: true)
    expectSame(try await picture(ofFile: back), wanted)
    let file = try await Self.openFile(back)
    try await goOn(file)
    try await file.close()
    let node = try await PostgresStores.open(database)
    try await goOn(node)
    try await node.close()
  }

  @Test(
    "one that is killed again and again goes on where it was, and nobody opens its target meanwhile"
  )
  func killed() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let (from, back) = (directory.path("from.sqlite"), directory.path("back.sqlite"))
    let store = try await Self.openFile(from)
    try await Self.fill(store)
    try await store.close()
    let wanted = try await picture(ofFile: from)
    let database = try await PostgresStores.makeDatabase()
    #expect(
      try await Self.move(file: from, database: database, killedAfter: 8, batch: 7) >= 2)
    expectSame(try await picture(ofDatabase: database), wanted)
    let half = directory.path("half.sqlite")
    do {
      let source = try await Self.openDatabase(database)
      let target = try await Self.openFile(half, takesMove: true)
      var move = HubMove(from: source, to: target)
      move.committed = { table in if table == "installation" { throw Killed() } }
      await #expect(throws: Killed.self) { try await move.run() }
      try await target.close()
      try await source.close()
    }
    await #expect {
      _ = try await Self.openFile(half)
    } throws: {
      "\($0)".contains("run the same `belfry move` again")
    }
    #expect(
      try await Self.move(
        file: back, database: database, back: true, killedAfter: 8, batch: 7) >= 2)
    expectSame(try await picture(ofFile: back), wanted)
  }

  @Test("one that is killed while it closes the source leaves the target closed, and goes on")
  func killedAtTheEnd() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let store = try await Self.openFile(directory.path("from.sqlite"))
    try await Self.fill(store)
    let database = try await PostgresStores.makeDatabase()
    var target = try await Self.openDatabase(database, takesMove: true)
    var move = HubMove(from: store, to: target)
    move.closeSource = { throw Killed() }
    await #expect(throws: Killed.self) { try await move.run() }
    try await target.close()
    await #expect {
      _ = try await Self.openDatabase(database)
    } throws: {
      "\($0)".contains("run the same `belfry move` again")
    }
    target = try await Self.openDatabase(database, takesMove: true)
    _ = try await HubMove(from: store, to: target).run()
    try await store.close()
    #expect(try await target.moved() == nil)
    try await target.noteMoved("to elsewhere")
    try await target.noteMoved("to another place")
    #expect(try await target.moved() == "to another place")
    try await target.close()
  }

  @Test("a broadcast that nodes were not equally quick with reaches those that are left, once")
  func unevenParts() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let database = try await PostgresStores.makeDatabase()
    let store = try await Self.openDatabase(database)
    let hub = try await store.createHub(named: "News", HubContents(), at: Self.now).id
    for number in 0..<40 {
      try await store.put(
        SampleDevice("i-\(number)", handle: number > 37 ? "same" : nil), hub: hub, at: Self.now)
    }
    let record = Self.record("n-1", hub: hub)
    try await store.accept(record)
    // As more devices would have it: a part of each slot, and one for handles that several have.
    try await store.write { session in
      try session.execute(
        """
        INSERT INTO work (notification, part, hub) SELECT notification, part, hub
        FROM work CROSS JOIN generate_series(1, 17) AS other (part)
        """.replacing("SELECT notification, part", with: "SELECT notification, other.part"))
      try session.execute("DELETE FROM work WHERE part = 0")
    }
    var wanted: [String] = []
    for part in 1...17 {
      var query = record.audience
      query.part = part
      let page = try await store.targets(query, after: 0, limit: 100)
      // A third of the parts is read, a third has sent to its first device.
      let sent = part % 3 == 0 ? page.targets.count : part % 3 == 1 ? 1 : 0
      wanted += zip(page.targets, page.handleTexts).dropFirst(sent).filter { !$0.0.isDuplicate }
        .map(\.1)
      let position = sent == 0 ? 0 : page.targets.dropFirst(sent - 1).first?.registration ?? 0
      _ = try await store.write { session in
        try session.execute(
          "UPDATE work SET position = ?1, is_read = ?2 WHERE part = ?3", position,
          part % 3 == 0, Int64(part))
      }
    }
    try await store.close()
    let path = directory.path("hub.sqlite")
    try await Self.move(file: path, database: database, back: true, batch: 5)
    let file = try await Self.openFile(path)
    let found = try #require(try await file.notification(record.id, hub: hub))
    #expect(found.isAudienceRead && found.endedAt == nil)
    let due = try await file.dueRetries(
      of: LaneKey(hub: hub, platform: .apns), asOf: Self.now, limit: 100)
    #expect(due.flatMap(\.page.handleTexts).sorted() == wanted.sorted())
    #expect(wanted.count > 10 && wanted.count < 38 && wanted.count { $0 == "same" } == 1)
    try await file.close()
  }

  @Test("several nodes share a broadcast that was moved, and reach those that are left, once")
  func sharedAfterMove() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let (from, back) = (directory.path("from.sqlite"), directory.path("back.sqlite"))
    let store = try await Self.openFile(from)
    let hub = try await store.createHub(named: "News", HubContents(), at: Self.now).id
    for number in 0..<60 {
      // Of those with the same handle one stands in front of the place, two behind it.
      try await store.put(
        SampleDevice("i-\(number)", handle: number % 25 == 7 ? "same" : nil), hub: hub,
        at: Self.now)
    }
    let record = Self.record("n-1", hub: hub)
    try await store.accept(record)
    let first = try await store.targets(record.audience, after: 0, limit: 20)
    var page = Checkpoint(notification: record.id, hub: hub, at: Self.now)
    page.state = .processing
    page.cursor = first.next
    page.retries = first.targets.prefix(9).map {
      .init(registration: $0.registration, platform: .apns, attempts: 1, due: Self.now)
    }
    try await store.checkpoint(page)
    let rest = try await store.targets(record.audience, after: first.next ?? 0, limit: 100)
    let wanted = zip(rest.targets, rest.handleTexts).filter { !$0.0.isDuplicate }.map(\.1).sorted()
    #expect(wanted.count == 38)
    try await store.close()
    let database = try await PostgresStores.makeDatabase()
    try await Self.move(file: from, database: database)
    // Nobody has gone on with it: it can go back as it came.
    try await Self.move(file: back, database: database, back: true)
    let file = try await Self.openFile(back)
    #expect(try await file.notification(record.id, hub: hub)?.cursor == first.next)
    try await file.close()
    let nodes = [
      try await PostgresStores.open(database, as: "a"),
      try await PostgresStores.open(database, as: "b"),
    ]
    var reached: [String] = []
    var retried: [String] = []
    var shares: [Int] = []
    var isFinished = false
    while !isFinished {
      for node in nodes {
        let claimed = try await node.claimWork(limit: 100).records
        shares.append(claimed.count)
        let due = try await node.dueRetries(
          of: LaneKey(hub: hub, platform: .apns), asOf: Self.now, limit: 100)
        retried += due.flatMap(\.page.handleTexts)
        for record in claimed {
          var query = record.audience
          query.part = record.lease.part
          let left = try await node.targets(query, after: record.cursor, limit: 100)
          reached += zip(left.targets, left.handleTexts).filter { !$0.0.isDuplicate }.map(\.1)
          var end = Checkpoint(
            notification: record.id, hub: hub, lease: record.lease, at: Self.now)
          (end.state, end.isAudienceRead) = (.completed, true)
          isFinished = try await node.checkpoint(end).isFinished
        }
      }
      try #require(shares.suffix(2) != [0, 0], "nothing is left to claim")
    }
    #expect(shares.prefix(2) == [4, 4])
    #expect(reached.sorted() == wanted)
    #expect(retried.sorted() == first.handleTexts.prefix(9).sorted())
    for node in nodes { try await node.close() }
  }

  @Test("what was removed before a move is forgotten when somebody deletes it by the id of before")
  func forgottenByID() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let (from, back) = (directory.path("from.sqlite"), directory.path("back.sqlite"))
    let store = try await Self.openFile(from)
    let hub = try await store.createHub(named: "News", HubContents(), at: Self.now).id
    for number in 0..<10 {
      try await store.put(SampleDevice("i-\(number)"), hub: hub, at: Self.now)
    }
    let ids = try await store.registrations(
      .all, hub: hub, asOf: Self.now, after: 0, limit: 100
    ).registrations.map(\.id)
    let record = Self.record("n-1", hub: hub)
    try await store.accept(record)
    let page = try await store.targets(record.audience, after: 0, limit: 100)
    var dead = Checkpoint(notification: record.id, hub: hub, at: Self.now)
    dead.deadHandles = zip(page.targets, page.handleTexts).map {
      .init(
        registration: $0.registration, platform: .apns, handle: $1, revision: page.revision,
        outcome: .expiredChannel)
    }
    try await store.checkpoint(dead)
    try await store.close()
    let database = try await PostgresStores.makeDatabase()
    try await Self.move(file: from, database: database)
    try await Self.move(file: back, database: database, back: true)
    let (node, file) = (
      try await PostgresStores.open(database), try await Self.openFile(back)
    )
    for moved in [node, file] as [any HubStore & SubjectStore] {
      #expect(try await moved.removals(RemovalWave(), hub: hub).map(\.registrations) == [10])
      for id in ids {
        let answer = try await moved.deleteRegistration(
          id, hub: hub, condition: .none, at: Self.now)
        #expect(answer == .missing)
      }
      #expect(try await moved.removals(RemovalWave(), hub: hub).isEmpty)
    }
    try await node.close()
    try await file.close()
  }

  @Test("every table and column of both schemas is moved, or is known not to be")
  func completeness() async throws {
    // What an engine makes of the rest, and what another table's line moves.
    let file: [String: Set<String>] = [
      "installation": ["id_hash", "request"],
      "registration": ["public_hash", "template_handle", "revision"],
      "removed_registration": ["public_hash", "template_handle", "tags"],
      "notification": [
        "position", "is_audience_read", "kept", "kept_rows", "kept_at", "audience_commit",
      ],
      "feedback": ["number"],
    ]
    let database: [String: Set<String>] = [
      "installation": ["slot"], "registration": ["slot", "confirmed", "shared_at"],
      "removed_registration": ["slot", "tags"],
      "notification": ["audience_snapshot", "steady_release", "day"],
      "notification_failure": ["day"],
      "work": ["part", "hub", "is_done", "owner", "epoch", "claim", "mark"], "retry": ["part"],
      "notification_count": ["part"], "kept_outcome": ["part"], "statistic_count": ["lane"],
      "job": ["owner"],
    ]
    func check(
      _ found: [String: Set<String>], _ tables: [(MovedTable, [String])],
      _ derived: [String: Set<String>]
    ) {
      var moved: [String: Set<String>] = [:]
      for (table, names) in tables {
        for name in names { moved[name, default: []].formUnion(table.columns.map(\.name)) }
      }
      for (name, columns) in found {
        guard let known = moved[name] else {
          #expect(MovedTable.left[name] != nil, "\(name) is neither moved nor left out")
          continue
        }
        #expect(MovedTable.left[name] == nil, "\(name) is moved and left out")
        let missing = columns.subtracting(known).subtracting(derived[name] ?? [])
        #expect(missing.isEmpty, "columns of \(name) that are not moved")
      }
    }
    try await withTemporaryStore { store in
      let columns = try await store.read { session in
        try session.connection.rows(
          """
          SELECT s.name, c.name FROM sqlite_schema s, pragma_table_info(s.name) c
          WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite%'
          """
        ) { ($0.text(0), $0.text(1)) }
      }
      let found = Dictionary(grouping: columns, by: \.0).mapValues { Set($0.map(\.1)) }
      #expect(found.count > 20)
      check(found, MovedTable.all.map { ($0, $0.file.tables) }, file)
    }
    let store = try await Self.openDatabase(try await PostgresStores.makeDatabase())
    let columns = try await store.read { session in
      try session.connection.rows(
        """
        SELECT c.relname::text, a.attname::text FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
          AND NOT c.relispartition
        """
      ) { ($0.text(0), $0.text(1)) }
    }
    let found = Dictionary(grouping: columns, by: \.0).mapValues { Set($0.map(\.1)) }
    #expect(found.count > 20)
    check(found, MovedTable.all.map { ($0, $0.database.tables) }, database)
    try await store.close()
  }

  @Test("what cannot be moved is refused with a sentence, and nothing is changed")
  func refusals() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("from.sqlite")
    let database = try await PostgresStores.makeDatabase()
    let file = try await Self.openFile(path)
    let hub = try await file.createHub(named: "News", HubContents(), at: Self.now).id
    try await file.put(SampleDevice("i-1"), hub: hub, at: Self.now)
    let target = try await Self.openDatabase(database, takesMove: true)
    func refused(_ words: String, _ move: HubMove) async {
      await #expect {
        try await move.run()
      } throws: {
        "\($0)".contains(words)
      }
    }
    // A node that lives, of the target.
    let node = try await PostgresStores.open(database)
    await refused("stop them", HubMove(from: file, to: target))
    try await node.close()
    #expect(try await target.hubs().isEmpty)
    // Half a move of another source; then of this one, served meanwhile.
    var half = HubMove(from: file, to: target)
    half.committed = { table in if table == "hub" { throw Killed() } }
    await #expect(throws: Killed.self) { try await half.run() }
    let other = try await Self.openFile(directory.path("other.sqlite"))
    await refused("start over", HubMove(from: other, to: target))
    try await other.close()
    try await file.put(SampleDevice("i-2"), hub: hub, at: Self.now)
    await refused("served since", HubMove(from: file, to: target))
    // Two at once: the second takes over, the first stops.
    _ = try await target.write { try $0.execute("DROP TABLE move_state") }
    _ = try await target.write { try $0.execute("DELETE FROM hub") }
    var first = HubMove(from: file, to: target)
    first.committed = { [target] table in
      guard table == "hub" else { return }
      let done = DispatchSemaphore(value: 0)
      Task.detached {
        _ = try? await target.write { try $0.execute("UPDATE move_state SET run = -1") }
        done.signal()
      }
      done.wait()
    }
    await refused("another `belfry move`", first)
    // What came out differently is not served.
    _ = try await target.write { try $0.execute("DROP TABLE move_state") }
    _ = try await target.write { try $0.execute("DELETE FROM hub") }
    var spoilt = HubMove(from: file, to: target)
    spoilt.committed = { [target] table in
      guard table.isEmpty else { return }
      let done = DispatchSemaphore(value: 0)
      Task.detached {
        _ = try? await target.write { try $0.execute("UPDATE registration SET handle = 'x'") }
        done.signal()
      }
      done.wait()
    }
    await refused("registration (2 rows there, 2 here)", spoilt)
    try await target.close()
    await #expect(throws: StoreError.self) { _ = try await Self.openDatabase(database) }
    // A target with something in it.
    let full = try await Self.openDatabase(try await PostgresStores.makeDatabase())
    _ = try await full.createHub(named: "Mine", HubContents(), at: Self.now)
    await refused("not empty", HubMove(from: file, to: full))
    #expect(try await full.hubs().map(\.name) == ["Mine"])
    try await full.close()
    try await file.close()
  }
}
