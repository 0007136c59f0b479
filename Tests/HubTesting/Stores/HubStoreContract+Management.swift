import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let managementClauses = [
    Clause("a hub is made with all that describes it") { store in
      let apns = PushCredential(platform: .apns, properties: ["Token": "t"], modifiedAt: now)
      let hub = try await store.createHub(
        named: "hub1",
        HubContents(
          registrationTTL: 90_000, isDisabled: true, userMetadata: "ours",
          policies: [managed("one")], credentials: [apns]), at: now)
      try expectEqual(try await store.hub(named: "hub1"), hub)
      try expectEqual(hub.userMetadata, "ours")
      try expect(hub.isDisabled, "disabled from the start")
      try expectEqual(hub.updatedAt, now)
      try expectEqual(try await store.accessPolicies(hub: hub.id).map(\.name), ["one"])
      try expectEqual(try await store.credentials(hub: hub.id), [apns])
    },
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
    Clause("no hub, no update") { store in
      try await expectRefusal(.noHub) {
        _ = try await store.updateHub(99, HubContents(), at: now)
      }
    },
    Clause("a job is kept with how far it has come") { store in
      let hub = try await makeHub(store)
      var job = HubJob(
        id: HubJob.newID(at: now), hub: hub, kind: .importUpsertRegistrations,
        outputContainer: "https://h/c?sig=a",
        importFile: "https://h/c/in?sig=b", createdAt: now)
      try await store.addJob(job, forgetting: now)
      try expectEqual(try await store.job(job.id, hub: hub), job)
      try expectEqual(try await store.unfinishedJobs(), [job])
      job.status = .running
      job.progress = 12.5
      job.updatedAt = now.addingTimeInterval(1)
      job.checkpoint.inputSize = 1000
      job.checkpoint.inputBytes = 125
      job.checkpoint.lines = 3
      job.checkpoint.failedLines = 1
      job.checkpoint.cursor = 7
      job.checkpoint.outputBytes = 70
      job.checkpoint.failedBytes = 11
      try await store.updateJob(job)
      try expectEqual(try await store.job(job.id, hub: hub), job)
      job.status = .failed
      job.failure = "no such file"
      job.outputFile = "a/Output.txt"
      job.failedFile = "a/Failed.txt"
      try await store.updateJob(job)
      try expectEqual(try await store.jobs(hub: hub), [job])
      try expectEqual(try await store.unfinishedJobs(), [])
      try expect(try await store.job(job.id, hub: hub + 1) == nil, "another hub's job")
    },
    Clause("jobs are listed from the youngest, and finished ones are forgotten") { store in
      let hub = try await makeHub(store)
      var ids: [String] = []
      for minute in 0..<3 {
        let at = now.addingTimeInterval(Double(minute) * 60)
        var job = HubJob(
          id: HubJob.newID(at: at), hub: hub, kind: .exportRegistrations,
          outputContainer: "file:///c",
          importFile: nil, createdAt: at)
        try await store.addJob(job, forgetting: .distantPast)
        ids.insert(job.id, at: 0)
        guard minute < 2 else { continue }
        job.status = .completed
        job.updatedAt = at
        try await store.updateJob(job)
      }
      try expectEqual(try await store.jobs(hub: hub).map(\.id), ids)
      let last = HubJob(
        id: HubJob.newID(at: now.addingTimeInterval(300)), hub: hub, kind: .exportRegistrations,
        outputContainer: "file:///c", importFile: nil, createdAt: now.addingTimeInterval(300))
      try await store.addJob(last, forgetting: now.addingTimeInterval(30))
      try expectEqual(try await store.jobs(hub: hub).map(\.id), [last.id, ids[0], ids[1]])
      _ = try await store.deleteHub(named: "hub1")
      try expectEqual(try await store.unfinishedJobs(), [])
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
  ]

  private static func managed(_ name: String) -> AccessPolicy {
    AccessPolicy(
      name: name, rights: .all, primaryKey: "p", secondaryKey: "s", createdAt: now,
      modifiedAt: now)
  }
}
