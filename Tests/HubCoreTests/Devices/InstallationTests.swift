import Foundation
import HubCore
import HubTesting
import NotificationHubs
import Testing

/// docs/protocol/rest.md, sections 4.2 to 4.5.
@Suite("An installation")
struct InstallationTests {
  static let tutorial = """
    {"installationId":"i-1","platform":"apns","pushChannel":"0a1b","tags":["12345"],\
    "templates":{"main":{"body":"{\\"aps\\":{\\"alert\\":\\"$(message)\\"}}"}}}
    """

  @Test("is kept as given, its token in upper case, its template tagged with its name")
  func putAndRead() async throws {
    let test = try await TestHub()
    try await test.service.installations.put(
      hub: test.hub, id: "i-1", body: Array(Self.tutorial.utf8))
    let read = try await test.service.installations.get(hub: test.hub, id: "i-1")
    #expect(read.pushChannel == .handle("0A1B"))
    #expect(read.tags == ["12345"])
    #expect(read.templates["main"]?.tags == ["main"])
    #expect(read.expirationTime == nil)
    let drafts = try await test.store.registrations(of: "i-1", hub: test.hub.id)
    #expect(drafts == read.registrationDrafts)
    #expect(drafts.count == 2)
  }

  @Test("that is missing is answered 404, and deleting it is fine")
  func missing() async throws {
    let test = try await TestHub()
    await #expect(throws: HubFailure(status: 404, message: "Installation not found")) {
      try await test.service.installations.get(hub: test.hub, id: "i-1")
    }
    await #expect(throws: HubFailure.noInstallation) {
      try await test.service.installations.patch(hub: test.hub, id: "i-1", body: Array("[]".utf8))
    }
    try await test.service.installations.delete(hub: test.hub, id: "i-1")
    try await test.service.installations.put(
      hub: test.hub, id: "i-1", body: Array(Self.tutorial.utf8))
    try await test.service.installations.delete(hub: test.hub, id: "i-1")
    await #expect(throws: HubFailure.noInstallation) {
      try await test.service.installations.get(hub: test.hub, id: "i-1")
    }
    #expect(try await test.store.registrations(of: "i-1", hub: test.hub.id).isEmpty)
  }

  @Test(
    "lives no longer than the hub allows, and is forgotten then",
    arguments: [
      (nil, 86_400.0), ("2030-01-01T10:00:00Z", 36_000), ("2031-01-01T00:00:00Z", 86_400),
    ] as [(String?, TimeInterval)])
  func expiry(given: String?, seconds: TimeInterval) async throws {
    let test = try await TestHub(registrationTTL: 86_400)
    let expiry = given.map { "\"\($0)\"" } ?? "null"
    let body = #"{"platform":"apns","pushChannel":"00","expirationTime":\#(expiry)}"#
    let start = test.clock.now
    try await test.service.installations.put(hub: test.hub, id: "i-1", body: Array(body.utf8))
    let read = try await test.service.installations.get(hub: test.hub, id: "i-1")
    #expect(read.expirationTime == start.addingTimeInterval(seconds))
    let drafts = try await test.store.registrations(of: "i-1", hub: test.hub.id)
    #expect(drafts.map(\.expiresAt) == [read.expirationTime])
    test.clock.set(start.addingTimeInterval(seconds))
    await #expect(throws: HubFailure.noInstallation) {
      try await test.service.installations.get(hub: test.hub, id: "i-1")
    }
    await #expect(throws: HubFailure.noInstallation) {
      try await test.service.installations.patch(hub: test.hub, id: "i-1", body: Array("[]".utf8))
    }
  }

  @Test("changes by a patch as a whole or not at all")
  func patch() async throws {
    let test = try await TestHub()
    func patch(_ json: String) async throws {
      try await test.service.installations.patch(hub: test.hub, id: "i-1", body: Array(json.utf8))
    }
    try await test.service.installations.put(
      hub: test.hub, id: "i-1", body: Array(Self.tutorial.utf8))
    try await patch(
      #"[{"op":"add","path":"/tags","value":"new"},{"op":"add","path":"/userId","value":"bob"}]"#)
    var read = try await test.service.installations.get(hub: test.hub, id: "i-1")
    #expect(read.tags == ["12345", "new"])
    #expect(read.userID == "bob")
    let drafts = try await test.store.registrations(of: "i-1", hub: test.hub.id)
    #expect(drafts == read.registrationDrafts)

    for (bad, fault) in [
      (
        #"[{"op":"add","path":"/userId","value":"eve"},{"op":"add","path":"/nope","value":"x"}]"#,
        ""
      ),
      (
        #"[{"op":"add","path":"/userId","value":"eve"},{"op":"add","path":"/tags","value":"a b"}]"#,
        "An invalid tag(s) 'a b' was supplied."
      ),
      (
        #"[{"op":"replace","path":"/templates/main/body","value":"{\"a\":\"$x1\"}"}]"#,
        "'(' is expected"
      ),
      (#"{"op":"add"}"#, ""), ("[", ""), ("", ""),
    ] {
      let failure = await #expect(throws: HubFailure.self) { try await patch(bad) }
      #expect(failure?.status == 400)
      #expect(fault.isEmpty || failure?.message?.contains(fault) == true, "\(failure as Any)")
    }
    read = try await test.service.installations.get(hub: test.hub, id: "i-1")
    #expect(read.userID == "bob")
  }

  @Test("whose channel is dead has no registrations until it brings a new one")
  func deadChannel() async throws {
    let test = try await TestHub()
    try await test.service.installations.put(
      hub: test.hub, id: "i-1", body: Array(Self.tutorial.utf8))
    let query = AudienceQuery(
      hub: test.hub.id, kind: .native(.apns), expression: nil, asOf: test.clock.now)
    let page = try await test.store.targets(query, after: 0, limit: 1)
    let target = try #require(page.targets.first)
    let id = NotificationID(rawValue: "n")
    try await test.store.accept(
      NotificationRecord(
        id: id, hub: test.hub.id, request: .init(format: .template, body: []),
        state: .processing, enqueuedAt: test.clock.now))
    var checkpoint = Checkpoint(notification: id, hub: test.hub.id, at: test.clock.now)
    checkpoint.deadHandles = [
      .init(
        registration: target.registration, platform: .apns,
        handle: String(decoding: page.handles[target.handle], as: UTF8.self),
        revision: page.revision, outcome: .expiredChannel)
    ]
    try await test.store.checkpoint(checkpoint)
    #expect(try await test.service.installations.get(hub: test.hub, id: "i-1").pushChannelExpired)

    func patch(_ json: String) async throws -> Int {
      try await test.service.installations.patch(hub: test.hub, id: "i-1", body: Array(json.utf8))
      return try await test.store.registrations(of: "i-1", hub: test.hub.id).count
    }
    #expect(try await patch(#"[{"op":"add","path":"/tags","value":"x"}]"#) == 0)
    #expect(try await patch(#"[{"op":"replace","path":"/pushChannel","value":"ff"}]"#) == 2)
    let read = try await test.service.installations.get(hub: test.hub, id: "i-1")
    #expect(!read.pushChannelExpired)
    #expect(read.pushChannel == .handle("FF"))
  }

  @Test(
    "is answered 503 with the reason when the store fails",
    arguments: [
      (StoreError.diskFull, "disk"), (.locked, "locked"), (.closed, "closed"),
      (.engine(code: 10, message: "disk I/O error"), "disk I/O error"),
    ])
  func storeFailure(error: StoreError, word: String) async throws {
    let test = try await TestHub()
    test.hook.fail(with: error)
    let failure = await #expect(throws: HubFailure.self) {
      try await test.service.installations.put(
        hub: test.hub, id: "i-1", body: Array(Self.tutorial.utf8))
    }
    #expect(failure?.status == 503)
    #expect(failure?.message?.contains(word) == true)
  }
}
