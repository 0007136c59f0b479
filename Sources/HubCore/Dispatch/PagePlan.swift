import Foundation
import NotificationHubs

/// One platform's share of a page, ready to be delivered.
struct PagePart: Sendable {
  let lane: LaneKey
  /// The lane's gateway when the page was read; the hub may have another credential when it is sent.
  private(set) var gateway: any PushGateway
  /// See ``GatewayRoute/open(_:credential:)``.
  private(set) var credential: Date
  var batch: PushBatch
  /// The target of each request, in their order.
  var registrations: [RegistrationID]
  /// See ``TargetPage/revision``.
  var revision = StoreVersion.oldest
  /// See ``TargetPage/twins``.
  var twins: [RegistrationID: [HandleTwin]] = [:]

  /// - Returns: Whether it had another credential.
  mutating func redirect(to gateway: any PushGateway, credential: Date) -> Bool {
    guard credential != self.credential else { return false }
    self.gateway = gateway
    self.credential = credential
    return true
  }

  /// The part without its first requests.
  func dropFirst(_ count: Int) -> PagePart {
    var rest = self
    rest.batch.requests = Array(batch.requests.dropFirst(count))
    rest.registrations = Array(registrations.dropFirst(count))
    return rest
  }

  /// Leaves out the requests whose message's own time is over, or all when the notification's is.
  func withoutOver(_ context: DispatchContext, at now: Date) -> (PagePart, [RegistrationID]) {
    let isLate = context.isOver(at: now)
    let over = batch.bodies.map { isLate || context.isOver($0, at: now) }
    guard over.contains(true) else { return (self, []) }
    var removed: [RegistrationID] = []
    var rest = self
    rest.batch.requests = []
    rest.registrations = []
    for (request, registration) in zip(batch.requests, registrations) {
      if over[Int(request.body)] {
        removed.append(registration)
      } else {
        rest.batch.requests.append(request)
        rest.registrations.append(registration)
      }
    }
    return (rest, removed)
  }
}

/// A page split by push service: one batch for each, and the outcomes of targets that need no push.
struct PagePlan: Sendable {
  private(set) var parts: [PagePart] = []
  private(set) var outcome = PageOutcome()

  /// - Parameters:
  ///   - routes: By ``PushPlatform/ordinal``; `nil` for platforms that the page does not touch.
  ///   - isRetry: The targets have retry rows.
  init(
    _ page: TargetPage, context: DispatchContext, routes: [GatewayRoute?], isRetry: Bool,
    at now: Date
  ) {
    for target in page.unreadable {
      // A platform that cannot be read is that of the send; of a template send nobody knows it.
      outcome.fail(
        target.registration, .unknownError,
        reason: "the stored registration cannot be read: \(target.reason)",
        in: .init(
          platform: target.platform ?? context.lane?.platform ?? .apns,
          isTemplate: context.isTemplate, isRetry: isRetry))
    }
    guard !context.isOver(at: now) else {
      let (unsent, reason) = context.unsent("the notification's time in the hub is over")
      for target in page.targets {
        outcome.fail(
          target.registration, unsent, reason: reason,
          in: .init(platform: target.platform, isTemplate: context.isTemplate, isRetry: isRetry))
      }
      return
    }
    var builder = PagePlanBuilder(page, context: context, routes: routes, isRetry: isRetry)
    builder.fill()
    parts = builder.parts
    outcome.merge(builder.outcome)
    for index in parts.indices {
      let group = OutcomeGroup(
        platform: parts[index].lane.platform, isTemplate: context.isTemplate, isRetry: isRetry)
      let (part, over) = parts[index].withoutOver(context, at: now)
      guard !over.isEmpty else { continue }
      parts[index] = part
      let (unsent, reason) = context.unsent("the message's time is over")
      for registration in over {
        outcome.fail(registration, unsent, reason: reason, in: group)
      }
    }
    parts.removeAll { $0.batch.requests.isEmpty }
  }

  /// Adds how often targets had been tried to the outcomes that they have without another try.
  mutating func note(attempts: [RegistrationID: Int]) {
    outcome.failures = outcome.failures.map { failure in
      .init(
        registration: failure.registration, outcome: failure.outcome, status: failure.status,
        reason: failure.reason, attempts: attempts[failure.registration] ?? failure.attempts)
    }
  }

  /// Registrations that went while they waited for a retry; the store does not know their platform
  /// any more.
  mutating func fail(gone: [RegistrationID], context: DispatchContext, platform: PushPlatform) {
    for registration in gone {
      outcome.fail(
        registration, .expiredChannel, reason: "the registration was removed before a retry",
        in: .init(platform: platform, isTemplate: context.isTemplate, isRetry: true))
    }
  }

