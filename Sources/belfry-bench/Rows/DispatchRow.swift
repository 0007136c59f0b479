import Foundation
import HubCore
import NotificationHubs

/// CPU per device of the dispatcher alone: a template broadcast whose pages, store and push service
/// cost nothing, so that the remainder is processing pages, addressing pushes, settling results and
/// bookkeeping.
struct DispatchRow: BenchmarkRow {
  let name = "dispatch.cpu_us_per_device"
  let unit = "µs CPU"
  let goal = BenchmarkGoal.atMost(1)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let devices = isQuick ? 100_000 : 2_000_000
    _ = try await Self.broadcast(to: 50_000)  // warm
    let before = ProcessUsage.current()
    let started = ContinuousClock.now
    let successes = try await Self.broadcast(to: devices)
    let elapsed = ContinuousClock.now - started
    let after = ProcessUsage.current()
    guard successes == devices else {
      throw BenchmarkError("\(name): \(successes) of \(devices) devices have an outcome")
    }
    let seconds =
      Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) * 1e-18
    let small = try await Self.smallSends(isQuick ? 2_000 : 20_000)
    return BenchmarkMeasurement(
      value: (after.cpuSeconds - before.cpuSeconds) / Double(devices) * 1e6,
      notes: [
        "\(devices) devices in \(seconds.shortest) s, pages of 1000, one template",
        "a send to one device: \(small.shortest) µs CPU, all sends waiting at once",
        "peak memory of the process \(after.peakMB.shortest) MB",
      ])
  }

  /// - Returns: The CPU time per send, in µs.
  private static func smallSends(_ count: Int) async throws -> Double {
    let before = ProcessUsage.current().cpuSeconds
    let reached = try await broadcast(to: 1, sends: count)
    guard reached == count else { throw BenchmarkError("\(reached) of \(count) sends arrived") }
    return (ProcessUsage.current().cpuSeconds - before) / Double(count) * 1e6
  }

  /// - Returns: The number of devices counted as reached.
  private static func broadcast(to devices: Int, sends: Int = 1) async throws -> Int {
    let store = EndlessAudience(devices: devices)
    let dispatcher = Dispatcher(
      store: store, gateways: NullGateways(), clock: .system, random: .system)
    try await dispatcher.start()
    let now = Date()
    for _ in 0..<sends {
      let record = NotificationRecord(
        id: NotificationID(at: now, random: .system), hub: 1,
        request: NotificationRequest(format: .template, body: Array(#"{"message":"Hi"}"#.utf8)),
        state: .enqueued, enqueuedAt: now)
      await dispatcher.submit(record)
    }
    guard await dispatcher.waitUntilIdle(within: .seconds(600)) else {
      throw BenchmarkError("the broadcast did not end within 600 s")
    }
    await dispatcher.stop(within: .seconds(1))
    return await store.successes
  }
}

/// A push service that accepts everything.
private struct NullGateways: GatewayDirectory, PushGateway {
  func gateway(for credential: PushCredential, hub: Hub.ID) -> (any PushGateway)? { self }
  func deliver(_ batch: PushBatch) async -> [PushResult] {
    Array(repeating: .success, count: batch.requests.count)
  }
  func close() async {}
}

/// A store that returns the same page repeatedly, and only counts the recorded outcomes.
actor EndlessAudience: DispatchStore {
  private let devices: Int
  private let page: TargetPage
  private let credential: PushCredential
  private(set) var successes = 0

  init(
    devices: Int,
    credential: PushCredential = PushCredential(
      platform: .apns, properties: [:], modifiedAt: .distantPast)
  ) {
    self.devices = devices
    self.credential = credential
    var page = TargetPage(
      templates: [
        StoredTemplate(id: 1, template: PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#))
      ])
    for number in 0..<min(devices, 1000) {
      let start = page.handles.count
      page.handles.append(contentsOf: repeatElement(UInt8(ascii: "A"), count: 64))
      page.targets.append(
        Target(
          registration: RegistrationID(number), handle: start..<start + 64, platform: .apns,
          template: 0, variables: -1, confirmedAt: 0, isDuplicate: false))
    }
    self.page = page
  }

  func targets(
    _ query: AudienceQuery, after: RegistrationID, limit: Int
  ) async throws -> TargetPage {
    var page = page
    let end = after + RegistrationID(page.targets.count)
    page.next = end < devices ? end : nil
    return page
  }

  let isShared = false

  func checkpoint(_ checkpoint: Checkpoint) async throws -> CheckpointAnswer {
    for (key, count) in checkpoint.counts where key.outcome == .success { successes += count }
    return CheckpointAnswer(isFinished: checkpoint.state?.isFinal == true)
  }

  func credentials(hub: Hub.ID) async throws -> [PushCredential] {
    [credential]
  }

  func directoryVersion() async throws -> Int { 1 }
  func unfinishedNotifications() async throws -> FoundNotifications { FoundNotifications() }
  func claimWork(limit: Int) async throws -> FoundNotifications { FoundNotifications() }
  func releaseWork() async throws {}
  func unclaimedWork(
    dueBy moment: Date, beside known: Set<WorkID>
  ) async throws -> UnclaimedWork { UnclaimedWork(count: 0) }
  func waitingRetries(
    _ id: NotificationID, part: Int?, hub: Hub.ID
  ) async throws -> Int { 0 }
  func nextRetry(of lane: LaneKey) async throws -> Date? { nil }
  func retryLanes() async throws -> [LaneKey: Date] { [:] }

  // The dispatcher needs nothing else for a broadcast without failures.
  func notification(_ id: NotificationID, hub: Hub.ID) async throws -> NotificationRecord? { nil }
  func directTargets(
    of id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) async throws -> TargetPage { throw StoreError.noHub }
  func nextSchedule() async throws -> Date? { nil }
  func releaseSchedules(asOf now: Date, limit: Int) async throws -> FoundNotifications {
    FoundNotifications()
  }
  func retries(
    of lane: LaneKey, notification: NotificationID, part: Int, limit: Int
  ) async throws -> [DueRetries] { [] }
  func dueRetries(of lane: LaneKey, asOf now: Date, limit: Int) async throws -> [DueRetries] { [] }
  func removals(_ wave: RemovalWave, hub: Hub.ID) async throws -> [RemovedDevices.Item] { [] }
  func restoreRemoved(
    _ wave: RemovalWave, hub: Hub.ID, asOf now: Date, limit: Int
  ) async throws -> DeviceRestoration { DeviceRestoration() }
}
