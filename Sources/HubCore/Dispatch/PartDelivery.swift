import Foundation
import NotificationHubs

/// Carries one part to its gateway: whole, or in steps while the push service is to be spared.
struct PartDelivery: Sendable {
  private let part: PagePart
  private let isProbe: Bool
  private let pace: Int?
  private let page: Int
  private let context: DispatchContext
  private let holdsLeases: @Sendable () -> Bool

  /// - Parameters:
  ///   - isProbe: The first request goes ahead alone.
  ///   - pace: Number of pushes at once at first; `nil`: all.
  ///   - page: The size of a page; see ``DispatchPool/step(page:)``.
  ///   - holdsLeases: Whether other nodes still leave the part to this one.
  init(
    _ part: PagePart, of context: DispatchContext, isProbe: Bool, pace: Int?, page: Int,
    holdsLeases: @escaping @Sendable () -> Bool
  ) {
    self.holdsLeases = holdsLeases
    self.part = part
    self.context = context
    self.isProbe = isProbe
    self.pace = pace
    self.page = page
  }

  /// Delivers. When a probe or a step fails, or meanwhile the notification is aborted or the node's
  /// leases end, the rest is not sent; when it shows that the credential is refused, the
  /// others share that answer.
  /// - Returns: An answer for each request that was sent or shares an answer, from the first on;
  ///   and the number of pushes at once in the end, `nil` for all.
  func run() async -> (results: [PushResult], pace: Int?) {
    let count = part.batch.requests.count
    if pace ?? count >= count, !isProbe || count == 1 {
      return (await part.gateway.deliver(part.batch), pace)
    }
    var results: [PushResult] = []
    var pace = pace
    if isProbe {
      results = await deliver(0..<1)
      if let answer = results.first, answer.retry == .pauseCredential {
        return (Array(repeating: answer, count: count), pace)
      }
      let answers = Self.answers(results)
      // The answer of a server that a person has chosen is none of the service: the next push probes.
      if answers.failed > 0 || answers.isTroubled || results.first?.concernsOthers == false {
        return (results, pace)
      }
    }
    while results.count < count, results.isEmpty || !context.isAborted && holdsLeases() {
      let step = await deliver(results.count..<min(count, results.count + (pace ?? count)))
      results += step
      if let refusal = step.first(where: { $0.retry == .pauseCredential }) {
        return (results + Array(repeating: refusal, count: count - results.count), pace)
      }
      if step.isEmpty || Self.answers(step).isTroubled { break }
      pace = pace.map { $0 + DispatchPool.step(page: page) }
    }
    return (results, pace)
  }

  /// Sends to another handle of each device whose own is answered as no handle of the credential:
  /// once, and without a retry. Where there are several it is the installation id, which nobody can
  /// make up without reaching the device, or else the oldest token, which was there before any that
  /// somebody has made up.
  /// - Parameter results: As of ``run()``.
  /// - Returns: The answers, by the registration that was to be sent to.
  func handOver(_ results: [PushResult]) async -> [RegistrationID: Handover] {
    guard !part.twins.isEmpty, !context.isAborted, holdsLeases() else { return [:] }
    var batch = part.batch
    batch.requests = []
    var retargeted: [(registration: RegistrationID, twin: HandleTwin)] = []
    for (index, result) in results.enumerated() where result.isAboutHandle {
      let registration = part.registrations[index]
      guard let twins = part.twins[registration],
        let twin = twins.first(where: { !part.isToken($0.handle) }) ?? twins.last
      else { continue }
      let request = part.batch.requests[index]
      retargeted.append((registration, twin))
      batch.requests.append(
        PushRequest(
          id: request.id, handle: twin.handle, body: request.body,
          confirmedAt: request.confirmedAt, environment: request.environment))
    }
    guard !retargeted.isEmpty else { return [:] }
    var found: [RegistrationID: Handover] = [:]
    for (target, result) in zip(retargeted, await part.gateway.deliver(batch)) {
      found[target.registration] = Handover(twin: target.twin, result: result)
    }
    return found
  }

  private func deliver(_ range: Range<Int>) async -> [PushResult] {
    var step = part.batch
    step.requests = Array(part.batch.requests[range])
    return await part.gateway.deliver(step)
  }

  private static func answers(_ results: [PushResult]) -> AnswerSummary {
    var answers = AnswerSummary()
    for result in results { answers.note(result) }
    return answers
  }
}

/// The answer for a device to a push to another of its handles.
struct Handover: Sendable {
  let twin: HandleTwin
  let result: PushResult
}

