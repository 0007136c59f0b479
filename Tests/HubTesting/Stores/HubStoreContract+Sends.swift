import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let sendClauses = [
    Clause("a direct send's targets come in pages, in their order, with their marks") { store in
      let hub = try await makeHub(store)
      let id = try await acceptDirect(store, hub, ["A", "B", "A", "C"])
      let first = try await store.directTargets(of: id, hub: hub, after: 0, limit: 3)
      try expectEqual(first.handleTexts, ["A", "B", "A"])
      try expectEqual(first.targets.map(\.registration), [1, 2, 3])
      try expectEqual(first.targets.map(\.isDuplicate), [false, false, true])
      try expectEqual(first.targets.map(\.platform), [.apns, .apns, .apns])
      try expectEqual(first.next, 3)
      let last = try await store.directTargets(of: id, hub: hub, after: 3, limit: 3)
      try expectEqual(last.handleTexts, ["C"])
      try expect(last.next == nil, "a last page has no next")
      let found = try await store.notification(id, hub: hub)
      try expectEqual(found?.request.isDirect, true)
      let other = try await makeHub(store, "hub2")
      let foreign = try await store.directTargets(of: id, hub: other, after: 0, limit: 3)
      try expect(foreign.targets.isEmpty, "targets of another hub's notification")
    },
    Clause("retries of a direct send come with its handles, not with registrations") { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1"), hub: hub, at: now)
      let id = try await acceptDirect(store, hub, ["A", "B"])
      var page = checkpoint(hub, id.rawValue)
      page.retries = [Checkpoint.Retry(registration: 1, platform: .apns, attempts: 1, due: now)]
      try await store.checkpoint(page)
      let due = try await store.dueRetries(of: apns(hub), asOf: now, limit: 10)
      try expectEqual(due.first?.page.handleTexts, ["A"])
      try expectEqual(due.first?.gone, [])
    },
    Clause("a scheduled notification waits, is released once, and keeps when it was accepted") {
      store in
      let hub = try await makeHub(store)
      let late = try await acceptScheduled(store, hub, "s-1", in: 20)
      let soon = try await acceptScheduled(store, hub, "s-2", in: 10)
      try expectEqual(try await store.nextSchedule(), now.addingTimeInterval(10))
      try expect(
        try await store.unfinishedNotifications().isEmpty, "scheduled ones are not yet accepted")
      try expect(
        try await store.releaseSchedules(asOf: now.addingTimeInterval(9), limit: 9).isEmpty,
        "released too early")
      let moment = now.addingTimeInterval(25)
      let first = try await store.releaseSchedules(asOf: moment, limit: 1)
      try expectEqual(first.map(\.id), [soon])
      try expectEqual(first.first?.state, .enqueued)
      try expectEqual(first.first?.enqueuedAt, now)
      try expectEqual(first.first?.startedAt, moment)
      try expectEqual(first.first?.releasedAt, moment)
      try expectEqual(first.first?.scheduledFor, now.addingTimeInterval(10))
      let kept = try await store.unfinishedNotifications()
      try expectEqual(kept.map(\.id), [soon])
      try expectEqual(kept.first?.releasedAt, moment, "after a restart")
      let second = try await store.releaseSchedules(asOf: moment, limit: 5)
      try expectEqual(second.map(\.id), [late])
      try expect(try await store.nextSchedule() == nil, "nothing is left")
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
    Clause("an abort stays with its notification, and whoever records a page is told") { store in
      let hub = try await makeHub(store)
      let other = try await makeHub(store, "hub2")
      let waiting = try await acceptScheduled(store, hub, "s-1", in: 10)
      let sent = try await acceptScheduled(store, hub, "s-2", in: 0)
      _ = try await store.releaseSchedules(asOf: now, limit: 5)
      try expectEqual(try await store.abort(sent, hub: other, at: now), nil)
      var page = Checkpoint(notification: sent, hub: hub, at: now)
      try expectEqual(try await store.checkpoint(page), false)
      try expectEqual(try await store.abort(sent, hub: hub, at: now), .aborting)
      let later = now.addingTimeInterval(1)
      try expectEqual(try await store.abort(sent, hub: hub, at: later), .aborting)
      try expectEqual(try await store.unfinishedNotifications().map(\.abortedAt), [now])
      page.state = .canceled
      try expectEqual(try await store.checkpoint(page), true)
      try expectEqual(try await store.abort(sent, hub: hub, at: later), .aborted)
      try expectEqual(try await store.abort(waiting, hub: hub, at: now), .cancelled)
      try expectEqual(try await store.abort(waiting, hub: hub, at: now), .aborted)
      try expectEqual(try await store.notification(waiting, hub: hub)?.state, .canceled)
      try expect(try await store.nextSchedule() == nil, "a cancelled one is not due")
      let done = try await acceptScheduled(store, hub, "s-3", in: 0)
      page = Checkpoint(notification: done, hub: hub, at: now)
      page.state = .completed
      try expectEqual(try await store.checkpoint(page), false)
      try expectEqual(try await store.abort(done, hub: hub, at: now), .finished(.completed))
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
    Clause("a sample holds different members of the audience, no more than asked") { store in
      let hub = try await makeHub(store)
      for number in 0..<30 {
        try await store.put(
          SampleDevice("i-\(number)", tags: number < 25 ? ["red"] : []), hub: hub, at: now)
      }
      var query = AudienceQuery(hub: hub, kind: .native(.apns), expression: "red", asOf: now)
      var seen: Set<RegistrationID> = []
      for _ in 0..<50 {
        let page = try await store.sample(query, limit: 10)
        let drawn = page.targets.map(\.registration)
        try expectEqual(Set(drawn).count, 10)
        seen.formUnion(drawn)
      }
      let all = try await store.targets(query, after: 0, limit: 100).targets.map(\.registration)
      try expectEqual(seen.sorted(), all, "everybody is drawn some time")
      try expectEqual(try await store.sample(query, limit: 100).targets.count, 25)
      query.expression = "blue"
      try expect(try await store.sample(query, limit: 10).targets.isEmpty, "nobody is blue")
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
  ]

  private static func acceptDirect(
    _ store: any HubStore, _ hub: Hub.ID, _ handles: [String]
  ) async throws -> NotificationID {
    let id = NotificationID(rawValue: "d-1")
    let record = NotificationRecord(
      id: id, hub: hub,
      request: NotificationRequest(format: .native(.apns), body: [1], isDirect: true),
      state: .enqueued, enqueuedAt: now)
    var seen: Set<String> = []
    let targets = handles.map {
      DirectTarget(handle: $0, isDuplicate: !seen.insert($0).inserted)
    }
    try expectEqual(
      try await store.accept(Submission(record: record, targets: targets)), .accepted)
    return id
  }

  private static func acceptScheduled(
    _ store: any HubStore, _ hub: Hub.ID, _ id: String, in seconds: Double
  ) async throws -> NotificationID {
    var scheduled = record(id, hub: hub)
    scheduled.state = .scheduled
    scheduled.scheduledFor = now.addingTimeInterval(seconds)
    try await store.accept(scheduled)
    return scheduled.id
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
