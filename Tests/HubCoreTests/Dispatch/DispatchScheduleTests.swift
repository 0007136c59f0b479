import Foundation
import NotificationHubs
import Testing

@testable import HubCore

@Suite("Dispatch schedule")
struct DispatchScheduleTests {
  private let now = Date(timeIntervalSince1970: 1_893_456_000)
  private let apns = LaneKey(hub: 1, platform: .apns)
  private let fcm = LaneKey(hub: 1, platform: .fcmv1)

  private func limits(_ change: (inout DispatchLimits) -> Void = { _ in }) -> DispatchLimits {
    var limits = DispatchLimits()
    limits.pageSize = 10
    limits.laneTargets = 20
    limits.laneBacklog = 20
    limits.targets = 1000
    change(&limits)
    return limits
  }

  private func schedule(_ limits: DispatchLimits, _ lanes: [LaneKey?]) -> DispatchSchedule {
    var schedule = DispatchSchedule(limits: limits)
    for (number, lane) in lanes.enumerated() {
      schedule.add(
        number, hub: 1, lane: lane, deadline: now.addingTimeInterval(1800), hasPages: true)
    }
    return schedule
  }

  private func part(_ page: Int, _ lane: LaneKey, _ targets: Int = 10) -> DispatchSchedule.Part {
    .init(key: PartKey(page: page, index: 0), lane: lane, targets: targets)
  }

  @Test("notifications take turns when there is not room for a page of each")
  func turns() {
    var schedule = schedule(limits { $0.targets = 20 }, [apns, apns, apns])
    #expect(schedule.next(at: now) == [.read(0), .read(1)])
    schedule.pageRead(0, parts: [], targets: 0, isLast: false)
    #expect(schedule.next(at: now) == [.read(2)])
    schedule.pageRead(1, parts: [], targets: 0, isLast: false)
    #expect(schedule.next(at: now) == [.read(0)])
  }

  @Test("a small send that comes late is read before a broadcast's second page")
  func smallSendOvertakes() {
    var schedule = schedule(limits { $0.targets = 10 }, [apns])
    #expect(schedule.next(at: now) == [.read(0)])
    schedule.add(7, hub: 1, lane: apns, deadline: now.addingTimeInterval(1800), hasPages: true)
    schedule.pageRead(0, parts: [part(1, apns)], targets: 10, isLast: false)
    #expect(schedule.next(at: now) == [.deliver(PartKey(page: 1, index: 0), isProbe: false)])
    schedule.lanes.finish(PartKey(page: 1, index: 0), of: apns, at: now)
    schedule.pageDone(0, targets: 10)
    #expect(schedule.next(at: now) == [.read(7)])
  }

