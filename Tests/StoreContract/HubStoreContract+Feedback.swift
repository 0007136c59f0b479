import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let feedbackClauses: [Clause] = [
    Clause("an update replaces what it names and leaves the rest") { store in
      let apns = PushCredential(platform: .apns, properties: ["Token": "t"], modifiedAt: now)
      let made = try await store.createHub(
        named: "hub1",
        HubContents(
          registrationTTL: 90_000, userMetadata: "ours", policies: [managed("one")],
          credentials: [apns]), at: now)
      try await store.put(SampleDevice("i-1"), hub: made.id, at: now)
      let later = now.addingTimeInterval(60)
      let seen = try await store.directoryVersion()
      let plain = try await store.updateHub(made.id, HubContents(isDisabled: true), at: later)
      try expect(try await store.directoryVersion() > seen, "the directory's version")
      try expectEqual(try await store.hub(named: "hub1"), plain)
      try expectEqual(plain.registrationTTL, nil)
      try expectEqual(plain.userMetadata, nil)
      try expect(plain.isDisabled, "disabled")
      try expectEqual(plain.createdAt, now)
      try expectEqual(plain.updatedAt, later)
      try expectEqual(try await store.accessPolicies(hub: made.id).map(\.name), ["one"])
      try expectEqual(try await store.credentials(hub: made.id), [apns])
      let browser = PushCredential(
        platform: .browser, properties: ["Subject": "s"], modifiedAt: now)
      _ = try await store.updateHub(
        made.id,
        HubContents(policies: [managed("two"), managed("three")], credentials: [browser]),
        at: later)
      try expectEqual(
        try await store.accessPolicies(hub: made.id).map(\.name), ["two", "three"])
      try expectEqual(try await store.credentials(hub: made.id), [browser])
      try expect(try await store.installation("i-1", hub: made.id) != nil, "the device stays")
    },
    Clause("what is wrong with a handle is kept as feedback, by the hour") { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1"), hub: hub, at: now)
      try await store.put(SampleDevice("i-2"), hub: hub, at: now)
      try await store.accept(record("n-1", hub: hub))
      let query = AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: now)
      let ids = try await store.targets(query, after: 0, limit: 10)
        .targets.map(\.registration)
      var checkpoint = Checkpoint(notification: NotificationID(rawValue: "n-1"), hub: hub, at: now)
      checkpoint.failures = [
        .init(registration: ids[0], outcome: .expiredChannel, status: 410, reason: "Unregistered"),
        .init(registration: ids[1], outcome: .pnsUnreachable, status: 0, reason: nil),
      ]
      checkpoint.deadHandles = [try await condemned(store, hub)[0]]
      try await store.checkpoint(checkpoint)
      let hours = try await store.feedbackHours(hub: hub)
      try expectEqual(hours.map(\.count), [1])
      try expectEqual(hours[0].modifiedAt, now)
      let found = try await store.feedback(hub: hub, hour: hours[0].hour, after: 0, limit: 10)
      try expectEqual(found.map(\.outcome), [.expiredChannel])
      try expectEqual(found.map(\.installation), ["i-1"])
      try expectEqual(found.map(\.platform), [.apns])
      try expectEqual(found.map(\.notification.rawValue), ["n-1"])
      try expect(!found[0].handle.isEmpty, "the handle that is gone")
      try expect(found[0].registration?.isEmpty == false, "the registration that is gone")
      let rest = try await store.feedback(
        hub: hub, hour: hours[0].hour, after: found[0].number, limit: 10)
      try expectEqual(rest, [])
      var later = Checkpoint(
        notification: NotificationID(rawValue: "n-1"), hub: hub,
        at: now.addingTimeInterval(HandleFeedback.lifetime + 7200))
      later.failures = [
        .init(registration: ids[1], outcome: .badChannel, status: 400, reason: "BadDeviceToken")
      ]
      try await store.checkpoint(later)
      try expectEqual(try await store.feedbackHours(hub: hub).count, 1, "old hours go")
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
    Clause("what was removed is nowhere to be seen, and comes back as it was") { store in
      let hub = try await makeHub(store)
      let device = SampleDevice(
        "i-1", handle: "AA", tags: ["Red"], templates: ["m": template()], variables: ["a": "b"])
      try await store.put(device, hub: hub, at: now)
      try await store.put(SampleDevice("i-2", handle: "BB"), hub: hub, at: now)
      let mine = try await put(store, "mine", native("CC"), hub)
      let ours = try await store.createRegistration(
        native("CC", kind: .template(template(), name: "t")), hub: hub, at: now)
      let before = try await list(store, .all, hub)
      try await condemn(store, hub, ["AA", "CC"])
      try expectEqual(try await list(store, .all, hub).count, 1, "registrations left")
      try expectEqual(try await handles(store, hub, "red"), [], "the audience of a tag")
      try expect(try await store.registration("mine", hub: hub, asOf: now) == nil, "still there")
      try expectEqual(
        try await store.removals(RemovalWave(), hub: hub).map(\.registrations), [4], "in an hour")
      let restored = try await store.restoreRemoved(
        RemovalWave(), hub: hub, asOf: now, limit: 100)
      try expectEqual(restored, DeviceRestoration(restored: 4))
      let after = try await list(store, .all, hub)
      try expectEqual(after.map(\.id), before.map(\.id), "ids")
      try expectEqual(after.map(\.draft), before.map(\.draft), "what they say")
      try expect(
        zip(before, after).allSatisfy { $0.draft.channel == .handle("BB") || $0.etag < $1.etag },
        "an etag of before still holds")
      try expectEqual(try await handles(store, hub, "red"), ["AA", "CC"])
      try expectEqual(try await store.installation("i-1", hub: hub), device.installation)
      try expect(try await store.registration(mine.id, hub: hub, asOf: now) != nil, "mine")
      try expect(try await store.registration(ours.id, hub: hub, asOf: now) != nil, "ours")
      try expectEqual(try await store.removals(RemovalWave(), hub: hub), [], "nothing is left")
    },
    Clause("a wave comes back by its platform and time") { store in
      let hub = try await makeHub(store)
      let other = try await store.createHub(
        named: "other", registrationTTL: nil, policies: [], at: now
      ).id
      for target in [hub, other] {
        try await store.put(SampleDevice("i-1", handle: "AA"), hub: target, at: now)
        try await store.put(SampleDevice("i-2", handle: "BB"), hub: target, at: now)
        try await store.put(
          SampleDevice("i-3", handle: "CC", platform: .adm), hub: target, at: now)
        try await condemn(store, target, ["AA"], at: now.addingTimeInterval(-7200))
        try await condemn(store, target, ["BB"])
        try await condemn(store, target, ["CC"], platform: .adm, by: .badChannel)
      }
      try expectEqual(
        try await store.removals(RemovalWave(), hub: hub).map(\.platform), [.apns, .apns, .adm])
      let wave = RemovalWave(platform: .apns, since: now)
      try expectEqual(try await store.removals(wave, hub: hub).map(\.registrations), [1])
      try expectEqual(
        try await store.restoreRemoved(wave, hub: hub, asOf: now, limit: 100),
        DeviceRestoration(restored: 1))
      try expectEqual(try await all(store, hub).count, 1)
      try expectEqual(try await store.installation("i-1", hub: hub)?.pushChannelExpired, true)
      try expectEqual(try await store.installation("i-2", hub: hub)?.pushChannelExpired, false)
      try expectEqual(try await all(store, other).count, 0, "another hub's")
      var left = 2
      var part = DeviceRestoration(hasMore: true)
      while part.hasMore {
        part = try await store.restoreRemoved(RemovalWave(), hub: hub, asOf: now, limit: 1)
        left -= part.restored
      }
      try expectEqual(left, 0)
    },
    Clause("an app that registers again wins over what was removed") { store in
      let hub = try await makeHub(store)
      for id in ["same", "new", "moved", "other"] {
        try await store.put(SampleDevice(id), hub: hub, at: now)
      }
      _ = try await put(store, "mine", native("MINE"), hub)
      _ = try await put(store, "again", native("AGAIN"), hub)
      try await condemn(
        store, hub,
        ["HANDLE-same", "HANDLE-new", "HANDLE-moved", "HANDLE-other", "MINE", "AGAIN"])
      try await store.put(SampleDevice("same"), hub: hub, at: now)
      try await store.put(SampleDevice("new", handle: "NEW"), hub: hub, at: now)
      // Reinstalled: another installation brings the handle.
      try await store.put(SampleDevice("moved-2", handle: "HANDLE-moved"), hub: hub, at: now)
      _ = try await put(store, "mine", native("MINE-2"), hub)
      _ = try await store.createRegistration(native("AGAIN"), hub: hub, at: now)
      let before = try await list(store, .all, hub).map(\.id)
      let restored = try await store.restoreRemoved(
        RemovalWave(), hub: hub, asOf: now, limit: 100)
      try expectEqual(restored.restored, 1, "the one that nobody has registered again")
      let after = try await list(store, .all, hub)
      try expectEqual(after.count, before.count + 1)
      try expectEqual(
        Set(after.map(\.draft.channel.handle)),
        ["HANDLE-same", "NEW", "HANDLE-moved", "MINE-2", "AGAIN", "HANDLE-other"])
      try expectEqual(
        try await store.installation("moved", hub: hub)?.pushChannelExpired, true)
    },
    Clause("tags that were changed meanwhile are those that come back") { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1", tags: ["old"]), hub: hub, at: now)
      try await condemn(store, hub, ["HANDLE-i-1"])
      _ = try await store.updateInstallation("i-1", hub: hub, at: now) { present in
        var changed = present
        changed.tags = ["new"]
        return (changed, changed.registrationDrafts)
      }
      _ = try await store.restoreRemoved(RemovalWave(), hub: hub, asOf: now, limit: 100)
      try expectEqual(try await handles(store, hub, "old"), [])
      try expectEqual(try await handles(store, hub, "new"), ["HANDLE-i-1"])
    },
    Clause("what is deleted, erased or over does not come back") { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("deleted"), hub: hub, at: now)
      try await store.put(SampleDevice("erased", user: "kim"), hub: hub, at: now)
      _ = try await put(store, "mine", native("MINE"), hub)
      var brief = native("BRIEF")
      brief.expiresAt = now.addingTimeInterval(60)
      _ = try await put(store, "brief", brief, hub)
      try await condemn(
        store, hub, ["HANDLE-deleted", "HANDLE-erased", "MINE", "BRIEF"])
      _ = try await store.deleteInstallation("deleted", hub: hub)
      _ = try await store.eraseUser("kim", hub: hub)
      _ = try await store.deleteRegistration("mine", hub: hub, condition: .none, at: now)
      try expectEqual(
        try await store.removals(RemovalWave(), hub: hub).map(\.registrations), [1], "what is kept")
      try expectEqual(
        try await store.restoreRemoved(
          RemovalWave(), hub: hub, asOf: now.addingTimeInterval(60), limit: 100),
        DeviceRestoration(superseded: 1))
      try expectEqual(try await all(store, hub).count, 0)
    },
    Clause("after seven days what was removed is gone") { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1"), hub: hub, at: now)
      try await condemn(store, hub, ["HANDLE-i-1"])
      func clear(_ time: Date) async throws { while try await store.clear(expiredBy: time) {} }
      try await clear(now.addingTimeInterval(RemovalWave.lifetime - 1))
      try expectEqual(try await store.removals(RemovalWave(), hub: hub).map(\.registrations), [1])
      try await clear(now.addingTimeInterval(RemovalWave.lifetime))
      try expectEqual(try await store.removals(RemovalWave(), hub: hub), [])
      try expectEqual(
        try await store.restoreRemoved(RemovalWave(), hub: hub, asOf: now, limit: 9),
        DeviceRestoration())
      try expect(try await store.installation("i-1", hub: hub) != nil, "the installation is gone")
    },
    Clause("a replaced handle comes back, unless the app has confirmed the new one") { store in
      let hub = try await makeHub(store)
      for id in ["i-1", "i-2"] {
        try await store.put(
          SampleDevice(id, handle: "OLD-\(id)", tags: ["t"], templates: ["m": template()]),
          hub: hub, at: now)
      }
      let words = try await condemned(store, hub, by: .refreshToken, "NEW")
      try await store.accept(record("n-1", hub: hub))
      var page = checkpoint(hub)
      page.replacedHandles = words
      try await store.checkpoint(page)
      try expectEqual(try await handles(store, hub, "t"), ["NEW", "NEW"])
      try await store.put(
        SampleDevice("i-2", handle: "NEW", tags: ["t"], templates: ["m": template()]), hub: hub,
        at: now)
      _ = try await store.restoreRemoved(RemovalWave(), hub: hub, asOf: now, limit: 100)
      try expectEqual(try await handles(store, hub, "t"), ["OLD-i-1", "NEW"])
      try expectEqual(
        try await store.installation("i-1", hub: hub)?.pushChannel, .handle("OLD-i-1"))
      try expectEqual(try await all(store, hub).count, 4)
    },
    Clause("a word about a handle concerns only a registration that still has it") { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1", handle: "OLD"), hub: hub, at: now)
      let words = try await condemned(store, hub)
      // The clock has been set back between the two.
      try await store.put(
        SampleDevice("i-1", handle: "NEW"), hub: hub, at: now.addingTimeInterval(-2))
      try await store.accept(record("n-1", hub: hub))
      var page = checkpoint(hub)
      page.deadHandles = words
      page.replacedHandles = words.map {
        .init(
          registration: $0.registration, platform: .apns, handle: $0.handle, revision: .newest,
          outcome: .refreshToken, newHandle: "LATE")
      }
      try await store.checkpoint(page)
      let left = try await list(store, .all, hub)
      try expectEqual(left.map(\.draft.channel.handle), ["NEW"])
      try expectEqual(try await store.installation("i-1", hub: hub)?.pushChannelExpired, false)
    },
    Clause("handles that are spared leave no feedback, those in doubt take theirs back") { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1"), hub: hub, at: now)
      try await store.put(SampleDevice("i-2"), hub: hub, at: now)
      let words = try await condemned(store, hub)
      try await store.accept(record("n-1", hub: hub))
      var page = checkpoint(hub)
      page.failures = words.map {
        .init(registration: $0.registration, outcome: .badChannel, status: 400, reason: nil)
      }
      page.deadHandles = [words[0]]
      page.spared = [words[1].registration]
      try await store.checkpoint(page)
      try expectEqual(try await store.feedbackHours(hub: hub).map(\.count), [1])
      let id = NotificationID(rawValue: "n-1")
      try expectEqual(
        try await store.failures(id, hub: hub, after: 0, limit: 9).map(\.outcome),
        [.badChannel, .badChannel], "outcomes stay exact")
      let wave = RemovalWave(platform: .apns, since: now, isDoubted: true)
      _ = try await store.restoreRemoved(wave, hub: hub, asOf: now, limit: 9)
      try expectEqual(try await store.feedbackHours(hub: hub), [])
      try expectEqual(try await all(store, hub).count, 2)
    },
  ]

  /// Has a push service call native handles dead.
  static func condemn(
    _ store: any HubStore, _ hub: Hub.ID, _ handles: Set<String>, platform: PushPlatform = .apns,
    by outcome: NotificationOutcome = .expiredChannel, at: Date = now
  ) async throws {
    let words = try await condemned(store, hub, platform: platform, by: outcome)
    let id = NotificationID(at: at, random: .system)
    let request = NotificationRequest(format: .native(platform), body: Array("{}".utf8))
    try await store.accept(
      NotificationRecord(id: id, hub: hub, request: request, state: .enqueued, enqueuedAt: at))
    var page = Checkpoint(notification: id, hub: hub, at: at)
    page.deadHandles = words.filter { handles.contains($0.handle) }
    try expectEqual(page.deadHandles.count, handles.count, "handles to condemn")
    try await store.checkpoint(page)
  }
}
