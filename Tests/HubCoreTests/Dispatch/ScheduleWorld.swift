import Foundation
import HubTesting
import NotificationHubs

@testable import HubCore

/// Notifications, lanes and a push service in ticks: drives a ``DispatchSchedule`` as the
/// dispatcher does, without tasks and clocks, and writes down who was served when.
struct ScheduleWorld {
  struct Job {
    let hub: Hub.ID
    var left: Int
    var delivered = 0
  }

  private struct Flying {
    let part: DispatchSchedule.Part
    let notification: Int
    let lands: Int
  }

  private struct Page {
    let notification: Int
    let targets: Int
    var open: Int
  }

  var schedule: DispatchSchedule
  let limits: DispatchLimits
  /// Ticks that a part needs, by lane; `nil` never comes back.
  var latency: (LaneKey) -> Int? = { _ in 1 }
  /// The connections of a lane.
  var pool: (LaneKey) -> GatewayPool? = { _ in nil }
  private(set) var jobs: [Int: Job] = [:]
  private(set) var tick = 0
  /// Targets delivered by the end of each tick, by notification.
  private(set) var deliveries: [(tick: Int, notification: Int, targets: Int)] = []
  private(set) var mostHeld = 0
  private(set) var postponed = 0
  private var flying: [Flying] = []
  private var parts: [PartKey: (part: DispatchSchedule.Part, notification: Int)] = [:]
  private var pages: [Int: Page] = [:]
  private var nextPage = 0
  private var lanes: [Int: [LaneKey]] = [:]

  init(_ limits: DispatchLimits) {
    self.limits = limits
    schedule = DispatchSchedule(limits: limits)
  }

  var now: Date { Date(timeIntervalSince1970: 1_893_456_000 + Double(tick) / 10) }

  /// - Parameter lanes: Whose targets take turns in each page; one lane is a native send.
  mutating func send(_ number: Int, hub: Hub.ID, _ platforms: [PushPlatform], targets: Int) {
    jobs[number] = Job(hub: hub, left: targets)
    lanes[number] = platforms.map { LaneKey(hub: hub, platform: $0) }
    schedule.add(
      number, hub: hub,
      lane: platforms.count == 1 ? LaneKey(hub: hub, platform: platforms[0]) : nil,
      deadline: now.addingTimeInterval(1_000_000), hasPages: true)
  }

  func delivered(hub: Hub.ID) -> Int {
    jobs.values.filter { $0.hub == hub }.reduce(0) { $0 + $1.delivered }
  }

  var isDone: Bool { jobs.values.allSatisfy { $0.left == 0 && $0.delivered >= 0 } && pages.isEmpty }

  /// One tick: what has landed is answered, one part after the other.
  mutating func step() {
    tick += 1
    let landed = flying.filter { $0.lands <= tick }
    flying.removeAll { $0.lands <= tick }
    for flying in landed {
      land(flying)
      pump()
    }
    pump()
  }

  /// Starts everything that may start.
  private mutating func pump() {
    while true {
      let actions = schedule.next(at: now)
      mostHeld = max(mostHeld, schedule.targetsHeld)
      for action in actions { take(action) }
      if actions.isEmpty { return }
    }
  }

  mutating func run(ticks: Int) {
    for _ in 0..<ticks { step() }
  }

  private mutating func take(_ action: DispatchSchedule.Action) {
    switch action {
    case .read(let number): read(number)
    case .deliver(let key, _):
      guard let (part, notification) = parts.removeValue(forKey: key) else { return }
      let lands = latency(part.lane).map { tick + $0 } ?? Int.max
      flying.append(Flying(part: part, notification: notification, lands: lands))
    case .postpone(let key), .refuse(let key), .release(let key):
      guard let (part, _) = parts.removeValue(forKey: key) else { return }
      postponed += part.targets
      close(part.key.page)
    }
  }

  private mutating func read(_ number: Int) {
    guard let left = jobs[number]?.left, let lanes = lanes[number] else { return }
    let count = min(left, limits.pageSize)
    jobs[number]?.left -= count
    var made: [DispatchSchedule.Part] = []
    for (index, lane) in lanes.enumerated() {
      let share = count / lanes.count + (index < count % lanes.count ? 1 : 0)
      guard share > 0 else { continue }
      let part = DispatchSchedule.Part(
        key: PartKey(page: nextPage, index: index), lane: lane, targets: share)
      schedule.lanes.assign(lane, to: pool(lane))
      parts[part.key] = (part, number)
      made.append(part)
    }
    pages[nextPage] = Page(notification: number, targets: count, open: made.count)
    nextPage += 1
    schedule.pageRead(number, parts: made, targets: count, isLast: left <= limits.pageSize)
  }

  private mutating func land(_ flying: Flying) {
    let part = flying.part
    schedule.lanes.finish(part.key, of: part.lane, AnswerSummary(answered: part.targets), at: now)
    jobs[flying.notification]?.delivered += part.targets
    deliveries.append((tick, flying.notification, part.targets))
    close(part.key.page)
  }

  private mutating func close(_ number: Int) {
    pages[number]?.open -= 1
    guard let page = pages[number], page.open == 0 else { return }
    pages[number] = nil
    schedule.pageDone(page.notification, targets: page.targets)
  }
}

extension Lanes {
  /// A part has such answers.
  /// - Parameters:
  ///   - refusal: The push service's answer to the credential.
  ///   - credential: Its date, which the lane has from here on.
  mutating func settle(
    _ key: LaneKey, _ answers: AnswerSummary, refusal: PushResult? = nil,
    isUnreachable: Bool = false,
    credential: Date = .distantPast, isShared: Bool = false, at now: Date
  ) {
    use(credential, for: key, at: now)
    let request = NotificationRequest(format: .native(key.platform), body: [])
    let context = DispatchContext(
      NotificationRecord(
        id: NotificationID(rawValue: "n"), hub: key.hub, request: request, state: .processing,
        enqueuedAt: now),
      limits: DispatchLimits(), at: DispatchMoment(ManualClock(now: now).hubClock))
    let part = PagePart(
      lane: key, gateway: FakeGateway(), credential: credential, batch: PushBatch(bodies: []),
      registrations: [])
    var settlement = PartSettlement(part, context: context, attempts: nil, at: now)
    settlement.answers = answers
    settlement.hadSuccess = answers.answered > 0
    settlement.refusal = refusal
    settlement.isUnreachable = isUnreachable
    var outcome = PageOutcome()
    _ = settle(&outcome, settlement, of: key, isShared: isShared, at: now, wall: now)
  }

  /// The same for a part that shows that the lane as a whole cannot go on.
  /// - Returns: Until when the lane rests; `nil` when it did already.
  mutating func fail(_ key: LaneKey, _ failure: LaneFailure, at now: Date) -> Date? {
    let rested = restsUntil(key, at: now) != nil
    switch failure {
    case .refused:
      settle(key, AnswerSummary(), refusal: PushResult(outcome: .invalidCredentials), at: now)
    case .unreachable: settle(key, AnswerSummary(failed: 1), isUnreachable: true, at: now)
    case .unavailable: settle(key, AnswerSummary(failed: Lane.mostFaults), at: now)
    }
    return rested ? nil : restsUntil(key, at: now)
  }
}