extension PagePart {
  /// Whether a handle of FCM is a token, and not the installation id alone.
  fileprivate func isToken(_ handle: Range<Int>) -> Bool {
    let bytes = batch.handles[handle]
    return bytes.firebaseInstallationID?.count != bytes.count
  }
}

extension PushResult {
  /// The handle is dead, or of another sender.
  fileprivate var isAboutHandle: Bool {
    handle == .remove || (retry == .final && outcome == .invalidCredentials)
  }
}

/// The consequences of one part's results for its targets and for its lane.
struct PartSettlement: Sendable {
  var outcome = PageOutcome()
  var hadSuccess = false
  /// Answers that say something about a handle of the hub: that it lives, is dead or is replaced.
  var judged = 0
  /// Number of handles that servers chosen by people call dead: no word of the push service.
  var condemnedByOthers = 0
  /// The push service's answer when it refuses the credential itself.
  var refusal: PushResult?
  /// No push of the part got an answer.
  var isUnreachable = false
  /// Counts of the answers that say something about the credential as a whole.
  var answers = AnswerSummary()
  /// The rest that was not sent because an earlier push failed.
  private(set) var unsent: PagePart?
  /// The last fault of the service, or of the connection to it.
  private(set) var fault: PushResult?

  /// The date of the credential that the part was sent with.
  var credential: Date { part.credential }
  /// The connections that it was sent over.
  var pool: GatewayPool? { part.gateway.pool }

  private let part: PagePart
  private let context: DispatchContext
  private let group: OutcomeGroup
  /// Tries before this one, by registration; `nil` for a first try.
  private let attempts: [RegistrationID: Int]?
  private let now: Date

  init(
    _ part: PagePart, context: DispatchContext, attempts: [RegistrationID: Int]?, at now: Date
  ) {
    self.part = part
    self.context = context
    self.attempts = attempts
    self.now = now
    group = OutcomeGroup(
      platform: part.lane.platform, isTemplate: context.isTemplate, isRetry: attempts != nil)
  }

  // MARK: Results

  /// - Parameters:
  ///   - handovers: See ``PartDelivery/handOver(_:)``.
  ///   - random: Drawn from once for each retry.
  mutating func settle(
    _ results: [PushResult], handovers: [RegistrationID: Handover] = [:],
    random: HubRandom
  ) {
    var successes = 0
    var unanswered = 0
    /// Answers that say nothing of the service.
    var others = (successes: 0, failures: 0)
    for index in part.batch.requests.indices.prefix(results.count) {
      let handover = handovers.isEmpty ? nil : handovers[part.registrations[index]]
      if let handover, handover.result.handle == .remove {
        outcome.dead.append(condemned(handover.twin, handover.result.outcome))
      }
      if let handover, handover.result.outcome == .success {
        successes += 1
        succeed(index, attempts: 2)
        if results[index].handle == .remove {
          outcome.dead.append(condemned(index, results[index]))
        }
      } else if results[index].outcome == .success {
        successes += 1
        if !results[index].concernsOthers { others.successes += 1 }
        succeed(index, attempts: 1)
        if results[index].handle == .replace { replace(index, results[index]) }
        if !part.twins.isEmpty { supersede(index) }
        if let found = results[index].environment, !context.request.isDirect {
          outcome.environments.append((part.registrations[index], found))
        }
      } else {
        if results[index].concernsOthers {
          if Self.isUnanswered(results[index]) { unanswered += 1 }
          if results[index].outcome.isFaultOfService { fault = results[index] }
        } else {
          others.failures += 1
          if results[index].handle == .remove { condemnedByOthers += 1 }
        }
        answers.note(results[index])
        settle(index, results[index], random: random)
      }
    }
    if results.count < part.batch.requests.count { unsent = part.dropFirst(results.count) }
    let vouched = successes - others.successes
    answers.answered += vouched
    if let asked = answers.pause {
      let left = max(0, context.deadline.timeIntervalSince(now))
      // The last try comes before the end.
      answers.pause = asked < left ? asked : left - Self.lastShare(of: left)
    }
    hadSuccess = vouched > 0
    isUnreachable =
      unanswered + others.successes + others.failures == results.count && unanswered > 0
    if hadSuccess { refusal = nil }
    if !context.request.isDirect { judged = vouched + outcome.dead.count - condemnedByOthers }
    outcome.count(successes, .success, in: group)
  }

  private mutating func succeed(_ index: Int, attempts: Int) {
    let registration = part.registrations[index]
    if group.isRetry { outcome.settled.append(registration) }
    guard context.keeping == .all else { return }
    outcome.successes.append(
      .init(registration: registration, attempts: tries(registration) + attempts))
  }

