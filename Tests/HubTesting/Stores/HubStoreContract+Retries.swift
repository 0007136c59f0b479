import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let retryClauses = [
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
      let found = try await store.retries(of: apns(hub), notification: id, limit: 10)
      try expectEqual(found.map(\.notification), [id])
      try expectEqual(found.first?.attempts.count, targets.count)
      try expectEqual(found.first?.attempts[targets[0].registration], 3)
      try expectEqual(found.first?.page.targets.count, targets.count)
      let one = try await store.retries(of: apns(hub), notification: id, limit: 1)
      try expectEqual(one.first?.page.targets.count, 1)
      let fcm = LaneKey(hub: hub, platform: .fcmv1)
      let none = try await store.retries(of: fcm, notification: id, limit: 10)
      try expect(none.isEmpty, "another lane's")
      try await expectRefusal(.noHub) {
        _ = try await store.retries(of: apns(hub + 1), notification: id, limit: 10)
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
  ]

  static func apns(_ hub: Hub.ID) -> LaneKey { LaneKey(hub: hub, platform: .apns) }

  /// A notification, and two devices that it goes to.
  private static func scene(_ store: any HubStore) async throws -> (Hub.ID, [Target]) {
    let hub = try await makeHub(store)
    try await store.accept(record("n-1", hub: hub))
    try await store.put(SampleDevice("i-1"), hub: hub, at: now)
    try await store.put(SampleDevice("i-2"), hub: hub, at: now)
    return (hub, try await all(store, hub))
  }
}
