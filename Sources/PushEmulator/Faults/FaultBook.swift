/// All fault rules in order of creation, and the decision they come to.
struct FaultBook: Sendable {
  private(set) var rules: [FaultRule] = []
  private var lastNumber = 0

  /// What the rules make of a request.
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

  /// Whether any rule is about this moment: spares the work for all others.
  func concerns(_ moment: FaultAction.Moment) -> Bool {
    rules.contains { $0.action.moment == moment }
  }

  mutating func add(
    service: FaultRule.Service, match: FaultRule.Match, when: FaultRule.When,
    stage: FaultRule.Stage, action: FaultAction
  ) -> String {
    lastNumber += 1
    let rule = FaultRule(
      number: lastNumber, service: service, match: match, when: when, stage: stage, action: action)
    rules.append(rule)
    return rule.id
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
        && (rule.service == .any || rule.service == FaultRule.Service(service))
    }
  }

  /// Tries the rules in order: delays add up, the first other rule that fires wins.
  mutating func decide(
    _ subject: FaultSubject, at moments: [FaultAction.Moment], now: Int64,
    generator: inout SeededGenerator
  ) -> Decision {
    var decision = Decision()
    for index in rules.indices {
      let rule = rules[index]
      guard moments.contains(rule.action.moment), rule.when.includes(now),
        rule.service == .any || rule.service == subject.service, subject.fits(rule.match),
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

  /// What the rule does this time; a shorthand becomes the reply it stands for.
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
        case .handle: subject.handle
        case .credential: subject.credential
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
