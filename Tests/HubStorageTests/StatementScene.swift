import Foundation
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract

@testable import HubCore
@testable import HubStorage

/// Calls every part of an open database's interface, as a hub does in its life, and notes what it
/// is told and what is there in the end. Both are the same whatever goes wrong on the way: a call
/// that is refused is made again, as its caller would.
final class StatementScene {
  /// What should not have been.
  struct Fault: Error, CustomStringConvertible { let description: String }

  private static let now = Date(timeIntervalSince1970: 1_893_456_000)
  private static let success = OutcomeKey(platform: .apns, isTemplate: false, outcome: .success)

  private let proxy: PostgresProxy
  /// The way to it without the proxy, and through it.
  private let database: String
  private let address: String
  private let options: PostgresHubStore.Options
  /// In the order of the calls.
  private(set) var lines: [String] = []
  /// Calls that were refused, with what they were told.
  private(set) var refusals: [String] = []

  init(through proxy: PostgresProxy, to address: String, options: PostgresHubStore.Options) {
    self.proxy = proxy
    database = address
    self.address = proxy.address(of: address)
    self.options = options
  }

  func run() async throws {
    let store = try await call("open") {
      try await PostgresHubStore.open(
        address: self.address, sealing: TestSealing(), options: self.options)
    }
    do {
      // Its heartbeats would come in between.
      try await call("join") { try await store.join(as: StoreNode(name: "node", lease: 600)) }
      let hub = try await directory(store)
      try await devices(store, hub)
      try await sending(store, hub)
      try await rest(store, hub)
      try await end(store, hub)
    } catch {
      try? await store.close()
      throw error
    }
    try await store.close()
  }

  // MARK: Calls

  /// - Parameter found: Looks whether it was done, when the call says that this is not known; calls
  ///   without it have to find out themselves.
  @discardableResult
  private func call<Value>(
    _ name: String, orFound found: (() async throws -> Value?)? = nil,
    _ body: () async throws -> Value
  ) async throws -> Value {
    proxy.call = name
    // One is broken once: each other try has to succeed.
    for _ in 0..<2 {
      do {
        return try await body()
      } catch let error as StoreError {
        guard error.condition != nil else {
          throw Fault(description: "\(name) is refused with \(error)")
        }
        refusals.append("\(name): \(error)")
        proxy.heal()
        guard error == .unclearCommit else { continue }
        guard let found else {
          if options.patience == .zero, Self.isRepeatable(name) { continue }
          throw Fault(description: "\(name) does not find out whether it is done")
        }
        if let value = try await found() { return value }
      }
    }
    return try await body()
  }

  /// Whether a call can be made again with the same arguments, though nobody knows whether it was
  /// done: the hub itself and its devices do that.
  static func isRepeatable(_ call: String) -> Bool {
    [
      "accept", "checkpoint", "claimWork", "clear", "exchange", "last checkpoint",
      "putInstallation", "release",
    ].contains { call.hasPrefix($0) }
  }

  /// As `call`, and notes what it is told.
  private func told<Value>(_ name: String, _ body: () async throws -> Value) async throws {
    lines.append("\(name): \(try await call(name, body))")
  }

  // MARK: The scene

  private func policy(_ name: String) -> AccessPolicy {
    AccessPolicy(
      name: name, rights: .all, primaryKey: "first", secondaryKey: "second", createdAt: Self.now,
      modifiedAt: Self.now)
  }

  private func credential(_ platform: PushPlatform) -> PushCredential {
    PushCredential(platform: platform, properties: ["Token": "t"], modifiedAt: Self.now)
  }

