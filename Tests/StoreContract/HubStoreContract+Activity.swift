import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let activityClauses: [Clause] = [
    Clause("the activity log goes by its age, and by its length from the hub that has most") {
      store in
      let loud = try await makeHub(store, "loud")
      let quiet = try await makeHub(store, "quiet")
      func add(_ hub: Hub.ID, _ count: Int, _ seconds: Double) async throws {
        try await store.record(
          (0..<count).map { number in
            ActivityEntry(
              hub: hub,
              HubActivity(
                time: now.addingTimeInterval(seconds), hub: "h", actor: "policy/p", via: .key,
                action: "send", object: "\(number)"))
          })
      }
      func lines(_ hub: Hub.ID?) async throws -> Int {
        let page = try await store.activity(
          ActivityQuery(), hub: hub, after: nil, limit: 10_000)
        return page.lines.count
      }
      try await add(quiet, 10, -100)
      try await add(loud, 2_500, 0)
      try await add(quiet, 5, 0)
      while try await store.clearActivity(before: now.addingTimeInterval(-50), keeping: 10_000) {}
      try expectEqual(try await lines(quiet), 5)
      try expectEqual(try await lines(nil), 2_505)
      while try await store.clearActivity(before: nil, keeping: 105) {}
      try expectEqual(try await lines(quiet), 5, "the quiet hub's lines")
      let left = try await store.activity(ActivityQuery(), hub: loud, after: nil, limit: 1_000)
        .lines
      try expectEqual(left.count, 100)
      try expectEqual(left.first?.object, "2499", "the newest stay")
      try expectEqual(try await store.clearActivity(before: now, keeping: 105), false)
    },
    Clause("lines that are too many go though the hub with the most has fewer") { store in
      for number in 0..<6 {
        let hub = try await makeHub(store, "hub\(number)")
        try await store.record(
          (0..<2).map { second in
            ActivityEntry(
              hub: hub,
              HubActivity(
                time: now.addingTimeInterval(Double(second)), hub: "h", actor: "policy/p",
                via: .key, action: "send", object: "\(number)"))
          })
      }
      while try await store.clearActivity(before: nil, keeping: 3) {}
      let left = try await store.activity(ActivityQuery(), hub: nil, after: nil, limit: 100).lines
      try expectEqual(left.count, 3)
    },
  ]
}
