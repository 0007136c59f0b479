import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let audienceClauses: [Clause] = [
    Clause("registrations are counted by platform, natives apart, templates by name") { store in
      let hub = try await makeHub(store)
      let other = try await makeHub(store, "other")
      try await store.put(SampleDevice("a", templates: ["one": template()]), hub: other, at: now)
      try await store.put(
        SampleDevice("a", tags: ["x"], templates: ["one": template(), "two/a": template()]),
        hub: hub, at: now)
      try await store.put(
        SampleDevice("b", platform: .fcmv1, tags: ["x"], templates: ["one": template("{}")]),
        hub: hub, at: now)
      try await store.put(SampleDevice("c", templates: ["one": template()]), hub: hub, at: now)
      let unnamed = RegistrationDraft.Kind.template(template(), name: nil)
      _ = try await put(store, "r", native("RR", tags: ["x"], kind: unnamed), hub)
      _ = try await put(store, "n", native("NN", platform: .wns), hub)
      try expectEqual(
        try await store.counts(of: .tag("X"), hub: hub, asOf: now),
        counts(
          [.apns: 1, .fcmv1: 1],
          [.apns: ["one": 1, "two/a": 1, "": 1], .fcmv1: ["one": 1]]))
      try expectEqual(
        try await store.counts(of: nil, hub: hub, asOf: now),
        counts(
          [.apns: 2, .fcmv1: 1, .wns: 1],
          [.apns: ["one": 2, "two/a": 1, "": 1], .fcmv1: ["one": 1]]))
      try expectEqual(
        try await store.counts(of: .installation("a"), hub: hub, asOf: now),
        counts([.apns: 1], [.apns: ["one": 1, "two/a": 1]]))
      for nobody in [TagExpression.tag("none"), .installation("z")] {
        try expectEqual(try await store.counts(of: nobody, hub: hub, asOf: now), AudienceCounts())
      }
      try expectEqual(try await store.counts(of: nil, hub: 999, asOf: now), AudienceCounts())
    },
    Clause("counts follow devices that change, expire, go and come back") { store in
      let hub = try await makeHub(store)
      func expectCounts(
        _ native: [PushPlatform: Int], _ templates: [PushPlatform: [String: Int]],
        line: UInt = #line
      ) async throws {
        try expectEqual(
          try await store.counts(of: nil, hub: hub, asOf: now), counts(native, templates),
          line: line)
      }
      try await store.put(SampleDevice("a", templates: ["one": template()]), hub: hub, at: now)
      var late = SampleDevice("b", platform: .fcmv1, templates: ["one": template("{}")])
      late.expiresAt = now + 60
      try await store.put(late, hub: hub, at: now)
      try await expectCounts([.apns: 1, .fcmv1: 1], [.apns: ["one": 1], .fcmv1: ["one": 1]])
      try expectEqual(
        try await store.counts(of: nil, hub: hub, asOf: now + 61),
        counts([.apns: 1], [.apns: ["one": 1]]))
      try await store.put(
        SampleDevice("a", templates: ["two": template(), "three": template()]), hub: hub, at: now)
      try await expectCounts(
        [.apns: 1, .fcmv1: 1], [.apns: ["two": 1, "three": 1], .fcmv1: ["one": 1]])
      _ = try await store.deleteInstallation("b", hub: hub)
      try await expectCounts([.apns: 1], [.apns: ["two": 1, "three": 1]])
      // A client's registration changes from a template to another, and to a native one.
      let named = { RegistrationDraft.Kind.template(template(), name: $0) }
      _ = try await put(store, "r", native("RR", kind: named("x")), hub)
      _ = try await put(store, "r", native("RR", kind: named("y"), platform: .wns), hub)
      try await expectCounts([.apns: 1], [.apns: ["two": 1, "three": 1], .wns: ["y": 1]])
      _ = try await put(store, "r", native("RR", platform: .wns), hub)
      try await expectCounts([.apns: 1, .wns: 1], [.apns: ["two": 1, "three": 1]])
      try await checkpoint(store, hub, dead: try await condemned(store, hub))
      try await expectCounts([.wns: 1], [:])
      _ = try await store.restoreRemoved(RemovalWave(), hub: hub, asOf: now, limit: 100)
      try await expectCounts([.apns: 1, .wns: 1], [.apns: ["two": 1, "three": 1]])
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
    Clause("the examples of the tag specification choose the registrations they should") { store in
      let hub = try await makeHub(store)
      let devices = [
        SampleDevice("i-1", handle: "R1", user: "bob", tags: ["red", "en"]),
        SampleDevice("i-2", handle: "R2", tags: ["red", "blue"]),
        SampleDevice("i-3", handle: "R3"),
        SampleDevice("i-4", handle: "R4", tags: ["blue", "en", "vip:gold", "main"]),
      ]
      for device in devices { try await store.put(device, hub: hub, at: now) }
      for (name, expression, wanted) in examples {
        let query = AudienceQuery(
          hub: hub, kind: .native(.apns), expression: expression, asOf: now)
        let page = try await store.targets(query, after: 0, limit: 10)
        try expectEqual(page.handleTexts, wanted, name)
        try expectEqual(try await store.count(query), wanted.count, "count of \(name)")
      }
    },
    Clause("a native send reaches native registrations of its platform only") { store in
      let hub = try await makeHub(store)
      try await store.put(
        SampleDevice("i-1", handle: "A", templates: ["main": template()]), hub: hub, at: now)
      try await store.put(SampleDevice("i-2", handle: "F", platform: .fcmv1), hub: hub, at: now)
      for (platform, wanted) in [(PushPlatform.apns, ["A"]), (.fcmv1, ["F"]), (.wns, [])] {
        let query = AudienceQuery(
          hub: hub, kind: .native(platform), expression: nil, asOf: now)
        let page = try await store.targets(query, after: 0, limit: 10)
        try expectEqual(page.handleTexts, wanted)
        try expect(
          page.targets.allSatisfy { $0.platform == platform && $0.template == -1 }, "a stranger")
      }
    },
    Clause("a template send reaches template registrations of every platform") { store in
      let hub = try await makeHub(store)
      let shared = template()
      try await store.put(
        SampleDevice(
          "i-1", handle: "A", templates: ["one": shared, "two": template("other")],
          variables: ["lang": "en"]),
        hub: hub, at: now)
      try await store.put(
        SampleDevice("i-2", handle: "F", platform: .fcmv1, templates: ["one": shared]), hub: hub,
        at: now)
      try await store.put(SampleDevice("i-3", handle: "N"), hub: hub, at: now)
      let page = try await store.targets(
        AudienceQuery(hub: hub, kind: .template, expression: nil, asOf: now), after: 0, limit: 10)
      try expectEqual(page.handleTexts, ["A", "A", "F"])
      try expectEqual(page.targets.map(\.platform), [.apns, .apns, .fcmv1])
      try expectEqual(page.templates.map(\.template), [shared, template("other")])
      try expectEqual(page.targets.map(\.template), [0, 1, 0], "templates")
      try expectEqual(page.targets.map { $0.variables >= 0 }, [true, true, false])
      try expectEqual(page.pushVariables[Int(page.targets[1].variables)], ["lang": "en"])
    },
    Clause("a template is reached by the tags of its own, not by those of another") { store in
      let hub = try await makeHub(store)
      var sport = template("s")
      sport.tags = ["sport"]
      try await store.put(
        SampleDevice("i-1", tags: ["red"], templates: ["one": sport, "Two Words": template("t")]),
        hub: hub, at: now)
      for (tag, count) in [("sport", 1), ("one", 1), ("two words", 1), ("red", 2), ("x", 0)] {
        let query = AudienceQuery(
          hub: hub, kind: .template, expression: .tag(Tag(rawValue: tag)), asOf: now)
        try expectEqual(try await store.count(query), count, tag)
      }
    },
    Clause("tags of hubs are apart") { store in
      let (one, two) = (try await makeHub(store, "one"), try await makeHub(store, "two"))
      try await store.put(SampleDevice("i-1", handle: "A", tags: ["red"]), hub: one, at: now)
      try await store.put(SampleDevice("i-2", handle: "B", tags: ["red"]), hub: two, at: now)
      try expectEqual(try await handles(store, one, "red"), ["A"])
      try expectEqual(try await handles(store, two, "red"), ["B"])
      try expectEqual(try await handles(store, two, "$InstallationId:{i-1}"), [])
    },
    Clause("an expired registration is left out") { store in
      let hub = try await makeHub(store)
      var device = SampleDevice("i-1", handle: "A")
      device.expiresAt = now
      try await store.put(device, hub: hub, at: now)
      try await store.put(SampleDevice("i-2", handle: "B"), hub: hub, at: now)
      for (offset, wanted) in [(-1.0, ["A", "B"]), (0.0, ["B"]), (60.0, ["B"])] {
        let query = AudienceQuery(
          hub: hub, kind: .native(.apns), expression: nil, asOf: now.addingTimeInterval(offset))
        try expectEqual(
          try await store.targets(query, after: 0, limit: 10).handleTexts, wanted)
        try expectEqual(try await store.count(query), wanted.count)
      }
      device.expiresAt = now.addingTimeInterval(3_600)
      try await store.put(device, hub: hub, at: now)
      try expectEqual(
        try await store.count(
          AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: now)), 2,
        "after it was renewed")
    },
    Clause("pages follow each other without gap or repeat, in rising order") { store in
      let hub = try await makeHub(store)
      for number in 1...57 {
        try await store.put(
          SampleDevice("i-\(number)", tags: number % 3 == 0 ? ["third"] : []), hub: hub, at: now)
      }
      for (expression, wanted) in [(nil, 57), (TagExpression.tag("third"), 19)] {
        let query = AudienceQuery(
          hub: hub, kind: .native(.apns), expression: expression, asOf: now)
        for limit in [1, 7, 19, 57, 100] {
          let found = try await registrations(store, query, limit: limit)
          try expectEqual(found.count, wanted, "pages of \(limit)")
          try expectEqual(found, Array(Set(found)).sorted())
        }
      }
    },
    Clause("a write is in the audience as soon as it has returned") { store in
      let hub = try await makeHub(store)
      for round in 0..<20 {
        let tag: Tag = round % 2 == 0 ? "even" : "odd"
        try await store.put(SampleDevice("i-1", handle: "A", tags: [tag]), hub: hub, at: now)
        try expectEqual(try await handles(store, hub, "even"), round % 2 == 0 ? ["A"] : [])
        try expectEqual(try await handles(store, hub, "odd"), round % 2 == 0 ? [] : ["A"])
      }
    },
    Clause("of native targets with the same handle, all but the first are duplicates") { store in
      let hub = try await makeHub(store)
      for (id, handle, tags) in [
        ("i-1", "A", ["x"]), ("i-2", "B", ["x"]), ("i-3", "A", ["x", "y"]), ("i-4", "A", ["y"]),
      ] as [(String, String, [Tag])] {
        try await store.put(SampleDevice(id, handle: handle, tags: tags), hub: hub, at: now)
      }
      try await store.put(
        SampleDevice("i-5", handle: "A", platform: .fcmv1, tags: ["x"]), hub: hub, at: now)
      try expectEqual(try await duplicates(store, hub, nil), [false, false, true, true])
      try expectEqual(try await duplicates(store, hub, .tag("x")), [false, false, true])
      try expectEqual(try await duplicates(store, hub, .tag("y")), [false, true])
      try expectEqual(
        try await duplicates(store, hub, nil, limit: 1), [false, false, true, true], "page by page")
      try await store.put(SampleDevice("i-1", handle: "C", tags: ["x"]), hub: hub, at: now)
      try expectEqual(try await duplicates(store, hub, nil), [false, false, false, true])
      _ = try await store.deleteInstallation("i-4", hub: hub)
      try expectEqual(try await duplicates(store, hub, nil), [false, false, false])
    },
    Clause("a target is a duplicate only of one that was in the audience from the start") { store in
      let hub = try await makeHub(store)
      for (id, handle, tags) in [
        ("i-1", "A", ["x"]), ("i-2", "B", []), ("i-3", "C", ["x"]), ("i-4", "D", ["x"]),
        ("i-5", "B", ["x"]), ("i-6", "A", ["x"]), ("i-7", "D", ["x"]),
      ] as [(String, String, [Tag])] {
        try await store.put(SampleDevice(id, handle: handle, tags: tags), hub: hub, at: now)
      }
      try await store.accept(record("n-1", hub: hub))
      let query = AudienceQuery(
        hub: hub, kind: .native(.apns), expression: .tag("x"), asOf: now,
        notification: NotificationID(rawValue: "n-1"))
      let first = try await store.targets(query, after: 0, limit: 3)
      try expectEqual(first.handleTexts, ["A", "C", "D"])
      // Two of the first page change: one gives its handle away, one has what it had; the second
      // device, which was not in the audience, comes into it.
      let handed = SampleDevice("i-1", handle: "Z", tags: ["x"])
      try await store.put(handed, hub: hub, at: now)
      try await store.put(SampleDevice("i-2", handle: "B", tags: ["x"]), hub: hub, at: now)
      try await store.put(SampleDevice("i-4", handle: "D", tags: ["x"]), hub: hub, at: now)
      try await store.put(SampleDevice("i-3", handle: "A", tags: ["x"]), hub: hub, at: now)
      let second = try await store.targets(query, after: first.next ?? 0, limit: 10)
      try expectEqual(second.handleTexts, ["B", "A", "D"])
      try expectEqual(second.targets.map(\.isDuplicate), [false, false, true])
    },
    Clause("an installation of FCM is one device: the handle written last is sent to") { store in
      let hub = try await makeHub(store)
      let id = "eKq3xYb5Q0mVn2T7wZ1aBc"
      // A token, its installation's id, a bogus token that begins with the same id, another device.
      for (name, handle, tags) in [
        ("t-1", id + ":APA91b-one", ["x"]), ("t-2", "fKq3xYb5Q0mVn2T7wZ1aBc:APA91b-two", ["x"]),
        ("f-1", id, ["x"]), ("t-3", id + ":APA91b-other", ["y"]),
        // Not of the form of an id: only equal handles are one device.
        ("n-1", "aKq3xYb5Q0mVn2T7wZ1aBc:1", ["x"]), ("n-2", "aKq3xYb5Q0mVn2T7wZ1aBc:2", ["x"]),
      ] as [(String, String, [Tag])] {
        try await store.put(
          SampleDevice(name, handle: handle, platform: .fcmv1, tags: tags), hub: hub, at: now)
      }
      func marks(_ expression: TagExpression?, limit: Int = 100) async throws -> [String: Bool] {
        let query = AudienceQuery(
          hub: hub, kind: .native(.fcmv1), expression: expression, asOf: now)
        var found: [String: Bool] = [:]
        var after: RegistrationID = 0
        while true {
          let page = try await store.targets(query, after: after, limit: limit)
          for (target, text) in zip(page.targets, page.handleTexts) {
            found[text] = target.isDuplicate
          }
          guard let next = page.next else { return found }
          after = next
        }
      }
      let both = [
        id + ":APA91b-one": true, "fKq3xYb5Q0mVn2T7wZ1aBc:APA91b-two": false, id: false,
        "aKq3xYb5Q0mVn2T7wZ1aBc:1": false, "aKq3xYb5Q0mVn2T7wZ1aBc:2": false,
      ]
      try expectEqual(try await marks("x"), both)
      try expectEqual(try await marks("x", limit: 1), both, "page by page")
      // Those that are not in the audience stand in for nobody.
      try expectEqual(try await marks("y"), [id + ":APA91b-other": false])
      try expectEqual(
        try await marks(.or(.tag("x"), .tag("y"))).filter { !$0.value }.keys.sorted(),
        [
          "aKq3xYb5Q0mVn2T7wZ1aBc:1", "aKq3xYb5Q0mVn2T7wZ1aBc:2", id + ":APA91b-other",
          "fKq3xYb5Q0mVn2T7wZ1aBc:APA91b-two",
        ])
      let page = try await store.targets(
        AudienceQuery(
          hub: hub, kind: .native(.fcmv1), expression: .or(.tag("x"), .tag("y")), asOf: now),
        after: 0, limit: 100)
      let first = page.targets.first {
        String(decoding: page.handles[$0.handle], as: UTF8.self) == id + ":APA91b-other"
      }
      try expectEqual(
        page.twins[first?.registration ?? 0]?.map {
          String(decoding: page.handles[$0.handle], as: UTF8.self)
        }, [id, id + ":APA91b-one"], "the others, those written later first")
      try expectEqual(page.twins.count, 1)
      // By its handle only that one is found.
      _ = try await store.deleteInstallation("t-3", hub: hub)
      try expectEqual(try await marks("x"), both)
      _ = try await store.deleteInstallation("f-1", hub: hub)
      try expectEqual(try await marks("x")[id + ":APA91b-one"], false)
    },
    Clause("of an installation of FCM what is written during a send is reached once more") {
      store in
      let hub = try await makeHub(store)
      let id = "eKq3xYb5Q0mVn2T7wZ1aBc"
      func put(_ name: String, _ handle: String) async throws {
        try await store.put(
          SampleDevice(name, handle: handle, platform: .fcmv1, tags: ["x"]), hub: hub, at: now)
      }
      try await put("i-1", id + ":one")
      try await put("i-2", id + ":two")
      try await put("i-3", id)
      try await store.accept(record("n-1", hub: hub))
      let query = AudienceQuery(
        hub: hub, kind: .native(.fcmv1), expression: "x", asOf: now,
        notification: NotificationID(rawValue: "n-1"))
      let first = try await store.targets(query, after: 0, limit: 1)
      try expectEqual(first.targets.map(\.isDuplicate), [true])
      // The one that the first is passed over for changes its handle before it is read.
      try await put("i-3", id + ":new")
      let second = try await store.targets(query, after: first.next ?? 0, limit: 10)
      try expectEqual(second.handleTexts, [id + ":two", id + ":new"])
      // The stable registration is not a duplicate, so the device is reached in any case.
      try expectEqual(second.targets.map(\.isDuplicate), [false, true])
    },
    Clause("a Web Push subscription is known by its endpoint and kept whole") { store in
      let hub = try await makeHub(store)
      for (id, key) in [("i-1", "k1"), ("i-2", "k2")] {
        var device = SampleDevice(id, platform: .browser)
        device.installation.pushChannel = .subscription(
          endpoint: "https://push.example/1", p256dh: key, auth: "a")
        try await store.put(device, hub: hub, at: now)
      }
      let page = try await store.targets(
        AudienceQuery(hub: hub, kind: .native(.browser), expression: nil, asOf: now), after: 0,
        limit: 10)
      try expectEqual(
        page.handleTexts, ["https://push.example/1\nk1\na", "https://push.example/1\nk2\na"])
    },
    Clause("random expressions choose whom a plain evaluation chooses") { store in
      try await compareRandomExpressions(on: store, seed: 0x5eed, devices: 120, rounds: 60)
    },
    Clause("a sample holds different members of the audience, no more than asked") { store in
      let hub = try await makeHub(store)
      for number in 0..<30 {
        try await store.put(
          SampleDevice("i-\(number)", tags: number < 25 ? ["red"] : []), hub: hub, at: now)
      }
      var query = AudienceQuery(hub: hub, kind: .native(.apns), expression: "red", asOf: now)
      var seen: Set<RegistrationID> = []
      var draws = 0
      // A device is in one of eight samples or more; a thousand without it do not happen.
      while draws < 10 || seen.count < 25 && draws < 1_000 {
        draws += 1
        let page = try await store.sample(query, limit: 10)
        let drawn = page.targets.map(\.registration)
        try expectEqual(Set(drawn).count, 10)
        seen.formUnion(drawn)
      }
      let all = try await store.targets(query, after: 0, limit: 100).targets.map(\.registration)
      try expectEqual(seen.sorted(), all, "everybody is drawn some time")
      try expectEqual(try await store.sample(query, limit: 100).targets.count, 25)
      query.expression = "blue"
      try expect(try await store.sample(query, limit: 10).targets.isEmpty, "nobody is blue")
    },
  ]

  private static func duplicates(
    _ store: any HubStore, _ hub: Hub.ID, _ expression: TagExpression?, limit: Int = 100
  ) async throws -> [Bool] {
    let query = AudienceQuery(
      hub: hub, kind: .native(.apns), expression: expression, asOf: now)
    return try await pages(store, query, limit: limit).map(\.isDuplicate)
  }

  /// Writes, changes and deletes devices with random tags, and compares what random expressions
  /// choose with what a plain evaluation of each device's tags chooses.
  private static func compareRandomExpressions(
    on store: any HubStore, seed: UInt64, devices: Int, rounds: Int
  ) async throws {
    let hub = try await makeHub(store)
    var random = SeededGenerator(seed: seed)
    var present: [String: SampleDevice] = [:]
    for round in 0..<rounds {
      for _ in 0..<(round == 0 ? devices : 5) {
        let id = "i-\(Int.random(in: 0..<devices, using: &random))"
        if round > 0 && Int.random(in: 0..<4, using: &random) == 0 {
          _ = try await store.deleteInstallation(id, hub: hub)
          present[id] = nil
        } else {
          let device = randomDevice(id, &random)
          try await store.put(device, hub: hub, at: now)
          present[id] = device
        }
      }
      let expression = randomExpression(depth: 4, &random)
      let query = AudienceQuery(
        hub: hub, kind: .native(.apns), expression: expression, asOf: now)
      var found: [String] = []
      var after: RegistrationID? = 0
      while let start = after {
        let page = try await store.targets(query, after: start, limit: 13)
        found += page.handleTexts
        after = page.next
      }
      let wanted = present.values.filter { isTrue(expression, for: $0.registrations[0].tags) }
        .map(\.installation.pushChannel.handle)
      try expectEqual(
        found.sorted(), wanted.sorted(), "seed \(seed), round \(round): \(expression)")
      try expectEqual(try await store.count(query), wanted.count, "count of \(expression)")
    }
  }

  private static func randomDevice(
    _ id: String, _ random: inout SeededGenerator
  ) -> SampleDevice {
    let tags = words.filter { _ in Bool.random(using: &random) }
    let user = Int.random(in: 0..<3, using: &random)
    return SampleDevice(
      id, user: user == 0 ? nil : "u\(user)",
      tags: tags.map { Tag(rawValue: Bool.random(using: &random) ? $0 : $0.uppercased()) })
  }

  private static func randomExpression(
    depth: Int, _ random: inout SeededGenerator
  ) -> TagExpression {
    switch depth == 0 ? 0 : Int.random(in: 0..<5, using: &random) {
    case 1: return .not(randomExpression(depth: depth - 1, &random))
    case 2, 3:
      return .and(
        randomExpression(depth: depth - 1, &random), randomExpression(depth: depth - 1, &random))
    case 4:
      return .or(
        randomExpression(depth: depth - 1, &random), randomExpression(depth: depth - 1, &random))
    default:
      let all = words + ["unknown", "$UserId:{u1}", "$userid:{U2}", "$InstallationId:{i-7}"]
      return .tag(Tag(rawValue: all[Int.random(in: 0..<all.count, using: &random)]))
    }
  }

  private static func isTrue(_ expression: TagExpression, for tags: [Tag]) -> Bool {
    switch expression {
    case .tag(let tag): tags.contains(tag)
    case .not(let inner): !isTrue(inner, for: tags)
    case .and(let left, let right): isTrue(left, for: tags) && isTrue(right, for: tags)
    case .or(let left, let right): isTrue(left, for: tags) || isTrue(right, for: tags)
    }
  }

  /// docs/protocol/tags.md, section 3.
  private static let examples: [(String, TagExpression, [String])] = {
    let (red, blue, en) = (
      TagExpression.tag("red"), TagExpression.tag("blue"), TagExpression.tag("en")
    )
    let gold = TagExpression.tag("vip:gold")
    return [
      ("red", red, ["R1", "R2"]),
      ("RED", .tag("RED"), ["R1", "R2"]),
      ("red || blue", .or(red, blue), ["R1", "R2", "R4"]),
      ("red && blue", .and(red, blue), ["R2"]),
      ("red && !blue", .and(red, .not(blue)), ["R1"]),
      ("!red", .not(red), ["R3", "R4"]),
      ("! ! red", .not(.not(red)), ["R1", "R2"]),
      ("!red && !blue", .and(.not(red), .not(blue)), ["R3"]),
      ("!(red || blue)", .not(.or(red, blue)), ["R3"]),
      ("$InstallationId:{i-1}", .tag("$InstallationId:{i-1}"), ["R1"]),
      ("$installationid:{i-1}", .tag("$installationid:{i-1}"), ["R1"]),
      ("$InstallationId:{I-1}", .tag("$InstallationId:{I-1}"), []),
      ("!$UserId:{bob}", .not(.tag("$UserId:{bob}")), ["R2", "R3", "R4"]),
      ("$UserId:{bob} || vip:gold", .or(.tag("$UserId:{bob}"), gold), ["R1", "R4"]),
      ("(red || blue) && en", .and(.or(red, blue), en), ["R1", "R4"]),
      (
        "red && (blue || en) && !vip:gold", .and(.and(red, .or(blue, en)), .not(gold)),
        ["R1", "R2"]
      ),
      ("main", .tag("main"), ["R4"]),
      ("nobody", .tag("nobody"), []),
      ("!nobody", .not(.tag("nobody")), ["R1", "R2", "R3", "R4"]),
      ("$Foo:{x}", .tag("$Foo:{x}"), []),
    ]
  }()

  private static func counts(
    _ native: [PushPlatform: Int], _ templates: [PushPlatform: [String: Int]]
  ) -> AudienceCounts {
    var counts = AudienceCounts()
    counts.native = native
    for (platform, names) in templates {
      for (name, count) in names {
        counts.templates[TemplateKey(platform: platform, name: name)] = count
      }
    }
    return counts
  }

  static func pages(
    _ store: any HubStore, _ query: AudienceQuery, limit: Int
  ) async throws -> [Target] {
    var targets: [Target] = []
    var after: RegistrationID? = 0
    while let start = after {
      let page = try await store.targets(query, after: start, limit: limit)
      try expect(page.targets.count <= limit, "a page too long")
      try expect((page.next ?? .max) > start, "a page that leads back")
      targets += page.targets
      after = page.next
    }
    return targets
  }

  static let words = ["a", "b", "c", "d", "e"]
}
