import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let extensionClauses: [Clause] = [
    Clause("a filtered list has those that match, each once, page by page") { store in
      let hub = try await makeHub(store)
      for number in 1...30 {
        var device = SampleDevice(
          "d\(number)", platform: number % 3 == 0 ? .fcmv1 : .apns,
          user: number % 2 == 0 ? "Bob" : "ann", tags: number % 5 == 0 ? ["Red"] : ["blue"])
        if number == 7 { device.installation.pushChannelExpired = true }
        if number == 8 { device.installation.expirationTime = now - 1 }
        try await store.put(device, hub: hub, at: now)
      }
      let cases: [(InstallationFilter, [Int])] = [
        (.init(asOf: now), Array(1...30)), (.init(tag: "red", asOf: now), [5, 10, 15, 20, 25, 30]),
        (.init(userID: "bOB", asOf: now), (1...15).map { $0 * 2 }),
        (.init(platform: .fcmv1, asOf: now), (1...10).map { $0 * 3 }),
        (.init(isExpired: true, asOf: now), [7, 8]),
        (.init(isExpired: false, asOf: now), Array(1...6) + Array(9...30)),
        (.init(tag: "red", userID: "bob", platform: .fcmv1, asOf: now), [30]),
        (.init(tag: "none", asOf: now), []), (.init(userID: "", asOf: now), []),
      ]
      for (filter, wanted) in cases {
        var found: [String] = []
        var after: InstallationPosition?
        repeat {
          let page = try await store.installations(filter, hub: hub, after: after, limit: 4)
          try expect(page.installations.count <= 4, "a page too long")
          found += page.installations.map(\.installationID)
          after = page.next
        } while after != nil && found.count < 40
        try expectEqual(found.sorted(), wanted.map { "d\($0)" }.sorted(), "\(filter)")
      }
    },
    Clause("a tag of a template finds its installation too") { store in
      let hub = try await makeHub(store)
      var tagged = template()
      tagged.tags = ["deep"]
      try await store.put(SampleDevice("a", templates: ["t": tagged]), hub: hub, at: now)
      try await store.put(SampleDevice("b", templates: ["t": template()]), hub: hub, at: now)
      let page = try await store.installations(
        .init(tag: "DEEP", asOf: now), hub: hub, after: nil, limit: 10)
      try expectEqual(page.installations.map(\.installationID), ["a"])
    },
    Clause("templates are counted by platform and name") { store in
      let hub = try await makeHub(store)
      try await store.put(
        SampleDevice("a", tags: ["x"], templates: ["one": template(), "two": template()]),
        hub: hub, at: now)
      try await store.put(
        SampleDevice("b", platform: .fcmv1, tags: ["x"], templates: ["one": template("{}")]),
        hub: hub, at: now)
      try await store.put(SampleDevice("c", templates: ["one": template()]), hub: hub, at: now)
      var query = AudienceQuery(hub: hub, kind: .template, expression: .tag("x"), asOf: now)
      try expectEqual(
        try await store.templateCounts(query),
        [
          TemplateKey(platform: .apns, name: "one"): 1,
          TemplateKey(platform: .apns, name: "two"): 1,
          TemplateKey(platform: .fcmv1, name: "one"): 1,
        ])
      query.expression = nil
      try expectEqual(
        try await store.templateCounts(query)[TemplateKey(platform: .apns, name: "one")], 2)
    },
    Clause("an erased user leaves nothing, and everybody else everything") { store in
      let hub = try await makeHub(store)
      let other = try await makeHub(store, "other")
      try await store.put(SampleDevice("b1", user: "Bob", tags: ["x"]), hub: hub, at: now)
      try await store.put(
        SampleDevice("b2", user: "bob", templates: ["t": template()]), hub: hub, at: now)
      try await store.put(SampleDevice("a1", user: "ann", tags: ["x"]), hub: hub, at: now)
      try await store.put(SampleDevice("b1", user: "bob"), hub: other, at: now)
      let texts: [(String, NotificationState, Bool)] = [
        ("$UserId:{bob}", .completed, true), ("$UserId:{BOB} && x", .processing, true),
        ("$UserId:{bob}", .scheduled, true), ("($UserId:{bob} || $UserId:{bob})", .enqueued, true),
        ("$UserId:{bob} || x", .completed, false), ("!$UserId:{bob}", .completed, false),
        ("x", .completed, false), ("$UserId:{bobby}", .scheduled, false),
        ("$UserId:{ann}", .completed, false),
      ]
      for (number, (text, state, _)) in texts.enumerated() {
        try await store.accept(erasable("n\(number)", text, state, hub: hub))
      }
      try await store.accept(erasable("broadcast", nil, .completed, hub: hub))
      try await store.accept(erasable("elsewhere", "$UserId:{bob}", .completed, hub: other))
      for (id, handles) in [("direct", ["HANDLE-b1"]), ("shared", ["HANDLE-b1", "HANDLE-a1"])] {
        var record = try erasable(id, nil, .completed, hub: hub)
        record = NotificationRecord(
          id: record.id, hub: hub,
          request: NotificationRequest(format: .native(.apns), body: [], isDirect: true),
          state: .completed, enqueuedAt: now)
        _ = try await store.accept(
          Submission(
            record: record, targets: handles.map { DirectTarget(handle: $0, isDuplicate: false) }))
      }
      // Its second failure has the number of a target, not that of a registration.
      var direct = Checkpoint(notification: NotificationID(rawValue: "shared"), hub: hub, at: now)
      direct.failures = [1, 2].map {
        .init(registration: $0, outcome: .unknownError, status: 500, reason: nil)
      }
      try await store.checkpoint(direct)
      let targets = try await store.targets(
        AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: now), after: 0,
        limit: 10)
      var checkpoint = Checkpoint(
        notification: NotificationID(rawValue: "broadcast"), hub: hub, at: now)
      checkpoint.failures = targets.targets.map {
        .init(registration: $0.registration, outcome: .unknownError, status: 500, reason: nil)
      }
      try expectEqual(checkpoint.failures.count, 3)
      try await store.checkpoint(checkpoint)

      let erased = try await store.eraseUser("boB", hub: hub)
      try expectEqual(
        erased,
        UserErasure(
          installations: 2, schedules: 1, notifications: 4, deviceRecords: 2, tags: 1, templates: 1)
      )
      for (number, (text, _, isGone)) in texts.enumerated() {
        let found = try await store.notification(NotificationID(rawValue: "n\(number)"), hub: hub)
        try expectEqual(found == nil, isGone, text)
      }
      for (id, isGone) in [("direct", true), ("shared", false)] {
        let found = try await store.notification(NotificationID(rawValue: id), hub: hub)
        try expectEqual(found == nil, isGone, id)
      }
      try expectEqual(
        try await store.failures(
          NotificationID(rawValue: "shared"), hub: hub, after: 0, limit: 10
        ).count, 2)
      let left = try await store.installations(
        .init(asOf: now), hub: hub, after: nil, limit: 10)
      try expectEqual(left.installations.map(\.installationID), ["a1"])
      try expectEqual(try await all(store, hub).count, 1)
      let failures = try await store.failures(
        NotificationID(rawValue: "broadcast"), hub: hub, after: 0, limit: 10)
      try expectEqual(failures.count, 1)
      try expect(try await store.installation("b1", hub: other) != nil, "the other hub's device")
      try expect(
        try await store.notification(NotificationID(rawValue: "elsewhere"), hub: other) != nil,
        "the other hub's notification")
      try expectEqual(
        try await store.eraseUser("bob", hub: hub),
        UserErasure(installations: 0, schedules: 0, notifications: 0, deviceRecords: 0))
    },
    Clause(
      "with an erased user go the tags and templates that nobody else has, and what was sent to them"
    ) {
      store in
      let hub = try await makeHub(store)
      let own = PushTemplate(body: #"{"aps":{"alert":"Hello Alice"}}"#)
      try await store.put(
        SampleDevice(
          "Phone", user: "alice", tags: ["email:alice@example.com", "news"],
          templates: ["hers": own, "main": template()]), hub: hub, at: now)
      try await store.put(
        SampleDevice("b", user: "bob", tags: ["News"], templates: ["main": template()]), hub: hub,
        at: now)
      let texts: [(String, NotificationState, Bool)] = [
        ("email:alice@example.com", .scheduled, true),
        ("news && EMAIL:ALICE@EXAMPLE.COM", .completed, true),
        ("$InstallationId:{Phone}", .completed, true), ("hers", .scheduled, true),
        ("news", .scheduled, false), ("email:alice@example.com || news", .completed, false),
        ("!email:alice@example.com", .completed, false),
        ("$InstallationId:{phone}", .completed, false),
      ]
      for (number, (text, state, _)) in texts.enumerated() {
        try await store.accept(erasable("n\(number)", text, state, hub: hub))
      }
      try expectEqual(
        try await store.eraseUser("Alice", hub: hub),
        UserErasure(
          installations: 1, schedules: 2, notifications: 2, deviceRecords: 0, tags: 2, templates: 1)
      )
      for (number, (text, _, isGone)) in texts.enumerated() {
        let found = try await store.notification(NotificationID(rawValue: "n\(number)"), hub: hub)
        try expectEqual(found == nil, isGone, text)
      }
      // The names can be used again.
      try await store.put(
        SampleDevice("c", tags: ["email:alice@example.com"], templates: ["hers": own]), hub: hub,
        at: now)
      let query = AudienceQuery(
        hub: hub, kind: .template, expression: .tag("email:alice@example.com"), asOf: now)
      try expectEqual(try await store.targets(query, after: 0, limit: 10).targets.count, 1)
    },
    Clause("who selects an installation by its id gets that one, in this letter case") { store in
      let hub = try await makeHub(store)
      for id in ["seal-dev-1", "SEAL-DEV-1"] {
        try await store.put(SampleDevice(id, user: "Bob"), hub: hub, at: now)
      }
      for (text, handles) in [
        ("$InstallationId:{seal-dev-1}", ["HANDLE-seal-dev-1"]),
        ("$installationid:{SEAL-DEV-1}", ["HANDLE-SEAL-DEV-1"]),
        ("$InstallationId:{Seal-Dev-1}", []),
        ("!$InstallationId:{seal-dev-1}", ["HANDLE-SEAL-DEV-1"]),
        ("$USERID:{bob}", ["HANDLE-seal-dev-1", "HANDLE-SEAL-DEV-1"]),
      ] {
        let query = AudienceQuery(
          hub: hub, kind: .native(.apns), expression: try TagExpression(parsing: text), asOf: now)
        let page = try await store.targets(query, after: 0, limit: 10)
        try expectEqual(page.handleTexts.sorted(), handles.sorted(), text)
        try expectEqual(try await store.count(query), handles.count, text)
        guard case .tag(let tag)? = query.expression else { continue }
        let list = try await store.registrations(
          .tag(tag), hub: hub, asOf: now, after: 0, limit: 10)
        try expectEqual(list.registrations.count, handles.count, text)
      }
    },
    Clause("an installation written again after its user was erased is there") { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i", user: "bob", tags: ["x"]), hub: hub, at: now)
      _ = try await store.eraseUser("bob", hub: hub)
      try expectEqual(try await handles(store, hub, "x"), [])
      try await store.put(SampleDevice("i", user: "bob", tags: ["x"]), hub: hub, at: now)
      try expectEqual(try await handles(store, hub, "x"), ["HANDLE-i"])
    },
  ]

  private static func erasable(
    _ id: String, _ tags: String?, _ state: NotificationState, hub: Hub.ID
  ) throws -> NotificationRecord {
    let expression = try tags.map { try TagExpression(parsing: $0) }
    return NotificationRecord(
      id: NotificationID(rawValue: id), hub: hub,
      request: NotificationRequest(
        format: .template, body: Array("{}".utf8), tags: tags, expression: expression),
      state: state, enqueuedAt: now)
  }
}
