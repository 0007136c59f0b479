import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let registrationClauses = [
    Clause("a registration comes back as it was created") { store in
      let hub = try await makeHub(store)
      for draft in [native(), fullTemplate, browser] {
        let created = try await store.createRegistration(draft, hub: hub, at: now)
        try expectEqual(created.draft, draft)
        try expectEqual(created.etag, 1)
        try expect(!created.isDerived, "nobody's registration is derived")
        try expectEqual(try await store.registration(created.id, hub: hub, asOf: now), created)
        try expectEqual(
          created.draft.tags.map(\.rawValue), draft.tags.map(\.rawValue), "spelling of the tags")
      }
    },
    Clause("registrations of one handle are kept apart, each with an id of its own") { store in
      let hub = try await makeHub(store)
      var ids: Set<String> = []
      for _ in 0..<20 {
        let id = try await store.createRegistration(native(), hub: hub, at: now).id
        try expect(id.wholeMatch(of: /\d{1,19}-\d{1,19}-[1-3]/) != nil, "a strange id: \(id)")
        ids.insert(id)
      }
      try expectEqual(ids.count, 20)
    },
    Clause("an id names a registration of its own hub only") { store in
      let (one, two) = (try await makeHub(store, "one"), try await makeHub(store, "two"))
      let id = try await store.createRegistration(native("AA"), hub: one, at: now).id
      try expect(try await store.registration(id, hub: two, asOf: now) == nil, "another hub's")
      let there = try await put(store, id, native("BB"), two)
      try expectEqual(there.id, id)
      try expectEqual(
        try await store.registration(id, hub: one, asOf: now)?.draft.channel, .handle("AA"))
      try expectEqual(
        try await store.registration(id, hub: two, asOf: now)?.draft.channel, .handle("BB"))
    },
    Clause("a reserved id names nothing until it is written, and is given out once") { store in
      let hub = try await makeHub(store)
      let id = try await store.reserveRegistrationID(hub: hub)
      try expect(try await store.registration(id, hub: hub, asOf: now) == nil, "there is one")
      let other = try await store.createRegistration(native("BB"), hub: hub, at: now)
      try expect(other.id != id, "the reserved id was given out again")
      let written = try await put(store, id, native("AA"), hub)
      try expectEqual(written.id, id)
      try expectEqual(try await store.registration(id, hub: hub, asOf: now), written)
      try expectEqual(try await handles(store, hub, "red").sorted(), ["AA", "BB"])
    },
    Clause("a client's own id is taken as it is") { store in
      let hub = try await makeHub(store)
      for id in ["123-234-1", "my device/1", "Ω", "123-234-01"] {
        let written = try await put(store, id, native("AA", tags: [Tag(rawValue: id)]), hub)
        try expectEqual(written.id, id)
        try expectEqual(written.etag, 1)
        try expectEqual(try await store.registration(id, hub: hub, asOf: now), written)
      }
      try expect(try await store.registration("ω", hub: hub, asOf: now) == nil, "case folded")
      try expectEqual(try await list(store, .all, hub).count, 4)
    },
    Clause("a write replaces everything and raises the etag by one") { store in
      let hub = try await makeHub(store)
      let first = try await store.createRegistration(fullTemplate, hub: hub, at: now)
      let second = try await put(store, first.id, native("AA", tags: ["new"]), hub)
      try expectEqual(second.etag, 2)
      try expectEqual(second.number, first.number)
      try expectEqual(try await store.registration(first.id, hub: hub, asOf: now), second)
      try expectEqual(try await handles(store, hub, "new"), ["AA"])
      try expectEqual(
        try await store.count(
          AudienceQuery(hub: hub, kind: .template, expression: nil, asOf: now)), 0)
      let third = try await put(store, first.id, fullTemplate, hub)
      try expectEqual(third.etag, 3)
      try expectEqual(try await handles(store, hub, "new"), [])
      try expectEqual(third.draft, fullTemplate)
    },
    Clause("a condition is kept on writing") { store in
      let hub = try await makeHub(store)
      for condition in [ETagCondition.any, .tag("1")] {
        try expectEqual(
          try await store.putRegistration(
            "x-1", native(), hub: hub, condition: condition, at: now), .missing)
      }
      _ = try await put(store, "x-1", native(), hub)
      try expectEqual(
        try await store.putRegistration(
          "x-1", native("BB"), hub: hub, condition: .tag("2"), at: now), .stale)
      try expectEqual(
        try await store.registration("x-1", hub: hub, asOf: now)?.draft.channel, .handle("AA"))
      for (condition, etag) in [(ETagCondition.tag("1"), 2), (.any, 3), (.none, 4)] {
        let write = try await store.putRegistration(
          "x-1", native("BB"), hub: hub, condition: condition, at: now)
        guard case .done(let stored) = write else {
          throw Violation(description: "\(write) for \(condition)")
        }
        try expectEqual(stored.etag, Int64(etag))
      }
    },
    Clause("a condition is kept on deleting") { store in
      let hub = try await makeHub(store)
      let made = try await store.createRegistration(native(), hub: hub, at: now)
      try expectEqual(
        try await store.deleteRegistration(made.id, hub: hub, condition: .tag("7"), at: now),
        .stale)
      try expectEqual(
        try await store.deleteRegistration(made.id, hub: hub, condition: .tag("1"), at: now),
        .done(made))
      try expectEqual(
        try await store.deleteRegistration(made.id, hub: hub, condition: .any, at: now), .missing)
      try expectEqual(try await handles(store, hub, "red"), [])
      let again = try await put(store, made.id, native(), hub)
      try expectEqual(again.etag, 1)
    },
    Clause("of writes with the same condition at the same time one wins") { store in
      let hub = try await makeHub(store)
      let id = try await store.createRegistration(native(), hub: hub, at: now).id
      let won = try await withThrowingTaskGroup(of: Bool.self) { group in
        for number in 0..<20 {
          group.addTask {
            let write = try await store.putRegistration(
              id, native(tags: [Tag(rawValue: "t\(number)")]), hub: hub, condition: .tag("1"),
              at: now)
            if case .done = write { return true }
            return false
          }
        }
        return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      try expectEqual(won, 1)
    },
    Clause("a registration whose time is over is gone, and begins again when written") { store in
      let hub = try await makeHub(store)
      var draft = native()
      draft.expiresAt = now.addingTimeInterval(60)
      let later = now.addingTimeInterval(60)
      let made = try await store.createRegistration(draft, hub: hub, at: now)
      _ = try await put(store, made.id, draft, hub)
      try expect(try await store.registration(made.id, hub: hub, asOf: now) != nil, "too early")
      try expect(try await store.registration(made.id, hub: hub, asOf: later) == nil, "alive")
      try expectEqual(try await list(store, .all, hub, asOf: later), [])
      try expectEqual(
        try await store.putRegistration(made.id, draft, hub: hub, condition: .any, at: later),
        .missing)
      draft.expiresAt = nil
      let write = try await store.putRegistration(
        made.id, draft, hub: hub, condition: .none, at: later)
      guard case .done(let stored) = write else { throw Violation(description: "\(write)") }
      try expectEqual(stored.etag, 1)
    },
    Clause("a dead handle takes all that clients wrote for it, unless it was confirmed") { store in
      let hub = try await makeHub(store)
      _ = try await store.createRegistration(native(), hub: hub, at: now)
      _ = try await store.createRegistration(
        native(kind: .template(template(), name: nil)), hub: hub, at: now)
      let other = try await store.createRegistration(native("BB"), hub: hub, at: now)
      let fresh = try await store.createRegistration(native("CC"), hub: hub, at: now)
      let words = try await condemned(store, hub)
      _ = try await put(store, fresh.id, native("CC"), hub)
      try await checkpoint(store, hub, dead: [words[0], words[2]])
      try expectEqual(try await list(store, .all, hub).map(\.id), [other.id, fresh.id])
    },
    Clause("a deleted hub takes its registrations with it") { store in
      let hub = try await makeHub(store)
      _ = try await put(store, "mine", native(), hub)
      _ = try await store.deleteHub(named: "hub1")
      let new = try await makeHub(store)
      try expectEqual(try await list(store, .all, new), [])
      try expect(try await store.registration("mine", hub: new, asOf: now) == nil, "still there")
      try await expectRefusal(.noHub) {
        _ = try await store.createRegistration(native(), hub: hub, at: now)
      }
      try await expectRefusal(.noHub) { _ = try await store.reserveRegistrationID(hub: hub) }
    },
  ]

  static func native(
    _ handle: String = "AA", tags: [Tag] = ["Red"], kind: RegistrationDraft.Kind = .native,
    platform: PushPlatform = .apns
  ) -> RegistrationDraft {
    RegistrationDraft(kind: kind, platform: platform, channel: .handle(handle), tags: tags)
  }

  private static var fullTemplate: RegistrationDraft {
    var draft = native(
      "https://wns.example/?token=a%20b", tags: ["Red", "city:oslo"],
      kind: .template(
        PushTemplate(
          body: "<toast>$(message)</toast>", headers: ["X-WNS-Type": "wns/toast", "X-WNS-Tag": ""],
          expiry: "$(expiry)"), name: "Template Name"),
      platform: .wns)
    draft.pushVariables = ["lang": "en", "": "empty"]
    draft.secondaryTileName = "tile"
    draft.expiresAt = now.addingTimeInterval(86_400)
    return draft
  }

  private static var browser: RegistrationDraft {
    RegistrationDraft(
      kind: .native, platform: .browser,
      channel: .subscription(endpoint: "https://push.example/a", p256dh: "key", auth: "secret"))
  }

  static func put(
    _ store: any HubStore, _ id: String, _ draft: RegistrationDraft, _ hub: Hub.ID
  ) async throws -> StoredRegistration {
    let write = try await store.putRegistration(id, draft, hub: hub, condition: .none, at: now)
    guard case .done(let stored) = write else {
      throw Violation(description: "\(write) for a write without a condition")
    }
    return stored
  }

  static func list(
    _ store: any HubStore, _ query: RegistrationQuery, _ hub: Hub.ID, asOf: Date = now
  ) async throws -> [StoredRegistration] {
    let page = try await store.registrations(query, hub: hub, asOf: asOf, after: 0, limit: 1_000)
    try expect(!page.hasMore, "more than there can be")
    return page.registrations
  }

  /// Reports handles dead, as a page of a send does.
  static func checkpoint(
    _ store: any HubStore, _ hub: Hub.ID, dead: [Checkpoint.Condemned]
  ) async throws {
    let id = NotificationID(at: now)
    let request = NotificationRequest(
      format: .native(.apns), body: Array("{}".utf8), tags: nil, headers: [:], expiry: nil)
    try await store.accept(
      NotificationRecord(id: id, hub: hub, request: request, state: .enqueued, enqueuedAt: now))
    var checkpoint = Checkpoint(notification: id, hub: hub, at: now)
    checkpoint.deadHandles = dead
    try await store.checkpoint(checkpoint)
  }
}
