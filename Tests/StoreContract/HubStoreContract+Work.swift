import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let workClauses: [Clause] = [
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
    Clause("work that nobody delivers counts from when it is due until its end") { store in
      let hub = try await makeHub(store)
      try await store.accept(record("n-1", hub: hub))
      _ = try await acceptScheduled(store, hub, "n-2", in: 5)
      func unclaimed(after seconds: Double) async throws -> Int {
        let found = try await store.unclaimedWork(
          dueBy: now.addingTimeInterval(seconds), beside: [])
        return found.count
      }
      try expectEqual(try await unclaimed(after: -1), 0)
      try expectEqual(try await unclaimed(after: 4), 1, "a schedule is not due before its time")
      try expectEqual(try await unclaimed(after: 5), 2, "nobody has released it")
      _ = try await store.releaseSchedules(asOf: now.addingTimeInterval(9), limit: 9)
      try expectEqual(try await unclaimed(after: 9), 2)
      var done = checkpoint(hub)
      done.state = .completed
      try await store.checkpoint(done)
      try expectEqual(try await unclaimed(after: 9), 1)
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
    Clause("work that its process does not know of can be taken up again, and nothing else") {
      store in
      let hub = try await makeHub(store)
      for number in 1...2 { try await store.accept(record("n-\(number)", hub: hub)) }
      let claimed = try await store.claimWork(limit: 9).records
      func free(beside known: [NotificationRecord]) async throws -> [String] {
        try await store.releaseWork(beside: Set(known.map(\.workID)))
        return try await store.claimWork(limit: 9).map(\.id.rawValue)
      }
      func isForgotten(beside known: [NotificationRecord]) async throws -> Bool {
        let found = try await store.unclaimedWork(
          dueBy: now.addingTimeInterval(9), beside: Set(known.map(\.workID)))
        return found.isForgotten
      }
      try expect(!(try await isForgotten(beside: claimed)), "all is known")
      // Where one process does all the work a claim finds all of it.
      guard store.isShared else {
        return try expectEqual(try await free(beside: []), ["n-1", "n-2"])
      }
      try expectEqual(try await free(beside: claimed), [], "all is known")
      let first = claimed.filter { $0.id.rawValue == "n-1" }
      try expect(try await isForgotten(beside: first), "the other one is known to nobody")
      try expectEqual(try await free(beside: first), ["n-2"])
      var end = checkpoint(hub)
      end.lease = first.first?.lease ?? end.lease
      end.isAudienceRead = true
      end.state = .completed
      try await store.checkpoint(end)
      try expectEqual(try await free(beside: []), ["n-2"], "the other one is done")
    },
    Clause("a checkpoint is refused if the one before it is lost, and the part is done again") {
      store in
      guard store.isShared else { return }
      let hub = try await makeHub(store)
      try await store.accept(record("n-1", hub: hub))
      let lease = try await store.claimWork(limit: 9).records.first?.lease ?? WorkLease()
      func write(_ number: Int64) async throws {
        var next = checkpoint(hub)
        next.lease = lease
        next.number = number
        next.cursor = number
        try await store.checkpoint(next)
      }
      try await write(1)
      try await write(1)
      try await expectRefusal(.leaseLost) { try await write(3) }
      try await write(2)
      try await store.releaseWork(lease, of: NotificationID(rawValue: "n-1"), hub: hub)
      let again = try await store.claimWork(limit: 9).records
      try expectEqual(again.map(\.cursor), [2])
    },
    Clause("a node hears which notifications are aborted that it has work of") { store in
      let hub = try await makeHub(store)
      try await store.accept(record("n-1", hub: hub))
      try await store.accept(record("n-2", hub: hub))
      func heard() async throws -> [String] {
        try await store.exchange([], recovered: []).aborted.map(\.rawValue)
      }
      var records: [NotificationRecord] = []
      if store.isShared { records = try await store.claimWork(limit: 9).records }
      try expectEqual(try await heard(), [])
      let sent = NotificationID(rawValue: "n-1")
      _ = try await store.abort(sent, hub: hub, at: now)
      // If one process does all the work, it has aborted the notification itself.
      try expectEqual(try await heard(), store.isShared ? ["n-1"] : [])
      var end = checkpoint(hub)
      if let record = records.first(where: { $0.id == sent }) { end.lease = record.lease }
      end.isAudienceRead = true
      end.state = .canceled
      try await store.checkpoint(end)
      try expectEqual(try await heard(), [])
    },
    Clause("an abort stays with its notification, and who records a page is told") { store in
      let hub = try await makeHub(store)
      let other = try await makeHub(store, "hub2")
      let waiting = try await acceptScheduled(store, hub, "s-1", in: 10)
      let sent = try await acceptScheduled(store, hub, "s-2", in: 0)
      _ = try await store.releaseSchedules(asOf: now, limit: 5)
      try expectEqual(try await store.abort(sent, hub: other, at: now), nil)
      var page = Checkpoint(notification: sent, hub: hub, at: now)
      try expectEqual(try await store.checkpoint(page).isAborted, false)
      try expectEqual(try await store.abort(sent, hub: hub, at: now), .aborting)
      let later = now.addingTimeInterval(1)
      try expectEqual(try await store.abort(sent, hub: hub, at: later), .aborting)
      try expectEqual(try await store.unfinishedNotifications().map(\.abortedAt), [now])
      page.state = .canceled
      try expectEqual(try await store.checkpoint(page).isAborted, true)
      try expectEqual(try await store.abort(sent, hub: hub, at: later), .aborted)
      try expectEqual(try await store.abort(waiting, hub: hub, at: now), .cancelled)
      try expectEqual(try await store.abort(waiting, hub: hub, at: now), .aborted)
      try expectEqual(try await store.notification(waiting, hub: hub)?.state, .canceled)
      try expect(try await store.nextSchedule() == nil, "a cancelled one is not due")
      let done = try await acceptScheduled(store, hub, "s-3", in: 0)
      page = Checkpoint(notification: done, hub: hub, at: now)
      page.state = .completed
      try expectEqual(try await store.checkpoint(page).isAborted, false)
      try expectEqual(try await store.abort(done, hub: hub, at: now), .finished(.completed))
    },
    Clause("retries come when they are due, with their targets") { store in
      let (hub, targets) = try await scene(store)
      let id = NotificationID(rawValue: "n-1")
      var page = checkpoint(hub)
      page.retries = [
        Checkpoint.Retry(
          registration: targets[1].registration, platform: .apns, attempts: 2,
          due: now.addingTimeInterval(10)),
        Checkpoint.Retry(
          registration: targets[0].registration, platform: .apns, attempts: 1,
          due: now.addingTimeInterval(5)),
      ]
      try await store.checkpoint(page)
      try expectEqual(try await store.nextRetry(of: apns(hub)), now.addingTimeInterval(5))
      try expectEqual(try await store.waitingRetries(id, hub: hub), 2)
      try expect(
        try await store.dueRetries(of: apns(hub), asOf: now, limit: 10).isEmpty, "too early")
      let first = try await store.dueRetries(
        of: apns(hub), asOf: now.addingTimeInterval(5), limit: 10)
      try expectEqual(first.map(\.notification), [id])
      try expectEqual(first.first?.page.handleTexts, ["HANDLE-i-1"])
      let both = try await store.dueRetries(
        of: apns(hub), asOf: now.addingTimeInterval(10), limit: 10)
      try expectEqual(both.first?.page.handleTexts, ["HANDLE-i-1", "HANDLE-i-2"])
      try expectEqual(
        both.first?.attempts, [targets[0].registration: 1, targets[1].registration: 2])
      try expectEqual(both.first?.gone, [])
      try expect(both.first?.page.next == nil, "a page of retries has no next")
      let one = try await store.dueRetries(
        of: apns(hub), asOf: now.addingTimeInterval(10), limit: 1)
      try expectEqual(one.first?.page.targets.count, 1)
    },
    Clause("the retries of a lane are told apart from those of others") { store in
      let (hub, targets) = try await scene(store)
      let second = try await makeHub(store, "second")
      try await store.accept(record("n-2", hub: second))
      let fcm = LaneKey(hub: hub, platform: .fcmv1)
      var page = checkpoint(hub)
      page.retries = [
        Checkpoint.Retry(
          registration: targets[0].registration, platform: .apns, attempts: 1,
          due: now.addingTimeInterval(5)),
        Checkpoint.Retry(
          registration: targets[1].registration, platform: .fcmv1, attempts: 1, due: now),
      ]
      try await store.checkpoint(page)
      page = checkpoint(second, "n-2")
      page.retries = [
        Checkpoint.Retry(registration: 999_999, platform: .apns, attempts: 1, due: now)
      ]
      try await store.checkpoint(page)
      try expectEqual(
        try await store.retryLanes(),
        [apns(hub): now.addingTimeInterval(5), fcm: now, apns(second): now])
      try expectEqual(try await store.nextRetry(of: apns(hub)), now.addingTimeInterval(5))
      try expect(try await store.dueRetries(of: apns(hub), asOf: now, limit: 10).isEmpty, "due")
      let due = try await store.dueRetries(of: fcm, asOf: now, limit: 10)
      try expectEqual(due.map(\.attempts), [[targets[1].registration: 1]])
      let gone = try await store.dueRetries(of: apns(second), asOf: now, limit: 10)
      try expectEqual(gone.map(\.gone), [[999_999]])
      // A registration that has changed its push service waits for the new one.
      page = checkpoint(hub)
      page.retries = [
        Checkpoint.Retry(
          registration: targets[1].registration, platform: .apns, attempts: 2, due: now)
      ]
      try await store.checkpoint(page)
      try expect(try await store.nextRetry(of: fcm) == nil, "the old lane has none")
      try expectEqual(try await store.nextRetry(of: apns(hub)), now)
    },
    Clause("a settled retry goes, a repeated one replaces the last") { store in
      let (hub, targets) = try await scene(store)
      var page = checkpoint(hub)
      page.retries = targets.map {
        Checkpoint.Retry(registration: $0.registration, platform: .apns, attempts: 1, due: now)
      }
      try await store.checkpoint(page)
      page.retries = [
        Checkpoint.Retry(
          registration: targets[1].registration, platform: .apns, attempts: 2,
          due: now.addingTimeInterval(60))
      ]
      page.settledRetries = [targets[0].registration]
      try await store.checkpoint(page)
      try expect(
        try await store.dueRetries(of: apns(hub), asOf: now, limit: 10).isEmpty, "what was settled")
      try expectEqual(try await store.nextRetry(of: apns(hub)), now.addingTimeInterval(60))
      let later = try await store.dueRetries(
        of: apns(hub), asOf: now.addingTimeInterval(60), limit: 10)
      try expectEqual(later.first?.attempts, [targets[1].registration: 2])
    },
    Clause("a notification's retries are found by it, due or not") { store in
      let (hub, targets) = try await scene(store)
      let late = now.addingTimeInterval(600)
      try await store.accept(record("n-2", hub: hub))
      for id in ["n-1", "n-2"] {
        var page = checkpoint(hub, id)
        page.retries = targets.map {
          Checkpoint.Retry(registration: $0.registration, platform: .apns, attempts: 3, due: late)
        }
        try await store.checkpoint(page)
      }
      let id = NotificationID(rawValue: "n-1")
      let found = try await store.retries(of: apns(hub), notification: id, part: 0, limit: 10)
      try expectEqual(found.map(\.notification), [id])
      try expectEqual(found.first?.attempts.count, targets.count)
      try expectEqual(found.first?.attempts[targets[0].registration], 3)
      try expectEqual(found.first?.page.targets.count, targets.count)
      let one = try await store.retries(of: apns(hub), notification: id, part: 0, limit: 1)
      try expectEqual(one.first?.page.targets.count, 1)
      let fcm = LaneKey(hub: hub, platform: .fcmv1)
      let none = try await store.retries(of: fcm, notification: id, part: 0, limit: 10)
      try expect(none.isEmpty, "another lane's")
      try await expectRefusal(.noHub) {
        _ = try await store.retries(of: apns(hub + 1), notification: id, part: 0, limit: 10)
      }
    },
    Clause("where a push has succeeded is remembered with the registration") { store in
      let (hub, targets) = try await scene(store)
      var page = checkpoint(hub)
      page.environments = [(targets[1].registration, .other), (999_999, .other)]
      page.retries = targets.map {
        Checkpoint.Retry(registration: $0.registration, platform: .apns, attempts: 1, due: now)
      }
      try await store.checkpoint(page)
      let due = try await store.dueRetries(of: apns(hub), asOf: now, limit: 10)
      let found = due.first?.page.targets.prefix(2).map(\.environment)
      try expectEqual(found.map { Array($0) }, [.own, .other])
      page.environments = [(targets[1].registration, .own)]
      try await store.checkpoint(page)
      let again = try await store.dueRetries(of: apns(hub), asOf: now, limit: 10)
      try expect(
        again.first?.page.targets.allSatisfy { $0.environment == .own } ?? false, "taken back")
    },
    Clause("a retry whose registration has gone says so") { store in
      let (hub, targets) = try await scene(store)
      var page = checkpoint(hub)
      page.retries = targets.map {
        Checkpoint.Retry(registration: $0.registration, platform: .apns, attempts: 1, due: now)
      }
      try await store.checkpoint(page)
      _ = try await store.deleteInstallation("i-1", hub: hub)
      let due = try await store.dueRetries(of: apns(hub), asOf: now, limit: 10)
      try expectEqual(due.first?.gone, [targets[0].registration])
      try expectEqual(due.first?.page.targets.map(\.registration), [targets[1].registration])
    },
    Clause("retries are grouped by notification and end with it") { store in
      let (hub, targets) = try await scene(store)
      try await store.accept(record("n-2", hub: hub))
      for id in ["n-1", "n-2"] {
        var page = checkpoint(hub, id)
        page.retries = targets.map {
          Checkpoint.Retry(registration: $0.registration, platform: .apns, attempts: 1, due: now)
        }
        try await store.checkpoint(page)
      }
      let due = try await store.dueRetries(of: apns(hub), asOf: now, limit: 10)
      try expectEqual(due.map(\.notification.rawValue).sorted(), ["n-1", "n-2"])
      try expect(due.allSatisfy { $0.page.targets.count == 2 }, "targets of a group")
      var end = checkpoint(hub, "n-1")
      end.state = .abandoned
      try await store.checkpoint(end)
      let left = try await store.dueRetries(of: apns(hub), asOf: now, limit: 10)
      try expectEqual(left.map(\.notification.rawValue), ["n-2"])
      try expectEqual(
        try await store.waitingRetries(NotificationID(rawValue: "n-1"), hub: hub), 0)
    },
    Clause("a retry remembers the last answer, also when it is put off without a try") { store in
      let (hub, targets) = try await makeAudience(store, ["i-1"])
      let id = NotificationID(rawValue: "n-1")
      let answer = Checkpoint.Answer(outcome: .throttled, status: 429, reason: "TooManyRequests")
      var page = checkpoint(hub)
      page.retries = [
        .init(registration: targets[0], platform: .apns, attempts: 1, due: now, answer: answer)
      ]
      try await store.checkpoint(page)
      let later = now.addingTimeInterval(60)
      page.retries = [.init(registration: targets[0], platform: .apns, attempts: 2, due: later)]
      try await store.checkpoint(page)
      let found = try await store.retry(of: id, hub: hub, registration: targets[0])
      try expectEqual(
        found,
        .init(registration: targets[0], platform: .apns, attempts: 2, due: later, answer: answer))
      try expect(
        try await store.retry(of: id, hub: hub, registration: targets[0] + 1) == nil, "of another")
    },
  ]

  static func acceptDirect(
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

  static func acceptScheduled(
    _ store: any HubStore, _ hub: Hub.ID, _ id: String, in seconds: Double
  ) async throws -> NotificationID {
    var scheduled = record(id, hub: hub)
    scheduled.state = .scheduled
    scheduled.scheduledFor = now.addingTimeInterval(seconds)
    try await store.accept(scheduled)
    return scheduled.id
  }

  /// A notification, and two devices that it goes to.
  private static func scene(_ store: any HubStore) async throws -> (Hub.ID, [Target]) {
    let hub = try await makeHub(store)
    try await store.accept(record("n-1", hub: hub))
    try await store.put(SampleDevice("i-1"), hub: hub, at: now)
    try await store.put(SampleDevice("i-2"), hub: hub, at: now)
    return (hub, try await all(store, hub))
  }
}