  private func directory(_ store: PostgresHubStore) async throws -> Hub.ID {
    let contents = HubContents(
      registrationTTL: 90_000, policies: [policy("one"), policy("two")],
      credentials: [credential(.apns)])
    let hub = try await call("createHub") {
      try await store.createHub(named: "scene", contents, at: Self.now)
    }.id
    try await told("createHub of a name that is taken") {
      do {
        _ = try await store.createHub(named: "Scene", contents, at: Self.now)
        return "made"
      } catch StoreError.hubExists { return "refused" }
    }
    try await call("createHub that is to go") {
      try await store.createHub(named: "other", contents, at: Self.now)
    }
    try await told("updateHub") {
      try await store.updateHub(hub, HubContents(userMetadata: "ours"), at: Self.now).userMetadata
    }
    try await call("putAccessPolicy") { try await store.putAccessPolicy(policy("three"), hub: hub) }
    try await call("putAccessPolicy of all") {
      try await store.putAccessPolicy(policy("all"), hub: nil)
    }
    try await told("deleteAccessPolicy") {
      try await store.deleteAccessPolicy(named: "two", hub: hub)
    }
    try await call("putCredential") { try await store.putCredential(credential(.wns), hub: hub) }
    try await told("deleteCredential") { try await store.deleteCredential(.wns, hub: hub) }
    try await told("changeSealingKey") { try await store.changeSealingKey(to: "next key") }
    while try await call("resealSome", { try await store.resealSome(limit: 5) }) > 0 {}
    try await told("sealedValues") {
      let found = try await store.sealedValues()
      return "\(found.counts) \(found.unopened)"
    }
    try await told("sealingKey") { try await store.sealingKey() }
    try await told("directoryVersion") { try await store.directoryVersion() }
    try await told("hubs") { try await store.hubs().map(\.name) }
    try await told("hub") { try await store.hub(named: "SCENE")?.name }
    try await told("accessPolicies") {
      try await [
        store.accessPolicies(hub: hub).map(\.name), store.accessPolicies(hub: nil).map(\.name),
      ]
    }
    try await told("credentials") { try await store.credentials(hub: hub).map(\.platform) }
    return hub
  }

