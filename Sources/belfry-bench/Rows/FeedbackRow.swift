import Foundation
import HubCore
import HubStorage
import NotificationHubs

/// The duration of a checkpoint with one dead handle, while another hub has a hundred thousand rows
/// of feedback, none of which is removed.
struct FeedbackRow: BenchmarkRow {
  let name = "feedback.checkpoint_ms"
  let unit = "ms"
  let goal = BenchmarkGoal.atMost(1)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("belfry-bench-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let store = try await SQLiteHubStore.open(
      at: directory.appendingPathComponent("hub.sqlite").path, sealing: NoSealing())
    let loud = try await hub("loud", in: store)
    let everyone = try await registrations(of: loud, in: store)
    for _ in 0..<(isQuick ? 10 : 100) {
      try await store.checkpoint(checkpoint(try await send(to: loud, in: store), everyone))
    }
    let quiet = try await hub("quiet", in: store)
    let phones = try await registrations(of: quiet, in: store).prefix(200)
    let sent = try await send(to: quiet, in: store)
    let before = ProcessUsage.current().cpuSeconds
    let start = ContinuousClock.now
    for phone in phones { try await store.checkpoint(checkpoint(sent, [phone])) }
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    let cpu = ProcessUsage.current().cpuSeconds - before
    let count = Double(phones.count)
    let kept = try await store.feedbackHours(hub: loud).reduce(0) { $0 + $1.count }
    try await store.close()
    return BenchmarkMeasurement(
      value: seconds * 1000 / count,
      notes: [
        "\(phones.count) checkpoints, each on the disk before the next; "
          + "\((cpu * 1e6 / count).shortest) µs CPU each; the other hub keeps \(kept) rows"
      ])
  }

  private func hub(_ name: String, in store: SQLiteHubStore) async throws -> Hub.ID {
    let hub = try await store.createHub(
      named: name, registrationTTL: nil, policies: [], at: StoreFixture.now
    ).id
    try await StoreFixture.put(0..<1_000, to: store, hub: hub, callers: 64)
    return hub
  }

  private func registrations(
    of hub: Hub.ID, in store: SQLiteHubStore
  ) async throws -> [RegistrationID] {
    let query = AudienceQuery(
      hub: hub, kind: .native(.apns), expression: nil, asOf: StoreFixture.now)
    return try await store.targets(query, after: 0, limit: 1_000).targets.map(\.registration)
  }

  private func send(to hub: Hub.ID, in store: SQLiteHubStore) async throws -> NotificationRecord {
    let record = NotificationRecord(
      id: NotificationID(at: StoreFixture.now, random: .system), hub: hub,
      request: NotificationRequest(format: .native(.apns), body: [1]), state: .enqueued,
      enqueuedAt: StoreFixture.now)
    try await store.accept(record)
    return record
  }

  private func checkpoint(
    _ record: NotificationRecord, _ dead: [RegistrationID]
  ) -> Checkpoint {
    var checkpoint = Checkpoint(notification: record.id, hub: record.hub, at: StoreFixture.now)
    checkpoint.failures = dead.map {
      .init(registration: $0, outcome: .expiredChannel, status: 410, reason: nil)
    }
    return checkpoint
  }
}
