import Foundation
import HubTesting
import NotificationHubs
import Synchronization
import Testing

@testable import HubCore

@Suite("Dispatcher recovery and limits", .timeLimit(.minutes(5)))
struct DispatcherRecoveryTests {
  @Test("after a crash only the pages in flight are repeated, with the same ids")
  func crash() async throws {
    let world = try await DispatchWorld()
    let gateway = try #require(world.gateways[.apns])
    try await world.addDevices(0..<200)
    let record = try await world.accept(world.native())

    let first = FakeGateway()
    let process = StoreHook()
    let crashed = world.dispatcher([.apns: first], process: process)
    try await crashed.start()
    await first.arrived(batches: 3)
    first.hold()
    await process.die()
    let cursor = try await world.store.notification(record.id, hub: world.hub.id)?.cursor ?? 0
    let before = first.pushes

    let next = world.dispatcher()
    try await next.start()
    let done = try await world.finished(record, by: next)
    #expect(DispatchWorld.outcomes(done) == [.success: 200])
    // The store numbers registrations from 1 here, in the order of the devices.
    #expect(gateway.pushes.count == 200 - Int(cursor))
    let ids = Dictionary(before.map { ($0.handle, $0.id) }) { $1 }
    let repeated = gateway.pushes.filter { ids[$0.handle] != nil }
    for push in repeated { #expect(ids[push.handle] == push.id) }
    #expect(repeated.count <= world.limits.pagesPerNotification * world.limits.pageSize)
    #expect(Set((before + gateway.pushes).map(\.handle)).count == 200)
    first.release()
  }

  @Test("what was accepted while no dispatcher ran is delivered at the next start")
  func acceptedBeforeStart() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<3)
    let record = try await world.accept(world.native())
    let dispatcher = try await world.started()
    #expect(
      DispatchWorld.outcomes(try await world.finished(record, by: dispatcher)) == [.success: 3])
  }

  @Test("retries that wait survive a restart")
  func retriesSurvive() async throws {
    let failing = FakeGateway { _, _ in
      PushResult(outcome: .pnsServerError, retry: .backoff, status: 500)
    }
    let world = try await DispatchWorld()
    try await world.addDevices(0..<4)
    let first = world.dispatcher([.apns: failing])
    try await first.start()
    let sent = try await world.send(world.native(), through: first)
    await world.clock.sleepers(1)
    await first.stop(within: .seconds(5))
    #expect(try await world.store.waitingRetries(sent.id, hub: world.hub.id) == 4)

    let second = try await world.started()
    let record = try await world.runningClock(for: second) {
      try await world.finished(sent, by: second)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 4])
    #expect(world.gateways[.apns]?.pushes.count == 4)
  }

  @Test("retries that the store could not name while other pages were open are looked for again")
  func retriesAreLookedForAgain() async throws {
    let failing = FakeGateway { _, attempt in
      attempt > 1 ? .success : PushResult(outcome: .pnsServerError, retry: .backoff, status: 500)
    }
    let slow = FakeGateway()
    slow.hold()
    // A page for each device: the first is recorded while the second is open.
    let world = try await DispatchWorld([.apns: failing, .fcmv1: slow], pageSize: 1)
    for platform in [PushPlatform.apns, .fcmv1] {
      let draft = RegistrationDraft(
        kind: .template(PushTemplate(body: #"{"a":"$(a)"}"#), name: nil), platform: platform,
        channel: .handle("1"))
      try await world.add("d-\(platform)", [draft], platform)
    }
    let process = StoreHook()
    let dispatcher = world.dispatcher(process: process)
    try await dispatcher.start()
    let isRefused = Mutex(false)
    process.faults { call in
      guard call == "dueRetries(of:asOf:limit:)", !isRefused.withLock({ exchange(&$0, with: true) })
      else { return nil }
      return .refused(StoreError.noHub)
    }
    let sent = try await world.send(world.template(#"{"a":"b"}"#), through: dispatcher)
    await world.clock.sleepers(1)
    world.clock.advance(by: .seconds(300))
    await process.called("dueRetries(of:asOf:limit:)")
    // Only for another look at the row: the other page is held.
    await world.clock.sleepers(1)
    slow.release()
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 2])
  }

  @Test(
    "a lane whose retries the store cannot read keeps no other lane's waiting",
    arguments: [nil, 12] as [Int64?])
  func unreadableRetries(expiry: Int64?) async throws {
    func gateway(_ retryAfter: Int32) -> FakeGateway {
      FakeGateway { _, attempt in
        attempt > 1
          ? .success
          : PushResult(
            outcome: .throttled, retry: .backoff, status: 429, retryAfter: retryAfter)
      }
    }
    let world = try await DispatchWorld([.apns: gateway(5), .fcmv1: gateway(27)])
    let other = try await world.beside("other")
    try await other.putCredential(.fcmv1)
    try await world.addDevices(0..<1)
    try await other.addDevices(1..<2, platform: .fcmv1)
    let start = world.clock.now
    let process = StoreHook()
    let isDamaged = Mutex(true)
    let clock = world.clock
    // The other's turn comes in the second between two of the damaged lane's.
    process.faults { call in
      guard isDamaged.withLock({ $0 }),
        call == "retries(of:notification:part:limit:)"
          || call == "dueRetries(of:asOf:limit:)"
            && !(27..<28).contains(clock.now.timeIntervalSince(start))
      else { return nil }
      return .refused(StoreError.corrupt("page 7"))
    }
    let dispatcher = world.dispatcher(process: process)
    try await dispatcher.start()
    let damaged = try await world.send(
      world.native(expiry: expiry.map { Int64(start.timeIntervalSince1970) + $0 }),
      through: dispatcher)
    let sent = try await other.send(world.native(.fcmv1), through: dispatcher)
    let record = try await world.runningClock(for: dispatcher) {
      let limit = Duration.seconds(300)
      return try await dispatcher.record(
        of: sent.id, hub: other.hub.id, finishedWithin: limit)
    }
    #expect(record.map(DispatchWorld.outcomes) == [.success: 1])
    #expect(await !dispatcher.isIdle)
    isDamaged.withLock { $0 = false }
    let mended = try await world.runningClock(for: dispatcher) {
      try await world.finished(damaged, by: dispatcher)
    }
    #expect(
      DispatchWorld.outcomes(mended)
        == [expiry == nil ? .success : .abandonedNotificationMessages: 1])
  }

  @Test("what has been released goes out although the store does not tell the next schedule")
  func unknownNextSchedule() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<1)
    let process = StoreHook()
    let dispatcher = world.dispatcher(process: process)
    try await dispatcher.start()
    process.refuse("nextSchedule()", with: .corrupt("page 7"))
    let due = world.clock.now + 5
    let later = NotificationRecord(
      id: NotificationID(at: due, random: .system), hub: world.hub.id, request: world.native(),
      state: .scheduled,
      enqueuedAt: world.clock.now, scheduledFor: due)
    try await world.store.accept(later)
    await dispatcher.submit(later)
    await world.clock.sleepers(1)
    world.clock.set(due)
    let gateway = try #require(world.gateways[.apns])
    await gateway.arrived(batches: 1)
    #expect(await dispatcher.waitUntilIdle(within: .seconds(60)))
  }

  @Test("schedules are asked for every two seconds while the store refuses")
  func refusedRelease() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<1)
    let process = StoreHook()
    let (clock, start) = (world.clock, world.clock.now)
    let asked = Mutex<[Date]>([])
    process.faults { call in
      guard call == "releaseSchedules(asOf:limit:)" else { return nil }
      asked.withLock { $0.append(clock.now) }
      return clock.now < start + 60 ? .refused(StoreError.locked) : nil
    }
    let dispatcher = world.dispatcher(process: process)
    try await dispatcher.start()
    let due = world.clock.now + 5
    let later = NotificationRecord(
      id: NotificationID(at: due, random: .system), hub: world.hub.id, request: world.native(),
      state: .scheduled, enqueuedAt: world.clock.now, scheduledFor: due)
    try await world.store.accept(later)
    await dispatcher.submit(later)
    let gateway = try #require(world.gateways[.apns])
    let driver = Task {
      while !Task.isCancelled {
        await clock.sleepers(1)
        if let next = clock.nextDeadline { clock.set(max(next, clock.now)) }
        await Task.yield()
      }
    }
    await gateway.arrived(batches: 1)
    driver.cancel()
    let moments = asked.withLock { $0 }
    #expect(zip(moments, moments.dropFirst()).allSatisfy { $1.timeIntervalSince($0) <= 2.1 })
    #expect(moments.count > 25)
  }

  @Test("what is in flight is bounded, whatever the audience")
  func backPressure() async throws {
    let world = try await DispatchWorld(laneTargets: 20)
    let gateway = try #require(world.gateways[.apns])
    gateway.hold()
    try await world.addDevices(0..<200)
    let dispatcher = try await world.started()
    var sent: [NotificationRecord] = []
    for _ in 0..<5 { sent.append(try await world.send(world.native(), through: dispatcher)) }
    await gateway.arrived(batches: 2)
    gateway.release()
    for record in sent {
      #expect(
        DispatchWorld.outcomes(try await world.finished(record, by: dispatcher)) == [.success: 200])
    }
    #expect(gateway.mostTargetsInFlight <= 20)
  }

  @Test("a push service that does not answer delays no other")
  func stalledLane() async throws {
    let world = try await DispatchWorld([.apns: FakeGateway(), .fcmv1: FakeGateway()])
    world.gateways[.fcmv1]?.hold()
    try await world.addDevices(0..<300, platform: .fcmv1)
    try await world.addDevices(300..<400)
    let dispatcher = try await world.started()
    var stalled: [NotificationRecord] = []
    for _ in 0..<10 {
      stalled.append(try await world.send(world.native(.fcmv1), through: dispatcher))
    }
    let sent = try await world.send(world.native(), through: dispatcher)
    #expect(
      DispatchWorld.outcomes(try await world.finished(sent, by: dispatcher)) == [.success: 100])
    world.gateways[.fcmv1]?.release()
    for record in stalled {
      #expect(
        DispatchWorld.outcomes(try await world.finished(record, by: dispatcher)) == [.success: 300])
    }
  }

  @Test("one stalled platform does not keep a template send from the other")
  func stalledShare() async throws {
    let world = try await DispatchWorld(
      [.apns: FakeGateway(), .fcmv1: FakeGateway()], laneTargets: 10)
    world.gateways[.fcmv1]?.hold()
    let template = PushTemplate(body: #"{"a":"$(a)"}"#)
    for number in 0..<60 {
      let platform: PushPlatform = number % 2 == 0 ? .apns : .fcmv1
      try await world.add(
        "d\(number)",
        [
          RegistrationDraft(
            kind: .template(template, name: nil), platform: platform,
            channel: .handle("\(number)"))
        ], platform)
    }
    let dispatcher = try await world.started()
    let sent = try await world.send(world.template("{}"), through: dispatcher)
    let apns = try #require(world.gateways[.apns])
    // Two pages fill the stalled lane; the third waits for it until it counts as stalled.
    await apns.arrived(batches: 3)
    await world.clock.sleepers(1)
    world.clock.advance(by: .seconds(15))
    await apns.arrived(batches: 6)
    world.gateways[.fcmv1]?.release()
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 60])
    #expect(world.gateways[.fcmv1]?.pushes.count == 30)
  }

  @Test("a store that refuses is asked again, and nothing is lost or sent twice")
  func storeTrouble() async throws {
    let world = try await DispatchWorld()
    let gateway = try #require(world.gateways[.apns])
    gateway.hold()
    try await world.addDevices(0..<25)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 3)
    world.hook.fail(with: .diskFull)
    gateway.release()
    await world.clock.sleepers(1)
    #expect(world.events.all.contains { $0.description.contains("disk") })
    world.hook.fail(with: nil)
    let record = try await world.runningClock(for: nil) {
      try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 25])
    #expect(gateway.pushes.count == 25)
  }

  @Test("whichever call the store refuses once, everything arrives once", arguments: 0..<16)
  func anyCallRefused(number: Int) async throws {
    let world = try await DispatchWorld()
    let gateway = try #require(world.gateways[.apns])
    try await world.addDevices(0..<25)
    let process = StoreHook()
    let dispatcher = world.dispatcher(process: process)
    try await dispatcher.start()
    process.refuse(call: number, with: .diskFull)
    let due = world.clock.now.addingTimeInterval(5)
    let later = NotificationRecord(
      id: NotificationID(at: due, random: .system), hub: world.hub.id, request: world.native(),
      state: .scheduled,
      enqueuedAt: world.clock.now, scheduledFor: due)
    try await world.store.accept(later)
    await dispatcher.submit(later)
    let sent = try await world.send(world.native(), through: dispatcher)
    let driver = Task {
      while !Task.isCancelled {
        await world.clock.sleepers(1)
        if let next = world.clock.nextDeadline { world.clock.set(max(next, world.clock.now)) }
        await Task.yield()
      }
    }
    defer { driver.cancel() }
    for record in [sent, later] {
      var found = record
      while !found.state.isFinal {
        await Task.yield()
        found = try #require(
          try await world.store.notification(record.id, hub: world.hub.id))
      }
      #expect(DispatchWorld.outcomes(found) == [.success: 25])
    }
    #expect(gateway.pushes.count == 50)
  }

  @Test("a deleted hub ends its notifications")
  func deletedHub() async throws {
    let world = try await DispatchWorld()
    let gateway = try #require(world.gateways[.apns])
    gateway.hold()
    try await world.addDevices(0..<5)
    let dispatcher = try await world.started()
    _ = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 1)
    _ = try await world.store.deleteHub(named: "hub")
    gateway.release()
    #expect(await dispatcher.waitUntilIdle(within: .seconds(60)))
  }

  @Test("stop lets what is in flight finish and records it")
  func stopFinishes() async throws {
    let world = try await DispatchWorld()
    let gateway = try #require(world.gateways[.apns])
    gateway.hold()
    try await world.addDevices(0..<100)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 4)
    async let stopped: Void = dispatcher.stop(within: .seconds(10))
    await world.clock.sleepers(1)
    gateway.release()
    await stopped
    let record = try await world.store.notification(sent.id, hub: world.hub.id)
    #expect(record?.counts.values.reduce(0, +) == gateway.pushes.count)
    #expect(record?.state == .processing)

    let next = FakeGateway()
    let second = world.dispatcher([.apns: next])
    try await second.start()
    #expect(
      DispatchWorld.outcomes(try await world.finished(sent, by: second)) == [.success: 100])
    #expect(next.pushes.count + gateway.pushes.count == 100)
  }

  @Test("stop returns at its limit when a push service does not answer")
  func stopAtLimit() async throws {
    let world = try await DispatchWorld()
    let gateway = try #require(world.gateways[.apns])
    gateway.hold()
    try await world.addDevices(0..<5)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    await gateway.arrived(batches: 1)
    async let stopped: Void = dispatcher.stop(within: .seconds(10))
    await world.clock.sleepers(1)
    world.clock.advance(by: .seconds(10))
    await stopped
    #expect(try await world.store.notification(sent.id, hub: world.hub.id)?.cursor == 0)
    gateway.release()
  }

  @Test("a part is not given back to a store that has closed")
  func giveBackToClosed() async throws {
    let world = try await DispatchWorld()
    let process = StoreHook()
    let dispatcher = world.dispatcher(process: process)
    process.refuse("releaseWork(_:of:hub:)", with: .closed)
    // The clock stands still.
    _ = await dispatcher.work.giveBack(
      WorkLease(part: 0, epoch: 1), of: NotificationID(rawValue: "n"), hub: world.hub.id)
  }

  @Test("a wait for an outcome ends at its limit")
  func waitLimit() async throws {
    let world = try await DispatchWorld()
    let gateway = try #require(world.gateways[.apns])
    gateway.hold()
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    async let waited = dispatcher.record(
      of: sent.id, hub: world.hub.id, finishedWithin: .seconds(3))
    await world.clock.sleepers(1)
    world.clock.advance(by: .seconds(3))
    #expect(try await waited?.state == .enqueued)
    gateway.release()
  }

  @Test("work that another node has taken over is dropped: nothing more of it is sent or recorded")
  func takenOver() async throws {
    var world = try await DispatchWorld()
    world.limits.pagesPerNotification = 1
    let gateway = try #require(world.gateways[.apns])
    try await world.addDevices(0..<50)
    let dispatcher = try await world.started()
    world.hook.refuse("checkpoint(_:)", with: .leaseLost)
    let sent = try await world.send(world.native(), through: dispatcher)
    #expect(await dispatcher.waitUntilIdle(within: .seconds(86_400)))
    #expect(gateway.pushes.count == 10, "the page that was under way")
    let record = try #require(try await world.store.notification(sent.id, hub: world.hub.id))
    #expect(record.counts.isEmpty && record.cursor == 0)
    #expect(
      world.events.all.contains {
        if case .leaseLost(_, sent.id, part: 0) = $0 { true } else { false }
      })
  }
}
