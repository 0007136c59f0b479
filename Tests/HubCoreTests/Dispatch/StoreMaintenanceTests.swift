import Foundation
import HubCore
import HubTesting
import NotificationHubs
import StoreContract
import Testing

@Suite("Clearing the store")
struct StoreMaintenanceTests {
  @Test("waits an hour after the end, then takes what is over, and ends with its task")
  func clears() async throws {
    let store = try await temporaryStore()
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
    let task = Task { await StoreMaintenance(store: store, clock: clock.hubClock).run() }
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

  @Test(
    "keeps a notification for some time after its end, or for ever",
    arguments: [120, nil] as [TimeInterval?])
  func notifications(lifetime: TimeInterval?) async throws {
    let store = try await temporaryStore()
    let clock = ManualClock()
    let hub = try await store.createHub(
      named: "hub1", registrationTTL: nil, policies: [], at: clock.now
    ).id
    let request = NotificationRequest(format: .template, body: Array("{}".utf8))
    let ids = ["done", "open"].map { NotificationID(rawValue: $0) }
    for id in ids {
      try await store.accept(
        NotificationRecord(
          id: id, hub: hub, request: request, state: .enqueued, enqueuedAt: clock.now))
    }
    var end = Checkpoint(notification: ids[0], hub: hub, at: clock.now)
    end.state = .completed
    try await store.checkpoint(end)
    var retention = StoreMaintenance.Retention()
    retention.notifications = lifetime
    let maintenance = StoreMaintenance(store: store, clock: clock.hubClock, retention: retention)
    let task = Task { await maintenance.run() }
    for minute in 0...5 {
      await clock.sleepers(1)
      let isLeft = try await store.notification(ids[0], hub: hub) != nil
      #expect(isLeft == lifetime.map { Double(minute) * 60 <= $0 } ?? true)
      clock.advance(by: .seconds(60))
    }
    #expect(try await store.notification(ids[1], hub: hub) != nil)
    task.cancel()
    await task.value
  }
}
