import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let notificationsClauses: [Clause] = [
    Clause("an accepted notification comes back as it was given") { store in
      let hub = try await makeHub(store)
      let request = NotificationRequest(
        format: .native(.apns), body: [0, 255, 123, 10], tags: "a && !(b || $UserId:{bob})",
        expression: .and(.tag("a"), .not(.or(.tag("b"), .tag("$UserId:{bob}")))),
        headers: ["apns-priority": "5", "apns-topic": "com.example"], expiry: 1_893_456_789)
      let full = NotificationRecord(
        id: NotificationID(rawValue: "n-1"), hub: hub, request: request, state: .scheduled,
        enqueuedAt: now)
      try await store.accept(full)
      try await store.accept(record("n-2", hub: hub))
      let found = try await store.notification(full.id, hub: hub)
      try expectEqual(found?.request, request)
      try expectEqual(found?.state, .scheduled)
      try expectEqual(found?.enqueuedAt, now)
      try expect(found?.startedAt == nil && found?.endedAt == nil, "times before it started")
      try expectEqual(found?.cursor, 0)
      try expectEqual(found?.isAudienceRead, false)
      try expectEqual(found?.counts, [:])
      let plain = try await store.notification(NotificationID(rawValue: "n-2"), hub: hub)
      try expectEqual(plain?.request, record("n-2", hub: hub).request)
    },
    Clause("a notification is found in its own hub only") { store in
      let (one, two) = (try await makeHub(store, "one"), try await makeHub(store, "two"))
      try await store.accept(record("n-1", hub: one))
      let id = NotificationID(rawValue: "n-1")
      try expect(try await store.notification(id, hub: one) != nil, "in its own hub")
      try expect(try await store.notification(id, hub: two) == nil, "in another hub")
    },
    Clause("notifications are listed by state, kind, tag and time, each once, the newest first") {
      store in
      let hub = try await makeHub(store)
      let other = try await makeHub(store, "other")
      let expressions: [String?] = ["news && !Muted", nil, "$InstallationId:{i-1}", "sports"]
      for number in 0..<24 {
        var record = try listed("n\(number)", expressions[number % 4], second: number / 2, hub: hub)
        if number % 6 == 5 { record.state = .completed }
        try await store.accept(record)
      }
      try await store.accept(listed("elsewhere", nil, second: 3, hub: other))
      var late = try listed("scheduled", "news", second: 20, hub: hub)
      late.state = .scheduled
      late.scheduledFor = now + 3600
      try await store.accept(late)
      let direct = NotificationRecord(
        id: NotificationID(rawValue: "direct"), hub: hub,
        request: NotificationRequest(format: .native(.apns), body: [1], isDirect: true),
        state: .processing, enqueuedAt: now + 21)
      _ = try await store.accept(
        Submission(record: direct, targets: [DirectTarget(handle: "SECRET", isDuplicate: false)]))

      let all = ["direct", "scheduled"] + (0..<24).reversed().map { "n\($0)" }
      func numbers(_ isWanted: (Int) -> Bool) -> [String] {
        (0..<24).reversed().filter(isWanted).map { "n\($0)" }
      }
      let cases: [(NotificationFilter, [String])] = [
        (.init(), all),
        (.init(states: [.completed]), numbers { $0 % 6 == 5 }),
        (.init(states: [.processing]), ["direct"]),
        (.init(states: [.scheduled, .processing]), ["direct", "scheduled"]),
        (.init(states: [.abandoned]), []), (.init(states: []), []),
        (.init(kind: .tag), numbers { $0 % 4 == 0 || $0 % 4 == 3 }),
        (.init(kind: .broadcast), numbers { $0 % 4 == 1 }),
        (.init(kind: .single), numbers { $0 % 4 == 2 }),
        (.init(kind: .direct), ["direct"]), (.init(kind: .schedule), ["scheduled"]),
        (.init(tag: "muted"), numbers { $0 % 4 == 0 }),
        (.init(tag: "news"), ["scheduled"] + numbers { $0 % 4 == 0 }),
        (.init(tag: "$installationid:{i-1}"), numbers { $0 % 4 == 2 }), (.init(tag: "new"), []),
        (.init(from: now + 10), ["direct", "scheduled", "n23", "n22", "n21", "n20"]),
        (.init(until: now + 1), ["n1", "n0"]),
        (.init(from: now + 2, until: now + 4), ["n7", "n6", "n5", "n4"]),
        (.init(from: now + 4, until: now + 4), []), (.init(from: now + 9, until: now + 2), []),
        (.init(states: [.completed], kind: .tag, from: now + 6), ["n23"]),
      ]
      for (filter, wanted) in cases {
        for limit in [1, 4, 100] {
          let found = try await list(store, filter, .newestFirst, hub: hub, limit: limit)
          try expectEqual(found.map(\.notificationID), wanted, "\(filter), pages of \(limit)")
        }
      }
      try expectEqual(
        try await list(store, .init(), .newestFirst, hub: hub + 9, limit: 4).count, 0)
    },
    Clause("a list of notifications tells what they are and where they stand") { store in
      let hub = try await makeHub(store)
      try await store.accept(listed("a", "x", second: 0, hub: hub))
      var page = Checkpoint(notification: NotificationID(rawValue: "a"), hub: hub, at: now + 5)
      for platform in [PushPlatform.apns, .fcmv1] {
        page.counts[.init(platform: platform, isTemplate: true, outcome: .success)] = 3
      }
      page.counts[.init(platform: .apns, isTemplate: true, outcome: .badChannel)] = 1
      page.state = .completed
      page.startedAt = now + 2
      try await store.checkpoint(page)
      let found = try await list(store, .init(), .newestFirst, hub: hub, limit: 9)
      let wanted = NotificationSummary(
        notificationID: "a", state: .completed, kind: .tag, format: "template", tags: "x",
        enqueueTime: now, startTime: now + 2, endTime: now + 5,
        outcomes: ["Success": 6, "BadChannel": 1])
      try expectEqual(found, [wanted])
    },
    Clause("a list of notifications has their words, and is searched by these, tags and ids") {
      store in
      let hub = try await makeHub(store)
      func accept(
        _ id: String, _ format: NotificationRequest.Format, _ body: String, _ tags: String?,
        at second: Int
      ) async throws {
        try await store.accept(
          NotificationRecord(
            id: NotificationID(rawValue: id), hub: hub,
            request: NotificationRequest(
              format: format, body: Array(body.utf8), tags: tags,
              expression: try tags.map { try TagExpression(parsing: $0) }),
            state: .enqueued, enqueuedAt: now + TimeInterval(second)))
      }
      try await accept(
        "a", .template, #"{"Title":"Goal!","message":"Oslo leads 2:1"}"#, "news", at: 0)
      try await accept(
        "b", .native(.apns), #"{"aps":{"alert":"Ölmarkt öffnet"},"x":"goal"}"#, "oslo", at: 1)
      try await accept(
        "goal-1", .native(.fcmv1), #"{"message":{"data":{"secureId":"i","sealed":"Oslo"}}}"#, "x",
        at: 2)
      func found(_ search: String?) async throws -> [NotificationSummary] {
        let filter = NotificationFilter(search: search)
        let pages = try await list(store, filter, .newestFirst, hub: hub, limit: 1)
        try expectEqual(pages, try await list(store, filter, .newestFirst, hub: hub, limit: 9))
        return pages
      }
      try expectEqual(try await found(nil).map(\.title), [nil, nil, "Goal!"])
      try expectEqual(try await found(nil).map(\.text), [nil, "Ölmarkt öffnet", "Oslo leads 2:1"])
      try expectEqual(try await found(nil).map(\.textState), [.sealed, .kept, .kept])
      // Sealed messages, and payloads that no device shows, are not found.
      for (search, wanted) in [
        ("GOAL", ["goal-1", "a"]), ("oslo", ["b", "a"]), ("ÖLM", ["b"]), ("leads 2", ["a"]),
        ("secure", []),
      ] {
        try expectEqual(try await found(search).map(\.notificationID), wanted, search)
      }
    },
    Clause("schedules are listed by the time at which they are due, as long as they wait") {
      store in
      let hub = try await makeHub(store)
      let other = try await makeHub(store, "other")
      for (id, due, hub) in [
        ("late", 30.0, hub), ("b", 20, hub), ("a", 20, hub), ("soon", 10, hub), ("x", 15, other),
      ] {
        var record = try listed(id, id == "b" ? "news" : nil, second: 0, hub: hub)
        record.state = .scheduled
        record.scheduledFor = now + due
        try await store.accept(record)
      }
      try await store.accept(listed("sent", nil, second: 0, hub: hub))
      func found(_ filter: NotificationFilter = .init()) async throws -> [String] {
        var texts: [[String]] = []
        for limit in [1, 3, 100] {
          texts.append(
            try await list(store, filter, .scheduled, hub: hub, limit: limit)
              .map(\.notificationID))
        }
        try expect(texts.allSatisfy { $0 == texts[0] }, "pages of another size: \(texts)")
        return texts[0]
      }
      try expectEqual(try await found(), ["soon", "b", "a", "late"])
      try expectEqual(try await found(.init(tag: "news")), ["b"])
      try expectEqual(try await found(.init(from: now + 20, until: now + 30)), ["b", "a"])
      let first = try await list(store, .init(), .scheduled, hub: hub, limit: 1)
      try expectEqual(first.first?.dueTime, now + 10)
      try expectEqual(first.first?.kind, .schedule)
      _ = try await store.releaseSchedules(asOf: now + 16, limit: 9)
      _ = try await store.cancelSchedule(NotificationID(rawValue: "b"), hub: hub, at: now)
      try expectEqual(try await found(), ["a", "late"])
      let all = try await list(store, .init(kind: .schedule), .newestFirst, hub: hub, limit: 9)
      try expectEqual(all.count, 4, "what was scheduled stays one")
    },
    Clause("only what still waits can be cancelled, and only once") { store in
      let hub = try await makeHub(store)
      let other = try await makeHub(store, "hub2")
      let id = try await acceptScheduled(store, hub, "s-1", in: 10)
      let sent = try await acceptScheduled(store, hub, "s-2", in: 0)
      _ = try await store.releaseSchedules(asOf: now, limit: 5)
      try expectEqual(try await store.cancelSchedule(id, hub: other, at: now), false)
      try expectEqual(try await store.cancelSchedule(sent, hub: hub, at: now), false)
      try expectEqual(try await store.cancelSchedule(id, hub: hub, at: now), true)
      try expectEqual(try await store.cancelSchedule(id, hub: hub, at: now), false)
      let found = try await store.notification(id, hub: hub)
      try expectEqual(found?.state, .canceled)
      try expectEqual(found?.endedAt, now)
      try expect(try await store.nextSchedule() == nil, "a cancelled one is not due")
    },
    Clause("a key brings back the same notification, until it expires") { store in
      let hub = try await makeHub(store)
      let other = try await makeHub(store, "hub2")
      let claim = IdempotencyClaim(
        key: "k", fingerprint: [1, 2], expiresAt: now.addingTimeInterval(60))
      try expectEqual(try await submit(store, "n-1", hub, claim, at: now), .accepted)
      let first = NotificationID(rawValue: "n-1")
      try expectEqual(try await submit(store, "n-2", hub, claim, at: now), .repeated(first))
      try expect(
        try await store.notification(NotificationID(rawValue: "n-2"), hub: hub) == nil,
        "a repeat is not written")
      let changed = IdempotencyClaim(key: "k", fingerprint: [9], expiresAt: claim.expiresAt)
      try expectEqual(try await submit(store, "n-3", hub, changed, at: now), .keyInUse)
      try expectEqual(try await submit(store, "n-4", other, claim, at: now), .accepted)
      let renewed = IdempotencyClaim(
        key: "k", fingerprint: [9], expiresAt: now.addingTimeInterval(120))
      let later = now.addingTimeInterval(61)
      try expectEqual(try await submit(store, "n-5", hub, renewed, at: later), .accepted)
    },
    Clause("notifications are cleared away some time after their end, and no others") { store in
      let hub = try await makeHub(store)
      for id in ["n-1", "early", "late", "waiting"] {
        try await store.accept(record(id, hub: hub))
      }
      var scheduled = record("scheduled", hub: hub)
      scheduled.state = .scheduled
      scheduled.scheduledFor = now.addingTimeInterval(-1)
      try await store.accept(scheduled)
      for (id, seconds) in [("early", 10.0), ("late", 20)] {
        var end = checkpoint(hub, id)
        end.at = now.addingTimeInterval(seconds)
        end.state = .completed
        end.counts = [OutcomeKey(platform: .apns, isTemplate: true, outcome: .badChannel): 3]
        end.failures = (1...3).map {
          Checkpoint.Failure(registration: $0, outcome: .badChannel, status: 400, reason: nil)
        }
        try await store.checkpoint(end)
      }
      var page = checkpoint(hub, "waiting")
      page.isAudienceRead = true
      page.retries = [
        Checkpoint.Retry(registration: 1, platform: .apns, attempts: 1, due: now)
      ]
      try await store.checkpoint(page)
      try await clearAll(store, endedBefore: now.addingTimeInterval(10))
      try expectEqual(try await left(store, hub), ["n-1", "early", "late", "waiting", "scheduled"])
      try await clearAll(store, endedBefore: now.addingTimeInterval(20))
      try expectEqual(try await left(store, hub), ["n-1", "late", "waiting", "scheduled"])
      let id = NotificationID(rawValue: "early")
      let kept = try await store.outcomes(of: id, hub: hub, OutcomeFilter(), after: 0, limit: 9)
      try expect(kept.outcomes.isEmpty, "outcomes of one that has gone")
      try await clearAll(store, endedBefore: now.addingTimeInterval(1_000_000))
      try expectEqual(try await left(store, hub), ["n-1", "waiting", "scheduled"])
      try expectEqual(
        try await store.waitingRetries(NotificationID(rawValue: "waiting"), hub: hub), 1)
    },
    Clause("payloads are cleared some time after the end, and of no notification that goes on") {
      store in
      let hub = try await makeHub(store)
      let body = Array(#"{"title":"Goal!"}"#.utf8)
      func accept(_ id: String, _ state: NotificationState = .enqueued) async throws {
        var record = NotificationRecord(
          id: NotificationID(rawValue: id), hub: hub,
          request: NotificationRequest(format: .template, body: body, tags: "red"), state: state,
          enqueuedAt: now)
        if state == .scheduled { record.scheduledFor = now + 3_600 }
        try await store.accept(record)
      }
      let ended = (0..<230).map { "ended-\($0)" }
      for (number, id) in ended.enumerated() {
        try await accept(id)
        var end = checkpoint(hub, id)
        end.at = now + TimeInterval(number)
        end.state = .completed
        try await store.checkpoint(end)
      }
      for (id, state) in [("open", NotificationState.enqueued), ("scheduled", .scheduled)] {
        try await accept(id, state)
      }
      try await accept("aborted")
      _ = try await store.abort(NotificationID(rawValue: "aborted"), hub: hub, at: now)
      func cleared() async throws -> Set<String> {
        var found: Set<String> = []
        for id in ended + ["open", "scheduled", "aborted"] {
          let one = try await store.notification(NotificationID(rawValue: id), hub: hub)
          try expectEqual(one?.request.body, one?.hasClearedText == true ? [] : body, id)
          try expectEqual(one?.request.tags, "red")
          if one?.hasClearedText == true { found.insert(id) }
        }
        return found
      }
      try expectEqual(try await store.clearTexts(endedBefore: now), false)
      try expectEqual(try await cleared(), [])
      try expectEqual(try await store.clearTexts(endedBefore: now + 2), false)
      try expectEqual(try await cleared(), ["ended-0", "ended-1"])
      // A call does little.
      try expectEqual(try await store.clearTexts(endedBefore: .distantFuture), true)
      try expect(try await cleared().count < ended.count, "all in one transaction")
      for _ in 0..<9 where try await !store.clearTexts(endedBefore: .distantFuture) { break }
      try expectEqual(try await cleared(), Set(ended))
      // A schedule that is cancelled has ended, and one that is released can be sent.
      _ = try await store.cancelSchedule(NotificationID(rawValue: "scheduled"), hub: hub, at: now)
      try expectEqual(try await store.clearTexts(endedBefore: .distantFuture), false)
      try expect(try await cleared().contains("scheduled"), "a cancelled schedule has its payload")
      try expectEqual(
        try await store.unfinishedNotifications().map(\.request.body), [body, body], "goes on")
    },
    Clause("a search says how many it passed over whose text is not kept") { store in
      let hub = try await makeHub(store)
      for (number, id) in ["early", "goal-1", "open", "late"].enumerated() {
        try await store.accept(
          NotificationRecord(
            id: NotificationID(rawValue: id), hub: hub,
            request: NotificationRequest(
              format: .template, body: Array(#"{"title":"Goal!"}"#.utf8), tags: "news"),
            state: .enqueued, enqueuedAt: now + TimeInterval(number)))
        guard ["early", "goal-1"].contains(id) else { continue }
        var end = checkpoint(hub, id)
        end.state = .completed
        try await store.checkpoint(end)
      }
      while try await store.clearTexts(endedBefore: .distantFuture) {}
      func found(_ filter: NotificationFilter) async throws -> [[String?]] {
        let page = try await store.notifications(
          filter, in: .newestFirst, hub: hub, after: nil, limit: 9)
        return page.notifications.map { [$0.notificationID, $0.title, $0.textState?.rawValue] }
          + [["\(page.unsearched)"]]
      }
      let (open, late) = (["open", "Goal!", "kept"], ["late", "Goal!", "kept"])
      let gone = [["goal-1", nil, "off"], ["early", nil, "off"]]
      try expectEqual(try await found(.init()), [late, open] + gone + [["0"]])
      // By its id one is found.
      try expectEqual(
        try await found(.init(search: "goal")), [late, open, gone[0]] + [["1"]])
      try expectEqual(try await found(.init(search: "news")), [late, open] + gone + [["0"]])
      // Those that another part of the filter leaves out do not count.
      try expectEqual(
        try await found(.init(states: [.enqueued], search: "goal")), [late, open] + [["0"]])
      var hidden = NotificationFilter(search: "goal")
      hidden.hidesText = true
      try expectEqual(try await found(hidden), [gone[0]] + [["3"]])
      hidden.search = nil
      try expectEqual(
        try await found(hidden),
        [["late", nil, "off"], ["open", nil, "off"]] + gone + [["0"]])
    },
    Clause("a notification knows the last registration that was there before it") { store in
      let (hub, targets) = try await makeAudience(store, ["i-1"])
      try await store.put(SampleDevice("i-2"), hub: hub, at: now)
      try expectEqual(try await stored(store, hub).lastRegistration, targets[0])
    },
  ]

  static func listed(
    _ id: String, _ tags: String?, second: Int, hub: Hub.ID
  ) throws -> NotificationRecord {
    NotificationRecord(
      id: NotificationID(rawValue: id), hub: hub,
      request: NotificationRequest(
        format: .template, body: Array("{}".utf8), tags: tags,
        expression: try tags.map { try TagExpression(parsing: $0) }),
      state: .enqueued, enqueuedAt: now + TimeInterval(second))
  }

  private static func submit(
    _ store: any HubStore, _ id: String, _ hub: Hub.ID, _ claim: IdempotencyClaim, at: Date
  ) async throws -> Acceptance {
    let new = NotificationRecord(
      id: NotificationID(rawValue: id), hub: hub,
      request: NotificationRequest(format: .template, body: [1]), state: .enqueued, enqueuedAt: at)
    return try await store.accept(Submission(record: new, idempotency: claim))
  }
}
