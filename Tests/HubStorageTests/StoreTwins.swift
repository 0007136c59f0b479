import Foundation
import HubCore
import NotificationHubs

@testable import HubStorage
@testable import StoreContract

/// Does the same random calls to two stores and compares what they answer. Numbers of registrations,
/// which differ, are compared by the order in which they came.
struct StoreTwins {
  private let stores: [any HubStore]
  private var hub: [Hub.ID] = []
  private var random: SeededGenerator
  private var now = HubStoreContract.now
  private var sent: [NotificationID] = []
  /// By the numbers of each store; the same for what is the same.
  private var labels: [[RegistrationID: Int]] = [[:], [:]]
  private var ids: [[String: Int]] = [[:], [:]]
  private var labelCount = 0
  /// What was done, for whom reads of a difference.
  private var log: [String] = []

  private init(_ stores: [any HubStore], seed: UInt64) {
    (self.stores, random) = (stores, SeededGenerator(seed: seed))
  }

  /// - Throws: ``HubStoreContract/Violation`` with the first difference.
  static func compare(
    _ first: any HubStore, _ second: any HubStore, seed: UInt64, rounds: Int
  ) async throws {
    var twins = StoreTwins([first, second], seed: seed)
    for store in twins.stores { twins.hub.append(try await HubStoreContract.makeHub(store)) }
    for round in 0..<rounds {
      let what = try await twins.step()
      twins.log.append(what)
      do { try await twins.look() } catch let violation as HubStoreContract.Violation {
        let log = twins.log.suffix(12).joined(separator: "; ")
        throw HubStoreContract.Violation(
          description: "seed \(seed), round \(round), after \(log): \(violation.description)")
      }
    }
  }

  // MARK: Drawing

  private mutating func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
  private mutating func oneOf<Value>(_ values: [Value]) -> Value { values[pick(values.count)] }

  private static let fcm = "eKq3xYb5Q0mVn2T7wZ1aBc"

  private mutating func channel() -> (PushPlatform, PushChannel) {
    switch pick(6) {
    case 0, 1, 2: (.apns, .handle(oneOf(["AA", "BB", "CC", "DD"])))
    case 3, 4: (.fcmv1, .handle(oneOf([Self.fcm, Self.fcm + ":one", Self.fcm + ":two", "plain"])))
    default:
      (
        .browser,
        .subscription(
          endpoint: oneOf(["https://push.example/a", "https://push.example/b"]),
          p256dh: oneOf(["k1", "k2"]), auth: "s")
      )
    }
  }

  private mutating func tags() -> [Tag] {
    ["red", "Blue", "green"].filter { _ in pick(2) == 0 }.map { Tag(rawValue: $0) }
  }

  private mutating func expiry() -> Date? { pick(4) == 0 ? now + Double(60 + pick(3_600)) : nil }

  private mutating func installation() -> Installation {
    let (platform, channel) = channel()
    return Installation(
      installationID: oneOf(["i-1", "i-2", "i-3", "I-1", "i-4"]),
      userID: oneOf([nil, "bob", "Bob", "ann"]), platform: platform, pushChannel: channel,
      expirationTime: expiry(), tags: tags(), pushVariables: pick(3) == 0 ? ["lang": "en"] : [:],
      templates: pick(2) == 0 ? [:] : ["main": PushTemplate(body: "{\"n\":\(pick(2))}")])
  }

  private mutating func draft() -> RegistrationDraft {
    let (platform, channel) = channel()
    let isNative = pick(2) == 0
    return RegistrationDraft(
      kind: isNative
        ? .native : .template(PushTemplate(body: "{\"r\":\(pick(2))}"), name: oneOf([nil, "t"])),
      platform: platform, channel: channel, tags: tags(), expiresAt: expiry())
  }

  private mutating func expression() -> TagExpression? {
    switch pick(6) {
    case 0: nil
    case 1: .tag("RED")
    case 2: .and(.tag("blue"), .not(.tag("green")))
    case 3: .tag(.user("BOB"))
    case 4: .tag(.installation(oneOf(["i-1", "I-1"])))
    default: .or(.tag("main"), .tag("green"))
    }
  }

  // MARK: Steps

