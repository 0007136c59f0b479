import Foundation
import HubCore
import NotificationHubs

extension HubStoreContract {
  static let deviceClauses = [
    Clause("an installation comes back as it was written") { store in
      let hub = try await makeHub(store)
      let full = fullInstallation
      try await store.putInstallation(
        full, registrations: SampleDevice.registrations(of: full), hub: hub, at: now)
      try expectEqual(try await store.installation(full.installationID, hub: hub), full)
      let plain = SampleDevice("i-2").installation
      try await store.put(SampleDevice("i-2"), hub: hub, at: now)
      try expectEqual(try await store.installation("i-2", hub: hub), plain)
      try expect(try await store.installation("i-3", hub: hub) == nil, "one that nobody wrote")
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
          installation, registrations: SampleDevice.registrations(of: installation), hub: hub,
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
  ]

  static func template(_ body: String = #"{"aps":{"alert":"$(message)"}}"#) -> PushTemplate {
    PushTemplate(body: body)
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

  /// The handles of native targets that carry a tag.
  static func handles(
    _ store: any HubStore, _ hub: Hub.ID, _ tag: Tag, platform: PushPlatform = .apns
  ) async throws -> [String] {
    try await store.targets(
      AudienceQuery(hub: hub, kind: .native(platform), expression: .tag(tag), asOf: now),
      after: 0, limit: 1_000
    ).handleTexts
  }

  /// All targets of a hub, native ones on Apple's platform first.
  static func all(_ store: any HubStore, _ hub: Hub.ID) async throws -> [Target] {
    var targets: [Target] = []
    for kind in [AudienceQuery.Kind.native(.apns), .template] {
      let query = AudienceQuery(hub: hub, kind: kind, expression: nil, asOf: now)
      targets += try await store.targets(query, after: 0, limit: 1_000).targets
    }
    return targets
  }
}