  /// The platforms of a page, in the order of ``PushPlatform/ordinal``.
  static func platforms(of page: TargetPage) -> [PushPlatform] {
    var seen = [Bool](repeating: false, count: PushPlatform.allCases.count)
    for target in page.targets { seen[target.platform.ordinal] = true }
    return PushPlatform.allCases.filter { seen[$0.ordinal] }
  }
}

/// Goes through the targets of a page once. No allocation for a target whose message is shared.
private struct PagePlanBuilder {
  /// The message of a template in the batch of its platform.
  private enum Message {
    case unknown
    case shared(Int32)
    case individual(CompiledTemplate)
    case broken(String)
  }

  /// The facts of one platform that all its targets share.
  private struct Slot {
    let group: OutcomeGroup
    let refusal: (outcome: NotificationOutcome, reason: String)?
    /// By template index; one entry for native sends.
    var messages: [Message]
  }

  private let page: TargetPage
  private let context: DispatchContext
  private var slots: [Slot?]
  /// Index into `parts`; -1 for a platform without a gateway.
  private var partOfPlatform: [Int]
  var parts: [PagePart] = []
  var outcome = PageOutcome()

  init(
    _ page: TargetPage, context: DispatchContext, routes: [GatewayRoute?], isRetry: Bool
  ) {
    self.page = page
    self.context = context
    slots = [Slot?](repeating: nil, count: PushPlatform.allCases.count)
    partOfPlatform = [Int](repeating: -1, count: PushPlatform.allCases.count)
    let open = routes.count { if case .open = $0 { true } else { false } }
    for platform in PushPlatform.allCases {
      guard let route = routes[platform.ordinal] else { continue }
      let group = OutcomeGroup(
        platform: platform, isTemplate: context.isTemplate, isRetry: isRetry)
      switch route {
      case .refused(let outcome, let reason):
        slots[platform.ordinal] = Slot(
          group: group, refusal: (outcome, reason), messages: [])
      case .open(let gateway, let credential):
        slots[platform.ordinal] = Slot(
          group: group, refusal: nil,
          messages: Array(repeating: .unknown, count: max(1, page.templates.count)))
        partOfPlatform[platform.ordinal] = parts.count
        var part = PagePart(
          lane: LaneKey(hub: context.hub, platform: platform), gateway: gateway,
          credential: credential, batch: PushBatch(handles: page.handles), registrations: [],
          revision: page.revision, twins: platform == .fcmv1 ? page.twins : [:])
        if open == 1 {
          part.batch.requests.reserveCapacity(page.targets.count)
          part.registrations.reserveCapacity(page.targets.count)
        }
        parts.append(part)
      }
    }
  }

  mutating func fill() {
    let templateNumbers = page.templates.map { PushIDSeed.number(of: $0.template) }
    // The body of a template's message by platform and template, once it is known to be shared.
    let width = max(1, page.templates.count)
    var shared = [Int32](repeating: -1, count: slots.count * width)
    for target in page.targets {
      let ordinal = target.platform.ordinal
      let cell = ordinal * width + max(0, Int(target.template))
      var body = shared[cell]
      if body < 0 || target.isDuplicate {
        guard let found = message(for: target) else { continue }
        body = found.body
        if found.isShared { shared[cell] = body }
      }
      let part = partOfPlatform[ordinal]
      parts[part].batch.requests.append(
        PushRequest(
          id: context.seed.id(
            for: page.handles[target.handle], platform: target.platform,
            template: target.template < 0 ? 0 : templateNumbers[Int(target.template)]),
          handle: target.handle, body: body, confirmedAt: target.confirmedAt,
          environment: target.environment))
      parts[part].registrations.append(target.registration)
    }
    parts.removeAll { $0.batch.requests.isEmpty }
  }

