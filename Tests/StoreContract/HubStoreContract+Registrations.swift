import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let registrationsClauses: [Clause] = [
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
    Clause("a list goes page by page, stays stable while others write, and misses nobody") {
      store in
      let hub = try await makeHub(store)
      let other = try await makeHub(store, "other")
      var ids: [String] = []
      for number in 0..<25 {
        let platform: PushPlatform = number.isMultiple(of: 3) ? .gcm : .apns
        let draft = native("AA\(number)", platform: platform)
        ids.append(try await store.createRegistration(draft, hub: hub, at: now).id)
        _ = try await store.createRegistration(draft, hub: other, at: now)
      }
      for query in [RegistrationQuery.all, .tag("RED")] {
        var found: [StoredRegistration] = []
        while true {
          let page = try await store.registrations(
            query, hub: hub, asOf: now, after: found.last?.number ?? 0, limit: 7)
          try expect(page.registrations.count <= 7, "a page too long")
          found += page.registrations
          guard page.hasMore else { break }
          try expectEqual(page.registrations.count, 7, "a full page")
        }
        try expectEqual(found.map(\.id), ids)
      }
      let first = try await store.registrations(.all, hub: hub, asOf: now, after: 0, limit: 10)
      let last = first.registrations.last
      _ = try await store.deleteRegistration(last?.id ?? "", hub: hub, condition: .any, at: now)
      let second = try await store.registrations(
        .all, hub: hub, asOf: now, after: last?.number ?? 0, limit: 10)
      try expectEqual(second.registrations.map(\.id), Array(ids[10..<20]))
    },
    Clause("a page is full in spite of registrations whose time is over") { store in
      let hub = try await makeHub(store)
      var draft = native()
      for number in 0..<20 {
        draft.expiresAt = number < 15 ? now : nil
        _ = try await store.createRegistration(draft, hub: hub, at: now)
      }
      let page = try await store.registrations(.all, hub: hub, asOf: now, after: 0, limit: 5)
      try expectEqual(page.registrations.count, 5)
      try expect(!page.hasMore, "more than there can be")
    },
    Clause("a device's registrations are found by its handle, native and template") { store in
      let hub = try await makeHub(store)
      let one = native("AA11")
      _ = try await store.createRegistration(one, hub: hub, at: now)
      _ = try await store.createRegistration(
        native("AA11", kind: .template(template(), name: "x")), hub: hub, at: now)
      _ = try await store.createRegistration(native("AA22"), hub: hub, at: now)
      _ = try await store.createRegistration(native("AA11", platform: .gcm), hub: hub, at: now)
      try await store.put(
        SampleDevice("i-1", handle: "AA11", templates: ["main": template()]), hub: hub, at: now)
      let anyPlatform = try RegistrationFilter(parsing: "ChannelUri eq 'aa11'")
      let apple = try RegistrationFilter(parsing: "DeviceToken eq 'aa11'")
      try expectEqual(try await list(store, .device(apple), hub).count, 4)
      try expectEqual(try await list(store, .device(anyPlatform), hub).count, 5)
      // The template of the installation is found without its native registration, too.
      for derived in try await list(store, .device(apple), hub)
      where derived.isDerived && derived.draft.kind == .native {
        _ = try await store.deleteRegistration(derived.id, hub: hub, condition: .any, at: now)
      }
      try expectEqual(try await list(store, .device(apple), hub).count, 3)
    },
    Clause("a search by handle finds installations and registrations of one hub, and no others") {
      store in
      let hub = try await makeHub(store)
      let other = try await makeHub(store, "other")
      func search(_ handle: String, limit: Int = 100) async throws -> FoundDevices {
        try await store.devices(
          RegistrationFilter(handle: handle), hub: hub, asOf: now, limit: limit)
      }
      try await store.put(
        SampleDevice("i-1", handle: "AA11", templates: ["main": template()]), hub: hub, at: now)
      try await store.put(SampleDevice("i-2", handle: "AA22"), hub: hub, at: now)
      try await store.put(SampleDevice("i-3", handle: "AA11"), hub: other, at: now)
      _ = try await store.createRegistration(
        native("AA11", kind: .template(template(), name: "x")), hub: hub, at: now)
      _ = try await store.createRegistration(native("AA11", platform: .gcm), hub: hub, at: now)
      let found = try await search(" aa11\n")
      try expectEqual(found.installations.map(\.installationID), ["i-1"])
      try expectEqual(
        found.registrations.map(\.installationID), ["i-1", "i-1", nil, nil], "made by")
      try expectEqual(
        found.registrations.map(\.stored.draft.platform), [.apns, .apns, .apns, .gcm])
      try expect(!found.hasMore, "more than there are")
      let cut = try await search("AA11", limit: 2)
      try expectEqual(cut.registrations.count, 2)
      try expect(cut.hasMore, "not told that there are more")
      try expectEqual(try await search("AA1"), FoundDevices(), "a part of a handle")
      try expectEqual(try await search("AA33"), FoundDevices())
    },
    Clause(
      "a search by handle finds what is dead for as long as it can come back, and nothing over"
    ) {
      store in
      let hub = try await makeHub(store)
      func search(_ handle: String) async throws -> [String] {
        let found = try await store.devices(
          RegistrationFilter(handle: handle), hub: hub, asOf: now, limit: 9)
        try expectEqual(found.registrations, [])
        return found.installations.map(\.installationID)
      }
      try await store.put(SampleDevice("dead"), hub: hub, at: now)
      try await condemn(store, hub, ["HANDLE-dead"])
      try expectEqual(try await search("HANDLE-dead"), ["dead"])
      _ = try await store.updateInstallation("dead", hub: hub, at: now) { present in
        var changed = present
        changed.pushChannel = .handle("NEW")
        return (changed, [])
      }
      try expectEqual(try await search("HANDLE-dead"), [], "the handle is another's by now")
      var over = SampleDevice("over")
      over.installation.expirationTime = now
      over.expiresAt = now
      try await store.put(over, hub: hub, at: now)
      try expectEqual(try await search("HANDLE-over"), [])
    },
    Clause("a browser is found by its endpoint alone, or by its subscription") { store in
      let hub = try await makeHub(store)
      var device = SampleDevice("web", platform: .browser)
      device.installation.pushChannel = .subscription(
        endpoint: "https://push.example/a", p256dh: "k", auth: "s")
      try await store.put(device, hub: hub, at: now)
      for handle in [
        "https://push.example/a",
        #"{"endpoint":"https://push.example/a","keys":{"p256dh":"other","auth":"s"}}"#,
      ] {
        let found = try await store.devices(
          RegistrationFilter(handle: handle), hub: hub, asOf: now, limit: 9)
        try expectEqual(found.installations.map(\.installationID), ["web"])
        try expectEqual(found.registrations.map(\.installationID), ["web"])
      }
    },
    Clause("a browser is found by endpoint and keys together") { store in
      let hub = try await makeHub(store)
      for key in ["k1", "k2"] {
        _ = try await store.createRegistration(
          RegistrationDraft(
            kind: .native, platform: .browser,
            channel: .subscription(endpoint: "https://push.example/a", p256dh: key, auth: "s")),
          hub: hub, at: now)
      }
      let keys = try RegistrationFilter(
        parsing: "Endpoint eq 'https://push.example/a' and P256DH eq 'k1' and Auth eq 's'")
      try expectEqual(try await list(store, .device(keys), hub).count, 1)
      let endpoint = try RegistrationFilter(parsing: "ChannelUri eq 'https://push.example/a'")
      try expectEqual(try await list(store, .device(endpoint), hub).count, 2)
    },
    Clause("an installation's registrations are listed as it says") { store in
      let hub = try await makeHub(store)
      let device = SampleDevice(
        "i-1", user: "Bob", tags: ["Red"], templates: ["main": template()],
        variables: ["lang": "en"])
      try await store.put(device, hub: hub, at: now)
      let queries: [RegistrationQuery] = [
        .all, .tag("$InstallationId:{i-1}"), .tag("$userid:{bob}"), .tag("red"),
      ]
      for query in queries {
        let found = try await list(store, query, hub)
        try expectEqual(found.map(\.draft.tags), device.registrations.map(\.tags))
        try expectEqual(found.map(\.draft.pushVariables), [["lang": "en"], ["lang": "en"]])
        try expectEqual(found.map(\.etag), [1, 1])
        try expect(found.allSatisfy(\.isDerived), "not marked as derived")
        try expectEqual(found[0].draft.tags.map(\.rawValue).last, "Red", "spelling")
        try expectEqual(
          try await store.registration(found[1].id, hub: hub, asOf: now), found[1])
      }
      try expectEqual(try await list(store, .tag("MAIN"), hub).count, 1)
      try expectEqual(try await list(store, .tag("$UserId:{eve}"), hub), [])
    },
    Clause("etags rise with a patch, not with a repeated write") { store in
      let hub = try await makeHub(store)
      let device = SampleDevice("i-1", templates: ["main": template()])
      try await store.put(device, hub: hub, at: now)
      let first = try await list(store, .all, hub)
      try await store.put(device, hub: hub, at: now.addingTimeInterval(1))
      try expectEqual(try await list(store, .all, hub), first)
      _ = try await store.updateInstallation("i-1", hub: hub, at: now) { present in
        var next = present
        next.tags = ["new"]
        return (next, SampleDevice.registrations(of: next))
      }
      let second = try await list(store, .all, hub)
      try expectEqual(second.map(\.etag), [2, 2])
      try expectEqual(second.map(\.id), first.map(\.id))
    },
    Clause("a registration deleted from an installation comes back with its next write") { store in
      let hub = try await makeHub(store)
      let device = SampleDevice("i-1", templates: ["main": template()])
      try await store.put(device, hub: hub, at: now)
      let first = try await list(store, .all, hub)
      _ = try await store.deleteRegistration(first[0].id, hub: hub, condition: .any, at: now)
      try expectEqual(try await list(store, .all, hub), [first[1]])
      try expectEqual(try await all(store, hub).count, 1)
      try expect(try await store.installation("i-1", hub: hub) != nil, "the installation went")
      try await store.put(device, hub: hub, at: now)
      try expectEqual(
        Set(try await list(store, .all, hub).map(\.draft)), Set(device.registrations))
    },
    Clause("a client's write to an installation's registration lasts until its next write") {
      store in
      let hub = try await makeHub(store)
      let device = SampleDevice("i-1", handle: "AA", user: "bob", tags: ["red"])
      try await store.put(device, hub: hub, at: now)
      let made = try await list(store, .all, hub)[0]
      let changed = try await put(store, made.id, native("BB", tags: ["mine"]), hub)
      try expectEqual(changed.draft.tags, ["$InstallationId:{i-1}", "$UserId:{bob}", "mine"])
      try expectEqual(changed.etag, 2)
      try expect(changed.isDerived, "it belongs to the installation")
      try expectEqual(try await store.registration(made.id, hub: hub, asOf: now), changed)
      try expectEqual(try await handles(store, hub, "$UserId:{bob}"), ["BB"])
      try await store.put(device, hub: hub, at: now)
      let back = try await list(store, .all, hub)
      try expectEqual(back.map(\.draft.channel), [.handle("AA")])
      try expectEqual(back.map(\.id), [made.id])
      try expectEqual(back.map(\.etag), [3])
    },
  ]

  static func list(
    _ store: any HubStore, _ query: RegistrationQuery, _ hub: Hub.ID, asOf: Date = now
  ) async throws -> [StoredRegistration] {
    let page = try await store.registrations(query, hub: hub, asOf: asOf, after: 0, limit: 1_000)
    try expect(!page.hasMore, "more than there can be")
    return page.registrations
  }

  static func registrations(
    _ store: any HubStore, _ query: AudienceQuery, limit: Int
  ) async throws -> [RegistrationID] {
    try await pages(store, query, limit: limit).map(\.registration)
  }

  /// The whole list, read in pages of this size.
  static func list(
    _ store: any HubStore, _ filter: NotificationFilter, _ order: NotificationOrder, hub: Hub.ID,
    limit: Int
  ) async throws -> [NotificationSummary] {
    var found: [NotificationSummary] = []
    var after: ListPosition?
    repeat {
      let page = try await store.notifications(
        filter, in: order, hub: hub, after: after, limit: limit)
      try expect(page.notifications.count <= limit, "a page too long")
      found += page.notifications
      after = page.next
    } while after != nil && found.count < 100
    return found
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

  static var browser: RegistrationDraft {
    RegistrationDraft(
      kind: .native, platform: .browser,
      channel: .subscription(endpoint: "https://push.example/a", p256dh: "key", auth: "secret"))
  }
}
