/// Draws a plan from a seed: first which kinds of faults there are at all, then how much of
/// everything, then the moments. Lives in which everything may happen at once hide what a single
/// kind of fault shows.
package struct PlanMaker {
  /// Options of a plan that the caller of a run sets.
  package struct Options: Sendable {
    package var nodes: Int?
    /// Faults that there may be; `nil` for all.
    package var only: Set<Act>?
    /// No life longer than a minute of plan.
    package var isShort = false

    package init() {}
  }

  private var draw: RandomStream
  private var plan: Plan
  private let planOptions: Options
  private var nextID = 1
  /// Ids of the lines that others may refer to.
  private var sends: [Int] = []
  private var schedules: [Int] = []
  private var registrations: [Int] = []
  private var at = 0

  private init(_ seed: UInt64, _ planOptions: Options) {
    draw = RandomStream(seed, UInt64(keyOf: "plan"))
    plan = Plan(seed: seed)
    self.planOptions = planOptions
  }

  package static func plan(seed: UInt64, _ planOptions: Options = Options()) -> Plan {
    var maker = PlanMaker(seed, planOptions)
    maker.make()
    return maker.plan
  }

  private mutating func make() {
    let isLong = draw.oneIn(20) && !planOptions.isShort
    let length = isLong ? draw.between(600_000, 7_200_000) : 60_000
    drawParameters(isLong: isLong)
    makeOperations(isLong ? draw.between(80, 240) : draw.between(20, 60), over: length)
    makeFaults(over: length)
    plan.lines.sort { ($0.at, $0.id) < ($1.at, $1.id) }
  }

  private mutating func drawParameters(isLong: Bool) {
    plan.parameters[.nodes] =
      planOptions.nodes ?? draw.pick([(1, 2), (2, 4), (3, 3), (4, 0.5), (5, 0.5)])
    plan.parameters[.slots] = 1 << draw.below(4)
    plan.parameters[.hubs] = draw.pick([(1, 4), (2, 1)])
    plan.parameters[.devices] = isLong ? draw.between(5, 60) : draw.between(5, 30)
    plan.parameters[.page] = draw.between(1, 12)
    plan.parameters[.window] = draw.pick([(1_800, 3), (120, 1), (300, 1)])
    plan.parameters[.parts] = draw.pick([(256, 6), (1, 1), (3, 1)])
    plan.parameters[.order] = draw.pick([(0, 5), (1, 3), (2, 2)])
    plan.parameters[.outcomes] = draw.below(2)
    plan.parameters[.drift] = draw.pick([(0, 1), (200, 2)])
    plan.parameters[.latency] = draw.pick([(100, 4), (20, 1), (1_000, 1)])
    plan.parameters[.synchronous] = draw.pick([(1, 4), (0, 1)])
    if draw.oneIn(3) { plan.parameters[.held] = plan[.page] * draw.pick([4, 6, 12]) }
    plan.parameters[.platforms] = draw.pick([(2, 2), (4, 1)])
  }

  private mutating func add(_ act: Act, _ arguments: [Int], at moment: Int) -> Int {
    let id = nextID
    nextID += 1
    plan.lines.append(.init(id: id, at: moment, act, arguments))
    return id
  }

  // MARK: Operations

  private mutating func makeOperations(_ count: Int, over length: Int) {
    let devices = plan[.devices]
    // Most devices are there before anything is sent.
    for device in 0..<devices {
      at = draw.below(2_000)
      put(draw.below(plan[.hubs]), device)
    }
    let usual: [(Act, Double)] = [
      (.put, 10), (.patch, 6), (.delete, 2), (.register, 4), (.unregister, 2), (.send, 22),
      (.direct, 4), (.batch, 3), (.schedule, 6), (.cancel, 3), (.again, 5), (.abort, 4),
      (.credential, 2), (.deleteHub, 0.3), (.createHub, 0.5), (.erase, 1), (.look, 5),
    ]
    // Some lives have much of one thing and nothing of another.
    let weights = usual.map { ($0.0, $0.1 * draw.pick([(1, 3.0), (0, 0.5), (4, 0.5)])) }
    let moments = (0..<count).map { _ in 2_500 + draw.below(length) }.sorted()
    for moment in moments {
      at = moment
      operate(draw.pick(weights))
    }
  }

  private mutating func put(_ hub: Int, _ device: Int) {
    // Devices share handles now and then: an app was installed again, or a backup brought back.
    let handle = handle(draw.oneIn(6) ? draw.below(plan[.devices]) : device)
    _ = add(
      .put,
      [hub, device, handle, draw.below(32), draw.oneIn(3) ? 1 + draw.below(3) : 0, draw.below(2)],
      at: at)
  }

  /// The handle that a device has as a rule.
  private func handle(_ device: Int) -> Int {
    guard plan[.platforms] > 2 else { return device }
    return switch device % 6 {
    case 1: Names.windowsHandles + device
    case 4: Names.browserHandles + device
    default: device
    }
  }

  private mutating func operate(_ act: Act) {
    let hub = draw.below(plan[.hubs])
    let device = draw.below(plan[.devices] + 2)
    switch act {
    case .put: put(hub, device)
    case .patch: _ = add(.patch, [hub, device, draw.below(32)], at: at)
    case .delete: _ = add(.delete, [hub, device], at: at)
    case .register:
      registrations.append(add(.register, [hub, handle(device), draw.below(32)], at: at))
    case .unregister:
      if !registrations.isEmpty { _ = add(.unregister, [draw.pick(registrations)], at: at) }
    case .send: sends.append(add(.send, message(hub) + [draw.oneIn(10) ? 1 : 0], at: at))
    case .direct: sends.append(add(.direct, [hub, handle(device)], at: at))
    case .batch: sends.append(add(.batch, [hub, device, draw.between(1, 12)], at: at))
    case .schedule:
      let delay = draw.pick([(draw.between(1_000, 60_000), 4.0), (draw.between(0, 3_000), 1)])
      let id = add(.schedule, message(hub) + [delay], at: at)
      sends.append(id)
      schedules.append(id)
    case .cancel:
      if !schedules.isEmpty { _ = add(.cancel, [draw.pick(schedules)], at: at) }
    case .again, .abort:
      // The last ones, as a rule: others are done.
      if !sends.isEmpty { _ = add(act, [draw.pick(sends.suffix(4))], at: at) }
    case .credential:
      let platform = draw.below(plan[.platforms])
      let state = draw.pick([(0, 2), (1, 1), (2, 1), (3, 1), (4, platform < 2 ? 2.0 : 0)])
      _ = add(.credential, [hub, platform, state], at: at)
    case .deleteHub, .createHub: _ = add(act, [hub], at: at)
    case .erase: _ = add(.erase, [hub, 1 + draw.below(3)], at: at)
    case .look: _ = add(.look, [hub, draw.below(11)], at: at)
    default: break
    }
  }

  private mutating func message(_ hub: Int) -> [Int] {
    let kinds: [(Int, Double)] = [(0, 5), (1, 2), (2, 4), (3, 1.5), (4, 1.5)]
    return [
      hub, draw.pick(Array(kinds.prefix(plan[.platforms] > 2 ? 5 : 3))),
      draw.pick([(0, 4.0), (draw.below(10), 6)]),
    ]
  }

  // MARK: Faults

  private mutating func makeFaults(over length: Int) {
    let chances: [(Act, Double)] = [
      (.kill, 0.5), (.stop, 0.3), (.pause, 0.5), (.suspend, 0.2), (.step, 0.3), (.cut, 0.5),
      (.lose, 0.5), (.losses, 0.3), (.hang, 0.5), (.failover, 0.3), (.refuse, 0.3),
      (.restore, 0.05),
      (.throttle, 0.4), (.fail, 0.4), (.silence, 0.3), (.forbid, 0.2), (.die, 0.4),
      (.slander, 0.1), (.replace, 0.2), (.reset, 0.3), (.disconnect, 0.2), (.goAway, 0.2),
      (.withhold, 0.2), (.revoke, 0.1),
    ]
    let allowed = chances.filter { planOptions.only?.contains($0.0) ?? true }
    guard !allowed.isEmpty else { return }
    let kinds: [Act]
    if planOptions.only != nil {
      kinds = allowed.map(\.0)
    } else {
      switch draw.below(10) {
      case 0: kinds = []
      case 1...2: kinds = [draw.pick(allowed)]
      default: kinds = allowed.filter { $0.1 > draw.unit() }.map(\.0)
      }
    }
    let rate = draw.between(1, 3)
    var moments: [Int] = []
    for kind in kinds {
      for _ in 0..<draw.between(1, rate) {
        // A fault meets the unfinished work of an earlier one within a lease, or not at all.
        let moment =
          moments.isEmpty || draw.oneIn(2)
          ? draw.below(length + 5_000) : max(0, draw.pick(moments) + draw.between(-12_000, 12_000))
        moments.append(moment)
        // After many successes the guard lets more handles go than a small life has.
        let isEarly = kind == .slander && draw.oneIn(2)
        makeFault(kind, at: isEarly ? draw.between(2_500, 8_000) : moment)
      }
    }
  }

  /// Lengths of all kinds, those about a lease more often.
  private mutating func time(_ most: Int = 40_000) -> Int {
    switch draw.below(4) {
    case 0: draw.between(100, 3_000)
    case 1: min(most, draw.between(9_000, 11_500))
    case 2: min(most, draw.between(3_000, 25_000))
    default: draw.between(500, most)
    }
  }

  private mutating func makeFault(_ act: Act, at moment: Int) {
    let machine = draw.below(plan[.nodes])
    let platform = draw.below(plan[.platforms])
    var arguments: [Int]
    switch act {
    case .kill, .stop, .suspend: arguments = [machine, time(60_000)]
    case .pause: arguments = [machine, time(60_000)]
    case .step:
      let steps = [500, 5_000, 60_000, 3_600_000, 86_400_000]
      arguments = [
        draw.oneIn(2) ? -1 : machine, draw.pick(steps) * (draw.oneIn(2) ? 1 : -1),
      ]
    case .cut: arguments = [machine, time(60_000), draw.pick([(0, 2), (1, 1), (2, 1)])]
    case .lose:
      arguments = [
        machine, draw.below(StoreCalls.names.count), draw.below(draw.pick([2, 12])), draw.below(2),
      ]
    case .losses: arguments = [time(), draw.pick([5, 20, 50, 200])]
    case .hang: arguments = [time()]
    case .failover: arguments = [draw.between(1_000, 20_000), draw.between(1, 50)]
    case .restore:
      // As old as the life allows, and some of that as a rule.
      arguments = [draw.between(10_000, 40_000), draw.between(500, 500 + moment), draw.below(2)]
    case .refuse: arguments = [time(), draw.below(StoreCalls.errors.count)]
    case .throttle: arguments = [platform, time(), draw.pick([0, 1, 5, 30, 60])]
    case .fail:
      let status = draw.pick([500, 503])
      arguments = [platform, time(), status, status == 503 ? draw.pick([0, 5, 30, 60]) : 0]
    case .silence, .slander: arguments = [platform, time()]
    case .forbid, .disconnect:
      arguments = [platform, time(), draw.oneIn(2) ? machine + 1 : 0]
    case .die: arguments = [draw.below(plan[.hubs]), handle(draw.below(plan[.devices]))]
    case .replace:
      let (handle, by) = (draw.below(plan[.devices]), plan[.devices] + 8 + draw.below(8))
      // One in four is of FCM: the next of the same service.
      let service = Names.platform(ofHandle: handle)
      arguments = [handle, (by...by + 3).first { Names.platform(ofHandle: $0) == service } ?? by]
    case .reset: arguments = [platform, draw.below(ServiceFaults.Single.allCases.count)]
    case .goAway: arguments = [platform, draw.below(2)]
    case .withhold: arguments = [time(), draw.below(3)]
    case .revoke: arguments = []
    default: return
    }
    _ = add(act, arguments, at: moment)
  }
}