  private func devices(_ store: PostgresHubStore, _ hub: Hub.ID) async throws {
    let template = ["main": PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)]
    for (name, device) in [
      ("putInstallation", SampleDevice("i-1", user: "bob", tags: ["red"], templates: template)),
      ("putInstallation of another", SampleDevice("i-2", tags: ["red", "blue"])),
      ("putInstallation again", SampleDevice("i-2", tags: ["red", "blue"])),
      ("putInstallation with changes", SampleDevice("i-2", tags: ["red", "green"])),
      ("putInstallation of a third", SampleDevice("i-3", tags: ["red"])),
      ("putInstallation of a fourth", SampleDevice("i-4", user: "ann", tags: ["blue"])),
    ] {
      try await call(name) { try await store.put(device, hub: hub, at: Self.now) }
    }
    try await told("updateInstallation") {
      try await store.updateInstallation("i-3", hub: hub, at: Self.now) { installation in
        var changed = installation
        changed.tags.append("new")
        return (changed, SampleDevice.registrations(of: changed))
      }
    }
    // Of several tries with the same end only the last can tell.
    try await call("deleteInstallation") { try await store.deleteInstallation("i-4", hub: hub) }
    try await told("installation") { try await store.installation("i-3", hub: hub)?.tags }
    try await told("installations") {
      try await store.installations(
        InstallationFilter(tag: "red", asOf: Self.now), hub: hub, after: nil, limit: 9
      ).installations.map(\.installationID)
    }
    try await told("installations of a user") {
      try await store.installations(
        InstallationFilter(userID: "bob", asOf: Self.now), hub: hub, after: nil, limit: 9
      ).installations.map(\.installationID)
    }
    func draft(_ handle: String) -> RegistrationDraft {
      RegistrationDraft(
        kind: .native, platform: .fcmv1, channel: .handle(handle), tags: ["own"],
        expiresAt: Self.now.addingTimeInterval(90_000))
    }
    let reserved = try await call("reserveRegistrationID") {
      try await store.reserveRegistrationID(hub: hub)
    }
    let created = try await call("createRegistration") {
      try await store.createRegistration(draft("R-1"), hub: hub, at: Self.now)
    }
    try await told("putRegistration") {
      etag(
        try await store.putRegistration(
          reserved, draft("R-2"), hub: hub, condition: .none, at: Self.now))
    }
    // Twice is an etag more than once.
    try await told("putRegistration again") {
      etag(
        try await store.putRegistration(
          reserved, draft("R-3"), hub: hub, condition: .tag("1"), at: Self.now))
    }
    try await told("deleteRegistration") {
      etag(
        try await store.deleteRegistration(created.id, hub: hub, condition: .any, at: Self.now))
    }
    try await told("registration") {
      try await store.registration(reserved, hub: hub, asOf: Self.now)?.etag
    }
    for (name, query) in [("all", RegistrationQuery.all), ("of a tag", .tag("red"))] {
      try await told("registrations, \(name)") {
        try await store.registrations(query, hub: hub, asOf: Self.now, after: 0, limit: 99)
          .registrations.map { "\($0.draft.channel.handle) \($0.etag)" }.sorted()
      }
    }
    for (name, query) in [
      ("native", AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: Self.now)),
      ("template", AudienceQuery(hub: hub, kind: .template, expression: "red", asOf: Self.now)),
    ] {
      try await told("targets, \(name)") {
        try await store.targets(query, after: 0, limit: 99).handleTexts.sorted()
      }
      try await told("count, \(name)") { try await store.count(query) }
      try await told("sample, \(name)") {
        try await store.sample(query, limit: 99).handleTexts.sorted()
      }
    }
    try await told("counts") {
      try await store.counts(of: nil, hub: hub, asOf: Self.now).native.map {
        "\($0.key) \($0.value)"
      }.sorted()
    }
    try await told("registrationNames") {
      let page = try await store.targets(
        AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: Self.now), after: 0,
        limit: 99)
      return try await store.registrationNames(page.targets.map(\.registration), hub: hub).count
    }
  }

  private func etag(_ write: RegistrationWrite) -> String {
    if case .done(let stored) = write { "\(stored.etag)" } else { "\(write)" }
  }

  private func record(
    _ id: String, _ hub: Hub.ID, to expression: TagExpression? = nil, isDirect: Bool = false,
    isScheduled: Bool = false
  ) -> NotificationRecord {
    NotificationRecord(
      id: NotificationID(rawValue: id), hub: hub,
      request: NotificationRequest(
        format: .native(.apns), body: Array("{}".utf8), expression: expression,
        isDirect: isDirect),
      state: isScheduled ? .scheduled : .enqueued, enqueuedAt: Self.now,
      scheduledFor: isScheduled ? Self.now : nil)
  }

  private func line(_ hub: Hub.ID, _ object: String) -> ActivityEntry {
    ActivityEntry(
      hub: hub,
      HubActivity(
        time: Self.now, hub: "scene", actor: "policy/p", via: .key, action: "send",
        object: object))
  }

  private func sending(_ store: PostgresHubStore, _ hub: Hub.ID) async throws {
    let claim = IdempotencyClaim(
      key: "k", fingerprint: [1], expiresAt: Self.now.addingTimeInterval(60))
    var keyed = Submission(record: record("keyed", hub), idempotency: claim)
    keyed.activity = line(hub, "keyed")
    try await told("accept with a key") { try await store.accept(keyed) }
    let repeated = Submission(record: record("repeated", hub), idempotency: claim)
    try await told("accept again with the key") { try await store.accept(repeated) }
    let direct = Submission(
      record: record("direct", hub, isDirect: true),
      targets: ["A", "B"].map { DirectTarget(handle: $0, isDuplicate: false) })
    try await told("accept of a direct send") { try await store.accept(direct) }
    try await call("accept of a send to a tag") {
      try await store.accept(record("broad", hub, to: "red"))
    }
    try await call("accept of what is aborted") { try await store.accept(record("aborted", hub)) }
    for id in ["due", "cancelled"] {
      try await call("accept, \(id)") {
        try await store.accept(record(id, hub, isScheduled: true))
      }
    }
    try await call("accept for bob") {
      try await store.accept(record("bob's", hub, to: .tag("$UserId:{bob}"), isScheduled: true))
    }
    try await told("cancelSchedule") {
      try await store.cancelSchedule(
        NotificationID(rawValue: "cancelled"), hub: hub, at: Self.now)
    }
    try await told("abort") {
      try await store.abort(NotificationID(rawValue: "aborted"), hub: hub, at: Self.now)
    }
    // The last of several calls tells only of what was left for it.
    try await call("eraseUser") { try await store.eraseUser("bob", hub: hub) }
    for order in [NotificationOrder.newestFirst, .scheduled] {
      try await told("notifications, \(order)") {
        try await store.notifications(
          NotificationFilter(), in: order, hub: hub, after: nil, limit: 99
        ).notifications.map(\.notificationID).sorted()
      }
    }
    try await told("nextSchedule") { try await store.nextSchedule() }
    // What a lost answer names is found among the claimed.
    try await call("releaseSchedules") {
      try await store.releaseSchedules(asOf: Self.now, limit: 9)
    }
    try await told("unfinishedNotifications") {
      try await store.unfinishedNotifications().records.map(\.id.rawValue).sorted()
    }
    try await told("unclaimedWork") {
      try await store.unclaimedWork(dueBy: Self.now, beside: []).count
    }
    try await delivering(store, hub)
  }

  /// A claim whose answer was lost is made again.
  private func claim(_ name: String, _ store: PostgresHubStore) async throws -> [NotificationRecord]
  {
    let found = try await call(
      name, orFound: { nil }, { try await store.claimWork(limit: 99) })
    let records = found.records.sorted {
      ($0.id.rawValue, $0.lease.part) < ($1.id.rawValue, $1.lease.part)
    }
    lines.append("\(name): \(records.map { "\($0.id.rawValue) \($0.lease.part)" })")
    return records
  }

  private func delivering(_ store: PostgresHubStore, _ hub: Hub.ID) async throws {
    let lane = LaneKey(hub: hub, platform: .apns)
    let first = try await claim("claimWork", store)
    guard let one = first.first else { throw Fault(description: "nothing was claimed") }
    try await call("releaseWork of a part") {
      try await store.releaseWork(one.lease, of: one.id, hub: hub)
    }
    _ = try await claim("claimWork of a part", store)
    try await call("releaseWork") { try await store.releaseWork() }
    let claimed = try await claim("claimWork of all", store)
    try await call("releaseWork beside what is known") {
      try await store.releaseWork(beside: Set(claimed.map(\.workID)))
    }
    let query = AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: Self.now)
    let page = try await call("targets") { try await store.targets(query, after: 0, limit: 99) }
    func handle(_ target: Target) -> String {
      String(decoding: page.handles[target.handle], as: UTF8.self)
    }
    let targets = page.targets.sorted { handle($0) < handle($1) }
    guard targets.count == 2 else { throw Fault(description: "\(targets.count) targets") }
    func checkpoint(_ record: NotificationRecord, _ number: Int64) -> Checkpoint {
      var checkpoint = Checkpoint(
        notification: record.id, hub: hub, lease: record.lease, at: Self.now)
      checkpoint.number = number
      checkpoint.state = .processing
      checkpoint.keeping = .all
      return checkpoint
    }
    for record in claimed {
      let name = "\(record.id.rawValue) \(record.lease.part)"
      var begun = checkpoint(record, 1)
      begun.counts = [Self.success: 3]
      begun.cursor = 1
      begun.retries = [
        .init(
          registration: targets[0].registration, platform: .apns, attempts: 1, due: Self.now,
          answer: .init(outcome: .throttled, status: 429, reason: "slow"))
      ]
      begun.successes = [.init(registration: targets[1].registration, attempts: 1)]
      if record.id.rawValue == "keyed" {
        begun.environments = [(targets[0].registration, .other)]
      }
      try await told("checkpoint, \(name)") { try await store.checkpoint(begun) }
    }
    try await lanes(store, lane, claimed)
    for record in claimed {
      let name = "\(record.id.rawValue) \(record.lease.part)"
      var ended = checkpoint(record, 2)
      ended.counts = [Self.success: 2]
      ended.settledRetries = [targets[0].registration]
      ended.isAudienceRead = true
      if record.id.rawValue == "keyed" {
        ended.failures = [
          .init(
            registration: targets[0].registration, outcome: .expiredChannel, status: 410,
            reason: "gone", attempts: 2)
        ]
        ended.deadHandles = [
          .init(
            registration: targets[0].registration, platform: .apns, handle: handle(targets[0]),
            revision: page.revision, outcome: .expiredChannel)
        ]
        ended.replacedHandles = [
          .init(
            registration: targets[1].registration, platform: .apns, handle: handle(targets[1]),
            revision: page.revision, outcome: .refreshToken, newHandle: "NEW")
        ]
        try await told("checkpoint that moves handles, \(name)") {
          try await store.checkpoint(ended)
        }
      }
      var last = checkpoint(record, record.id.rawValue == "keyed" ? 3 : 2)
      last.counts = [Self.success: 1]
      last.state = record.id.rawValue == "aborted" ? .canceled : .completed
      try await told("last checkpoint, \(name)") { try await store.checkpoint(last) }
    }
  }

  private func lanes(
    _ store: PostgresHubStore, _ lane: LaneKey, _ claimed: [NotificationRecord]
  ) async throws {
    func names(_ due: [DueRetries]) -> [String] {
      due.map { "\($0.notification.rawValue) \($0.part) \($0.attempts.values.sorted())" }.sorted()
    }
    try await told("dueRetries") {
      names(try await store.dueRetries(of: lane, asOf: Self.now, limit: 99))
    }
    let keyed = NotificationID(rawValue: "keyed")
    try await told("retries") {
      names(try await store.retries(of: lane, notification: keyed, part: 0, limit: 9))
    }
    try await told("nextRetry") { try await store.nextRetry(of: lane) }
    try await told("retryLanes") { try await store.retryLanes().count }
    try await told("waitingRetries") { try await store.waitingRetries(keyed, hub: lane.hub) }
    try await told("waitingRetries of a part") {
      try await store.waitingRetries(keyed, part: 0, hub: lane.hub)
    }
    try await told("directTargets") {
      try await store.directTargets(
        of: NotificationID(rawValue: "direct"), hub: lane.hub, after: 0, limit: 9
      ).handleTexts
    }
    let refused = LaneFinding(lane, .refused, credential: Self.now, time: Self.now, reason: "no")
    try await told("exchange") {
      try await store.exchange([refused], recovered: []).lifted.count
    }
    try await told("exchange of the same") {
      try await store.exchange([refused], recovered: []).lifted.count
    }
    try await told("exchange after it is well") {
      try await store.exchange([], recovered: [lane]).lifted.count
    }
  }

  private func rest(_ store: PostgresHubStore, _ hub: Hub.ID) async throws {
    try await told("removals") { try await store.removals(RemovalWave(), hub: hub).count }
    let hours = try await call("feedbackHours") { try await store.feedbackHours(hub: hub) }
    lines.append("feedbackHours: \(hours.map(\.count))")
    try await told("feedback") {
      try await store.feedback(hub: hub, hour: hours.first?.hour ?? 0, after: 0, limit: 9)
        .map { "\($0.outcome) \($0.handle) \($0.newHandle ?? "")" }.sorted()
    }
    try await told("restoreRemoved") {
      try await store.restoreRemoved(RemovalWave(), hub: hub, asOf: Self.now, limit: 9)
    }
    var job = HubJob(
      id: HubJob.newID(at: Self.now, random: .system), hub: hub, kind: .exportRegistrations,
      outputContainer: "file:///c", importFile: nil, createdAt: Self.now)
    try await call(
      "addJob", orFound: { try await store.job(job.id, hub: hub).map { _ in } },
      { try await store.addJob(job, forgetting: .distantPast) })
    try await told("unfinishedJobs") { try await store.unfinishedJobs().count }
    job.status = .completed
    try await call("updateJob") { try await store.updateJob(job) }
    try await told("job") { try await store.job(job.id, hub: hub)?.status }
    try await told("jobs") { try await store.jobs(hub: hub).count }
    try await call("record") { try await store.record([line(hub, "written")]) }
    try await told("activity") {
      try await store.activity(ActivityQuery(), hub: hub, after: nil, limit: 99).lines
        .compactMap(\.object)
    }
    var session = OperatorSession(
      id: [1], user: "ann", fingerprint: [2], startedAt: Self.now, seenAt: Self.now,
      confirmedAt: Self.now)
    try await call("addSession") {
      try await store.addSession(session, forgetting: .distantPast, keeping: 9)
    }
    session.seenAt = Self.now.addingTimeInterval(60)
    try await call("updateSession") { try await store.updateSession(session) }
    try await told("session") { try await store.session([1])?.seenAt }
    try await call("endSession") { try await store.endSession([1]) }
    try await call("noteRegistrations") { try await store.noteRegistrations(at: Self.now) }
    try await told("statistics") {
      let span = StatisticSpan(
        period: .minute, first: Int64(Self.now.timeIntervalSince1970) / 60, step: 1, count: 1)
      return try await store.statistics(span, hub: hub).map {
        "\($0.accepted) \($0.outcomes.values.reduce(0, +)) \($0.registrations.values.sorted())"
      }
    }
    try await told("totals") {
      let totals = try await store.totals()
      return "\(totals.unfinished) \(totals.scheduled) \(totals.retries) \(totals.feedback) "
        + "\(totals.registrations.values.sorted())"
    }
    try await call("publish") { try await store.publish(address: "http://127.0.0.1:1") }
    try await told("deleteHub") { try await store.deleteHub(named: "other") }
    try await told("isOpenToAll") { try await store.isOpenToAll() }
    try await told("warnings") { try await store.warnings().map(\.code) }
  }

  /// What is there, and what is cleared away of it.
  private func end(_ store: PostgresHubStore, _ hub: Hub.ID) async throws {
    for id in ["keyed", "direct", "broad", "aborted", "due", "cancelled", "repeated", "bob's"] {
      try await told("notification, \(id)") {
        try await store.notification(NotificationID(rawValue: id), hub: hub).map {
          "\($0.state) \($0.counts[Self.success] ?? 0)"
        }
      }
    }
    try await told("outcomes") {
      try await store.outcomes(
        of: NotificationID(rawValue: "keyed"), hub: hub, OutcomeFilter(), after: 0, limit: 9
      ).outcomes.map { "\($0.failure.outcome) \($0.failure.attempts)" }.sorted()
    }
    lines.append("rows: \(try rows())")
    let later = Self.now.addingTimeInterval(100_000)
    let clearings: [(String, () async throws -> Bool)] = [
      ("clearOutcomes", { try await store.clearOutcomes(before: later, keeping: 0) }),
      ("clearTexts", { try await store.clearTexts(endedBefore: later) }),
      ("clearNotifications", { try await store.clearNotifications(endedBefore: later) }),
      ("clearActivity", { try await store.clearActivity(before: later, keeping: 0) }),
      ("clearStatistics", { try await store.clearStatistics(asOf: later) }),
      ("clear", { try await store.clear(expiredBy: later) }),
    ]
    for (name, clear) in clearings { while try await call(name, clear) {} }
    lines.append("rows that are left: \(try rows())")
    try await told("condition") { await store.condition() }
  }

  /// How many rows each table has. Marks of commits are left out, and nodes: one whose first
  /// heartbeat was lost stands there until its lease ends.
  private func rows() throws -> [String] {
    let connection = try PostgresConnection(address: database, component: "test")
    defer { connection.close() }
    let tables = try connection.rows(
      """
      SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
        AND relkind IN ('r', 'p') AND NOT relispartition
        AND relname NOT IN ('commit_mark', 'node') ORDER BY relname
      """
    ) { $0.text(0) }
    let counts = tables.map { "SELECT '\($0)', COUNT(*) FROM \($0)" }
    return try connection.rows(counts.joined(separator: " UNION ALL ")) {
      "\($0.text(0)) \($0.integer(1))"
    }
  }
}
