import HubCore
import HubTesting
import NotificationHubs
import Testing

@Suite("The hub directory")
struct HubDirectoryTests {
  @Test("asks the store at most four times a second, and not again when nothing changed")
  func asksRarely() async throws {
    let test = try await TestHub()
    let directory = test.service.directory
    let first = try await directory.snapshot()
    let reads = test.hook.count(of: "directoryVersion()")
    for _ in 0..<100 { #expect(try await directory.snapshot() === first) }
    #expect(test.hook.count(of: "directoryVersion()") == reads)
    test.clock.advance(by: .milliseconds(251))
    #expect(try await directory.snapshot() === first)
    #expect(test.hook.count(of: "directoryVersion()") == reads + 1)
  }

  @Test("sees what another process has changed within a quarter of a second")
  func seesForeignChanges() async throws {
    let test = try await TestHub()
    let directory = test.service.directory
    _ = try await directory.snapshot()
    _ = try await test.store.createHub(
      named: "Second", registrationTTL: nil, policies: [], at: test.clock.now)
    #expect(try await directory.snapshot().hub(named: "second") == nil)
    test.clock.advance(by: .milliseconds(250))
    let snapshot = try await directory.snapshot()
    #expect(snapshot.hub(named: "SECOND")?.hub.name == "Second")
    #expect(snapshot.hubs.map(\.hub.name) == ["hub1", "Second"])
  }

  @Test("looks again before it says that a hub or policy is not there")
  func looksAgainOnAMiss() async throws {
    let test = try await TestHub()
    let policy = try AccessPolicy.new(
      named: "New", rights: .all, at: test.clock.now, random: .system)
    _ = try await test.service.directory.snapshot()
    try await test.store.putAccessPolicy(policy, hub: test.hub.id)
    #expect(try await test.authorize(test.token(policy)) == test.hub)
  }

  @Test("serves many callers at once with one reading")
  func readsOnce() async throws {
    let test = try await TestHub()
    test.clock.advance(by: .seconds(1))
    let reads = test.hook.count(of: "directoryVersion()")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<50 {
        group.addTask {
          let snapshot = try await test.service.directory.snapshot()
          #expect(snapshot.hub(test.hub.id)?.hub == test.hub)
        }
      }
      try await group.waitForAll()
    }
    #expect(test.hook.count(of: "directoryVersion()") == reads + 1)
  }
}
