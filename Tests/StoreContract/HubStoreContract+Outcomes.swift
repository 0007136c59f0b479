import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let outcomesClauses: [Clause] = [
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
    Clause("failed targets tell their device, also when the failure has removed it") { store in
      let hub = try await makeHub(store)
      for id in ["i-1", "i-2", "i-3"] {
        try await store.put(SampleDevice(id), hub: hub, at: now)
      }
      let query = AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: now)
      let targets = try await store.targets(query, after: 0, limit: 10).targets
      try await store.accept(record("n-1", hub: hub))
      var page = checkpoint(hub)
      page.failures = zip(
        targets, [NotificationOutcome.badChannel, .skipped, .throttled]
      ).map {
        Checkpoint.Failure(registration: $0.registration, outcome: $1, status: 400, reason: "Bad")
      }
      page.deadHandles = [try await condemned(store, hub)[0]]
      try await store.checkpoint(page)
      let id = NotificationID(rawValue: "n-1")
      let failed = try await store.outcomes(
        of: id, hub: hub, .errors, after: 0, limit: 10
      ).outcomes
      try expectEqual(failed.map(\.failure), [page.failures[0], page.failures[2]])
      try expectEqual(failed.map(\.handle), ["HANDLE-i-1", "HANDLE-i-3"])
      try expectEqual(failed.map(\.installationID), ["i-1", "i-3"])
      try expectEqual(failed.map(\.platform), [.apns, .apns])
      let rest = try await store.outcomes(
        of: id, hub: hub, .errors, after: targets[0].registration, limit: 10
      ).outcomes
      try expectEqual(rest.count, 1)
    },
    Clause("failed targets of a direct send tell the handle that was named") { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1"), hub: hub, at: now)
      let id = try await acceptDirect(store, hub, ["A", "B"])
      var page = checkpoint(hub, id.rawValue)
      page.failures = [
        Checkpoint.Failure(registration: 2, outcome: .badChannel, status: 400, reason: nil)
      ]
      try await store.checkpoint(page)
      let failed = try await store.outcomes(
        of: id, hub: hub, .errors, after: 0, limit: 10
      ).outcomes
      try expectEqual(failed.map(\.handle), ["B"])
      try expectEqual(failed.map(\.installationID), [nil])
      let hour = Int64(now.timeIntervalSince1970) / 3600
      let feedback = try await store.feedback(hub: hub, hour: hour, after: 0, limit: 10)
      try expectEqual(feedback.map(\.handle), ["B"], "feedback, too")
      try expectEqual(feedback.map(\.registration), [nil])
    },
    Clause("kept outcomes tell when, how often and what, and come by device or by kind") { store in
      let (hub, targets) = try await makeAudience(store, ["i-1", "i-2", "i-3"])
      var page = checkpoint(hub)
      page.failures = zip(targets, [NotificationOutcome.badChannel, .skipped, .throttled]).map {
        Checkpoint.Failure(
          registration: $0, outcome: $1, status: 400, reason: "Bad", attempts: 3)
      }
      try await store.checkpoint(page)
      let all = try await outcomes(store, hub)
      try expectEqual(all.map(\.failure), page.failures)
      try expectEqual(all.map(\.at), [now, now, now])
      func found(_ filter: OutcomeFilter) async throws -> [RegistrationID] {
        try await outcomes(store, hub, filter).map(\.failure.registration)
      }
      try expectEqual(try await found(.errors), [targets[0], targets[2]])
      try expectEqual(try await found(OutcomeFilter(outcomes: [.throttled])), [targets[2]])
      try expectEqual(try await found(OutcomeFilter(installation: "i-2")), [targets[1]])
      try expectEqual(try await found(OutcomeFilter(installation: "i-9")), [])
      try expectEqual(try await found(OutcomeFilter(platform: .fcmv1)), [])
      let name = all[0].registrationID
      try expectEqual(try await found(OutcomeFilter(registrationID: name)), [targets[0]])
    },
    Clause("kept outcomes come in pages") { store in
      let (hub, targets) = try await makeAudience(store, (1...5).map { "i-\($0)" })
      var page = checkpoint(hub)
      page.failures = targets.map {
        .init(registration: $0, outcome: .badChannel, status: 400, reason: nil)
      }
      try await store.checkpoint(page)
      var seen: [RegistrationID] = []
      var next: RegistrationID? = 0
      var pages = 0
      while let after = next {
        let part = try await store.outcomes(
          of: NotificationID(rawValue: "n-1"), hub: hub, OutcomeFilter(), after: after, limit: 2)
        seen += part.outcomes.map(\.failure.registration)
        next = part.next
        pages += 1
      }
      try expectEqual(seen, targets)
      try expectEqual(pages, 3)
    },
    Clause("an outcome outlives its registration, found by the installation") { store in
      let (hub, targets) = try await makeAudience(store, ["i-1", "i-2"])
      var page = checkpoint(hub)
      page.failures = [
        .init(registration: targets[0], outcome: .expiredChannel, status: 410, reason: nil)
      ]
      page.deadHandles = [try await condemned(store, hub)[0]]
      try await store.checkpoint(page)
      let found = try await outcomes(store, hub, OutcomeFilter(installation: "i-1"))
      try expectEqual(found.map(\.failure.outcome), [.expiredChannel])
      try expectEqual(found.map(\.handle), ["HANDLE-i-1"])
    },
    Clause("successes are kept only when all outcomes are, and nothing when none is") { store in
      let (hub, targets) = try await makeAudience(store, ["i-1", "i-2"])
      func kept(_ keeping: OutcomeKeeping) async throws -> Int {
        let id = "n-\(keeping.rawValue)"
        try await store.accept(record(id, hub: hub))
        var page = checkpoint(hub, id)
        page.keeping = keeping
        page.successes = [.init(registration: targets[0], attempts: 2)]
        page.failures = [
          .init(registration: targets[1], outcome: .badChannel, status: 400, reason: nil)
        ]
        try await store.checkpoint(page)
        let kept = try await store.notification(NotificationID(rawValue: id), hub: hub)
        try expectEqual(kept?.keeping, keeping)
        return try await outcomes(store, hub, id: id).count
      }
      try expectEqual(try await kept(.none), 0)
      try expectEqual(try await kept(.failures), 1)
      try expectEqual(try await kept(.all), 2)
      let success = try await outcomes(store, hub, id: "n-all")[0].failure
      try expectEqual(success.outcome, .success)
      try expectEqual(success.attempts, 2)
    },
    Clause("kept outcomes go by age, and the oldest when there are too many") { store in
      let (hub, targets) = try await makeAudience(store, ["i-1", "i-2"])
      for (number, hours) in [(1, 0.0), (2, 1), (3, 2)] {
        let id = "n-\(number)"
        if number > 1 { try await store.accept(record(id, hub: hub)) }
        var page = checkpoint(hub, id)
        page.at = now.addingTimeInterval(hours * 3600)
        page.failures = targets.map {
          .init(registration: $0, outcome: .badChannel, status: 400, reason: nil)
        }
        try await store.checkpoint(page)
      }
      func clear(_ before: Date, _ maximum: Int) async throws -> [Int] {
        while try await store.clearOutcomes(before: before, keeping: maximum) {}
        var counts: [Int] = []
        for id in ["n-1", "n-2", "n-3"] {
          counts.append(try await outcomes(store, hub, id: id).count)
        }
        return counts
      }
      try expectEqual(try await clear(now, 6), [2, 2, 2], "nothing is old, nothing too much")
      try expectEqual(try await clear(now.addingTimeInterval(60), 6), [0, 2, 2])
      try expect(try await stored(store, hub).hasClearedOutcomes, "the notification forgets it")
      try expectEqual(try await clear(now.addingTimeInterval(60), 3), [0, 0, 2])
      try expectEqual(try await clear(now.addingTimeInterval(60), 0), [0, 0, 0])
    },
    Clause("the hub that keeps the most outcomes makes room, not one that keeps few") { store in
      let (small, targets) = try await makeAudience(store, ["i-1", "i-2"])
      let large = try await store.createHub(
        named: "large", registrationTTL: nil, policies: [], at: now
      ).id
      for id in ["i-1", "i-2"] { try await store.put(SampleDevice(id), hub: large, at: now) }
      let others = try await condemned(store, large).map(\.registration)
      func keep(_ id: String, _ hub: Hub.ID, _ devices: [RegistrationID], _ at: Double)
        async throws
      {
        var page = checkpoint(hub, id)
        page.at = now.addingTimeInterval(at)
        page.failures = devices.map {
          .init(registration: $0, outcome: .badChannel, status: 400, reason: nil)
        }
        try await store.checkpoint(page)
      }
      try await keep("n-1", small, targets, 0)
      for number in 2...4 {
        try await store.accept(record("n-\(number)", hub: large))
        try await keep("n-\(number)", large, others, Double(number))
      }
      while try await store.clearOutcomes(before: now, keeping: 4) {}
      try expectEqual(try await outcomes(store, small).count, 2, "the small hub's")
      try expectEqual(try await outcomes(store, large, id: "n-2").count, 0)
      try expectEqual(try await outcomes(store, large, id: "n-3").count, 0)
      try expectEqual(try await outcomes(store, large, id: "n-4").count, 2)
    },
  ]

  static func makeAudience(
    _ store: any HubStore, _ ids: [String]
  ) async throws -> (Hub.ID, [RegistrationID]) {
    let hub = try await makeHub(store)
    for id in ids { try await store.put(SampleDevice(id), hub: hub, at: now) }
    try await store.accept(record("n-1", hub: hub))
    let query = AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: now)
    return (hub, try await store.targets(query, after: 0, limit: 100).targets.map(\.registration))
  }

  static func outcomes(
    _ store: any HubStore, _ hub: Hub.ID, _ filter: OutcomeFilter = OutcomeFilter(),
    id: String = "n-1"
  ) async throws -> [KeptOutcome] {
    try await store.outcomes(
      of: NotificationID(rawValue: id), hub: hub, filter, after: 0, limit: 100
    ).outcomes
  }
}