  @Test("the next page is read while one is in flight, and no more than a notification may have")
  func prefetch() {
    var schedule = schedule(limits { $0.pagesPerNotification = 2 }, [apns])
    #expect(schedule.next(at: now) == [.read(0)])
    schedule.pageRead(0, parts: [part(1, apns)], targets: 10, isLast: false)
    #expect(
      schedule.next(at: now) == [.deliver(PartKey(page: 1, index: 0), isProbe: false), .read(0)])
    schedule.pageRead(0, parts: [part(2, apns)], targets: 10, isLast: false)
    #expect(schedule.next(at: now) == [.deliver(PartKey(page: 2, index: 0), isProbe: false)])
    #expect(schedule.targetsHeld == 20)
  }

  @Test("a full lane lets a part wait, and its notification reads no further")
  func fullLane() {
    var schedule = schedule(
      limits {
        $0.laneTargets = 10
        $0.laneBacklog = 10
      }, [apns])
    _ = schedule.next(at: now)
    schedule.pageRead(0, parts: [part(1, apns)], targets: 10, isLast: false)
    _ = schedule.next(at: now)
    schedule.pageRead(0, parts: [part(2, apns)], targets: 10, isLast: false)
    #expect(schedule.next(at: now).isEmpty)
    schedule.lanes.finish(PartKey(page: 1, index: 0), of: apns, at: now)
    #expect(
      schedule.next(at: now) == [.deliver(PartKey(page: 2, index: 0), isProbe: false), .read(0)])
  }

  @Test("a stalled lane gives up what waits, and only that lane")
  func stalledLane() {
    var schedule = schedule(
      limits {
        $0.laneTargets = 10
        $0.laneBacklog = 10
      }, [nil])
    _ = schedule.next(at: now)
    schedule.pageRead(0, parts: [part(1, fcm)], targets: 10, isLast: false)
    _ = schedule.next(at: now)
    schedule.pageRead(
      0,
      parts: [
        part(2, fcm),
        .init(key: PartKey(page: 2, index: 1), lane: apns, targets: 10),
      ], targets: 20, isLast: false)
    #expect(schedule.next(at: now) == [.deliver(PartKey(page: 2, index: 1), isProbe: false)])
    #expect(schedule.nextWake(after: now) == now.addingTimeInterval(15))
    let later = now.addingTimeInterval(15)
    schedule.lanes.finish(
      PartKey(page: 2, index: 1), of: apns, AnswerSummary(answered: 10), at: later)
    let actions = schedule.next(at: later)
    #expect(
      actions == [
        .postpone(PartKey(page: 2, index: 0)), .read(0),
      ])
  }

  @Test("a refused credential rests, is probed by one part, and rests longer when refused again")
  func refusedCredential() {
    var schedule = schedule(limits(), [apns, apns])
    _ = schedule.next(at: now)
    schedule.pageRead(0, parts: [part(1, apns)], targets: 10, isLast: true)
    schedule.pageRead(1, parts: [part(2, apns, 5)], targets: 5, isLast: false)
    _ = schedule.next(at: now)
    schedule.pageRead(1, parts: [], targets: 0, isLast: false)
    schedule.lanes.finish(PartKey(page: 1, index: 0), of: apns, at: now)
    #expect(schedule.lanes.fail(apns, .refused, at: now) == now.addingTimeInterval(60))
    schedule.lanes.finish(PartKey(page: 2, index: 0), of: apns, at: now)
    #expect(schedule.lanes.fail(apns, .refused, at: now) == nil)
    #expect(schedule.next(at: now).isEmpty)
    #expect(schedule.nextWake(after: now) == now.addingTimeInterval(60))

    let rested = now.addingTimeInterval(60)
    #expect(schedule.next(at: rested) == [.read(1)])
    schedule.pageRead(1, parts: [part(3, apns)], targets: 10, isLast: false)
    schedule.retriesRead(0, parts: [part(4, apns)])
    // What comes while the probe is under way waits for its answer.
    #expect(schedule.next(at: rested) == [.deliver(PartKey(page: 3, index: 0), isProbe: true)])
    #expect(schedule.lanes.retryRoom(apns, at: rested) == 0)
    schedule.lanes.finish(PartKey(page: 3, index: 0), of: apns, at: rested)
    #expect(schedule.lanes.fail(apns, .refused, at: rested) == rested.addingTimeInterval(120))
    #expect(schedule.next(at: rested) == [.refuse(PartKey(page: 4, index: 0))])
    // What comes after the refusal waits: retries in their rows, what was read in memory.
    schedule.retriesRead(0, parts: [part(5, apns)])
    #expect(schedule.next(at: rested) == [.release(PartKey(page: 5, index: 0))])
    schedule.pageRead(1, parts: [part(6, apns)], targets: 10, isLast: false)
    #expect(schedule.next(at: rested).isEmpty)
    schedule.add(7, hub: 1, lane: apns, deadline: now.addingTimeInterval(1800), hasPages: true)
    #expect(schedule.next(at: rested).isEmpty)
    #expect(schedule.next(at: rested.addingTimeInterval(119)).isEmpty)
    let again = schedule.next(at: rested.addingTimeInterval(120))
    #expect(again.first == .deliver(PartKey(page: 6, index: 0), isProbe: true))
  }

  @Test(
    "while a lane rests nothing is read or written for it, until the notification's time is over")
  func restTouchesNothing() {
    var schedule = schedule(limits { $0.pagesPerNotification = 4 }, [apns])
    _ = schedule.next(at: now)
    schedule.pageRead(0, parts: [part(1, apns)], targets: 10, isLast: false)
    _ = schedule.next(at: now)
    schedule.pageRead(0, parts: [part(2, apns)], targets: 10, isLast: false)
    schedule.lanes.finish(PartKey(page: 1, index: 0), of: apns, AnswerSummary(failed: 10), at: now)
    schedule.lanes.settle(apns, AnswerSummary(failed: 10), at: now)
    var time = now
    var pauses: [Double] = []
    while let until = schedule.lanes.restsUntil(apns, at: time), until < now + 1790 {
      pauses.append(until.timeIntervalSince(time))
      #expect(schedule.next(at: time).isEmpty)
      #expect(schedule.next(at: until.addingTimeInterval(-0.5)).isEmpty)
      #expect(schedule.lanes.retryRoom(apns, at: time) == 0)
      time = until
      // A page that waits in memory is the probe; it comes back.
      let probe = schedule.next(at: time)
      #expect(probe == [.deliver(PartKey(page: 2, index: 0), isProbe: true)])
      schedule.lanes.finish(
        PartKey(page: 2, index: 0), of: apns, AnswerSummary(failed: 1), at: time)
      schedule.lanes.settle(apns, AnswerSummary(failed: 1), at: time)
      schedule.returned(0, part(2, apns))
    }
    #expect(pauses.prefix(6) == [1, 2, 4, 8, 16, 30])
    #expect(pauses.dropFirst(5).allSatisfy { $0 == 30 })
    #expect(schedule.nextWake(after: time).map { $0 <= now + 1800 } == true)
    let actions = schedule.next(at: now.addingTimeInterval(1800))
    #expect(actions.contains(.postpone(PartKey(page: 2, index: 0))))
    #expect(actions.contains(.read(0)))
  }

  @Test("a template send writes rows for a lane that rests only while another lane moves")
  func templateShare() {
    var schedule = schedule(limits(), [nil])
    _ = schedule.next(at: now)
    let both = [
      part(1, apns),
      DispatchSchedule.Part(
        key: PartKey(page: 1, index: 1), lane: fcm, targets: 10),
    ]
    schedule.pageRead(0, parts: both, targets: 20, isLast: false)
    _ = schedule.next(at: now)
    schedule.lanes.finish(PartKey(page: 1, index: 0), of: apns, AnswerSummary(failed: 10), at: now)
    _ = schedule.lanes.fail(apns, .unavailable, at: now)
    schedule.pageRead(0, parts: [part(2, apns)], targets: 10, isLast: false)
    #expect(schedule.next(at: now) == [.postpone(PartKey(page: 2, index: 0)), .read(0)])
    schedule.pageRead(0, parts: [], targets: 0, isLast: false)
    schedule.lanes.finish(PartKey(page: 1, index: 1), of: fcm, AnswerSummary(failed: 10), at: now)
    _ = schedule.lanes.fail(fcm, .unavailable, at: now)
    schedule.pageRead(0, parts: [part(3, apns)], targets: 10, isLast: false)
    #expect(schedule.next(at: now).isEmpty)
  }

  @Test("notifications that waited for a refused probe read their first page, and no more")
  func firstPages() {
    var schedule = schedule(limits(), [apns])
    _ = schedule.next(at: now)
    schedule.pageRead(0, parts: [part(1, apns)], targets: 10, isLast: false)
    schedule.add(1, hub: 1, lane: apns, deadline: now.addingTimeInterval(1800), hasPages: true)
    #expect(schedule.next(at: now).contains(.deliver(PartKey(page: 1, index: 0), isProbe: false)))
    schedule.lanes.finish(PartKey(page: 1, index: 0), of: apns, at: now)
    _ = schedule.lanes.fail(apns, .refused, at: now)
    schedule.pageRead(1, parts: [part(2, apns)], targets: 10, isLast: false)
    #expect(schedule.next(at: now) == [.refuse(PartKey(page: 2, index: 0))])
    schedule.add(2, hub: 1, lane: apns, deadline: now.addingTimeInterval(1800), hasPages: true)
    #expect(schedule.next(at: now).isEmpty)
    #expect(schedule.lanes.inTrouble(at: now) == [apns])
    schedule.lanes.settle(apns, AnswerSummary(answered: 1), at: now)
    #expect(schedule.lanes.inTrouble(at: now).isEmpty)
  }

  @Test("a pause that was asked of a credential ends with it")
  func replacedCredential() {
    var schedule = schedule(limits(), [apns])
    schedule.lanes.assign(apns, to: GatewayPool(id: 1, capacity: 100))
    _ = schedule.next(at: now)
    schedule.pageRead(0, parts: [part(1, apns)], targets: 10, isLast: false)
    _ = schedule.next(at: now)
    schedule.lanes.finish(
      PartKey(page: 1, index: 0), of: apns, AnswerSummary(failed: 1, pause: 3600), at: now)
    #expect(schedule.lanes.restsUntil(apns, at: now) == now.addingTimeInterval(3600))
    #expect(schedule.lanes.inTrouble(at: now) == [apns])
    schedule.lanes.replaced(apns)
    #expect(schedule.lanes.restsUntil(apns, at: now) == nil)
    #expect(schedule.lanes.inTrouble(at: now).isEmpty)
    schedule.lanes.assign(apns, to: GatewayPool(id: 2, capacity: 100))
    #expect(schedule.lanes.restsUntil(apns, at: now) == nil)
  }

  @Test("a push service without an answer rests a second, then longer")
  func unreachable() {
    var schedule = schedule(limits(), [apns])
    _ = schedule.next(at: now)
    schedule.pageRead(0, parts: [part(1, apns)], targets: 10, isLast: false)
    _ = schedule.next(at: now)
    schedule.lanes.finish(PartKey(page: 1, index: 0), of: apns, at: now)
    #expect(schedule.lanes.fail(apns, .unreachable, at: now) == now.addingTimeInterval(1))
    let later = now.addingTimeInterval(1)
    #expect(schedule.lanes.fail(apns, .unreachable, at: later) == later.addingTimeInterval(2))
  }

  @Test("a success after a rest opens the lane for all")
  func recovery() {
    var schedule = schedule(limits(), [apns])
    _ = schedule.next(at: now)
    schedule.pageRead(0, parts: [part(1, apns)], targets: 10, isLast: false)
    _ = schedule.next(at: now)
    schedule.lanes.finish(PartKey(page: 1, index: 0), of: apns, at: now)
    _ = schedule.lanes.fail(apns, .refused, at: now)
    schedule.lanes.settle(apns, AnswerSummary(answered: 1), at: now)
    schedule.retriesRead(0, parts: [part(2, apns), part(3, apns)])
    #expect(
      schedule.next(at: now) == [
        .deliver(PartKey(page: 2, index: 0), isProbe: false),
        .deliver(PartKey(page: 3, index: 0), isProbe: false),
      ])
  }

  @Test("after its deadline a notification is read on even if its lane rests")
  func deadline() {
    var schedule = schedule(limits(), [apns])
    _ = schedule.next(at: now)
    schedule.pageRead(0, parts: [part(1, apns)], targets: 10, isLast: false)
    _ = schedule.next(at: now)
    schedule.lanes.finish(
      PartKey(page: 1, index: 0), of: apns, AnswerSummary(failed: 1, pause: 3600), at: now)
    schedule.pageRead(0, parts: [], targets: 0, isLast: false)
    #expect(schedule.next(at: now).isEmpty)
    #expect(schedule.nextWake(after: now) == now.addingTimeInterval(1800))
    #expect(schedule.next(at: now.addingTimeInterval(1800)) == [.read(0)])
  }

  @Test("a removed notification leaves nothing behind")
  func removal() {
    var schedule = schedule(limits(), [apns, apns])
    _ = schedule.next(at: now)
    schedule.pageRead(0, parts: [part(1, apns)], targets: 10, isLast: false)
    schedule.remove(0)
    schedule.remove(1)
    #expect(schedule.targetsHeld == 0)
    #expect(schedule.next(at: now).isEmpty)
  }
}
