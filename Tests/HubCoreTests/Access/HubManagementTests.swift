import Foundation
import HubCore
import HubTesting
import NotificationHubs
import Testing

@Suite("Managing hubs and policies")
struct HubManagementTests {
  @Test("a new hub gets a policy to listen and a full one, each with two random keys")
  func defaultPolicies() async throws {
    let test = try await TestHub()
    let policies = try await test.service.policies.list(hub: "HUB1")
    #expect(
      policies.map(\.name) == [
        "DefaultListenSharedAccessSignature", "DefaultFullSharedAccessSignature",
      ])
    #expect(policies.map(\.rights) == [.listen, .all])
    let keys = policies.flatMap { [$0.primaryKey, $0.secondaryKey] }
    #expect(Set(keys).count == 4)
    #expect(keys.allSatisfy { $0.utf8.count == 44 && Data(base64Encoded: $0)?.count == 32 })
  }

  @Test("the policies that a caller brings come after the two, or stand in for them")
  func ownPolicies() async throws {
    let test = try await TestHub()
    let now = test.clock.now
    let own = try AccessPolicy.new(named: "own", rights: .send, at: now, random: .system)
    let full = try AccessPolicy.new(
      named: AccessPolicy.defaultFullName, rights: .all, at: now, random: .system)
    _ = try await test.service.createHub(named: "h2", policies: [own, full])
    let policies = try await test.service.policies.list(hub: "h2")
    #expect(policies.map(\.name) == [AccessPolicy.defaultListenName, "own", full.name])
    #expect(policies.last == full)
  }

  @Test(
    "a hub's name must begin with a letter and hold only what an address can",
    arguments: ["", "1a", "-a", "a b", "a/b", "é", "aé", "a%", String(repeating: "a", count: 261)])
  func hubNames(name: String) async throws {
    let test = try await TestHub()
    let failure = await #expect(throws: HubFailure.self) {
      try await test.service.createHub(named: name)
    }
    #expect(failure?.status == 400)
  }

  @Test("a hub is there once, whatever the letter case, until it is deleted")
  func hubsAreUnique() async throws {
    let test = try await TestHub()
    let name = "a.B-c_9" + String(repeating: "x", count: 253)
    _ = try await test.service.createHub(named: name, registrationTTL: 86_400)
    #expect(try await test.service.hubs().map(\.name) == ["hub1", name])
    let failure = await #expect(throws: HubFailure.self) {
      try await test.service.createHub(named: "HUB1")
    }
    #expect(failure?.status == 409)
    #expect(failure?.message?.hasPrefix("SubCode=40900. Conflict") == true)
    try await test.service.deleteHub(named: "Hub1")
    await #expect(throws: HubFailure.noHub) { try await test.service.deleteHub(named: "hub1") }
    await #expect(throws: HubFailure.noHub) { try await test.service.hub(named: "hub1") }
    await #expect(throws: HubFailure.noHub) { try await test.service.policies.list(hub: "hub1") }
  }

  @Test("registrations live a day at least", arguments: [86_399.0, 0, -1, .nan])
  func shortTTL(ttl: TimeInterval) async throws {
    let test = try await TestHub()
    let failure = await #expect(throws: HubFailure.self) {
      try await test.service.createHub(named: "h2", registrationTTL: ttl)
    }
    #expect(failure?.status == 400)
  }

  @Test(
    "a policy that breaks a rule is refused",
    arguments: [
      ("", AccessRights.send, nil), ("a b", .send, nil), ("a/b", .send, nil),
      (String(repeating: "a", count: 257), .send, nil), ("p", [], nil), ("p", .manage, nil),
      ("p", [.manage, .send], nil), ("p", .send, "short"), ("p", .send, "c2hvcnQ="),
      ("p", .send, String(repeating: "*", count: 44)),
    ] as [(String, AccessRights, String?)])
  func badPolicies(name: String, rights: AccessRights, key: String?) async throws {
    let test = try await TestHub()
    let failure = await #expect(throws: HubFailure.self) {
      try await test.service.policies.create(
        named: name, rights: rights, hub: "hub1", primaryKey: key)
    }
    #expect(failure?.status == 400)
    #expect(failure?.message?.contains(key ?? "\u{0}") == false)
  }

  @Test("there are at most twelve policies, each with its own name")
  func policyCount() async throws {
    let test = try await TestHub()
    for number in 3...12 {
      _ = try await test.service.policies.create(named: "p\(number)", rights: .send, hub: "hub1")
    }
    let full = await #expect(throws: HubFailure.self) {
      try await test.service.policies.create(named: "p13", rights: .send, hub: "hub1")
    }
    #expect(full?.status == 400)
    let double = await #expect(throws: HubFailure.self) {
      try await test.service.policies.create(named: "p3", rights: .send, hub: "hub1")
    }
    #expect(double?.status == 409)
    try await test.service.policies.delete(named: "p3", hub: "hub1")
    let gone = await #expect(throws: HubFailure.self) {
      try await test.service.policies.delete(named: "p3", hub: "hub1")
    }
    #expect(gone?.status == 404)
  }

  @Test("the namespace's root policy is made once")
  func rootPolicy() async throws {
    let test = try await TestHub()
    let root = try await test.service.policies.root()
    #expect(root.name == "RootManageSharedAccessKey")
    #expect(root.rights == .all)
    #expect(try await test.service.policies.root() == root)
  }

  @Test("rotating replaces one key and nothing else")
  func rotation() async throws {
    let test = try await TestHub()
    let before = try await test.full()
    test.clock.advance(by: .seconds(60))
    let after = try await test.service.policies.rotateKey(
      .secondary, ofPolicy: before.name, hub: "hub1")
    #expect(after.primaryKey == before.primaryKey)
    #expect(after.secondaryKey != before.secondaryKey)
    #expect(after.createdAt == before.createdAt)
    #expect(after.modifiedAt == test.clock.now)
    #expect(try await test.full() == after)
  }

  @Test("a policy's connection string holds its name and primary key")
  func connectionString() async throws {
    let test = try await TestHub()
    let full = try await test.full()
    let text = full.connectionString(endpoint: .init(namespace: "contoso-ns")).text
    #expect(
      text == "Endpoint=sb://contoso-ns.servicebus.windows.net/;"
        + "SharedAccessKeyName=DefaultFullSharedAccessSignature;SharedAccessKey=\(full.primaryKey)")
  }

  @Test("a credential is kept once its gateway takes it")
  func credentials() async throws {
    let test = try await TestHub()
    func set(_ platform: PushPlatform, _ token: String) async throws {
      try await test.service.credentials.set(
        PushCredential(
          platform: platform, properties: ["Token": token], modifiedAt: test.clock.now),
        hub: "hub1", checkedBy: StubGateways())
    }
    let bad = await #expect(throws: HubFailure.self) { try await set(.apns, "bad") }
    #expect(bad == HubFailure(status: 400, message: "'Token' is no private key"))
    let unknown = await #expect(throws: HubFailure.self) { try await set(.adm, "good") }
    #expect(unknown?.status == 400)
    #expect(try await test.service.credentials.list(hub: "hub1").isEmpty)

    try await set(.wns, "good")
    try await set(.apns, "good")
    #expect(try await test.service.credentials.list(hub: "hub1").map(\.platform) == [.apns, .wns])
    let entry = try await test.service.directory.snapshot().hub(named: "hub1")
    #expect(entry?.credentials[.apns]?["token"] == "good")
    try await test.service.credentials.remove(.apns, hub: "hub1")
    let gone = await #expect(throws: HubFailure.self) {
      try await test.service.credentials.remove(.apns, hub: "hub1")
    }
    #expect(gone?.status == 404)
  }

  @Test("a description's credentials are kept of every platform, unless one cannot work")
  func describedCredentials() async throws {
    let test = try await TestHub()
    func credential(_ platform: PushPlatform, _ token: String) -> PushCredential {
      PushCredential(
        platform: platform, properties: ["Token": token], modifiedAt: test.clock.now)
    }
    let bad = HubChange(credentials: [credential(.apns, "bad")])
    let refusal = HubFailure(status: 400, message: "'Token' is no private key")
    await #expect(throws: refusal) { try await test.service.createHub(named: "h2", bad) }
    await #expect(throws: refusal) { try await test.service.updateHub(named: "hub1", bad) }
    #expect(try await test.service.hubs().map(\.name) == ["hub1"])
    let all = PushPlatform.allCases.map { credential($0, "good") }
    _ = try await test.service.createHub(named: "h2", HubChange(credentials: all))
    #expect(try await test.service.credentials.list(hub: "h2").count == all.count)
    let twice = HubChange(credentials: [credential(.wns, "a"), credential(.wns, "b")])
    let failure = await #expect(throws: HubFailure.self) {
      try await test.service.updateHub(named: "h2", twice)
    }
    #expect(failure?.status == 400)
    // What a description leaves open stays, what it says replaces.
    _ = try await test.service.updateHub(named: "h2", HubChange(credentials: nil))
    #expect(try await test.service.credentials.list(hub: "h2").count == all.count)
    _ = try await test.service.updateHub(named: "h2", HubChange(credentials: []))
    #expect(try await test.service.credentials.list(hub: "h2").isEmpty)
  }

  @Test("policies that a description repeats keep their keys and the time they were made")
  func describedPolicies() async throws {
    let test = try await TestHub()
    let before = try await test.full()
    test.clock.advance(by: .seconds(60))
    let change = HubChange(policies: [
      .init(name: before.name, rights: .all), .init(name: "new", rights: .send),
    ])
    let hub = try await test.service.updateHub(named: "HUB1", change)
    #expect(hub.updatedAt == test.clock.now)
    let after = try await test.service.policies.list(hub: "hub1")
    #expect(after.map(\.name) == [before.name, "new"])
    #expect(after[0] == before)
    var changed = change
    changed.policies?[0].primaryKey = AccessPolicy.randomKey(.system)
    _ = try await test.service.updateHub(named: "hub1", changed)
    let third = try await test.full()
    #expect(third.primaryKey != before.primaryKey)
    #expect(third.createdAt == before.createdAt)
    #expect(third.modifiedAt == test.clock.now)
  }
}
