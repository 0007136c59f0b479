import Foundation
import HubCore
import NotificationHubs

/// Counts over time.
extension HubStoreContract {
  static let statisticsClauses: [Clause] = [
    Clause("what is accepted and what became of it is counted by the minute and by the hour") {
      store in
      let hub = try await makeHub(store)
      let other = try await makeHub(store, "other")
      try await store.accept(record("n-1", hub: hub))
      try await store.accept(record("n-1", hub: other))
      for (second, counts) in [
        (0.0, [(PushPlatform.apns, NotificationOutcome.success, 5)]),
        (59, [(.apns, .success, 2), (.fcmv1, .badChannel, 1)]), (61, [(.apns, .success, 7)]),
        (3_599, [(.apns, .throttled, 3)]), (3_600, [(.apns, .success, 11)]),
      ] {
        var page = checkpoint(hub)
        page.at = now.addingTimeInterval(second)
        for (platform, outcome, count) in counts {
          // Both kinds of a platform are one in the statistics.
          page.counts[OutcomeKey(platform: platform, isTemplate: false, outcome: outcome)] = 1
          if count > 1 {
            page.counts[OutcomeKey(platform: platform, isTemplate: true, outcome: outcome)] =
              count - 1
          }
        }
        try await store.checkpoint(page)
      }
      try expectEqual(
        try await store.statistics(minutes(3), hub: hub),
        [
          StatisticPoint(
            accepted: 1, outcomes: [.init(.apns, .success): 7, .init(.fcmv1, .badChannel): 1]),
          StatisticPoint(outcomes: [.init(.apns, .success): 7]), StatisticPoint(),
        ], "minutes")
      try expectEqual(
        try await store.statistics(hours(2), hub: hub),
        [
          StatisticPoint(
            accepted: 1,
            outcomes: [
              .init(.apns, .success): 14, .init(.fcmv1, .badChannel): 1,
              .init(.apns, .throttled): 3,
            ]), StatisticPoint(outcomes: [.init(.apns, .success): 11]),
        ], "hours")
      try expectEqual(
        try await store.statistics(minutes(61, step: 60), hub: hub).map {
          $0.outcomes[.init(.apns, .success)]
        }, [14, 11], "minutes in steps of sixty")
      try expectEqual(
        try await store.statistics(minutes(1), hub: other), [StatisticPoint(accepted: 1)], "other")
      try await expectRefusal(.noHub) { _ = try await store.statistics(minutes(1), hub: 99) }
    },
    Clause("the statistics agree with the counts of notifications, and a repeat counts once") {
      store in
      let hub = try await makeHub(store)
      let claim = IdempotencyClaim(
        key: "k", fingerprint: [1], expiresAt: now.addingTimeInterval(100))
      for _ in 0..<2 {
        _ = try await store.accept(
          Submission(record: record("n-1", hub: hub), idempotency: claim))
      }
      let key = OutcomeKey(platform: .apns, isTemplate: false, outcome: .success)
      // Many at once share transactions.
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 1...40 {
          group.addTask {
            var page = checkpoint(hub, number % 4 == 0 ? "nobody" : "n-1")
            page.counts = [key: number]
            try await store.checkpoint(page)
          }
          group.addTask {
            // One that is refused adds nothing.
            var page = checkpoint(hub + 1)
            page.counts = [key: 1_000]
            _ = try? await store.checkpoint(page)
          }
        }
        try await group.waitForAll()
      }
      let counted = try await stored(store, hub).counts[key]
      let points = try await store.statistics(minutes(1), hub: hub)
      try expectEqual(points.first?.outcomes.values.reduce(0, +), counted)
      try expectEqual(points.first?.accepted, 1)
    },
    Clause("registrations are noted as they are, native and template, until they change") { store in
      let hub = try await makeHub(store)
      func gauge(_ minute: Int) async throws -> [PushPlatform: Int] {
        try await store.noteRegistrations(at: now.addingTimeInterval(Double(minute) * 60))
        let points = try await store.statistics(minutes(minute + 2), hub: hub)
        try expectEqual(points[minute + 1], points[minute], "what follows")
        let hours = try await store.statistics(hours(1), hub: hub)
        try expectEqual(hours[0].registrations, points[minute].registrations, "the hour")
        let live = try await list(store, .all, hub)
        try expectEqual(
          points[minute].registrations,
          Dictionary(live.map { ($0.draft.platform, 1) }, uniquingKeysWith: +), "minute \(minute)")
        return points[minute].registrations
      }
      try expectEqual(try await gauge(0), [:])
      for id in ["i-1", "i-2", "i-3"] {
        try await store.put(
          SampleDevice(id, templates: ["main": template()]), hub: hub, at: now)
      }
      _ = try await put(store, "mine", native("AA", platform: .gcm), hub)
      try expectEqual(try await gauge(1), [.apns: 6, .gcm: 1])
      // Another platform, a template less, gone, over.
      try await store.put(SampleDevice("i-1", platform: .fcmv1), hub: hub, at: now)
      _ = try await store.deleteInstallation("i-2", hub: hub)
      _ = try await put(store, "mine", native("AA", platform: .wns), hub)
      try expectEqual(try await gauge(2), [.apns: 2, .fcmv1: 1, .wns: 1])
      try await condemn(store, hub, ["HANDLE-i-3"])
      try expectEqual(try await gauge(3), [.fcmv1: 1, .wns: 1])
      _ = try await store.restoreRemoved(RemovalWave(), hub: hub, asOf: now, limit: 100)
      try expectEqual(try await gauge(4), [.apns: 2, .fcmv1: 1, .wns: 1])
      let points = try await store.statistics(minutes(6), hub: hub)
      try expectEqual(points[1].registrations, [.apns: 6, .gcm: 1], "what was")
    },
    Clause("minutes are cleared away after a day, hours after a year, and the last count stays") {
      store in
      let hub = try await makeHub(store)
      try await store.accept(record("n-1", hub: hub))
      let key = OutcomeKey(platform: .apns, isTemplate: false, outcome: .success)
      for minute in 0..<130 {
        var page = checkpoint(hub)
        page.at = now.addingTimeInterval(Double(minute) * 60)
        page.counts = [key: 1]
        try await store.checkpoint(page)
      }
      try await store.put(SampleDevice("i-1"), hub: hub, at: now)
      try await store.noteRegistrations(at: now)
      try await store.put(SampleDevice("i-2"), hub: hub, at: now)
      try await store.noteRegistrations(at: now.addingTimeInterval(60))
      func clear(_ seconds: TimeInterval) async throws {
        while try await store.clearStatistics(asOf: now.addingTimeInterval(seconds)) {}
      }
      func left(_ span: StatisticSpan) async throws -> Int {
        try await store.statistics(span, hub: hub).reduce(0) {
          $0 + $1.outcomes.values.reduce(0, +)
        }
      }
      try await clear(86_400)
      try expectEqual(try await left(minutes(130)), 130, "within the day")
      try await clear(86_400 + 7_200)
      try expectEqual(try await left(minutes(130)), 10, "minutes of the last hour")
      try expectEqual(try await left(hours(3)), 130, "hours")
      let points = try await store.statistics(minutes(130), hub: hub)
      try expectEqual(points[120].registrations, [.apns: 2], "registrations")
      try await clear(367 * 86_400)
      try expectEqual(try await left(hours(3)), 0, "hours after a year")
      try expectEqual(
        try await store.statistics(hours(3), hub: hub)[2].registrations, [.apns: 2])
    },
    Clause("what a store holds is counted over all hubs, until it is over") { store in
      try expectEqual(try await store.totals(), StoreTotals(), "of a new store")
      let hub = try await makeHub(store)
      let other = try await makeHub(store, "other")
      let template = ["a": PushTemplate(body: "{}")]
      try await store.put(SampleDevice("i-1", templates: template), hub: hub, at: now)
      try await store.put(SampleDevice("i-1"), hub: other, at: now)
      try await store.put(SampleDevice("i-2", platform: .wns), hub: other, at: now)
      try await store.accept(record("n-1", hub: hub))
      try await store.accept(record("n-2", hub: other))
      var later = record("n-3", hub: hub)
      later.state = .scheduled
      later.scheduledFor = now.addingTimeInterval(60)
      try await store.accept(later)
      var page = checkpoint(hub)
      page.retries = [7, 8].map {
        Checkpoint.Retry(registration: $0, platform: .apns, attempts: 1, due: now)
      }
      try await store.checkpoint(page)
      var totals = StoreTotals(
        unfinished: 2, scheduled: 1, retries: 2, registrations: [.apns: 3, .wns: 1])
      try expectEqual(try await store.totals(), totals, "of both hubs")
      page.retries = []
      page.settledRetries = [7, 8]
      page.isAudienceRead = true
      page.state = .completed
      try await store.checkpoint(page)
      (totals.unfinished, totals.retries) = (1, 0)
      try expectEqual(try await store.totals(), totals, "once one has ended")
    },
    Clause("a hub of the name of a deleted one begins at nothing") { store in
      let old = try await makeHub(store)
      try await store.accept(record("n-1", hub: old))
      try await store.put(SampleDevice("i-1"), hub: old, at: now)
      try await store.noteRegistrations(at: now)
      _ = try await store.deleteHub(named: "hub1")
      let new = try await makeHub(store)
      try await store.noteRegistrations(at: now)
      while try await store.clear(expiredBy: now) {}
      try expectEqual(try await store.statistics(minutes(1), hub: new), [StatisticPoint()])
    },
  ]

  private static func minutes(_ count: Int, step: Int64 = 1) -> StatisticSpan {
    StatisticSpan(
      period: .minute, first: Int64(now.timeIntervalSince1970) / 60, step: step,
      count: (count + Int(step) - 1) / Int(step))
  }

  private static func hours(_ count: Int) -> StatisticSpan {
    StatisticSpan(
      period: .hour, first: Int64(now.timeIntervalSince1970) / 3_600, step: 1, count: count)
  }
}