  private mutating func step() async throws -> String {
    let (now, hub) = (now, hub)
    switch pick(20) {
    case 0, 1, 2, 3:
      let one = installation()
      // As the hub does: a store that recognises a repeat is not asked to write it.
      let request = InstallationRequest(body: InstallationDocument.encode(one), rules: [])
      try await same("a device") { store, side in
        let id = one.installationID
        if try await store.confirmInstallation(id, request: request, hub: hub[side], at: now) {
          await (store as? SQLiteHubStore)?.writeTimes()
          return
        }
        try await store.putInstallation(
          one, registrations: one.registrationDrafts, request: request, hub: hub[side], at: now)
      }
      return "putting \(one.installationID)"
    case 4:
      let (id, tags) = (oneOf(["i-1", "i-2", "i-3"]), tags())
      try await same("a patch") { store, side in
        try await store.updateInstallation(id, hub: hub[side], at: now) { present in
          var next = present
          next.tags = tags
          return (next, next.registrationDrafts)
        }
      }
      return "patching \(id)"
    case 5:
      let id = oneOf(["i-1", "i-2", "I-1"])
      try await same("a deletion") { store, side in
        try await store.deleteInstallation(id, hub: hub[side])
      }
      return "deleting \(id)"
    case 6, 7:
      let (draft, own) = (draft(), oneOf([nil, "own-1", "own-2", "own-3"]))
      try await same("a registration") { store, side in
        if let own {
          let write = try await store.putRegistration(
            own, draft, hub: hub[side], condition: .none, at: now)
          if case .done(let stored) = write { return "\(stored.etag) \(stored.isDerived)" }
          return "\(write)"
        }
        return "\(try await store.createRegistration(draft, hub: hub[side], at: now).etag)"
      }
      return "registering \(own ?? "")"
    case 8:
      return try await changeKnown()
    case 9, 10, 11:
      return try await send()
    case 12, 13, 14:
      return try await deliver()
    case 15:
      return try await retry()
    case 16:
      let asOf = now
      try await same("restored") { store, side in
        try await store.restoreRemoved(RemovalWave(), hub: hub[side], asOf: asOf, limit: 100)
      }
      return "restoring"
    case 17:
      let user = oneOf(["bob", "ann"])
      try await same("an erasure") { store, side in
        var erasure = try await store.eraseUser(user, hub: hub[side])
        // Those that only a device with a dead handle names are counted by some engines.
        erasure.templates = 0
        return erasure
      }
      return "erasing \(user)"
    case 18:
      let limit = now - Double(pick(3_600))
      try await same("clearing") { store, side in
        while try await store.clear(expiredBy: limit) {}
        while try await store.clearNotifications(endedBefore: limit) {}
        try await store.noteRegistrations(at: now)
      }
      return "clearing"
    default:
      self.now += Double(1 + pick(900))
      let due = self.now
      try await same("released") { store, side in
        try await store.releaseSchedules(asOf: due, limit: 5).map { "\($0.id) \($0.state)" }
      }
      return "waiting"
    }
  }

  /// Writes or deletes a registration that is there or was once, by whomever it was made.
  private mutating func changeKnown() async throws -> String {
    guard labelCount > 0 else { return "" }
    let (now, hub, draft, deletes) = (now, hub, draft(), pick(2) == 0)
    let condition: ETagCondition = oneOf([.none, .any, .tag("1")])
    // Mostly one of the last, which may be there still.
    let label = pick(4) == 0 ? pick(labelCount) : labelCount - 1 - pick(min(10, labelCount))
    let known = ids
    try await same("a write") { store, side in
      guard let id = known[side].first(where: { $0.value == label })?.key else { return "" }
      let write =
        deletes
        ? try await store.deleteRegistration(id, hub: hub[side], condition: condition, at: now)
        : try await store.putRegistration(
          id, draft, hub: hub[side], condition: condition, at: now)
      guard case .done(let stored) = write else { return "\(write)" }
      return "\(stored.etag) \(stored.isDerived) \(stored.draft.tags)"
    }
    return deletes ? "deleting known \(label)" : "writing known \(label)"
  }

