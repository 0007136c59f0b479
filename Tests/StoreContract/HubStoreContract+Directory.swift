import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let directoryClauses: [Clause] = [
    Clause("a hub is found by its name in any letter case") { store in
      let hub = try await store.createHub(
        named: "Hub-One", registrationTTL: 86_400, policies: [], at: now)
      try expectEqual(try await store.hub(named: "hub-ONE"), hub)
      try expectEqual(try await store.hubs(), [hub])
      try expect(try await store.hub(named: "other") == nil, "a hub that nobody made")
    },
    Clause("a name is taken once, letter case aside") { store in
      _ = try await makeHub(store, "hub1")
      try await expectRefusal(.hubExists("HUB1")) { _ = try await makeHub(store, "HUB1") }
    },
    Clause("policies come back in the order of their creation, with their keys") { store in
      let policies = [policy("zeta", .listen), policy("alpha", .all), policy("mid", .send)]
      let hub = try await store.createHub(
        named: "hub1", registrationTTL: nil, policies: policies, at: now)
      try expectEqual(try await store.accessPolicies(hub: hub.id), policies)
      var changed = policies[0]
      changed.primaryKey = "another key"
      try await store.putAccessPolicy(changed, hub: hub.id)
      try expectEqual(
        try await store.accessPolicies(hub: hub.id), [changed, policies[1], policies[2]])
    },
    Clause("a deleted policy is gone") { store in
      let hub = try await makeHub(store)
      try await store.putAccessPolicy(policy("one", .send), hub: hub)
      try expect(try await store.deleteAccessPolicy(named: "one", hub: hub), "deletes")
      try expect(!(try await store.deleteAccessPolicy(named: "one", hub: hub)), "was gone")
      try expectEqual(try await store.accessPolicies(hub: hub), [])
    },
    Clause("the policies of the namespace and of hubs are apart") { store in
      let hub = try await makeHub(store)
      try await store.putAccessPolicy(policy("root", .all), hub: nil)
      try await store.putAccessPolicy(policy("own", .listen), hub: hub)
      try expectEqual(try await store.accessPolicies(hub: nil).map(\.name), ["root"])
      try expectEqual(try await store.accessPolicies(hub: hub).map(\.name), ["own"])
    },
    Clause("a credential is replaced by the next of its platform") { store in
      let hub = try await makeHub(store)
      var apns = PushCredential(
        platform: .apns, properties: ["Token": "secret", "KeyId": "K"], modifiedAt: now)
      let browser = PushCredential(
        platform: .browser, properties: ["Subject": "s"], modifiedAt: now)
      try await store.putCredential(apns, hub: hub)
      try await store.putCredential(browser, hub: hub)
      apns.properties["Token"] = "another"
      try await store.putCredential(apns, hub: hub)
      try expectEqual(Set(try await store.credentials(hub: hub)), [apns, browser])
      try expect(try await store.deleteCredential(.apns, hub: hub), "deletes")
      try expect(!(try await store.deleteCredential(.apns, hub: hub)), "was gone")
      try expectEqual(try await store.credentials(hub: hub), [browser])
    },
    Clause("the key that seals is replaced by the next, value by value, and each opens throughout")
    {
      store in
      let policies = (0..<5).map { policy("p-\($0)", .send) }
      let hub = try await store.createHub(
        named: "hub1", registrationTTL: nil, policies: policies, at: now
      ).id
      let credential = PushCredential(
        platform: .apns, properties: ["Token": "secret"], modifiedAt: now)
      try await store.putCredential(credential, hub: hub)
      let job = HubJob(
        id: HubJob.newID(at: now, random: .system), hub: hub, kind: .exportRegistrations,
        outputContainer: "https://h/c?sig=a", importFile: nil, createdAt: now)
      try await store.addJob(job, forgetting: now)
      func check(_ counts: [String: Int]) async throws {
        let found = try await store.sealedValues()
        try expectEqual(found.counts, counts)
        try expectEqual(found.unopened, [])
        try expectEqual(try await store.accessPolicies(hub: hub), policies)
        try expectEqual(try await store.credentials(hub: hub), [credential])
        try expectEqual(try await store.jobs(hub: hub), [job])
      }
      let old = try await store.sealingKey()
      try expectEqual(old, "test key")
      try await check([old: 12])
      try expectEqual(try await store.changeSealingKey(to: "next key"), [])
      try expectEqual(try await store.sealingKey(), "next key")
      try await check([old: 12])
      // Values that are written from now on are sealed under the next key.
      try await store.putAccessPolicy(policies[2], hub: hub)
      try await check([old: 10, "next key": 2])
      try expectEqual(try await store.resealSome(limit: 7), 7)
      try await check([old: 3, "next key": 9])
      try expectEqual(try await store.resealSome(limit: 7), 3)
      try expectEqual(try await store.resealSome(limit: 7), 0)
      try await check(["next key": 12])
      // And back, while others write.
      try expectEqual(try await store.changeSealingKey(to: old), [])
      try await withThrowingTaskGroup(of: Void.self) { group in
        for round in 0..<10 {
          group.addTask {
            var mine = policies[4]
            mine.primaryKey = "key \(round)"
            try await store.putAccessPolicy(mine, hub: hub)
            try await store.putAccessPolicy(policies[4], hub: hub)
          }
        }
        group.addTask { while try await store.resealSome(limit: 2) > 0 {} }
        try await group.waitForAll()
      }
      try await store.putAccessPolicy(policies[4], hub: hub)
      try await check([old: 12])
    },
    Clause("the directory's version rises with each change, and not with devices") { store in
      var seen = try await store.directoryVersion()
      func rises(_ what: String) async throws {
        let next = try await store.directoryVersion()
        try expect(next > seen, "the version after \(what)")
        seen = next
      }
      let hub = try await makeHub(store)
      try await rises("createHub")
      try await store.putAccessPolicy(policy("one", .send), hub: hub)
      try await rises("putAccessPolicy")
      try await store.putCredential(
        PushCredential(platform: .apns, properties: [:], modifiedAt: now), hub: hub)
      try await rises("putCredential")
      try await store.put(SampleDevice("i-1"), hub: hub, at: now)
      try expectEqual(try await store.directoryVersion(), seen, "the version after a device")
      _ = try await store.deleteCredential(.apns, hub: hub)
      try await rises("deleteCredential")
      _ = try await store.deleteAccessPolicy(named: "one", hub: hub)
      try await rises("deleteAccessPolicy")
      _ = try await store.deleteHub(named: "hub1")
      try await rises("deleteHub")
    },
    Clause("a deleted hub takes all that it had with it") { store in
      let hub = try await makeHub(store)
      let other = try await makeHub(store, "hub2")
      try await store.putAccessPolicy(policy("one", .send), hub: hub)
      try await store.put(SampleDevice("i-1", tags: ["red"]), hub: hub, at: now)
      try await store.put(SampleDevice("i-1", tags: ["red"]), hub: other, at: now)
      try await store.accept(record("n-1", hub: hub))
      let query = AudienceQuery(
        hub: hub, kind: .native(.apns), expression: .tag("red"), asOf: now)
      try expectEqual(try await store.count(query), 1)
      try expect(try await store.deleteHub(named: "HUB1"), "deletes")
      try expect(!(try await store.deleteHub(named: "HUB1")), "was gone")
      try expectEqual(try await store.count(query), 0, "targets")
      try expect(try await store.installation("i-1", hub: hub) == nil, "an installation is left")
      try expectEqual(try await store.accessPolicies(hub: hub), [])
      try expectEqual(try await store.unfinishedNotifications().count, 0)
      try expect(try await store.installation("i-1", hub: other) != nil, "the other hub's is gone")
      let again = try await makeHub(store)
      try expect(again != hub, "a number is used twice")
      try expect(try await store.installation("i-1", hub: again) == nil, "it has come back")
    },
    Clause("writing to a hub that is gone is refused") { store in
      let hub = try await makeHub(store)
      _ = try await store.deleteHub(named: "hub1")
      try await expectRefusal(.noHub) {
        try await store.put(SampleDevice("i-1"), hub: hub, at: now)
      }
      try await expectRefusal(.noHub) { try await store.accept(record("n-1", hub: hub)) }
      try await expectRefusal(.noHub) {
        try await store.putAccessPolicy(policy("one", .send), hub: hub)
      }
    },
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
    Clause("no hub, no update") { store in
      try await expectRefusal(.noHub) {
        _ = try await store.updateHub(99, HubContents(), at: now)
      }
    },
  ]

  static func policy(_ name: String, _ rights: AccessRights) -> AccessPolicy {
    AccessPolicy(
      name: name, rights: rights, primaryKey: "primary of \(name)",
      secondaryKey: "secondary of \(name)", createdAt: now,
      modifiedAt: now.addingTimeInterval(1.5))
  }

  static func managed(_ name: String) -> AccessPolicy {
    AccessPolicy(
      name: name, rights: .all, primaryKey: "p", secondaryKey: "s", createdAt: now,
      modifiedAt: now)
  }
}
