import Foundation
import HubCore
import HubTesting
import NotificationHubs
import Testing

/// docs/protocol/sas.md, sections 4, 5 and 6.
@Suite("A request")
struct AuthorizationTests {
  @Test("with a good token of the hub reaches it, in any letter case of the hub's name")
  func goodToken() async throws {
    let test = try await TestHub()
    let full = try await test.full()
    #expect(try await test.authorize(test.token(full)) == test.hub)
    #expect(
      try await test.authorize(test.token(full), hub: "HUB1", path: "/HUB1/messages") == test.hub)
    let second = test.token(full, key: full.secondaryKey)
    #expect(try await test.authorize(second) == test.hub)
  }

  @Test("without a token, or with one that cannot be read, is refused in that order")
  func unreadableTokens() async throws {
    let test = try await TestHub()
    await #expect(throws: HubFailure.missingToken) { try await test.authorize(nil) }
    for header in [
      "", "Bearer x", "SharedAccessSignature", "SharedAccessSignature sr=a&sig=b&skn=c",
      "SharedAccessSignature sr=a&sig=b&skn=c&se=soon",
      "SharedAccessSignature sr=a&sr=a&sig=b&skn=c&se=1",
    ] {
      await #expect(throws: HubFailure.malformedToken) { try await test.authorize(header) }
    }
    #expect(HubFailure.missingToken.status == 401)
    #expect(HubFailure.malformedToken.message?.hasPrefix("MalformedToken: ") == true)
  }

  @Test("with a wrong key, an unknown policy or an altered field has an invalid signature")
  func wrongSignatures() async throws {
    let test = try await TestHub()
    let full = try await test.full()
    let good = test.token(full)
    let stranger = try AccessPolicy.new(
      named: "Nobody", rights: .all, at: test.clock.now, random: .system)
    for header in [
      test.token(full, key: AccessPolicy.randomKey(.system)), test.token(stranger),
      good.replacing("%2Fhub1", with: "%2Fhub2"), good.replacing("%2F", with: "%2f"),
      good.replacing("&se=1", with: "&se=2"), good.replacing("sig=", with: "sig=A"),
      good.replacing("skn=DefaultFull", with: "skn=DefaultListen"),
      good.replacing("skn=Default", with: "skn=default"),
    ] {
      let failure = await #expect(throws: HubFailure.self) { try await test.authorize(header) }
      #expect(failure == .invalidSignature, "\(header)")
    }
    #expect(
      HubFailure.invalidSignature
        == HubFailure(
          status: 401, message: "InvalidSignature: The token has an invalid signature."))
  }

  @Test("a wrong signature is reported before expiry, and expiry before the audience")
  func orderOfChecks() async throws {
    let test = try await TestHub()
    let full = try await test.full()
    let elsewhere = test.token(full, resource: "https://other/hub1")
    let wrong = test.token(
      full, resource: "https://other/hub1", key: AccessPolicy.randomKey(.system))
    await #expect(throws: HubFailure.invalidAudience) { try await test.authorize(elsewhere) }
    test.clock.advance(by: .seconds(1199))
    _ = try await test.authorize(test.token(full))
    let last = test.token(full)
    test.clock.advance(by: .seconds(1199))
    #expect(try await test.authorize(last) == test.hub)
    test.clock.advance(by: .seconds(1))
    let over = await #expect(throws: HubFailure.self) { try await test.authorize(last) }
    #expect(over == .expiredToken)
    #expect(over?.hint?.hasPrefix("The token ended at ") == true)
    await #expect(throws: HubFailure.expiredToken) { try await test.authorize(elsewhere) }
    await #expect(throws: HubFailure.invalidSignature) { try await test.authorize(wrong) }
    #expect(HubFailure.expiredToken.message == "ExpiredToken: ")
  }

  static let audiences: [(String, String, Bool)] = [
    ("http://h/hub1/messages/", "/hub1/messages?api-version=2015-01", true),
    ("https://h/", "/hub1/registrations", true),
    ("https://h", "/hub1/messages", true),
    ("https://h/HUB1", "/hub1/registrations", true),
    ("sb://h/hub1", "/hub1/installations/x", true),
    (
      "https://h/hub1/installations/3f1c6c0e?api-version=2020-06", "/hub1/installations/3f1c6c0e",
      true
    ),
    ("https://h/hub1/registrationids/", "/hub1/registrationIDs/", true),
    ("https://H:8080/hub1", "/hub1/messages", true),
    ("h/hub1", "/hub1/messages", true),
    (
      "http://h/hub1/tags/%24installationid%3a%7babc%7d/registrations/",
      "/hub1/tags/$InstallationId:%7Babc%7D/registrations", true
    ),
    ("https://h/hub1%2ftags/a", "/hub1/tags/a", false),
    ("https://h/hub1", "/hub10/messages", false),
    ("https://h/hub1/messages", "/hub1/registrations", false),
    ("https://other/hub1", "/hub1/messages", false),
    ("ftp://h/hub1", "/hub1/messages", false),
    ("https://h/hub1/messages/1", "/hub1/messages", false),
  ]

  @Test("is in the token's audience by host and whole path segments", arguments: audiences)
  func audience(resource: String, path: String, isCovered: Bool) async throws {
    let test = try await TestHub()
    let token = test.token(try await test.full(), resource: resource)
    // The name of the hub that a router would take from these paths.
    let hub = path.hasPrefix("/hub10") ? "hub10" : "hub1"
    if hub == "hub10" { _ = try await test.service.createHub(named: hub) }
    if isCovered {
      #expect(try await test.authorize(token, host: "h:9443", path: path) == test.hub)
    } else {
      let expected: HubFailure = hub == "hub10" ? .invalidSignature : .invalidAudience
      await #expect(throws: expected) { try await test.authorize(token, hub: hub, path: path) }
      let root = try await test.service.policies.root()
      await #expect(throws: HubFailure.invalidAudience) {
        try await test.authorize(test.token(root, resource: resource), hub: hub, path: path)
      }
    }
  }

  @Test("may name the server by any of its public names")
  func publicNames() async throws {
    let test = try await TestHub()
    let full = try await test.full()
    let token = test.token(full, resource: "https://push.example.com/hub1")
    await #expect(throws: HubFailure.invalidAudience) { try await test.authorize(token) }
    let names = ["contoso-ns.servicebus.windows.net", "push.example.com"]
    #expect(try await test.authorize(token, publicNames: names) == test.hub)
    #expect(try await test.authorize(token, host: nil, publicNames: names) == test.hub)
  }

  @Test(
    "needs the right of what it does; Manage includes the others",
    arguments: [
      (AccessRights.listen, AccessRights.listen, true), (.listen, .send, false),
      (.listen, .manage, false), (.send, .send, true), (.send, .listen, false),
      ([.listen, .send], .send, true), ([.listen, .send], .manage, false), (.all, .listen, true),
      (.all, .send, true), (.all, .manage, true),
    ] as [(AccessRights, AccessRights, Bool)])
  func rights(granted: AccessRights, needed: AccessRights, isAllowed: Bool) async throws {
    let test = try await TestHub()
    let policy = try await test.service.policies.create(named: "p", rights: granted, hub: "hub1")
    if isAllowed {
      #expect(try await test.authorize(test.token(policy), requiring: needed) == test.hub)
    } else {
      await #expect(throws: HubFailure(status: 403, message: nil)) {
        try await test.authorize(test.token(policy), requiring: needed)
      }
    }
  }

  @Test("with a namespace token reaches every hub, and learns that one is missing")
  func namespaceTokens() async throws {
    let test = try await TestHub()
    let root = try await test.service.policies.root()
    let token = test.token(root, resource: "https://h/")
    #expect(try await test.authorize(token) == test.hub)
    await #expect(throws: HubFailure.noHub) {
      try await test.authorize(token, hub: "gone", path: "/gone/messages")
    }
    // Anyone who has no token for the namespace does not.
    let full = test.token(try await test.full(), resource: "https://h/")
    await #expect(throws: HubFailure.invalidSignature) {
      try await test.authorize(full, hub: "gone", path: "/gone/messages")
    }
  }

  @Test("is judged by the hub's policy before the namespace's of the same name")
  func hubPolicyFirst() async throws {
    let test = try await TestHub()
    let root = try await test.service.policies.root()
    let local = try await test.service.policies.create(
      named: AccessPolicy.rootName, rights: .listen, hub: "hub1", primaryKey: root.primaryKey)
    await #expect(throws: HubFailure.missingRight) { try await test.authorize(test.token(local)) }
    let token = test.token(root, key: root.secondaryKey)
    #expect(try await test.authorize(token) == test.hub)
  }

  @Test("to a disabled hub is told so")
  func disabledHub() async throws {
    let test = try await TestHub()
    let token = test.token(try await test.full())
    _ = try await test.store.updateHub(
      test.hub.id, HubContents(isDisabled: true), at: test.clock.now)
    test.clock.advance(by: .seconds(1))
    let failure = await #expect(throws: HubFailure.self) { try await test.authorize(token) }
    #expect(failure?.status == 403)
    #expect(failure?.message == "The notification hub 'hub1' is disabled.")
  }

  @Test("stops being allowed with the key that made its token")
  func rotation() async throws {
    let test = try await TestHub()
    let full = try await test.full()
    let first = test.token(full)
    let second = test.token(full, key: full.secondaryKey)
    let rotated = try await test.service.policies.rotateKey(
      .primary, ofPolicy: full.name, hub: "hub1")
    await #expect(throws: HubFailure.invalidSignature) { try await test.authorize(first) }
    #expect(try await test.authorize(second) == test.hub)
    #expect(try await test.authorize(test.token(rotated)) == test.hub)
    try await test.service.policies.delete(named: full.name, hub: "hub1")
    await #expect(throws: HubFailure.invalidSignature) { try await test.authorize(second) }
  }

  @Test("is answered 503 when the store fails")
  func storeFailure() async throws {
    let test = try await TestHub()
    let token = test.token(try await test.full())
    test.hook.fail(with: .locked)
    test.clock.advance(by: .seconds(1))
    let failure = await #expect(throws: HubFailure.self) { try await test.authorize(token) }
    #expect(failure?.status == 503)
    #expect(failure?.message?.contains("locked by another process") == true)
    test.hook.fail(with: nil)
    #expect(try await test.authorize(token) == test.hub)
  }
}