  private mutating func send() async throws -> String {
    let (hub, now) = (hub, now)
    let id = NotificationID(rawValue: "n-\(sent.count)")
    let isDirect = pick(6) == 0
    let expression = isDirect ? nil : expression()
    let format: NotificationRequest.Format =
      !isDirect && pick(3) == 0 ? .template : .native(oneOf([.apns, .fcmv1, .browser]))
    let due = pick(6) == 0 ? now + Double(pick(600)) : nil
    let claim =
      pick(4) == 0
      ? IdempotencyClaim(
        key: oneOf(["a", "b"]), fingerprint: [UInt8(pick(2))], expiresAt: now + 600) : nil
    try await same("accepted") { store, side in
      var record = NotificationRecord(
        id: id, hub: hub[side],
        request: NotificationRequest(
          format: format, body: Array("{}".utf8), tags: expression == nil ? nil : "text",
          expression: expression, isDirect: isDirect),
        state: due == nil ? .enqueued : .scheduled, enqueuedAt: now)
      record.scheduledFor = due
      let targets = isDirect ? ["AA", "BB", "AA"] : []
      return try await store.accept(
        Submission(
          record: record,
          targets: targets.enumerated().map { .init(handle: $1, isDuplicate: $0 == 2) },
          idempotency: claim))
    }
    sent.append(id)
    return "sending \(id)"
  }

  /// Reads a page of a notification and records random answers to it.
  private mutating func deliver() async throws -> String {
    guard !sent.isEmpty else { return "" }
    let (id, hub, now, limit) = (oneOf(sent), hub, now, 1 + pick(4))
    var pages: [TargetPage] = []
    var records: [NotificationRecord] = []
    var areLast: [Bool] = []
    for (side, store) in stores.enumerated() {
      guard let record = try await store.notification(id, hub: hub[side]) else { continue }
      records.append(record)
      guard !record.state.isFinal, record.state != .scheduled else { continue }
      // SQLite counts registrations whose time is over into a page and then leaves them out: its page
      // is shorter, and may not know that it is the last. So the model is asked for as many.
      let limit = pages.first.map { max(1, $0.targets.count) } ?? limit
      let page = try await page(of: record, side, after: record.cursor, limit: limit)
      pages.append(page)
      var rest = TargetPage()
      if let next = page.next {
        rest = try await self.page(of: record, side, after: next, limit: 1)
      }
      areLast.append(rest.targets.isEmpty)
    }
    try HubStoreContract.expect(records.count != 1, "\(id) is in one store alone")
    guard pages.count == 2, let record = records.first else { return "" }
    try await same("a page of \(id)") { _, side in
      shown(pages[side], side, isDirect: record.request.isDirect)
    }
    let isLast = areLast[0]
    try await same("the end of \(id)") { _, side in areLast[side] }
    let answers = pages[0].targets.map { _ in pick(8) }
    try await same("a checkpoint of \(id)") { store, side in
      let page = pages[side]
      var checkpoint = Checkpoint(notification: id, hub: hub[side], at: now)
      checkpoint.state = .processing
      checkpoint.cursor = page.targets.last?.registration
      checkpoint.isAudienceRead = isLast
      checkpoint.keeping = .all
      for (target, answer) in zip(page.targets, answers) {
        let handle = String(decoding: page.handles[target.handle], as: UTF8.self)
        checkpoint.add(
          answer, to: target, handle, of: page.revision,
          isTemplate: record.request.format == .template, isDirect: record.request.isDirect)
      }
      if checkpoint.isAudienceRead, checkpoint.retries.isEmpty,
        try await store.waitingRetries(id, hub: hub[side]) == 0
      {
        checkpoint.state = .completed
      }
      let answer = try await store.checkpoint(checkpoint)
      return "\(answer)"
    }
    return "delivering \(id) \(answers)"
  }

  private func page(
    of record: NotificationRecord, _ side: Int, after cursor: RegistrationID, limit: Int
  ) async throws -> TargetPage {
    guard record.request.isDirect else {
      return try await stores[side].targets(record.audience, after: cursor, limit: limit)
    }
    return try await stores[side].directTargets(
      of: record.id, hub: hub[side], after: cursor, limit: limit)
  }

  private mutating func retry() async throws -> String {
    let (now, hub) = (now, hub)
    let platform = oneOf([PushPlatform.apns, .fcmv1])
    let labels = labels
    try await same("due retries") { store, side in
      let lane = LaneKey(hub: hub[side], platform: platform)
      let due = try await store.dueRetries(of: lane, asOf: now, limit: 100)
      var texts: [String] = []
      for group in due {
        var checkpoint = Checkpoint(notification: group.notification, hub: hub[side], at: now)
        checkpoint.settledRetries = group.attempts.keys.sorted()
        let record = try await store.notification(group.notification, hub: hub[side])
        let isDirect = record?.request.isDirect == true
        let known = isDirect ? [:] : labels[side]
        texts.append(
          "\(group.notification) \(shown(group.page, side, isDirect: isDirect)) "
            + "\(group.gone.map { known[$0] ?? Int($0) }) \(group.attempts.values.sorted())")
        let waiting = try await store.waitingRetries(group.notification, hub: hub[side])
        if record?.isAudienceRead == true, waiting == group.attempts.count {
          checkpoint.state = .completed
        }
        try await store.checkpoint(checkpoint)
      }
      return texts.sorted()
    }
    return "retrying"
  }

