import Foundation
import HubCore
import NotificationHubs

/// Calls that are refused.
extension HubStoreContract {
  static let refusalsClauses: [Clause] = [
    Clause("a call that is refused has written nothing") { store in
      let hub = try await makeRefusingHub(store)
      var before = try await Contents(of: store, hub)
      for refusal in refusals(store, hub) {
        do {
          try await refusal.call()
          throw Violation(description: "\(refusal.name) was not refused")
        } catch let violation as Violation {
          throw violation
        } catch {
          let text = "\(error)"
          try expect(text == refusal.error, "\(refusal.name): \(text) instead of \(refusal.error)")
        }
        let after = try await Contents(of: store, hub)
        try expectEqual(after, before, "what is kept after \(refusal.name)")
        before = after
      }
    }
  ]

  private struct Refusal {
    let name: String
    let error: String
    let call: () async throws -> Void

    init(_ name: String, _ error: StoreError, _ call: @escaping () async throws -> Void) {
      (self.name, self.error, self.call) = (name, "\(error)", call)
    }

    init(_ name: String, saying error: String, _ call: @escaping () async throws -> Void) {
      (self.name, self.error, self.call) = (name, error, call)
    }
  }

  /// A verdict that refuses.
  private struct Verdict: Error, CustomStringConvertible {
    let description: String
  }

  private static func makeRefusingHub(_ store: any HubStore) async throws -> Hub.ID {
    let credential = PushCredential(platform: .apns, properties: ["Token": "t"], modifiedAt: now)
    let hub = try await store.createHub(
      named: "hub1", HubContents(policies: [policy("one", .send)], credentials: [credential]),
      at: now
    ).id
    for id in ["i-1", "i-2"] {
      try await store.put(
        SampleDevice(id, user: "bob", tags: ["red"], templates: ["main": template()]), hub: hub,
        at: now)
    }
    _ = try await put(store, "mine", native("MINE"), hub)
    _ = try await store.accept(
      Submission(record: record("n-1", hub: hub), idempotency: claim([1])))
    var page = checkpoint(hub)
    page.state = .processing
    page.retries = [.init(registration: 7, platform: .apns, attempts: 1, due: now)]
    page.failures = [.init(registration: 9, outcome: .throttled, status: 429, reason: nil)]
    try await store.checkpoint(page)
    try await condemn(store, hub, ["HANDLE-i-2"])
    return hub
  }

  private static func claim(_ fingerprint: [UInt8]) -> IdempotencyClaim {
    IdempotencyClaim(key: "k", fingerprint: fingerprint, expiresAt: now + 60)
  }

