import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let upkeepClauses: [Clause] = [
    Clause("a closed store says so") { store in
      try expectEqual(await store.condition(), .healthy)
      try await store.close()
      try expect(await store.condition() != .healthy, "closed, and yet healthy")
      try await expectRefusal(.closed) { _ = try await store.hubs() }
      try await expectRefusal(.closed) { _ = try await makeHub(store) }
      try await expectRefusal(.closed) { _ = try await store.directoryVersion() }
    },
    Clause("what has expired is cleared away, and nothing else") { store in
      let hub = try await makeHub(store)
      for number in 0..<700 {
        try await store.put(
          device("i-\(number)", expires: number % 2 == 0 ? 10 : 1_000), hub: hub, at: now)
      }
      try await store.put(device("forever", expires: nil), hub: hub, at: now)
      var mine = native("CC")
      mine.expiresAt = now.addingTimeInterval(10)
      _ = try await put(store, "mine", mine, hub)
      _ = try await put(store, "yours", native("DD"), hub)
      try await clearAll(store, expiredBy: now.addingTimeInterval(9))
      let query = AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: now)
      try expectEqual(try await store.count(query), 703, "before anything has expired")
      try await clearAll(store, expiredBy: now.addingTimeInterval(10))
      // Asked for a time at which all were there: what is missing has been deleted.
      try expectEqual(try await store.count(query), 352, "native registrations")
      try expectEqual(
        try await store.count(
          AudienceQuery(hub: hub, kind: .template, expression: .tag("red"), asOf: now)),
        351, "templates")
      try expect(try await store.installation("i-0", hub: hub) == nil, "i-0 is left")
      try expect(try await store.installation("i-1", hub: hub) != nil, "i-1 is gone")
      try expect(try await store.installation("forever", hub: hub) != nil, "forever is over")
      try expect(try await store.registration("mine", hub: hub, asOf: now) == nil, "mine is left")
      try expect(try await store.registration("yours", hub: hub, asOf: now) != nil, "yours is gone")
    },
    Clause("an installation comes back after it was cleared away") { store in
      let hub = try await makeHub(store)
      try await store.put(device("i-1", expires: 10), hub: hub, at: now)
      try await clearAll(store, expiredBy: now.addingTimeInterval(10))
      try await store.put(device("i-1", expires: 20), hub: hub, at: now)
      try await clearAll(store, expiredBy: now.addingTimeInterval(10))
      let query = AudienceQuery(
        hub: hub, kind: .native(.apns), expression: .tag("red"), asOf: now)
      try expectEqual(try await store.targets(query, after: 0, limit: 10).targets.count, 1)
    },
    Clause("an installation whose channel is dead is cleared away in its time") { store in
      let hub = try await makeHub(store)
      var dead = device("i-1", expires: 10)
      dead.installation.pushChannelExpired = true
      try await store.putInstallation(
        dead.installation, registrations: [], request: nil, hub: hub, at: now)
      try await clearAll(store, expiredBy: now.addingTimeInterval(10))
      try expect(try await store.installation("i-1", hub: hub) == nil, "it is left")
    },
    Clause("pages pass over those whose time is over") { store in
      let hub = try await makeHub(store)
      for number in 0..<30 {
        try await store.put(
          device("i-\(number)", expires: number < 20 ? 10 : nil, handle: "H\(number % 20)"),
          hub: hub, at: now)
      }
      let query = AudienceQuery(
        hub: hub, kind: .native(.apns), expression: .tag("red"), asOf: now.addingTimeInterval(10))
      var found: [Target] = []
      var after: RegistrationID? = 0
      while let start = after {
        let page = try await store.targets(query, after: start, limit: 3)
        found += page.targets
        after = page.next
      }
      try expectEqual(found.count, 10)
      // The first holder of each handle is over.
      try expect(found.allSatisfy { !$0.isDuplicate }, "a duplicate of one that is over")
    },
    Clause("clearing away what a deleted hub has left spares the others") { store in
      let (hub, other) = (try await makeHub(store), try await makeHub(store, "hub2"))
      for hub in [hub, other] {
        for number in 0..<600 {
          try await store.put(device("i-\(number)", expires: nil), hub: hub, at: now)
        }
        _ = try await put(store, "mine", native("CC"), hub)
        try await store.accept(record("n-\(hub)", hub: hub))
      }
      _ = try await store.deleteHub(named: "hub1")
      try expectEqual(try await store.unfinishedNotifications().map(\.hub), [other])
      try await clearAll(store, expiredBy: now)
      try expectEqual(try await store.hubs().map(\.id), [other])
      let query = AudienceQuery(
        hub: other, kind: .native(.apns), expression: .tag("red"), asOf: now)
      try expectEqual(try await store.count(query), 601)
      try expect(try await store.registration("mine", hub: other, asOf: now) != nil, "gone")
      try expectEqual(try await store.unfinishedNotifications().map(\.hub), [other])
    },
  ]

  static func clearAll(_ store: any HubStore, endedBefore limit: Date) async throws {
    for _ in 0..<1_000 where try await !store.clearNotifications(endedBefore: limit) { return }
    throw Violation(description: "clearing does not end")
  }

  static func device(
    _ id: String, expires seconds: TimeInterval?, handle: String? = nil
  ) -> SampleDevice {
    var device = SampleDevice(
      id, handle: handle, tags: ["red"], templates: ["main": PushTemplate(body: "{}")])
    device.expiresAt = seconds.map { now.addingTimeInterval($0) }
    device.installation.expirationTime = device.expiresAt
    return device
  }

  static func clearAll(_ store: any HubStore, expiredBy limit: Date) async throws {
    for _ in 0..<1_000 where try await !store.clear(expiredBy: limit) { return }
    throw Violation(description: "clearing does not end")
  }

  static func left(_ store: any HubStore, _ hub: Hub.ID) async throws -> [String] {
    var found: [String] = []
    for id in ["n-1", "early", "late", "waiting", "scheduled"]
    where try await store.notification(NotificationID(rawValue: id), hub: hub) != nil {
      found.append(id)
    }
    return found
  }
}
