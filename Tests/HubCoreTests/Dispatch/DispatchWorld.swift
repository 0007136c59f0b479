import Foundation
import HubTesting
import NotificationHubs
import Synchronization

@testable import HubCore

/// A hub with devices, fake push services and a dispatcher.
struct DispatchWorld {
  let hook = StoreHook()
  let store: any HubStore
  let clock = ManualClock()
  var hub: Hub
  let gateways: [PushPlatform: FakeGateway]
  let events = Events()
  var limits: DispatchLimits

  /// What the dispatcher has reported, apart from notifications that have ended.
  final class Events: Sendable {
    private let list = Mutex<[DispatchEvent]>([])
    var all: [DispatchEvent] {
      list.withLock { list in
        list.filter { if case .finished = $0 { false } else { true } }
      }
    }
    func add(_ event: DispatchEvent) { list.withLock { $0.append(event) } }
  }

  init(
    _ gateways: [PushPlatform: FakeGateway] = [.apns: FakeGateway()], pageSize: Int = 10,
    credentials: Set<PushPlatform>? = nil, laneTargets: Int = 4000,
    on engine: TestedEngine = .file
  ) async throws {
    store = try await temporaryStore(hook, on: engine)
    self.gateways = gateways
    var limits = DispatchLimits()
    limits.pageSize = pageSize
    limits.laneTargets = laneTargets
    self.limits = limits
    hub = try await store.createHub(
      named: "hub", registrationTTL: nil, policies: [], at: clock.now)
    for platform in credentials ?? Set(gateways.keys) {
      try await putCredential(platform)
    }
  }

  /// The same with another hub, which has no credentials yet.
  func beside(_ name: String) async throws -> DispatchWorld {
    var world = self
    world.hub = try await store.createHub(
      named: name, registrationTTL: nil, policies: [], at: clock.now)
    return world
  }

  func putCredential(_ platform: PushPlatform) async throws {
    try await store.putCredential(
      PushCredential(platform: platform, properties: [:], modifiedAt: clock.now), hub: hub.id)
  }

  /// - Parameters:
  ///   - others: Other push services than the world's.
  ///   - process: What a process that is to be killed sees of the store.
  func dispatcher(
    _ others: [PushPlatform: FakeGateway]? = nil, broken: Set<PushPlatform> = [],
    process: StoreHook? = nil
  ) -> Dispatcher {
    Dispatcher(
      store: process.map { store.seen(by: $0) } ?? store,
      gateways: FakeGateways(others ?? gateways, broken: broken),
      clock: clock.hubClock, random: .always(0), limits: limits, report: events.add)
  }

  func started(broken: Set<PushPlatform> = []) async throws -> Dispatcher {
    let dispatcher = dispatcher(broken: broken)
    try await dispatcher.start()
    return dispatcher
  }

  /// Devices numbered from 0, each with a native registration whose handle is its number.
  func addDevices(
    _ numbers: Range<Int>, platform: PushPlatform = .apns, tags: [Tag] = []
  ) async throws {
    for number in numbers {
      try await add(
        "d\(number)",
        [
          RegistrationDraft(
            kind: .native, platform: platform, channel: .handle("\(number)"), tags: tags)
        ], platform)
    }
  }

  func add(
    _ id: String, _ drafts: [RegistrationDraft], _ platform: PushPlatform = .apns
  ) async throws {
    let installation = Installation(
      installationID: id, platform: platform,
      pushChannel: drafts.first?.channel ?? .handle(id))
    try await store.putInstallation(
      installation, registrations: drafts, request: nil, hub: hub.id, at: clock.now)
  }

  func native(
    _ platform: PushPlatform = .apns, tags: TagExpression? = nil, expiry: Int64? = nil
  ) -> NotificationRequest {
    NotificationRequest(
      format: .native(platform), body: Array(#"{"aps":{}}"#.utf8), expression: tags,
      expiry: expiry)
  }

  func template(_ properties: String) -> NotificationRequest {
    NotificationRequest(format: .template, body: Array(properties.utf8))
  }

  /// As `HubService.send` does, without a service.
  func accept(_ request: NotificationRequest) async throws -> NotificationRecord {
    let record = NotificationRecord(
      id: NotificationID(at: clock.now, random: .system), hub: hub.id, request: request,
      state: .enqueued,
      enqueuedAt: clock.now)
    try await store.accept(record)
    return record
  }

  func send(
    _ request: NotificationRequest, through dispatcher: Dispatcher
  ) async throws -> NotificationRecord {
    let record = try await accept(request)
    await dispatcher.submit(record)
    return record
  }

  /// The record once it is final.
  func finished(
    _ record: NotificationRecord, by dispatcher: Dispatcher
  ) async throws -> NotificationRecord {
    let found = try await dispatcher.record(
      of: record.id, hub: hub.id, finishedWithin: .seconds(86_400))
    guard let found, found.state.isFinal else { throw Unfinished() }
    return found
  }

  struct Unfinished: Error {}

  /// Counts by outcome, platforms together.
  static func outcomes(_ record: NotificationRecord) -> [NotificationOutcome: Int] {
    record.counts.reduce(into: [:]) { $0[$1.key.outcome, default: 0] += $1.value }
  }

  func runningClock<T: Sendable>(
    for dispatcher: Dispatcher?, until limit: Date = .distantFuture,
    _ body: @Sendable () async throws -> T
  ) async throws -> T {
    try await clock.running(for: dispatcher, until: limit, body)
  }
}

extension Dispatcher {
  /// Whether a push service refuses the credential of a lane.
  var hasRefusals: Bool {
    state.schedule.lanes.known.contains { state.schedule.lanes[$0]?.refusal?.answer != nil }
  }
}

extension ManualClock {
  /// Moves the clock from one sleeper to the next for as long as the body runs and waits for an
  /// outcome. Limits of a day, as ``DispatchWorld/finished(_:by:)`` sets them, are never reached.
  /// - Parameters:
  ///   - dispatcher: Time stands still while it has work under way; with `nil`, never.
  ///   - limit: The clock is moved no further. Without a dispatcher to wait for, a slow answer of a
  ///     database would otherwise take hours.
  func running<T: Sendable>(
    for dispatcher: Dispatcher?, until limit: Date = .distantFuture,
    _ body: @Sendable () async throws -> T
  ) async throws -> T {
    let driver = Task {
      while !Task.isCancelled {
        await sleepers(2)
        if let dispatcher { await rest(of: dispatcher) }
        if let next = nextDeadline, next < now.addingTimeInterval(3600), next <= limit {
          set(max(next, now))
        } else {
          await Task.yield()
        }
      }
    }
    defer { driver.cancel() }
    return try await body()
  }

  /// Waits until a dispatcher has nothing under way and its alarm sleeps. One that has rung is about
  /// to set something going; but it may also have gone to sleep late, and ring later.
  private func rest(of dispatcher: Dispatcher) async {
    var looks = 0
    while !Task.isCancelled {
      if await dispatcher.isQuiet {
        guard let left = await dispatcher.secondsToAlarm, looks < 1_000 else { return }
        // To the millisecond, as it sleeps.
        if left > 0, let next = nextDeadline, next.timeIntervalSince(now) < left + 0.002 { return }
        looks += 1
      }
      await Task.yield()
    }
  }
}