  /// FCM has taken a device's installation id: the app has moved to it, and the tokens of before
  /// are dead. That is not the service's word, so it has no part in the guard's judgement.
  private mutating func supersede(_ index: Int) {
    guard !part.isToken(part.batch.requests[index].handle),
      let twins = part.twins[part.registrations[index]]
    else { return }
    outcome.superseded += twins.filter { part.isToken($0.handle) }.map {
      condemned($0, .expiredChannel)
    }
  }

  private func condemned(_ twin: HandleTwin, _ outcome: NotificationOutcome)
    -> Checkpoint.Condemned
  {
    .init(
      registration: twin.registration, platform: part.lane.platform,
      handle: String(decoding: part.batch.handles[twin.handle], as: UTF8.self),
      revision: part.revision, outcome: outcome)
  }

  private static func isUnanswered(_ result: PushResult) -> Bool {
    result.outcome == .pnsUnreachable || result.outcome == .tokenProviderUnreachable
  }

  /// A direct send's targets are no registrations: there is nothing to replace.
  private mutating func replace(_ index: Int, _ result: PushResult) {
    guard let handle = result.newHandle, !handle.isEmpty, !context.request.isDirect else { return }
    outcome.replaced.append(condemned(index, result, newHandle: handle))
  }

  private func condemned(
    _ index: Int, _ result: PushResult, newHandle: String? = nil
  ) -> Checkpoint.Condemned {
    let handle = part.batch.handles[part.batch.requests[index].handle]
    return .init(
      registration: part.registrations[index], platform: part.lane.platform,
      handle: String(decoding: handle, as: UTF8.self), revision: part.revision,
      outcome: result.outcome, newHandle: newHandle)
  }

  private mutating func settle(_ index: Int, _ result: PushResult, random: HubRandom) {
    let registration = part.registrations[index]
    // A direct send's targets are no registrations: there is nothing to remove.
    if result.handle == .remove, !context.request.isDirect {
      outcome.dead.append(condemned(index, result))
    }
    var final = result.outcome
    switch result.retry {
    case .final: break
    case .backoff:
      let tries = tries(registration) + 1
      let pause = RetryPolicy.pause(
        attempts: tries, outcome: result.outcome, retryAfter: result.retryAfter,
        leastPause: result.leastPause, jitter: random.unit())
      let answer = Checkpoint.Answer(
        outcome: result.outcome, status: result.status, reason: result.reason)
      let due = now.addingTimeInterval(pause)
      if retry(index, attempts: tries, at: due, answer: answer) { return }
      if let last = lastChance(index, result, random: random),
        retry(index, attempts: tries, at: last, answer: answer)
      {
        return
      }
      final = lastOutcome(index, result)
    case .pauseCredential:
      // Final for this target: who waits for the outcome should hear of the credential now. The
      // lane rests for what comes later.
      refusal = result
    }
    outcome.fail(
      registration, final, status: result.status, reason: result.reason,
      attempts: tries(registration) + 1, in: group)
  }

  /// Number of times the push was sent before.
  private func tries(_ registration: RegistrationID) -> Int { attempts?[registration] ?? 0 }

  /// - Returns: `false` when that would be too late.
  private mutating func retry(
    _ index: Int, attempts: Int, at due: Date, answer: Checkpoint.Answer? = nil
  ) -> Bool {
    let body = part.batch.bodies[Int(part.batch.requests[index].body)]
    guard let last = context.lastTry(body), due < last else { return false }
    outcome.retries.append(
      .init(
        registration: part.registrations[index], platform: part.lane.platform,
        attempts: attempts, due: due, answer: answer))
    return true
  }

  /// When the next pause would be longer than what is left, the service gets the message once more
  /// just before the time is over, whether the pause is the hub's own or was asked for
  /// (docs/protocol/push-services/README.md, section 3, rules 1 and 2: the pause is capped at what is
  /// left); each such try is a quarter of what was left, at most a minute, before the end. The hub's
  /// own pause is not cut below its least.
  private func lastChance(_ index: Int, _ result: PushResult, random: HubRandom) -> Date? {
    let body = part.batch.bodies[Int(part.batch.requests[index].body)]
    guard let last = context.lastTry(body) else { return nil }
    let left = last.timeIntervalSince(now)
    guard left >= Self.leastLeft else { return nil }
    let asked = Double(result.retryAfter ?? 0)
    // Only a pause that ends too late is cut.
    let least =
      asked >= left
      ? 0 : max(asked, RetryPolicy.least(result.outcome, asked: result.leastPause))
    let pause = max(least, left - Self.lastShare(of: left) * (1 + random.unit()) / 2)
    return pause < left ? now.addingTimeInterval(pause) : nil
  }

