import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let notificationListClauses: [Clause] = [
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
      try expectEqual(
        found,
        [
          NotificationSummary(
            notificationID: "a", state: .completed, kind: .tag, format: "template", tags: "x",
            enqueueTime: now, startTime: now + 2, endTime: now + 5,
            outcomes: ["Success": 6, "BadChannel": 1])
        ])
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
  ]

  private static func listed(
    _ id: String, _ tags: String?, second: Int, hub: Hub.ID
  ) throws -> NotificationRecord {
    NotificationRecord(
      id: NotificationID(rawValue: id), hub: hub,
      request: NotificationRequest(
        format: .template, body: Array("{}".utf8), tags: tags,
        expression: try tags.map { try TagExpression(parsing: $0) }),
      state: .enqueued, enqueuedAt: now + TimeInterval(second))
  }

  /// The whole list, read in pages of this size.
  private static func list(
    _ store: any HubStore, _ filter: NotificationFilter, _ order: NotificationOrder, hub: Hub.ID,
    limit: Int
  ) async throws -> [NotificationSummary] {
    var found: [NotificationSummary] = []
    var after: ListPosition?
    repeat {
      let page = try await store.notifications(
        filter, in: order, hub: hub, after: after, limit: limit)
      try expect(page.notifications.count <= limit, "a page too long")
      found += page.notifications
      after = page.next
    } while after != nil && found.count < 100
    return found
  }
}
