import Foundation
import HubCore
import HubTesting
import NotificationHubs
import StoreContract
import Testing

@Suite("Work of a search")
struct SearchTests {
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)

  private func makeHub(_ store: any HubStore) async throws -> Hub.ID {
    try await store.createHub(named: "hub1", registrationTTL: nil, policies: [], at: Self.now).id
  }

  private func accept(
    _ count: Int, bytes: Int, _ store: any HubStore, _ hub: Hub.ID
  ) async throws {
    let body = Array(#"{"message":"\#(String(repeating: "x", count: bytes))"}"#.utf8)
    for number in 0..<count {
      try await store.accept(
        NotificationRecord(
          id: NotificationID(rawValue: "n-\(number)"), hub: hub,
          request: NotificationRequest(format: .template, body: body), state: .enqueued,
          enqueuedAt: Self.now + Double(number)))
    }
  }

  /// Number of transactions in which a search for nothing reads everything.
  private func notificationPages(
    _ store: any HubStore, _ hub: Hub.ID, isHidden: Bool = false
  ) async throws -> Int {
    var filter = NotificationFilter(search: "nowhere")
    filter.hidesText = isHidden
    var (pages, after): (Int, ListPosition?) = (0, nil)
    repeat {
      let page = try await store.notifications(
        filter, in: .newestFirst, hub: hub, after: after, limit: 100)
      #expect(page.notifications.isEmpty)
      after = page.next
      pages += 1
    } while after != nil
    return pages
  }

  private func devicePages(_ store: any HubStore, _ hub: Hub.ID) async throws -> Int {
    var filter = InstallationFilter(asOf: Self.now)
    filter.search = "nowhere"
    var (pages, after): (Int, InstallationPosition?) = (0, nil)
    repeat {
      let page = try await store.installations(filter, hub: hub, after: after, limit: 100)
      #expect(page.installations.isEmpty)
      after = page.next
      pages += 1
    } while after != nil
    return pages
  }

  @Test(
    "a search of notifications reads a mebibyte of payloads at most in one transaction",
    arguments: TestedEngine.installed)
  func payloads(on engine: TestedEngine) async throws {
    let store = try await temporaryStore(on: engine)
    let hub = try await makeHub(store)
    // Eighteen fill a mebibyte.
    try await accept(40, bytes: 60_000, store, hub)
    #expect(try await notificationPages(store, hub) == 3)
    // No payload is read that is not to be shown.
    #expect(try await notificationPages(store, hub, isHidden: true) == 1)
  }

  @Test(
    "a search reads five hundred rows at most in one transaction",
    arguments: TestedEngine.installed)
  func rows(on engine: TestedEngine) async throws {
    let store = try await temporaryStore(on: engine)
    let hub = try await makeHub(store)
    try await accept(1_001, bytes: 1, store, hub)
    #expect(try await notificationPages(store, hub) == 3)
    for number in 0..<1_001 {
      try await store.put(SampleDevice("i-\(number)", tags: ["red"]), hub: hub, at: Self.now)
    }
    #expect(try await devicePages(store, hub) == 3)
  }

  @Test(
    "a search of devices reads a mebibyte of them at most in one transaction",
    arguments: TestedEngine.installed)
  func devices(on engine: TestedEngine) async throws {
    let store = try await temporaryStore(on: engine)
    let hub = try await makeHub(store)
    let variables = ["v": String(repeating: "x", count: 60_000)]
    for number in 0..<40 {
      try await store.put(
        SampleDevice("i-\(number)", variables: variables), hub: hub, at: Self.now)
    }
    #expect(try await devicePages(store, hub) == 3)
  }
}