  /// - Returns: `nil` for a target that gets no push; its outcome is recorded.
  private mutating func message(for target: Target) -> (body: Int32, isShared: Bool)? {
    let ordinal = target.platform.ordinal
    guard let slot = slots[ordinal] else { return nil }
    if target.isDuplicate {
      outcome.fail(
        target.registration, .skipped,
        reason: "another registration has the same handle or installation id", in: slot.group)
      return nil
    }
    if let refusal = slot.refusal {
      outcome.fail(target.registration, refusal.outcome, reason: refusal.reason, in: slot.group)
      return nil
    }
    let index = max(0, Int(target.template))
    if case .unknown = slot.messages[index] {
      let message = make(target, slot.group.platform, ordinal)
      slots[ordinal]?.messages[index] = message
    }
    switch slots[ordinal]?.messages[index] {
    case .shared(let body): return (body, true)
    case .individual(let template):
      let variables = target.variables >= 0 ? page.pushVariables[Int(target.variables)] : [:]
      let body = context.messages.render(
        template, pushVariables: variables, platform: slot.group.platform)
      return (add(body, ordinal), false)
    case .broken(let reason):
      outcome.fail(target.registration, .unknownError, reason: reason, in: slot.group)
      return nil
    case .unknown, nil: return nil
    }
  }

  private mutating func make(
    _ target: Target, _ platform: PushPlatform, _ ordinal: Int
  ) -> Message {
    guard target.template >= 0 else {
      return .shared(add(context.messages.native(platform), ordinal))
    }
    switch context.messages.entry(page.templates[Int(target.template)], platform: platform) {
    case .shared(let body): return .shared(add(body, ordinal))
    case .individual(let template): return .individual(template)
    case .broken(let reason): return .broken("the template cannot be used: \(reason)")
    }
  }

  private mutating func add(_ body: PushBody, _ ordinal: Int) -> Int32 {
    let part = partOfPlatform[ordinal]
    parts[part].batch.bodies.append(body)
    return Int32(parts[part].batch.bodies.count - 1)
  }
}

extension PushPlatform {
  /// The place among ``allCases``, without hashing the raw value's text.
  var ordinal: Int { Int(storedCode) - 1 }
}

/// The outcomes of a page, or of a part of it: each target has exactly one outcome or one retry.
struct PageOutcome: Sendable {
  var counts: [OutcomeKey: Int] = [:]
  var failures: [Checkpoint.Failure] = []
  /// Filled only where all outcomes are kept.
  var successes: [Checkpoint.Success] = []
  var retries: [Checkpoint.Retry] = []
  /// Targets that had a retry row and have their outcome now.
  var settled: [RegistrationID] = []
  var dead: [Checkpoint.Condemned] = []
  var replaced: [Checkpoint.Condemned] = []
  /// Handles that go because their device has moved to another, which has been reached.
  var superseded: [Checkpoint.Condemned] = []
  /// See ``Checkpoint/spared``.
  var spared: Set<RegistrationID> = []
  /// Environments in which pushes succeeded for devices that were thought to live in the other.
  var environments: [(registration: RegistrationID, environment: PushEnvironment)] = []

  /// No target has an outcome or a retry.
  var isEmpty: Bool { counts.isEmpty && retries.isEmpty && settled.isEmpty }

  mutating func count(_ number: Int, _ outcome: NotificationOutcome, in group: OutcomeGroup) {
    guard number > 0 else { return }
    let key = OutcomeKey(
      platform: group.platform, isTemplate: group.isTemplate, outcome: outcome)
    counts[key, default: 0] += number
  }

  /// Records a target that no push succeeded for.
  mutating func fail(
    _ registration: RegistrationID, _ outcome: NotificationOutcome, status: UInt16 = 0,
    reason: String?, attempts: Int = 0, in group: OutcomeGroup
  ) {
    count(1, outcome, in: group)
    failures.append(
      .init(
        registration: registration, outcome: outcome, status: status, reason: reason,
        attempts: attempts))
    if group.isRetry { settled.append(registration) }
  }

  mutating func merge(_ other: PageOutcome) {
    if counts.isEmpty {
      counts = other.counts
    } else {
      counts.merge(other.counts, uniquingKeysWith: +)
    }
    failures += other.failures
    successes += other.successes
    retries += other.retries
    settled += other.settled
    dead += other.dead
    replaced += other.replaced
    superseded += other.superseded
    spared.formUnion(other.spared)
    environments += other.environments
  }
}

extension PageOutcome {
  /// Keeps the handles of a push service, whatever it has answered about them.
  mutating func spare(_ platform: PushPlatform) {
    spared.formUnion(dead.lazy.filter { $0.platform == platform }.map(\.registration))
    dead.removeAll { $0.platform == platform }
    replaced.removeAll { $0.platform == platform }
    superseded.removeAll { $0.platform == platform }
  }
}

/// The common properties of targets that are counted together.
struct OutcomeGroup: Sendable {
  let platform: PushPlatform
  let isTemplate: Bool
  /// The targets have retry rows.
  let isRetry: Bool
}