  // MARK: Comparing

  /// - Parameter call: With a store and its place among the two.
  private func same<Answer: Equatable>(
    _ what: String, _ call: (any HubStore, Int) async throws -> Answer
  ) async throws {
    var answers: [Answer] = []
    var errors: [String] = []
    for (side, store) in stores.enumerated() {
      do { answers.append(try await call(store, side)) } catch { errors.append("\(error)") }
    }
    try HubStoreContract.expect(
      answers.count != 1, "\(what): \(answers) beside the error \(errors)")
    try HubStoreContract.expectEqual(errors.last, errors.first, what)
    try HubStoreContract.expectEqual(answers.last, answers.first, "\(log.suffix(12)) \(what)")
  }

  private func same(
    _ what: String, _ call: (any HubStore, Int) async throws -> Void
  ) async throws {
    try await same(what) { store, side in
      try await call(store, side)
      return true
    }
  }

  /// Without what each store has for itself.
  private func shown(_ page: TargetPage, _ side: Int, isDirect: Bool) -> [String] {
    page.targets.map { target in
      let handle = String(decoding: page.handles[target.handle], as: UTF8.self)
      let number =
        isDirect ? Int(target.registration) : labels[side][target.registration] ?? -1
      let template = target.template < 0 ? "" : page.templates[Int(target.template)].template.body
      let variables = target.variables < 0 ? [:] : page.pushVariables[Int(target.variables)]
      let twins = page.twins[target.registration]?.map { labels[side][$0.registration] ?? -1 }
      return "\(number) \(handle) \(target.platform) \(template) \(variables) "
        + "\(target.isDuplicate) \(target.environment) \(target.confirmedAt) \(twins ?? [])"
    }
  }

