import Foundation
import HubCore
import HubTesting
import NotificationHubs
import Testing

@Suite("Clearing the store")
struct StoreKeeperTests {
  @Test("waits an hour after the end, then takes what is over, and ends with its task")
  func clears() async throws {
    let store = InMemoryHubStore()
    let start = Date(timeIntervalSince1970: 1_893_456_000)
    let clock = ManualClock(now: start)
    let hub = try await store.createHub(
      named: "hub1", registrationTTL: nil, policies: [], at: start
    ).id
    for (id, seconds) in [("early", 0.0), ("late", 7_200)] {
      var device = SampleDevice(id)
      device.expiresAt = start.addingTimeInterval(seconds)
      device.installation.expirationTime = device.expiresAt
      try await store.put(device, hub: hub, at: start)
    }
    let task = Task { await StoreKeeper(store: store, clock: clock.hubClock).run() }
    for minute in 1...61 {
      // It has looked, and waits for the next time.
      await clock.sleepers(1)
      #expect((try await store.installation("early", hub: hub) == nil) == (minute > 60))
      clock.advance(by: .seconds(60))
    }
    await clock.sleepers(1)
    #expect(try await store.installation("late", hub: hub) != nil)
    task.cancel()
    await task.value
  }
}
