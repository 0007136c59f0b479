import Foundation
import HubTesting
import NotificationHubs
import Testing

@testable import HubCore

/// The books of notifications under way, without a dispatcher.
@Suite("Notifications and pages under way")
struct DispatchJobsTests {
  private static let lane = LaneKey(hub: 1, platform: .apns)
  private let clock = ManualClock()
  private var jobs = DispatchJobs()
  private let number: Int
  private let context: DispatchContext

  init() throws {
    guard let added = Self.add(to: &jobs, clock) else { throw ProcessFault("not taken up") }
    (number, context) = added
  }

  private static func add(
    to jobs: inout DispatchJobs, _ clock: ManualClock, expiry: Int64? = nil
  ) -> (Int, DispatchContext)? {
    let request = NotificationRequest(
      format: .native(.apns), body: Array(#"{"aps":{}}"#.utf8), expiry: expiry)
    let record = NotificationRecord(
      id: NotificationID(at: clock.now, random: .system), hub: 1, request: request,
      state: .enqueued,
      enqueuedAt: clock.now)
    let context = DispatchContext(
      record, limits: DispatchLimits(), at: DispatchMoment(clock.hubClock))
    return jobs.add(record, context, retryRows: 0, at: clock.now).map { ($0, context) }
  }

  /// A page of so many targets, numbered from `first` on.
  private func plan(
    _ first: RegistrationID, _ count: Int, isRetry: Bool = false, of context: DispatchContext? = nil
  ) -> PagePlan {
    let page = TargetPage(
      targets: (0..<count).map {
        Target(
          registration: first + RegistrationID($0), handle: 0..<2, platform: .apns, template: -1,
          variables: -1, confirmedAt: 0, isDuplicate: false)
      }, handles: Array("AA".utf8))
    var routes = [GatewayRoute?](repeating: nil, count: PushPlatform.allCases.count)
    routes[PushPlatform.apns.ordinal] = .open(FakeGateway(), credential: clock.now)
    return PagePlan(
      page, context: context ?? self.context, routes: routes, isRetry: isRetry, at: clock.now)
  }

  /// Outside of the macros, which cannot call what changes a value.
  private func required<Value>(_ value: Value?) throws -> Value { try #require(value) }

  private func success(_ count: Int) -> PageOutcome {
    var outcome = PageOutcome()
    outcome.count(
      count, .success, in: OutcomeGroup(platform: .apns, isTemplate: false, isRetry: false))
    return outcome
  }

  @Test("what is finished, still waits for its time, or is here already is not taken up")
  mutating func notTakenUp() throws {
    var record = NotificationRecord(
      id: context.id, hub: 1, request: context.request, state: .enqueued, enqueuedAt: clock.now)
    var number = jobs.add(record, context, retryRows: 0, at: clock.now)
    #expect(number == nil)
    for state in [NotificationState.completed, .scheduled] {
      record = NotificationRecord(
        id: NotificationID(at: clock.now, random: .system), hub: 1, request: context.request,
        state: state,
        enqueuedAt: clock.now)
      number = jobs.add(record, context, retryRows: 0, at: clock.now)
      #expect(number == nil)
    }
    #expect(jobs.count == 1)
  }

  @Test("parts of one notification stand beside each other, each under its own lease")
  mutating func parts() throws {
    var record = NotificationRecord(
      id: NotificationID(at: clock.now, random: .system), hub: 1, request: context.request,
      state: .processing,
      enqueuedAt: clock.now, cursor: 9, isAudienceRead: true)
    var numbers: [Int] = []
    for part in [1, 2, 2] {
      record.lease = WorkLease(part: part, epoch: 3)
      let context = DispatchContext(
        record, limits: DispatchLimits(), at: DispatchMoment(clock.hubClock))
      #expect(context.query.part == part)
      if let number = jobs.add(record, context, retryRows: 0, at: clock.now) {
        numbers.append(number)
      }
    }
    #expect(numbers.count == 2 && Set(jobs.numbers(of: record.id)) == Set(numbers))
    let checkpoint = try required(jobs.checkpoint(numbers[1], at: clock.now))
    #expect(checkpoint.lease == WorkLease(part: 2, epoch: 3))
    _ = jobs.remove(numbers[1])
    #expect(jobs.number(of: record.id, part: 1) == numbers[0])
    #expect(jobs.number(of: record.id, part: 2) == nil)
    _ = jobs.remove(numbers[0])
    #expect(jobs.numbers(of: record.id).isEmpty)
  }

  @Test("the cursor follows the first page that is not complete, and pages go down together")
  mutating func order() throws {
    let first = jobs.open(plan(1, 2), of: number, targets: 2, end: 2, isLast: false)
    let second = jobs.open(plan(3, 2), of: number, targets: 2, end: 4, isLast: false)
    let third = jobs.open(plan(5, 1), of: number, targets: 1, end: 5, isLast: true)
    #expect([first, second, third].map(\.count) == [1, 1, 1])
    for part in [second, third] {
      _ = jobs.start(part[0].key, at: clock.now)
      jobs.close(part[0].key, success(part[0].part.registrations.count))
      let early = jobs.checkpoint(number, at: clock.now)
      #expect(early == nil)
    }
    jobs.close(first[0].key, success(2))
    let checkpoint = try required(jobs.checkpoint(number, at: clock.now))
    #expect(checkpoint.cursor == 5 && checkpoint.isAudienceRead)
    #expect(checkpoint.state == .completed)
    #expect(checkpoint.counts.values.reduce(0, +) == 5)
    let recorded = jobs.recorded(number)
    #expect(recorded.map(\.targets) == [2, 2, 1])
  }

  @Test("one checkpoint of a notification is written at a time")
  mutating func oneAtATime() throws {
    let first = jobs.open(plan(1, 1), of: number, targets: 1, end: 1, isLast: false)
    jobs.close(first[0].key, success(1))
    let atFirst = jobs.checkpoint(number, at: clock.now)
    #expect(atFirst?.cursor == 1)
    let second = jobs.open(plan(2, 1), of: number, targets: 1, end: 2, isLast: true)
    jobs.close(second[0].key, success(1))
    let meanwhile = jobs.checkpoint(number, at: clock.now)
    #expect(meanwhile == nil)
    let recorded = jobs.recorded(number)
    #expect(recorded.count == 1)
    let then = jobs.checkpoint(number, at: clock.now)
    #expect(then?.cursor == 2)
  }

  @Test("what was not sent of a part keeps its page open until it is settled")
  mutating func unsent() throws {
    let (key, part) = try required(
      jobs.open(plan(1, 3), of: number, targets: 3, end: 3, isLast: true).first)
    #expect(jobs.waitingInStartedPages.isEmpty)
    _ = jobs.start(key, at: clock.now)
    jobs.putBack(part.dropFirst(1), key)
    jobs.close(key, success(1))
    let early = jobs.checkpoint(number, at: clock.now)
    #expect(early == nil)
    #expect(jobs.waitingInStartedPages.map(\.key) == [key])
    jobs.settle(key, at: clock.now) { $0.postpone(refusal: nil) }
    let checkpoint = try required(jobs.checkpoint(number, at: clock.now))
    #expect(checkpoint.retries.map(\.registration) == [2, 3])
    #expect(checkpoint.state == .processing)
    _ = jobs.recorded(number)
    #expect(jobs[number]?.retryRows == 2 && jobs[number]?.hasOnlyRetryRows == true)
  }

  @Test("retries that are left to their rows change nothing, others end theirs")
  mutating func retries() throws {
    let (key, _) = try required(
      jobs.open(plan(1, 2), of: number, targets: 2, end: 2, isLast: true).first)
    jobs.settle(key, at: clock.now) { $0.postpone(refusal: nil) }
    let putOff = jobs.checkpoint(number, at: clock.now)
    #expect(putOff?.retries.count == 2)
    _ = jobs.recorded(number)

    var page = RetryPage(lane: Self.lane, attempts: [1: 1, 2: 1])
    var parts = jobs.open(plan(1, 2, isRetry: true), of: number, retries: page)
    jobs.release(parts[0].key)
    let nothing = jobs.checkpoint(number, at: clock.now)
    #expect(nothing == nil)
    #expect(jobs[number]?.retryRows == 2)

    page.attempts[2] = nil
    parts = jobs.open(plan(1, 1, isRetry: true), of: number, retries: page)
    _ = jobs.start(parts[0].key, at: clock.now)
    var outcome = success(1)
    outcome.settled = [1]
    jobs.close(parts[0].key, outcome)
    let last = jobs.checkpoint(number, at: clock.now)
    #expect(last?.settledRetries == [1])
    let recorded = jobs.recorded(number)
    #expect(recorded.map(\.retries?.attempts) == [[1: 1]])
    #expect(jobs[number]?.retryRows == 1)
  }

  @Test("what is over when its turn comes has its outcome and is not sent")
  mutating func over() throws {
    let expiry = Int64(clock.now.timeIntervalSince1970) + 10
    let (number, context) = try required(Self.add(to: &jobs, clock, expiry: expiry))
    let (key, _) = try required(
      jobs.open(plan(1, 2, of: context), of: number, targets: 2, end: 2, isLast: true).first)
    clock.advance(by: .seconds(11))
    let started = try required(jobs.start(key, at: clock.now))
    #expect(started.part.registrations.isEmpty)
    jobs.close(key, PageOutcome())
    let checkpoint = try required(jobs.checkpoint(number, at: clock.now))
    #expect(checkpoint.counts.map(\.key.outcome) == [.abandonedNotificationMessages])
    #expect(checkpoint.state == .abandoned)
  }

  @Test("a notification that goes takes its pages along")
  mutating func removed() throws {
    let parts = jobs.open(plan(1, 1), of: number, targets: 1, end: 1, isLast: true)
    let gone = jobs.remove(number)
    #expect(gone?.context.id == context.id)
    #expect(jobs.isEmpty && jobs.number(of: context.id, part: 0) == nil)
    #expect(jobs.waiting(parts[0].key) == nil)
    let started = jobs.start(parts[0].key, at: clock.now)
    #expect(started == nil)
    jobs.close(parts[0].key, success(1))
    let nothing = jobs.checkpoint(number, at: clock.now)
    #expect(nothing == nil)
  }
}