  /// The last try is so many seconds before the end at the earliest.
  private static func lastShare(of left: Double) -> Double { min(60, left / 4) }

  /// With less time than this left, in seconds, the last answer counts.
  private static let leastLeft = 4.0

  /// The hub gives up; when the service's own minimum wait is what is too long, its last reply says
  /// more (docs/protocol/push-services/README.md, section 3, rule 1). So it does when a message
  /// asked for one try.
  private func lastOutcome(_ index: Int, _ result: PushResult) -> NotificationOutcome {
    if context.isAborted { return .aborted }
    let body = part.batch.bodies[Int(part.batch.requests[index].body)]
    guard let last = context.lastTry(body) else { return result.outcome }
    let asked = result.retryAfter.map { now.addingTimeInterval(Double($0)) }
    return asked.map { $0 >= last } ?? false ? result.outcome : .abandonedNotificationMessages
  }

  // MARK: Without a try

  /// Puts every target off: its row is due at once, and read when the lane takes it.
  /// - Parameter refusal: Why the lane rests: the outcome of targets whose time is over.
  mutating func postpone(refusal: PushResult?) {
    for index in part.batch.requests.indices {
      let registration = part.registrations[index]
      if retry(index, attempts: max(1, tries(registration)), at: now) { continue }
      let refusal = context.isAborted ? nil : refusal
      let unsent = context.unsent("the push service took nothing in time")
      outcome.fail(
        registration, refusal?.outcome ?? unsent.outcome, status: refusal?.status ?? 0,
        reason: refusal.map(\.reason) ?? unsent.reason,
        attempts: tries(registration), in: group)
    }
  }

  /// Gives every target the push service's answer to others of its lane.
  mutating func refuse(_ refusal: PushResult) {
    for registration in part.registrations {
      outcome.fail(
        registration, refusal.outcome, status: refusal.status, reason: refusal.reason,
        attempts: tries(registration), in: group)
    }
  }
}

/// When a target is tried again (docs/protocol/push-services/README.md, section 3, rules 1 and 2).
///
/// A pause doubles from 1 s (no connection or no reply) or 10 s (any other answer that may pass)
/// and is drawn evenly between that and twice that, never more than 10 minutes: the jitter is as
/// wide as the pause, so devices that failed together do not return together, and the least pause
/// that services ask for still holds.
enum RetryPolicy {
  static let longest = 600.0

  /// - Parameters:
  ///   - attempts: Tries so far, from 1.
  ///   - retryAfter: The push service's `Retry-After` in seconds: the least pause; a tenth of it
  ///     (at most 30 s) is spread on top.
  ///   - leastPause: As ``PushResult/leastPause``.
  ///   - jitter: 0 up to 1, drawn by the caller.
  /// - Returns: Seconds.
  static func pause(
    attempts: Int, outcome: NotificationOutcome, retryAfter: Int32?, leastPause: Int32? = nil,
    jitter: Double
  ) -> Double {
    let least = least(outcome, asked: leastPause)
    let base = least * Double(1 << min(max(attempts, 1) - 1, 10))
    let pause = min(base, longest / 2) * (1 + jitter)
    guard let retryAfter, retryAfter > 0 else { return pause }
    let asked = Double(retryAfter)
    return max(pause, asked + jitter * min(asked / 10, 30))
  }

  /// The first pause without jitter, in seconds.
  /// - Parameter asked: As ``PushResult/leastPause``.
  static func least(_ outcome: NotificationOutcome, asked: Int32?) -> Double {
    switch outcome {
    case .pnsUnreachable, .tokenProviderUnreachable: max(1, Double(asked ?? 0))
    default: max(10, Double(asked ?? 0))
    }
  }

  /// The rest of a credential before its next probe: one minute, doubling up to ten. In seconds.
  /// - Parameter refusals: Refused probes in a row, the first refusal included; from 1.
  static func credentialPause(refusals: Int) -> Double {
    min(60 * Double(1 << min(max(refusals, 1) - 1, 4)), longest)
  }

  /// The rest of a push service that does not answer, or only with faults, before its next probe: a second, doubling up to half a minute, so that what waits is on its way within a
  /// minute of its return.
  /// - Parameter failures: In a row, from 1.
  static func outagePause(failures: Int) -> Double { min(connectionPause(failures: failures), 30) }

  /// The pause of a credential that the push service throttles without saying for how long: a second,
  /// doubling up to a minute.
  /// - Parameter failures: In a row, from 1.
  static func connectionPause(failures: Int) -> Double {
    min(Double(1 << min(max(failures, 1) - 1, 6)), 60)
  }
}
