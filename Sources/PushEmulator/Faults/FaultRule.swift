import Wire

/// One rule of fault injection (docs/protocol/emulator.md, section 2.6), with its own counters.
struct FaultRule: Sendable {
  /// The conditions on a request; `nil` matches all.
  struct Match: Sendable {
    var app: UInt32?
    /// The handle as text, compared without regard to case.
    var handle: String?
    var connection: Int?
    var pathPrefix: String?

    var isOfConnections: Bool { app == nil && handle == nil && pathPrefix == nil }
  }

  /// The frequency and time of a rule.
  struct When: Sendable {
    var probability = 1.0
    /// Every n-th match, starting with the n-th.
    var every: Int?
    /// The first n matches only.
    var first: Int?
    /// At most n times in all.
    var limit: Int?
    /// In ms since the Unix epoch; fires while `from <= now < until`.
    var from: Int64?
    var until: Int64?

    func includes(_ now: Int64) -> Bool {
      now >= (from ?? .min) && now < (until ?? .max)
    }
  }

  /// Before: the service does not process the message. After: it processes it, then the reply is
  /// replaced.
  enum Stage: String, CaseIterable, Sendable {
    case before, after
  }

  /// Assigned by ``FaultRules``.
  fileprivate(set) var number = 0
  /// `nil` for all.
  var service: ServiceName?
  var match = Match()
  var when = When()
  var stage = Stage.before
  let action: FaultAction
  /// The rule as requested, for display.
  let json: JSONValue
  private(set) var matched = 0
  private(set) var fired = 0
  /// Rate limits of a throttle, one for each counted key.
  var buckets = RateTable<String>()

  var id: String { "fault-\(number)" }

  /// Counts a match and draws at random.
  mutating func fires(_ generator: inout SeededGenerator) -> Bool {
    matched += 1
    if let first = when.first, matched > first { return false }
    if let every = when.every, matched % every != 0 { return false }
    if let limit = when.limit, fired >= limit { return false }
    if when.probability < 1, generator.unit() >= when.probability { return false }
    fired += 1
    return true
  }
}

/// The properties that a rule is matched against.
struct FaultSubject: Sendable {
  let service: ServiceSubject
  let connection: Int
  var path: String?
  /// Requests that the connection had before this one.
  var requestsBefore = 0

  init(
    _ service: ServiceSubject, connection: Int, path: String? = nil, requestsBefore: Int = 0
  ) {
    self.service = service
    self.connection = connection
    self.path = path
    self.requestsBefore = requestsBefore
  }

  func fits(_ rule: FaultRule) -> Bool {
    let match = rule.match
    if let wanted = rule.service, wanted != service.name { return false }
    if let wanted = match.app, wanted != service.app { return false }
    if let wanted = match.connection, wanted != connection { return false }
    if let wanted = match.handle, wanted.lowercased() != service.handle?.lowercased() {
      return false
    }
    if let prefix = match.pathPrefix, path?.hasPrefix(prefix) != true { return false }
    return true
  }
}

/// All fault rules in order of creation, and the decision for a request.
struct FaultRules: Sendable {
  private(set) var rules: [FaultRule] = []
  private var lastNumber = 0

  /// The result of the rules for a request.
  struct Decision: Sendable {
    /// Delay of the answer in ms.
    var latency = 0.0
    var fault: Fault?
  }

  struct Fault: Sendable {
    let id: String
    let stage: FaultRule.Stage
    let action: FaultAction
  }

  var isEmpty: Bool { rules.isEmpty }

  /// Whether any rule applies at this moment; otherwise the work is skipped.
  func concerns(_ moment: FaultAction.Moment) -> Bool {
    rules.contains { $0.action.moment == moment }
  }

  /// - Returns: The new rule's id.
  mutating func add(_ rule: FaultRule) -> String {
    lastNumber += 1
    rules.append(rule)
    rules[rules.count - 1].number = lastNumber
    return rules[rules.count - 1].id
  }

  mutating func remove(id: String) -> Bool {
    guard let index = rules.firstIndex(where: { $0.id == id }) else { return false }
    rules.remove(at: index)
    return true
  }

  mutating func removeAll() { rules = [] }

  /// Whether a rule keeps a service's listeners closed at `now`.
  func refusesConnections(to service: PushService, at now: Int64) -> Bool {
    rules.contains { rule in
      guard case .refuse = rule.action else { return false }
      return rule.when.includes(now)
        && (rule.service == nil || rule.service == ServiceName(service))
    }
  }

  /// Evaluates the rules in order: delays add up, and the first other rule that fires wins.
  mutating func decide(
    _ subject: FaultSubject, at moments: [FaultAction.Moment], now: Int64,
    generator: inout SeededGenerator
  ) -> Decision {
    var decision = Decision()
    for index in rules.indices {
      let rule = rules[index]
      guard moments.contains(rule.action.moment), rule.when.includes(now),
        subject.fits(rule),
        rule.action.moment != .accept || rule.match.isOfConnections
      else { continue }
      if case .latency(let latency) = rule.action {
        if rules[index].fires(&generator) { decision.latency += latency.milliseconds(&generator) }
        continue
      }
      guard decision.fault == nil else { continue }
      if let action = fire(index, subject, now: now, generator: &generator) {
        decision.fault = Fault(id: rule.id, stage: rule.stage, action: action)
      }
    }
    decision.latency = min(decision.latency, Latency.longest)
    return decision
  }

  /// The action of the rule this time; a shorthand is expanded to its reply.
  private mutating func fire(
    _ index: Int, _ subject: FaultSubject, now: Int64, generator: inout SeededGenerator
  ) -> FaultAction? {
    switch rules[index].action {
    case .refuse, .latency:
      return nil
    case .goAway(let goAway) where subject.requestsBefore < goAway.afterRequests:
      return nil
    case .errorRate(let rates):
      guard rules[index].fires(&generator) else { return nil }
      var dice = generator.unit()
      for (status, rate) in rates {
        if dice < rate { return .reply(.init(status: status)) }
        dice -= rate
      }
      return nil
    case .throttle(let throttle):
      let key: String? =
        switch throttle.scope {
        case .handle: subject.service.handle
        case .credential: subject.service.credential
        case .connection: String(subject.connection)
        case .global: ""
        }
      if rules[index].buckets.take(
        key ?? "", rate: throttle.rate, burst: throttle.burst, now: now)
      {
        return nil
      }
      guard rules[index].fires(&generator) else { return nil }
      var reply = FaultAction.Reply(status: 429)
      if let seconds = throttle.retryAfter {
        reply.headers = [("retry-after", String(seconds))]
      }
      return .reply(reply)
    case let action:
      return rules[index].fires(&generator) ? action : nil
    }
  }
}
