import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let installationsClauses: [Clause] = [
    Clause("an installation comes back as it was written") { store in
      let hub = try await makeHub(store)
      let full = fullInstallation
      try await store.putInstallation(
        full, registrations: SampleDevice.registrations(of: full), request: nil, hub: hub, at: now)
      try expectEqual(try await store.installation(full.installationID, hub: hub), full)
      let plain = SampleDevice("i-2").installation
      try await store.put(SampleDevice("i-2"), hub: hub, at: now)
      try expectEqual(try await store.installation("i-2", hub: hub), plain)
      try expect(try await store.installation("i-3", hub: hub) == nil, "one that nobody wrote")
    },
    Clause("a page of large devices ends at a megabyte, and the list goes on") { store in
      let hub = try await makeHub(store)
      let variables = ["v": String(repeating: "x", count: 60_000)]
      for number in 0..<30 {
        try await store.put(
          SampleDevice("i-\(number)", variables: variables), hub: hub, at: now)
      }
      var (found, after): ([String], InstallationPosition?) = ([], nil)
      repeat {
        let page = try await store.installations(
          InstallationFilter(asOf: now), hub: hub, after: after, limit: 100)
        try expect((1...18).contains(page.installations.count), "\(page.installations.count)")
        found += page.installations.map(\.installationID)
        after = page.next
      } while after != nil
      try expectEqual(found.sorted(), (0..<30).map { "i-\($0)" }.sorted())
      var (numbers, last): ([RegistrationID], RegistrationID) = ([], 0)
      while true {
        let page = try await store.registrations(
          .all, hub: hub, asOf: now, after: last, limit: 100)
        try expect((1...18).contains(page.registrations.count), "\(page.registrations.count)")
        numbers += page.registrations.map(\.number)
        last = numbers.last ?? 0
        if !page.hasMore { break }
      }
      try expectEqual(Set(numbers).count, 30)
      try expectEqual(numbers, numbers.sorted())
    },
    Clause("a search finds no more large devices than fit into a megabyte") { store in
      let hub = try await makeHub(store)
      let variables = ["v": String(repeating: "x", count: 60_000)]
      for number in 0..<30 {
        try await store.put(
          SampleDevice("i-\(number)", handle: "AA11", variables: variables), hub: hub, at: now)
      }
      let found = try await store.devices(
        RegistrationFilter(handle: "AA11"), hub: hub, asOf: now, limit: 1_000)
      try expect(found.hasMore, "the rest is not told")
      try expectEqual(found.installations.count + found.registrations.count, 18)
    },
    Clause("installations are found by part of an id, a user or a tag, in any letter case") {
      store in
      let hub = try await makeHub(store)
      let other = try await makeHub(store, "other")
      let template = PushTemplate(body: "{}", tags: ["Evening"])
      for device in [
        SampleDevice("Phone-A7", user: "ann@example.com", tags: ["news", "city:Oslo"]),
        SampleDevice("phone-b8", user: "Oslo", tags: ["sport"]),
        SampleDevice("tab-c9", templates: ["main": template]), SampleDevice("x"),
      ] { try await store.put(device, hub: hub, at: now) }
      try await store.put(SampleDevice("phone-other", tags: ["oslo"]), hub: other, at: now)
      var tiled = SampleDevice("tiled", platform: .wns).installation
      tiled.secondaryTiles = ["t": SecondaryTile(pushChannel: "https://t", tags: ["Ölmarkt"])]
      try await store.putInstallation(
        tiled, registrations: SampleDevice.registrations(of: tiled), request: nil, hub: hub, at: now
      )
      for (search, wanted) in [
        ("phone", ["Phone-A7", "phone-b8"]), ("oslo", ["Phone-A7", "phone-b8"]),
        ("ANN@", ["Phone-A7"]), ("-c", ["tab-c9"]), ("evening", ["tab-c9"]), ("ölm", ["tiled"]),
        // Neither handles nor templates are searched, nor what the hub derives.
        ("handle", []), ("installationid", []), ("main", []), ("%", []), ("ews", ["Phone-A7"]),
      ] {
        for limit in [1, 100] {
          var filter = InstallationFilter(asOf: now)
          filter.search = search.lowercased()
          var (found, after): ([String], InstallationPosition?) = ([], nil)
          repeat {
            let page = try await store.installations(filter, hub: hub, after: after, limit: limit)
            found += page.installations.map(\.installationID)
            after = page.next
          } while after != nil
          try expectEqual(found.sorted(), wanted.sorted(), search)
          // Together with another part of the filter.
          filter.platform = .wns
          let page = try await store.installations(filter, hub: hub, after: nil, limit: 100)
          try expectEqual(
            page.installations.map(\.installationID), wanted.filter { $0 == "tiled" }, search)
        }
      }
    },
    Clause("a subscription comes back in the form in which it came") { store in
      let hub = try await makeHub(store)
      for isText in [true, false, true] {
        var installation = Installation(
          installationID: "i-1", platform: .browser,
          pushChannel: .subscription(
            endpoint: "https://push.example/a", p256dh: "k", auth: "s"))
        installation.writesSubscriptionAsText = isText
        try await store.putInstallation(
          installation, registrations: SampleDevice.registrations(of: installation), request: nil,
          hub: hub,
          at: now)
        try expectEqual(try await store.installation("i-1", hub: hub), installation)
      }
    },
    Clause("a second write replaces the first completely") { store in
      let hub = try await makeHub(store)
      let first = SampleDevice(
        "i-1", user: "bob", tags: ["red"], templates: ["main": template()],
        variables: ["lang": "en"])
      try await store.put(first, hub: hub, at: now)
      let second = SampleDevice("i-1", handle: "NEW", tags: ["blue"])
      try await store.put(second, hub: hub, at: now)
      try expectEqual(try await store.installation("i-1", hub: hub), second.installation)
      try expectEqual(try await handles(store, hub, "red"), [])
      try expectEqual(try await handles(store, hub, "$UserId:{bob}"), [])
      try expectEqual(try await handles(store, hub, "blue"), ["NEW"])
      try expectEqual(
        try await store.count(
          AudienceQuery(hub: hub, kind: .template, expression: nil, asOf: now)), 0)
    },
    Clause("a repeated write keeps the registrations and confirms their handle") { store in
      let hub = try await makeHub(store)
      let device = SampleDevice("i-1", tags: ["red"], templates: ["main": template()])
      try await store.put(device, hub: hub, at: now)
      let first = try await all(store, hub)
      try await store.put(device, hub: hub, at: now.addingTimeInterval(60))
      let second = try await all(store, hub)
      try expectEqual(second.map(\.registration), first.map(\.registration))
      try expectEqual(
        second.map(\.confirmedAt), first.map { $0.confirmedAt + 60_000 }, "times of confirmation")
      let found = try await store.devices(
        RegistrationFilter(handle: "HANDLE-i-1"), hub: hub, asOf: now, limit: 9)
      try expectEqual(
        found.registrations.map(\.confirmedAt.milliseconds), second.map(\.confirmedAt),
        "times in a search by handle")
    },
    Clause("the same request is recognised only while its installation is as it left it") { store in
      let hub = try await makeHub(store)
      let device = SampleDevice("i-1", tags: ["red"], templates: ["main": template()])
      let request = InstallationRequest(body: [1, 2, 3], rules: [60])
      /// Whether it is recognised, which an engine may never do; then its time is known.
      func confirms(_ request: InstallationRequest, after seconds: Double) async throws -> Bool {
        let at = now.addingTimeInterval(seconds)
        let isSame = try await store.confirmInstallation(
          "i-1", request: request, hub: hub, at: at)
        if isSame {
          try expectEqual(
            Set(try await all(store, hub).map(\.confirmedAt)),
            [Int64(at.timeIntervalSince1970 * 1000)], "times of confirmation")
          let found = try await store.devices(
            RegistrationFilter(handle: "HANDLE-i-1"), hub: hub, asOf: now, limit: 9)
          try expectEqual(
            Set(found.registrations.map(\.confirmedAt)), [at], "times in a search by handle")
        }
        return isSame
      }
      func put() async throws {
        try await store.putInstallation(
          device.installation, registrations: device.registrations, request: request, hub: hub,
          at: now)
      }
      try expect(try await !confirms(request, after: 1), "a device that is not there")
      try await put()
      let isKnown = try await confirms(request, after: 2)
      for other in [
        InstallationRequest(body: [1, 2, 3, 0], rules: [60]),
        InstallationRequest(body: [1, 2, 3], rules: [61]),
      ] { try expect(try await !confirms(other, after: 3), "another request") }
      _ = try await store.updateInstallation("i-1", hub: hub, at: now) { _ in
        (device.installation, device.registrations)
      }
      try expect(try await !confirms(request, after: 4), "after a change in another way")
      try await put()
      try expectEqual(try await confirms(request, after: 5), isKnown)
      try expect(try await store.deleteInstallation("i-1", hub: hub), "deleted")
      try expect(try await !confirms(request, after: 6), "after its deletion")
    },
    Clause("the request of a device whose handle was removed is not recognised") { store in
      let hub = try await makeHub(store)
      let device = SampleDevice("i-1", templates: ["main": template()])
      let request = InstallationRequest(body: [1, 2, 3], rules: [60])
      try await store.accept(record("n-1", hub: hub))
      for _ in 0..<2 {
        try await store.putInstallation(
          device.installation, registrations: device.registrations, request: request, hub: hub,
          at: now)
        try expectEqual(try await all(store, hub).count, 2, "registrations")
        try await condemn(store, hub, ["HANDLE-i-1"])
        try expectEqual(try await all(store, hub).count, 0, "registrations left")
        try expect(
          try await !store.confirmInstallation("i-1", request: request, hub: hub, at: now),
          "recognised")
      }
    },
    Clause("a registration keeps its number while its installation changes") { store in
      let hub = try await makeHub(store)
      try await store.put(
        SampleDevice("i-1", templates: ["a": template(), "b": template("x")]), hub: hub, at: now)
      let first = try await all(store, hub).map(\.registration)
      try await store.put(
        SampleDevice("i-1", handle: "NEW", tags: ["t"], templates: ["b": template("y")]),
        hub: hub, at: now)
      let second = try await all(store, hub).map(\.registration)
      try expectEqual(second.count, 2)
      try expect(Set(second).isSubset(of: first), "new numbers")
    },
    Clause("an update sees what is stored and writes what it returns") { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1", tags: ["red"]), hub: hub, at: now)
      let isFound = try await store.updateInstallation("i-1", hub: hub, at: now) { present in
        var next = present
        next.tags.append("blue")
        return (next, SampleDevice.registrations(of: next))
      }
      try expect(isFound, "an update of what is there")
      try expectEqual(try await store.installation("i-1", hub: hub)?.tags, ["red", "blue"])
      try expectEqual(try await handles(store, hub, "blue"), ["HANDLE-i-1"])
    },
    Clause("an update that throws writes nothing") { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1", tags: ["red"]), hub: hub, at: now)
      do {
        _ = try await store.updateInstallation("i-1", hub: hub, at: now) { _ in
          throw HubFailure(status: 400, message: "no")
        }
        throw Violation(description: "the error of the change got lost")
      } catch let error as HubFailure {
        try expectEqual(error.status, 400)
      }
      try expectEqual(try await store.installation("i-1", hub: hub)?.tags, ["red"])
    },
    Clause("an update of an unknown installation does not call its change") { store in
      let hub = try await makeHub(store)
      let isFound = try await store.updateInstallation("i-1", hub: hub, at: now) { _ in
        throw HubFailure(status: 400, message: "called")
      }
      try expect(!isFound, "found what is not there")
    },
    Clause("updates at the same time do not lose each other") { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1"), hub: hub, at: now)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 1...40 {
          group.addTask {
            _ = try await store.updateInstallation("i-1", hub: hub, at: now) { present in
              var next = present
              next.tags.append(Tag(rawValue: "t\(number)"))
              return (next, SampleDevice.registrations(of: next))
            }
          }
        }
        try await group.waitForAll()
      }
      try expectEqual(try await store.installation("i-1", hub: hub)?.tags.count, 40)
    },
    Clause("a deleted installation takes its registrations with it") { store in
      let hub = try await makeHub(store)
      try await store.put(
        SampleDevice("i-1", tags: ["red"], templates: ["main": template()]), hub: hub, at: now)
      try expectEqual(try await all(store, hub).count, 2)
      try expect(try await store.deleteInstallation("i-1", hub: hub), "deletes")
      try expect(!(try await store.deleteInstallation("i-1", hub: hub)), "was gone")
      try expect(try await store.installation("i-1", hub: hub) == nil, "it is still there")
      try expectEqual(try await all(store, hub).count, 0)
    },
    Clause("installations of hubs are apart") { store in
      let (one, two) = (try await makeHub(store, "one"), try await makeHub(store, "two"))
      try await store.put(SampleDevice("i-1", handle: "A"), hub: one, at: now)
      try await store.put(SampleDevice("i-1", handle: "B"), hub: two, at: now)
      try expectEqual(
        try await store.installation("i-1", hub: one)?.pushChannel, .handle("A"))
      _ = try await store.deleteInstallation("i-1", hub: two)
      try expect(try await store.installation("i-1", hub: one) != nil, "the other hub's is gone")
    },
    Clause("a list gives every installation once, page by page") { store in
      let hub = try await makeHub(store)
      let ids = (1...25).map { "device-\($0)" }
      for id in ids { try await store.put(SampleDevice(id), hub: hub, at: now) }
      var found: [String] = []
      var next: InstallationPosition?
      repeat {
        let page = try await store.installations(
          InstallationFilter(asOf: now), hub: hub, after: next, limit: 7)
        try expect(page.installations.count <= 7, "a page too long")
        found += page.installations.map(\.installationID)
        next = page.next
      } while next != nil && found.count <= ids.count
      try expectEqual(found.sorted(), ids.sorted())
    },
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
    Clause("a list by tag has each device once, also one whose handle is dead") { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("dead", tags: ["red"]), hub: hub, at: now)
      try await checkpoint(store, hub, dead: try await condemned(store, hub))
      for number in 1...6 {
        _ = try await put(store, "r\(number)", native("R\(number)"), hub)
        try await store.put(
          SampleDevice(
            "d\(number)", tags: number % 2 == 0 ? ["red"] : ["blue"],
            templates: ["one": template(), "two": template()]), hub: hub, at: now)
      }
      for limit in [1, 2, 3, 100] {
        var found: [String] = []
        var after: InstallationPosition?
        repeat {
          let page = try await store.installations(
            .init(tag: "Red", asOf: now), hub: hub, after: after, limit: limit)
          found += page.installations.map(\.installationID)
          after = page.next
        } while after != nil && found.count < 40
        try expectEqual(found.sorted(), ["d2", "d4", "d6", "dead"], "by \(limit)")
      }
      let page = try await store.installations(
        .init(tag: "red", isExpired: true, asOf: now), hub: hub, after: nil, limit: 100)
      try expectEqual(page.installations.map(\.installationID), ["dead"])
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

  /// Every member set, with characters that need care.
  private static var fullInstallation: Installation {
    var template = PushTemplate(
      body: "{\"aps\":{\"alert\":\"$(message) ☃ '\\\"\"}}",
      headers: ["apns-priority": "5", "apns-topic": ""], expiry: "2030-01-05T10:00:00Z")
    template.tags = ["Sport", "news"]
    var installation = Installation(
      installationID: "6b1c@x.y:Z", userID: "bob", platform: .wns,
      pushChannel: .handle("https://wns.example/?token=a%20b"),
      expirationTime: now.addingTimeInterval(86_400.123_456_7), tags: ["Red", "city:oslo"],
      pushVariables: ["lang": "en", "": "empty"],
      templates: ["Template Name": template, "main": self.template()])
    installation.secondaryTiles["tile"] = SecondaryTile(
      pushChannel: "https://wns.example/tile", tags: ["t"], templates: ["in tile": template])
    return installation
  }
}