  /// Compares all that the stores show.
  private mutating func look() async throws {
    let (hub, now) = (hub, now)
    var lists: [[StoredRegistration]] = []
    for (side, store) in stores.enumerated() {
      lists.append(try await HubStoreContract.list(store, .all, hub[side], asOf: now))
    }
    try HubStoreContract.expectEqual(
      lists[1].map { "\($0.draft) \($0.etag) \($0.isDerived)" },
      lists[0].map { "\($0.draft) \($0.etag) \($0.isDerived)" }, "registrations")
    for (first, second) in zip(lists[0], lists[1]) {
      let label = labels[0][first.number] ?? labelCount
      try HubStoreContract.expectEqual(labels[1][second.number] ?? label, label, "a number")
      labelCount = max(labelCount, label + 1)
      (labels[0][first.number], labels[1][second.number]) = (label, label)
      (ids[0][first.id], ids[1][second.id]) = (label, label)
    }
    let (ids, labels) = (ids, labels)
    let queries: [RegistrationQuery] = [
      .tag("red"), .tag("main"), .tag(.user("bob")), .tag(.installation("i-2")),
      .device(try RegistrationFilter(parsing: "ChannelUri eq 'BB'")),
    ]
    for query in queries {
      try await same("a list of \(query)") { store, side in
        try await HubStoreContract.list(store, query, hub[side], asOf: now)
          .map { labels[side][$0.number] ?? -1 }
      }
    }
    for kind in [AudienceQuery.Kind.native(.apns), .native(.fcmv1), .template] {
      try await same("targets of \(kind)") { store, side in
        let query = AudienceQuery(
          hub: hub[side], kind: kind, expression: .not(.tag("green")), asOf: now)
        let page = try await store.targets(query, after: 0, limit: 1_000)
        return shown(page, side, isDirect: false)
      }
    }
    try await same("installations") { store, side in
      try await store.installations(
        InstallationFilter(asOf: now), hub: hub[side], after: nil, limit: 100
      ).installations.sorted { $0.installationID < $1.installationID }
    }
    for expression in [nil, TagExpression.tag("red"), .tag(.user("bob"))] {
      try await same("counts") { store, side in
        try await store.counts(of: expression, hub: hub[side], asOf: now)
      }
    }
    try await same("notifications") { store, side in
      try await HubStoreContract.list(store, .init(), .newestFirst, hub: hub[side], limit: 7)
    }
    if let id = sent.randomElement(using: &random) {
      try await same("outcomes of \(id)") { store, side in
        try await store.outcomes(of: id, hub: hub[side], .init(), after: 0, limit: 100).outcomes
          .map { kept in
            "\(kept.failure.outcome) \(kept.failure.attempts) \(String(describing: kept.at)) "
              + "\(String(describing: kept.platform)) \(kept.handle ?? "") "
              + "\(kept.registrationID.map { ids[side][$0] ?? -1 } ?? -2) "
              + (kept.installationID ?? "")
          }
      }
    }
    try await same("removals") { store, side in
      try await store.removals(RemovalWave(), hub: hub[side])
    }
    try await same("feedback") { store, side in
      var texts: [String] = []
      for hour in try await store.feedbackHours(hub: hub[side]) {
        texts.append("\(hour)")
        for one in try await store.feedback(hub: hub[side], hour: hour.hour, after: 0, limit: 99) {
          texts.append(
            "\(one.outcome) \(one.handle) \(one.newHandle ?? "") \(one.installation ?? "") "
              + "\(one.registration.map { ids[side][$0] ?? -1 } ?? -2) \(one.notification)")
        }
      }
      return texts
    }
    try await same("retries") { store, side in
      let lanes = try await store.retryLanes()
      return Dictionary(uniqueKeysWithValues: lanes.map { ($0.key.platform, $0.value) })
    }
    try await same("totals") { store, _ in
      var totals = try await store.totals()
      // Engines remember platforms that there were once.
      totals.registrations = totals.registrations.filter { $0.value > 0 }
      return totals
    }
    let hour = Int64(HubStoreContract.now.timeIntervalSince1970) / 3_600
    try await same("statistics") { store, side in
      try await store.statistics(
        StatisticSpan(period: .hour, first: hour, step: 1, count: 48), hub: hub[side])
    }
    for handle in ["BB", Self.fcm + ":one", "https://push.example/a"] {
      let filter = try RegistrationFilter(handle: handle)
      try await same("devices of \(handle)") { store, side in
        let found = try await store.devices(filter, hub: hub[side], asOf: now, limit: 50)
        return found.installations.map(\.installationID)
          + found.registrations.map {
            "\(ids[side][$0.stored.id] ?? -1) \($0.installationID ?? "")"
          }
      }
    }
  }
}

extension Checkpoint {
  /// Notes an answer, drawn as a number.
  fileprivate mutating func add(
    _ answer: Int, to target: Target, _ handle: String, of revision: StoreVersion,
    isTemplate: Bool, isDirect: Bool
  ) {
    let (registration, platform) = (target.registration, target.platform)
    func word(_ outcome: NotificationOutcome, _ new: String? = nil) -> Condemned {
      Condemned(
        registration: registration, platform: platform, handle: handle, revision: revision,
        outcome: outcome, newHandle: new)
    }
    var outcome = target.isDuplicate ? NotificationOutcome.skipped : .success
    switch target.isDuplicate ? 7 : answer {
    case 0, 1:
      outcome = .expiredChannel
      if !isDirect { deadHandles.append(word(outcome)) }
    case 2:
      outcome = .badChannel
    case 3:
      retries.append(
        Retry(
          registration: registration, platform: platform, attempts: 1, due: at + 60,
          answer: Answer(outcome: .throttled, status: 429, reason: nil)))
      return
    case 4 where !isDirect && platform != .browser:
      replacedHandles.append(word(.refreshToken, handle == "AA" ? "BB" : "NEW"))
    case 5 where !isDirect:
      environments.append((registration, .other))
    default: break
    }
    counts[OutcomeKey(platform: platform, isTemplate: isTemplate, outcome: outcome), default: 0] +=
      1
    if outcome == .success {
      successes.append(Success(registration: registration, attempts: 1))
    } else {
      failures.append(
        Failure(registration: registration, outcome: outcome, status: 400, reason: nil))
    }
  }
}

extension SQLiteHubStore {
  /// Writes the times of repeated registrations, which would be written a little later.
  func writeTimes() async {
    engine.confirmations.writeTimes()
    while engine.confirmations.areWaiting { await Task.yield() }
  }
}
