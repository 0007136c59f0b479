import Foundation
import HubTesting
import NotificationHubs
import StoreContract
import Testing

@testable import HubCore

@Suite("Aborting a notification", .timeLimit(.minutes(5)))
struct AbortTests {
  /// Aborts while push services hold batches back, for whose answer a service would wait.
  private func abort(
    _ record: NotificationRecord, _ world: DispatchWorld, _ dispatcher: Dispatcher
  ) async throws {
    _ = try await world.store.abort(record.id, hub: world.hub.id, at: world.clock.now)
    await dispatcher.abort(record.id)
  }

  /// What is kept of the devices that were not reached.
  private func kept(
    _ record: NotificationRecord, _ world: DispatchWorld
  ) async throws -> [Checkpoint.Failure] {
    try await world.store.outcomes(
      of: record.id, hub: world.hub.id, OutcomeFilter(), after: 0, limit: 1000
    ).outcomes.map(\.failure)
  }

  @Test("what the push service has in hand goes out, nobody else is sent to")
  func broadcast() async throws {
    let world = try await DispatchWorld(laneTargets: 20)
    let gateway = try #require(world.gateways[.apns])
    gateway.hold()
    try await world.addDevices(0..<200)
    let dispatcher = try await world.started()
    let service = world.service(dispatcher)
    let sent = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 2)
    try await abort(sent, world, dispatcher)
    gateway.release()
    #expect(
      try await service.abort(hub: world.hub, id: sent.id)
        == NotificationAbort(notificationID: sent.id.rawValue, state: .canceled, aborted: 180))
    #expect(gateway.pushes.count == 20)

    let record = try await world.finished(sent, by: dispatcher)
    #expect(DispatchWorld.outcomes(record) == [.success: 20, .aborted: 180])
    #expect(record.isAudienceRead)
    let progress = try await service.notifications.progress(of: sent.id, hub: world.hub)
    #expect(progress.outcomes == ["Success": 20, "Aborted": 180])
    #expect((progress.done, progress.audience) == (200, 200))
    let original = try await service.notifications.telemetry(hub: world.hub, id: sent.id)
    #expect(original.outcomes[.apns] == ["Success": 20, "AbandonedNotificationMessages": 180])
    let extended = try await service.notifications.telemetry(
      hub: world.hub, id: sent.id, isExtended: true)
    #expect(extended.outcomes[.apns] == ["Success": 20, "Aborted": 180])
    let kept = try await self.kept(sent, world)
    #expect(kept.count == 180)
    #expect(kept.allSatisfy { $0.outcome == .aborted && $0.attempts == 0 })
  }

  @Test("retries that wait are ended, without waiting for their time")
  func retries() async throws {
    let failing = FakeGateway { _, _ in
      PushResult(outcome: .pnsServerError, retry: .backoff, status: 500)
    }
    let world = try await DispatchWorld([.apns: failing])
    try await world.addDevices(0..<4)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    while try await world.store.waitingRetries(sent.id, hub: world.hub.id) < 4 {
      await Task.yield()
    }
    let end = try await world.service(dispatcher).abort(hub: world.hub, id: sent.id)
    #expect(end.state == .canceled)
    #expect(end.aborted == 4)
    #expect(failing.pushes.count == 4)
    #expect(try await world.store.waitingRetries(sent.id, hub: world.hub.id) == 0)
    let kept = try await self.kept(sent, world)
    #expect(kept.map(\.attempts) == [1, 1, 1, 1])
  }

  @Test("what a resting push service keeps waiting is ended at once")
  func outage() async throws {
    let down = FakeGateway { _, _ in PushResult(outcome: .pnsUnreachable, retry: .backoff) }
    let world = try await DispatchWorld([.apns: down])
    try await world.addDevices(0..<300)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    while await dispatcher.status().lanes.first?.isDown != true { await Task.yield() }
    let end = try await world.service(dispatcher).abort(hub: world.hub, id: sent.id)
    #expect(end.state == .canceled)
    #expect(end.aborted == 300)
  }

  @Test("an abort outlives the process: the next one sends nothing and counts the rest")
  func restart() async throws {
    let world = try await DispatchWorld(laneTargets: 20)
    try await world.addDevices(0..<200)
    let first = FakeGateway()
    first.hold()
    let process = StoreHook()
    let dying = world.dispatcher([.apns: first], process: process)
    try await dying.start()
    let sent = try await world.send(world.native(), through: dying)
    await first.arrived(batches: 2)
    #expect(
      try await world.store.abort(sent.id, hub: world.hub.id, at: world.clock.now) == .aborting)
    await process.die()

    let next = try await world.started()
    let record = try await world.finished(sent, by: next)
    #expect(record.state == .canceled)
    #expect(DispatchWorld.outcomes(record) == [.aborted: 200])
    #expect(world.gateways[.apns]?.pushes.isEmpty == true)
    first.release()
  }

  @Test("who delivers hears of another process's abort with the next page that it records")
  func otherProcess() async throws {
    let world = try await DispatchWorld(laneTargets: 20)
    let gateway = try #require(world.gateways[.apns])
    gateway.hold()
    try await world.addDevices(0..<200)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 2)
    _ = try await world.store.abort(sent.id, hub: world.hub.id, at: world.clock.now)
    gateway.release()
    let record = try await world.finished(sent, by: dispatcher)
    #expect(record.state == .canceled)
    #expect(record.counts.values.reduce(0, +) == 200)
    #expect(
      gateway.pushes.count <= world.limits.pagesPerNotification * world.limits.pageSize)
  }

  @Test("one that is aborted between the store and the dispatcher is not sent")
  func beforeItIsTakenUp() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<5)
    let dispatcher = try await world.started()
    let accepted = try await world.accept(world.native())
    let end = try await world.service(dispatcher).abort(hub: world.hub, id: accepted.id)
    #expect(end.state == .enqueued)
    await dispatcher.submit(accepted)
    let record = try await world.finished(accepted, by: dispatcher)
    #expect(DispatchWorld.outcomes(record) == [.aborted: 5])
    #expect(world.gateways[.apns]?.pushes.isEmpty == true)
  }

  @Test("one that waits for its time is cancelled, one that has ended is 409, an unknown one 404")
  func otherStates() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<2)
    let dispatcher = try await world.started()
    let service = world.service(dispatcher)
    let later = NotificationRecord(
      id: NotificationID(scheduledAt: world.clock.now, random: .system), hub: world.hub.id,
      request: world.native(), state: .scheduled, enqueuedAt: world.clock.now,
      scheduledFor: world.clock.now.addingTimeInterval(60))
    try await world.store.accept(later)
    await dispatcher.submit(later)
    // A repeat, whose sender has not got the first answer, is answered in the same way.
    for _ in 0..<2 {
      let end = try await service.abort(hub: world.hub, id: later.id)
      #expect(end.state == .canceled)
      #expect(end.aborted == 0)
    }
    let sent = try await world.send(world.native(), through: dispatcher)
    _ = try await world.finished(sent, by: dispatcher)
    let finished = await refusal { _ = try await service.abort(hub: world.hub, id: sent.id) }
    #expect(finished?.status == 409)
    #expect(finished?.message?.contains("Completed") == true)
    let unknown = await refusal {
      _ = try await service.abort(hub: world.hub, id: NotificationID(rawValue: "n"))
    }
    #expect(unknown?.status == 404)
    #expect(await dispatcher.isIdle)
  }

  @Test("an explanation tells an aborted device from one that was sent to")
  func explained() async throws {
    let world = try await DispatchWorld(pageSize: 1, laneTargets: 1)
    let gateway = try #require(world.gateways[.apns])
    gateway.hold()
    try await world.addDevices(0..<12)
    let dispatcher = try await world.started()
    let service = world.service(dispatcher)
    let sent = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 1)
    try await abort(sent, world, dispatcher)
    gateway.release()
    _ = try await world.finished(sent, by: dispatcher)
    let reached = try await service.explain(
      sent.id, hub: world.hub, device: .installation("d0"))
    #expect(reached.verdict == .delivered)
    let spared = try await service.explain(
      sent.id, hub: world.hub, device: .installation("d11"))
    #expect(spared.verdict == .canceled)
    #expect(spared.text.contains("aborted"))
  }

  @Test(
    "whenever the abort comes, every target is counted once, and no aborted one was sent to",
    arguments: 1...40 as ClosedRange<UInt64>)
  func anyMoment(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let platforms: [PushPlatform] = [.apns, .fcmv1]
    let answer: @Sendable (FakeGateway.Push, Int) -> PushResult = { push, attempt in
      switch (push.id.low ^ seed &+ UInt64(attempt)) % 9 {
      case 0: PushResult(outcome: .pnsServerError, retry: .backoff, status: 500)
      case 1: PushResult(outcome: .invalidNotificationSize, status: 413)
      case 2 where seed % 3 == 0: PushResult(outcome: .pnsUnreachable, retry: .backoff)
      default: .success
      }
    }
    let world = try await DispatchWorld(
      Dictionary(uniqueKeysWithValues: platforms.map { ($0, FakeGateway(answer: answer)) }),
      pageSize: Int.random(in: 1...12, using: &generator),
      laneTargets: Int.random(in: 1...40, using: &generator))
    let template = PushTemplate(body: #"{"a":"$(a)"}"#)
    let devices = Int.random(in: 1...150, using: &generator)
    for number in 0..<devices {
      let platform = platforms[Int.random(in: 0..<2, using: &generator)]
      try await world.add(
        "d\(number)",
        [
          RegistrationDraft(
            kind: .template(template, name: nil), platform: platform,
            channel: .handle("\(number)"))
        ], platform)
    }
    let everyone = AudienceQuery(
      hub: world.hub.id, kind: .template, expression: nil, asOf: world.clock.now)
    let targets = try await world.store.targets(everyone, after: 0, limit: 1000)
    var handles: [RegistrationID: String] = [:]
    for target in targets.targets {
      handles[target.registration] = String(
        decoding: targets.handles[target.handle], as: UTF8.self)
    }
    let isHeld = Bool.random(using: &generator)
    if isHeld { world.gateways[.fcmv1]?.hold() }
    let dispatcher = try await world.started()
    let sent = try await world.send(world.template(#"{"a":"b"}"#), through: dispatcher)
    for _ in 0..<Int.random(in: 0..<300, using: &generator) { await Task.yield() }
    let verdict = try await world.store.abort(sent.id, hub: world.hub.id, at: world.clock.now)
    await dispatcher.abort(sent.id)
    if isHeld { world.gateways[.fcmv1]?.release() }

    let record: NotificationRecord
    if case .finished? = verdict {
      record = try await world.finished(sent, by: dispatcher)
    } else {
      // No clock runs: nothing of an aborted notification waits for anything.
      record = try await world.finished(sent, by: dispatcher)
      #expect(record.abortedAt != nil)
    }
    let outcomes = DispatchWorld.outcomes(record)
    #expect(outcomes.values.reduce(0, +) == devices)
    #expect(record.state == (outcomes[.aborted] == nil ? .completed : .canceled))
    let pushed = Set(world.gateways.values.flatMap(\.pushes).map(\.handle))
    let kept = try await self.kept(sent, world)
    let spared = kept.filter { $0.outcome == .aborted && $0.attempts == 0 }
    #expect(spared.allSatisfy { !pushed.contains(handles[$0.registration] ?? "") })
    let aborted = Set(
      kept.filter { $0.outcome == .aborted }.compactMap { handles[$0.registration] })
    #expect(aborted.count == outcomes[.aborted] ?? 0)
    #expect(Set(handles.values).subtracting(pushed).isSubset(of: aborted))
    #expect(try await world.store.waitingRetries(sent.id, hub: world.hub.id) == 0)
  }
}