  private static func refusals(_ store: any HubStore, _ hub: Hub.ID) -> [Refusal] {
    let nowhere: Hub.ID = 99
    let device = SampleDevice("i-1", handle: "OTHER", tags: ["other"])
    func submit(_ fingerprint: [UInt8], to hub: Hub.ID) async throws {
      var submission = Submission(
        record: record("n-2", hub: hub),
        targets: [DirectTarget(handle: "A", isDuplicate: false)], idempotency: claim(fingerprint))
      submission.activity = ActivityEntry(
        hub: hub, HubActivity(time: now, hub: "h", actor: "a", via: .key, action: "send"))
      let verdict = try await store.accept(submission)
      if verdict != .accepted { throw Verdict(description: "\(verdict)") }
    }
    var page = checkpoint(nowhere)
    page.counts[OutcomeKey(platform: .apns, isTemplate: true, outcome: .success)] = 5
    page.failures = [.init(registration: 1, outcome: .badChannel, status: 400, reason: nil)]
    page.retries = [.init(registration: 1, platform: .apns, attempts: 1, due: now)]
    page.state = .completed
    let job = HubJob(
      id: HubJob.newID(at: now, random: .system), hub: nowhere, kind: .exportRegistrations,
      outputContainer: "file:///c", importFile: nil, createdAt: now)
    var refusals = [
      Refusal("createHub", .hubExists("HUB1")) {
        _ = try await store.createHub(
          named: "HUB1", HubContents(policies: [policy("two", .all)]), at: now)
      },
      Refusal("updateHub", .noHub) {
        _ = try await store.updateHub(
          nowhere, HubContents(policies: [policy("two", .all)]), at: now)
      },
      Refusal("putAccessPolicy", .noHub) {
        try await store.putAccessPolicy(policy("two", .all), hub: nowhere)
      },
      Refusal("putCredential", .noHub) {
        try await store.putCredential(
          PushCredential(platform: .wns, properties: [:], modifiedAt: now), hub: nowhere)
      },
      Refusal("putInstallation", .noHub) { try await store.put(device, hub: nowhere, at: now) },
      Refusal("updateInstallation", .noHub) {
        _ = try await store.updateInstallation("i-1", hub: nowhere, at: now) { ($0, []) }
      },
      Refusal("updateInstallation by its change", saying: "no") {
        _ = try await store.updateInstallation("i-1", hub: hub, at: now) { _ in
          throw Verdict(description: "no")
        }
      },
      Refusal("reserveRegistrationID", .noHub) {
        _ = try await store.reserveRegistrationID(hub: nowhere)
      },
      Refusal("createRegistration", .noHub) {
        _ = try await store.createRegistration(native("NEW"), hub: nowhere, at: now)
      },
      Refusal("putRegistration", .noHub) { _ = try await put(store, "new", native(), nowhere) },
      Refusal("accept", .noHub) { try await submit([2], to: nowhere) },
      Refusal("accept with a used key", saying: "keyInUse") { try await submit([2], to: hub) },
      Refusal("abort", .noHub) {
        _ = try await store.abort(NotificationID(rawValue: "n-1"), hub: nowhere, at: now)
      },
      Refusal("checkpoint", .noHub) { try await store.checkpoint(page) },
      Refusal("addJob", .noHub) { try await store.addJob(job, forgetting: now) },
      Refusal("restoreRemoved", .noHub) {
        _ = try await store.restoreRemoved(
          RemovalWave(isDoubted: true), hub: nowhere, asOf: now, limit: 9)
      },
      Refusal("eraseUser", .noHub) { _ = try await store.eraseUser("bob", hub: nowhere) },
    ]
    for condition in [ETagCondition.tag("9"), .tag("8")] {
      refusals.append(
        Refusal("putRegistration with \(condition)", saying: "stale") {
          let write = try await store.putRegistration(
            "mine", native("NEW"), hub: hub, condition: condition, at: now)
          throw Verdict(description: "\(write)")
        })
      refusals.append(
        Refusal("deleteRegistration with \(condition)", saying: "stale") {
          let write = try await store.deleteRegistration(
            "mine", hub: hub, condition: condition, at: now)
          throw Verdict(description: "\(write)")
        })
    }
    // One process alone has all the work there is, and no leases.
    if store.isShared {
      refusals.append(
        Refusal("checkpoint of another epoch", .leaseLost) {
          var late = page
          (late.hub, late.lease.epoch) = (hub, 9)
          try await store.checkpoint(late)
        })
    }
    return refusals
  }
}

/// All that a store shows of a hub.
private struct Contents: Equatable {
  var hubs: [Hub]
  var version: Int
  var policies: [AccessPolicy]
  var namespacePolicies: [AccessPolicy]
  var credentials: [PushCredential]
  var installations: [Installation]
  var registrations: [StoredRegistration]
  var notifications: [NotificationSummary]
  var outcomes: [KeptOutcome]
  var retries: [LaneKey: Date]
  var feedback: [FeedbackHour]
  var removals: [RemovedDevices.Item]
  var jobs: [HubJob]
  var activity: [HubActivity]
  var statistics: [StatisticPoint]
  var totals: StoreTotals

  init(of store: any HubStore, _ hub: Hub.ID) async throws {
    let now = HubStoreContract.now
    hubs = try await store.hubs()
    version = try await store.directoryVersion()
    policies = try await store.accessPolicies(hub: hub)
    namespacePolicies = try await store.accessPolicies(hub: nil)
    credentials = try await store.credentials(hub: hub)
    installations = try await store.installations(
      InstallationFilter(asOf: now), hub: hub, after: nil, limit: 100
    ).installations
    registrations = try await HubStoreContract.list(store, .all, hub)
    notifications = try await HubStoreContract.list(
      store, NotificationFilter(), .newestFirst, hub: hub, limit: 100)
    outcomes = try await HubStoreContract.outcomes(store, hub)
    retries = try await store.retryLanes()
    feedback = try await store.feedbackHours(hub: hub)
    removals = try await store.removals(RemovalWave(), hub: hub)
    jobs = try await store.unfinishedJobs()
    activity = try await store.activity(ActivityQuery(), hub: nil, after: nil, limit: 100).lines
    let minute = Int64(now.timeIntervalSince1970) / 60
    statistics = try await store.statistics(
      StatisticSpan(period: .minute, first: minute, step: 1, count: 2), hub: hub)
    totals = try await store.totals()
  }
}
