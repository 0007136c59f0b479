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

  /// Waits until a round has ended: it pauses between two slices, and longer after the last.
  private func round(_ clock: ManualClock) async {
    while true {
      await clock.sleepers(1)
      if let next = clock.nextDeadline, next > clock.now + 1 { return }
      clock.advance(by: .milliseconds(20))
    }
  }

  @Test(
    "keeps a payload for some time after the end, as long as the notification, or not at all",
    arguments: [.time(150), .off, .notification] as [TextRetention])
  func texts(lifetime: TextRetention) async throws {
    let store = try await temporaryStore()
    let clock = ManualClock()
    let hub = try await store.createHub(
      named: "hub1", registrationTTL: nil, policies: [], at: clock.now
    ).id
    let request = NotificationRequest(format: .template, body: Array("{}".utf8))
    // One that ended at a time to which the clock has not come yet, and one that goes on.
    let ids = ["done", "ahead", "open"].map { NotificationID(rawValue: $0) }
    for id in ids {
      try await store.accept(
        NotificationRecord(
          id: id, hub: hub, request: request, state: .enqueued, enqueuedAt: clock.now))
    }
    for (id, later) in [(ids[0], 0.0), (ids[1], 86_400)] {
      var end = Checkpoint(notification: id, hub: hub, at: clock.now + later)
      end.state = .completed
      try await store.checkpoint(end)
    }
    var retention = StoreMaintenance.Retention()
    retention.texts = lifetime
    let maintenance = StoreMaintenance(store: store, clock: clock.hubClock, retention: retention)
    func cleared() async throws -> [String] {
      var found: [String] = []
      for id in ids where try await store.notification(id, hub: hub)?.hasClearedText == true {
        found.append(id.rawValue)
      }
      return found
    }
    let task = Task { await maintenance.run() }
    for minute in 0...4 {
      await round(clock)
      let wanted: [String] =
        switch lifetime {
        case .off: ["done", "ahead"]
        case .time(let time): Double(minute) * 60 > time ? ["done"] : []
        case .notification: []
        }
      #expect(try await cleared() == wanted, "after \(minute) minutes")
      clock.advance(by: .seconds(60))
    }
    task.cancel()
    await task.value
  }

  @Test("clears what became due while no process ran, or was kept by an earlier setting")
  func textsAfterAPause() async throws {
    let store = try await temporaryStore()
    let clock = ManualClock()
    let hub = try await store.createHub(
      named: "hub1", registrationTTL: nil, policies: [], at: clock.now
    ).id
    for number in 0..<250 {
      let id = NotificationID(rawValue: "n-\(number)")
      try await store.accept(
        NotificationRecord(
          id: id, hub: hub,
          request: NotificationRequest(format: .template, body: Array("{}".utf8)),
          state: .enqueued, enqueuedAt: clock.now))
      var end = Checkpoint(notification: id, hub: hub, at: clock.now)
      end.state = .completed
      try await store.checkpoint(end)
    }
    /// The texts that one round with a setting clears.
    func cleared(_ texts: TextRetention) async throws -> Int {
      var retention = StoreMaintenance.Retention()
      retention.texts = texts
      let maintenance = StoreMaintenance(store: store, clock: clock.hubClock, retention: retention)
      let task = Task { await maintenance.run() }
      await round(clock)
      task.cancel()
      await task.value
      var count = 0
      for number in 0..<250 {
        let id = NotificationID(rawValue: "n-\(number)")
        if try await store.notification(id, hub: hub)?.hasClearedText == true { count += 1 }
      }
      return count
    }
    #expect(try await cleared(.time(6 * 86_400)) == 0)
    clock.advance(by: .seconds(5 * 86_400))
    #expect(try await cleared(.time(6 * 86_400)) == 0)
    #expect(try await cleared(.off) == 250)
  }
}
