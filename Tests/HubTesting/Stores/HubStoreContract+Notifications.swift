import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let notificationClauses = [
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
    Clause("counts of checkpoints add up") { store in
      let hub = try await makeHub(store)
      try await store.accept(record("n-1", hub: hub))
      let success = OutcomeKey(platform: .apns, isTemplate: true, outcome: .success)
      let wrong = OutcomeKey(platform: .apns, isTemplate: false, outcome: .wrongToken)
      for counts in [[success: 3], [success: 4, wrong: 1], [:]] {
        var checkpoint = checkpoint(hub)
        checkpoint.counts = counts
        try await store.checkpoint(checkpoint)
      }
      try expectEqual(try await stored(store, hub).counts, [success: 7, wrong: 1])
    },
    Clause("a checkpoint moves the cursor and the state, and notes when") { store in
      let hub = try await makeHub(store)
      try await store.accept(record("n-1", hub: hub))
      var first = checkpoint(hub)
      first.cursor = 1_000
      first.state = .processing
      try await store.checkpoint(first)
      var found = try await stored(store, hub)
      try expectEqual(found.cursor, 1_000)
      try expectEqual(found.state, .processing)
      try expectEqual(found.startedAt, now)
      try expect(!found.isAudienceRead && found.endedAt == nil, "ended too early")
      var second = checkpoint(hub)
      second.at = now.addingTimeInterval(2)
      second.isAudienceRead = true
      try await store.checkpoint(second)
      found = try await stored(store, hub)
      try expectEqual(found.cursor, 1_000, "a cursor that nobody moved")
      try expectEqual(found.state, .processing, "a state that nobody changed")
      try expect(found.isAudienceRead, "the audience is not read")
      second.state = .completed
      second.isAudienceRead = false
      try await store.checkpoint(second)
      found = try await stored(store, hub)
      try expectEqual(found.state, .completed)
      try expect(found.isAudienceRead, "an audience that is unread again")
      try expectEqual(found.startedAt, now)
      try expectEqual(found.endedAt, now.addingTimeInterval(2))
    },
    Clause("unfinished notifications are listed oldest first, with their counts") { store in
      let hub = try await makeHub(store)
      for number in 1...4 { try await store.accept(record("n-\(number)", hub: hub)) }
      var done = checkpoint(hub, "n-2")
      done.state = .completed
      try await store.checkpoint(done)
      var half = checkpoint(hub, "n-3")
      half.counts[OutcomeKey(platform: .apns, isTemplate: false, outcome: .success)] = 5
      try await store.checkpoint(half)
      let found = try await store.unfinishedNotifications()
      try expectEqual(found.map(\.id.rawValue), ["n-1", "n-3", "n-4"])
      try expectEqual(found[1].counts, half.counts)
    },
    Clause("failures are kept per device, the last one counts") { store in
      let hub = try await makeHub(store)
      try await store.accept(record("n-1", hub: hub))
      let failures = [
        Checkpoint.Failure(registration: 9, outcome: .throttled, status: 429, reason: nil),
        Checkpoint.Failure(
          registration: 2, outcome: .expiredChannel, status: 410, reason: "Unregistered"),
      ]
      var page = checkpoint(hub)
      page.failures = failures
      try await store.checkpoint(page)
      page.failures = [
        Checkpoint.Failure(registration: 9, outcome: .badChannel, status: 400, reason: "Bad")
      ]
      try await store.checkpoint(page)
      let id = NotificationID(rawValue: "n-1")
      let wanted = [failures[1], page.failures[0]]
      try expectEqual(try await store.failures(id, hub: hub, after: 0, limit: 10), wanted)
      try expectEqual(try await store.failures(id, hub: hub, after: 2, limit: 10), [wanted[1]])
      try expectEqual(try await store.failures(id, hub: hub, after: 0, limit: 1), [wanted[0]])
    },
    Clause("a dead handle takes its registrations along and marks the installation") { store in
      let hub = try await makeHub(store)
      try await store.accept(record("n-1", hub: hub))
      let device = SampleDevice("i-1", handle: "DEAD", tags: ["t"], templates: ["m": template()])
      try await store.put(device, hub: hub, at: now)
      try await store.put(SampleDevice("i-2", handle: "ALIVE", tags: ["t"]), hub: hub, at: now)
      try expectEqual(try await handles(store, hub, "t"), ["DEAD", "ALIVE"])
      var page = checkpoint(hub)
      page.deadHandles = [try await condemned(store, hub)[0]]
      try await store.checkpoint(page)
      try expectEqual(try await handles(store, hub, "t"), ["ALIVE"])
      try expectEqual(try await all(store, hub).count, 1, "registrations left")
      try expectEqual(try await store.installation("i-1", hub: hub)?.pushChannelExpired, true)
      try expectEqual(try await store.installation("i-2", hub: hub)?.pushChannelExpired, false)
      try await store.put(device, hub: hub, at: now)
      try expectEqual(try await all(store, hub).count, 3, "after the device came back")
      try expectEqual(try await store.installation("i-1", hub: hub)?.pushChannelExpired, false)
    },
    Clause("a replaced handle is the device's from then on, and leaves feedback") { store in
      let hub = try await makeHub(store)
      try await store.accept(record("n-1", hub: hub))
      let device = SampleDevice("i-1", handle: "OLD", tags: ["t"], templates: ["m": template()])
      try await store.put(device, hub: hub, at: now)
      try await store.put(SampleDevice("i-2", handle: "OTHER", tags: ["t"]), hub: hub, at: now)
      var page = checkpoint(hub)
      page.replacedHandles = [try await condemned(store, hub, by: .refreshToken, "NEW")[0]]
      try await store.checkpoint(page)
      try expectEqual(try await handles(store, hub, "t"), ["NEW", "OTHER"])
      try expectEqual(try await all(store, hub).count, 3, "registrations left")
      try expectEqual(
        try await store.installation("i-1", hub: hub)?.pushChannel, .handle("NEW"))
      let hours = try await store.feedbackHours(hub: hub)
      let found = try await store.feedback(
        hub: hub, hour: hours.first.map(\.hour) ?? 0, after: 0, limit: 10)
      try expectEqual(found.map(\.outcome), [.refreshToken])
      try expectEqual(found.map(\.handle), ["OLD"])
      try expectEqual(found.map(\.newHandle), ["NEW"])
      // The app tells its handle again, as it does at every start.
      let again = SampleDevice("i-1", handle: "NEW", tags: ["t"], templates: ["m": template()])
      try await store.put(again, hub: hub, at: now.addingTimeInterval(5))
      try expectEqual(try await handles(store, hub, "t"), ["NEW", "OTHER"])
      let word = page.replacedHandles[0]
      page.replacedHandles = [
        .init(
          registration: word.registration, platform: .apns, handle: "NEW",
          revision: word.revision, outcome: .refreshToken, newHandle: "LATE")
      ]
      try await store.checkpoint(page)
      try expectEqual(
        try await handles(store, hub, "t"), ["NEW", "OTHER"], "a handle confirmed since stays")
    },
    Clause("a handle that was confirmed after the page was read stays") { store in
      let hub = try await makeHub(store)
      try await store.accept(record("n-1", hub: hub))
      try await store.put(SampleDevice("i-1"), hub: hub, at: now)
      let dead = try await condemned(store, hub)
      // By the commit, not by the clock, which may have been set back.
      try await store.put(SampleDevice("i-1"), hub: hub, at: now.addingTimeInterval(-60))
      var page = checkpoint(hub)
      page.deadHandles = dead
      try await store.checkpoint(page)
      try expectEqual(try await all(store, hub).count, 1)
      try expectEqual(try await store.installation("i-1", hub: hub)?.pushChannelExpired, false)
    },
  ]

  /// What a push service says about the handles of the next page of the native audience of a hub.
  static func condemned(
    _ store: any HubStore, _ hub: Hub.ID, platform: PushPlatform = .apns,
    by outcome: NotificationOutcome = .expiredChannel, _ newHandle: String? = nil
  ) async throws -> [Checkpoint.Condemned] {
    let query = AudienceQuery(hub: hub, kind: .native(platform), expression: nil, asOf: now)
    let page = try await store.targets(query, after: 0, limit: 1_000)
    return page.targets.map { target in
      .init(
        registration: target.registration, platform: target.platform,
        handle: String(decoding: page.handles[target.handle], as: UTF8.self),
        revision: page.revision, outcome: outcome, newHandle: newHandle)
    }
  }

  static func record(_ id: String, hub: Hub.ID) -> NotificationRecord {
    NotificationRecord(
      id: NotificationID(rawValue: id), hub: hub,
      request: NotificationRequest(format: .template, body: Array(#"{"message":"hi"}"#.utf8)),
      state: .enqueued, enqueuedAt: now)
  }

  static func checkpoint(_ hub: Hub.ID, _ id: String = "n-1") -> Checkpoint {
    Checkpoint(notification: NotificationID(rawValue: id), hub: hub, at: now)
  }

  static func stored(
    _ store: any HubStore, _ hub: Hub.ID
  ) async throws -> NotificationRecord {
    let found = try await store.notification(NotificationID(rawValue: "n-1"), hub: hub)
    guard let found else { throw Violation(description: "the notification is gone") }
    return found
  }
}
