import Foundation
import HubCore
import NotificationHubs

/// One life of a hub: its nodes, their database, the push services and the clients, from an empty
/// database until all is done.
///
/// A plan is played, then everything that went wrong is healed and time runs on; what is promised is
/// looked at all along (`Promises+….swift`) and at the end.
package final class Life: @unchecked Sendable {  // owner: the world's thread
  package let plan: Plan
  package let world: World
  let databaseClock: MachineClock
  let database: SimulatedDatabase
  let network: DatabaseNetwork
  // After the rest: it tells this life of what services see.
  private(set) lazy var services = LifeServices(world, seed: plan.seed) { [unowned self] call in
    saw(call)
  } strayed: { [unowned self] host in
    strayed(to: host)
  }
  let clocks: [MachineClock]
  /// The process of each machine now, or the last.
  var processes: [NodeProcess] = []
  private var nextPlace: ProcessID = 0
  /// Which machine each process is, or was, on.
  private(set) var machines: [ProcessID: Int] = [:]
  /// Times before which a machine's fault does not end, by what it is.
  private var held: [Int: (act: Act, until: Double)] = [:]

  var ledger = Ledger()
  var observations = Observations()
  /// Client operations that have not ended.
  var clientsUnderWay = 0
  var requests: [Int: Request] = [:]
  var nextRequest = 0
  private(set) lazy var lines = Dictionary(uniqueKeysWithValues: plan.lines.map { ($0.id, $0) })
  /// When somebody last set a clock.
  var steppedAt = -Double.infinity
  /// Commits and when they were made, for what a failover loses.
  var commitTimes: [(commit: Int64, seconds: Double)] = []
  /// That after which the life begins, or begins again.
  private var firstCommit: Int64 = 0
  /// The copies of the database that are to be restored, by the lines that restore them.
  private var copies: [Int: (state: SimulatedDatabase.State, seconds: Double)] = [:]
  /// When the plan began, in seconds of the world.
  private var planBegan = Life.lead
  /// When all was healed, in seconds.
  private(set) var healedAt: Double?

  package private(set) var findings: [Finding] = []
  /// Number of times that each promise was tested with something at stake.
  package private(set) var checks: [Promise: Int] = [:]
  /// Number of times that each fault struck, by the call that the node was waiting for.
  package private(set) var strikes: [Act: [String: Int]] = [:]

  /// The numbers of the faults that struck.
  private var struck: Set<Int> = []
  /// Faults that met nothing: a machine that was down already, a call that nobody made, or a plan that
  /// ended before them.
  package var neverStruck: [Plan.Line] {
    plan.lines.filter { $0.act.isFault && !struck.contains($0.id) }
  }

  package init(_ plan: Plan, isTelling: Bool = false) {
    self.plan = plan
    let world = World(
      seed: plan.seed, order: World.Order(rawValue: plan[.order]) ?? .uniform,
      isTelling: isTelling)
    self.world = world
    var draw = RandomStream(plan.seed, UInt64(keyOf: "clocks"))
    let drift = Double(plan[.drift]) / 1e6
    clocks = (0..<plan[.nodes]).map { _ in
      MachineClock(world, drift: draw.between(-drift, drift), offset: draw.between(-0.2, 0.2))
    }
    let databaseClock = MachineClock(world, drift: draw.between(-drift, drift))
    self.databaseClock = databaseClock
    database = SimulatedDatabase(slots: plan[.slots], narrowLimit: 3) { databaseClock.date }
    network = DatabaseNetwork(world, seed: plan.seed, latency: plan[.latency])
    services.simulated.with { state in
      for hub in 0..<plan[.hubs] { state.add(Self.app(of: hub)) }
    }
  }

  // MARK: Times

  /// Time that the nodes have to start before the plan begins, in seconds.
  private static let lead = 2.0

  /// A moment of the world in milliseconds of the plan.
  package func planTime(_ seconds: Double) -> Int {
    Int(((seconds - planBegan) * 1_000).rounded())
  }

  /// A moment of the world for a text: in seconds of the plan, as in the time line.
  package func moment(_ seconds: Double) -> String { "\(Texts.seconds(planTime(seconds))) s" }

  // MARK: Living

  /// Lives the plan, and looks at what is promised.
  package func live() {
    do {
      network.hasCommitted = { [unowned self] in committed($0, $1, isIdle: $2) }
      network.hasLost = { [unowned self] line, place, call in
        struck.insert(line)
        strikes[.lose, default: [:]][call, default: 0] += 1
        if let process = processes.first(where: { $0.place == place }) { disturb(process, for: 0) }
        note("loses \(call)", at: place)
      }
      try makeHubs()
      planBegan = world.seconds + Self.lead
      for machine in 0..<plan[.nodes] { begin(machine) }
      for line in plan.lines {
        world.after(Self.lead + Double(line.at) / 1_000, at: World.clients) { [unowned self] in
          if !world.isClosing { play(line) }
        }
        guard line.act == .restore else { continue }
        world.after(Self.lead + Double(max(0, line.at - line[1])) / 1_000, at: World.clients) {
          [unowned self] in copies[line.id] = (database.state, world.seconds)
        }
      }
      watch()
      try run(until: Self.lead + 0.01 + plan.length)
      heal()
      let due = plan.lines.filter { $0.act == .schedule }.map(Self.due).max() ?? 0
      let end = max(world.seconds, due) + Double(plan[.window]) + 600
      while findings.isEmpty, !isDone, world.seconds < end { try run(until: world.seconds + 5) }
      // Long enough for what is left over when nothing is to be done.
      if isDone, plan.seed % 8 == 0 { try run(until: world.seconds + 700) }
      judge()
      for process in processes { process.cancel() }
      try world.close()
    } catch {
      fail(.finite, "\(error)")
    }
    for trip in world.trips {
      fail(.ownClock, "\(trip.call) at \(moment(trip.seconds)), from \(trip.stack)")
    }
  }

  private func run(until end: Double) throws {
    while findings.isEmpty, end - world.seconds > 1e-6 {
      try world.run(until: min(end, world.seconds + 1))
    }
  }

  /// Hubs and their credentials are there before anything happens.
  private func makeHubs() throws {
    let store = SimulatedStore(
      database, link: DirectLink(), machine: clocks[0].clock(of: World.clients), random: { 0 })
    let hubs = plan[.hubs]
    let platforms = Names.platforms.prefix(plan[.platforms])
    let done = Flag()
    world.after(0, at: World.clients) {
      Task {
        for index in 0..<hubs {
          let hub = try await store.createHub(
            named: Names.hub(index), registrationTTL: nil, policies: [], at: World.start)
          for platform in platforms {
            try await store.putCredential(
              Self.credential(platform, of: index, 0, at: World.start), hub: hub.id)
          }
        }
        done.isSet = true
      }
    }
    try world.run(until: 0.001)
    guard done.isSet else { throw World.Stop(description: "the hubs could not be made") }
    for index in 0..<hubs { ledger.hubs[index] = Acknowledged(true) }
    firstCommit = database.state.commit
  }

  private final class Flag: @unchecked Sendable {  // owner: the world's thread
    var isSet = false
  }

  static func app(of hub: Int) -> SimulatedApp { SimulatedApp(number: hub + 1) }

  /// - Parameter state: As in ``Act/credential``.
  static func credential(
    _ platform: PushPlatform, of hub: Int, _ state: Int, at moment: Date
  ) -> PushCredential {
    let kind: SimulatedApp.Credential =
      switch state {
      case 1: .wrong
      case 3: .second
      case 4: .astray
      default: .first
      }
    return app(of: hub).credential(platform, kind, modifiedAt: moment)
  }

  private func begin(_ machine: Int) {
    let place = nextPlace
    nextPlace += 1
    machines[place] = machine
    let process = NodeProcess(
      place, machine: machine, clock: clocks[machine], in: world, plan: plan, database: database,
      network: network, services: services
    ) { [unowned self] in note("says: \($0)", at: place) }
    if machine < processes.count {
      processes[machine] = process
    } else {
      processes.append(process)
    }
    note("begins", at: place)
    if isDatabaseWrong { observations.hadWrongDatabase.insert(place) }
    process.start()
  }

  /// Hubs and platforms whose credential a client has made wrong, removed, or lost with its hub. Lanes
  /// of all others have to find by themselves that all is well.
  private(set) lazy var spoiltCredentials: Set<[Int]> = {
    let platforms = 0..<plan[.platforms]
    return Set(
      plan.lines.flatMap { line -> [[Int]] in
        switch line.act {
        case .credential: [[line[0], line[1]]]
        case .deleteHub, .createHub: platforms.map { [line[0], $0] }
        case .failover where plan[.synchronous] == 0:
          (0..<plan[.hubs]).flatMap { hub in platforms.map { [hub, $0] } }
        default: []
        }
      })
  }()

  func note(_ line: @autoclosure () -> String, at place: ProcessID = World.clients) {
    world.note(line(), at: place)
  }

  // MARK: Playing

  private func play(_ line: Plan.Line) {
    note("\(line)", at: World.clients)
    guard line.act.isFault else { return begin(line) }
    if strike(line) { struck.insert(line.id) }
  }

  /// Remembers what a fault met.
  private func count(_ act: Act, at process: NodeProcess?) {
    let calls = process.map { network.waiting(at: $0.place) } ?? []
    for call in calls.isEmpty ? ["nothing"] : calls {
      strikes[act, default: [:]][call, default: 0] += 1
    }
  }

  /// - Returns: Whether it has struck. One that waits for a call has not yet.
  private func strike(_ line: Plan.Line) -> Bool {
    let index = line[0]
    let seconds = Double(line.act.length.map { line[$0] } ?? 0) / 1_000
    switch line.act {
    case .kill, .stop, .pause, .suspend:
      guard index < processes.count else { return false }
      return strike(line.act, processes[index], for: seconds)
    case .cut:
      guard index < processes.count else { return false }
      count(.cut, at: processes[index])
      disturb(processes[index], for: seconds)
      network.cut(index, for: seconds, .init(rawValue: line[2]) ?? .both)
    case .step:
      steppedAt = world.seconds
      if index < 0 { beginStep() }
      if abs(line[1]) >= 60_000 {
        observations.stepped.insert(index < 0 ? -1 : index % clocks.count)
        for process in processes
        where index < 0 && !(isAble(process, for: 0) && process.store.isSettled) {
          observations.hadWrongDatabase.insert(process.place)
        }
      }
      let clock = index < 0 ? databaseClock : clocks[index % clocks.count]
      for process in processes { count(.step, at: process) }
      clock.step(by: Double(line[1]) / 1_000)
      // One that slept when it was set back takes it for a day later than it is.
      if index < 0, abs(line[1]) >= 86_000_000,
        line[1] > 0 || !processes.allSatisfy({ isAble($0, for: 0) && $0.store.isSettled })
      {
        observations.hasSkippedDays = true
      }
    case .lose:
      let call = StoreCalls.names[line[1] % StoreCalls.names.count]
      network.trap(line.id, index, call, after: line[2], isAfter: line[3] == 1)
      return false
    case .losses:
      strikeAll(.losses, for: seconds)
      network.lose(line[1], for: seconds)
    case .hang:
      strikeAll(.hang, for: seconds)
      network.leave(for: seconds)
    case .failover:
      strikeAll(.failover, for: seconds)
      network.leave(for: seconds)
      if plan[.synchronous] == 0 { lose(commits: line[1]) }
    case .restore: return restore(line, for: seconds)
    case .refuse:
      strikeAll(.refuse, for: seconds)
      network.refuse(with: StoreCalls.errors[line[1] % StoreCalls.errors.count], for: seconds)
    default:
      for process in processes { count(line.act, at: process) }
      strikeService(line, for: seconds)
    }
    return true
  }

  private func strikeAll(_ act: Act, for seconds: Double) {
    for process in processes {
      count(act, at: process)
      disturb(process, for: seconds)
    }
  }

  private func strikeService(_ line: Plan.Line, for seconds: Double) {
    switch line.act {
    case .slander:
      observations.slandered.insert(LifeServices.service(Names.platforms[line[0]]))
    case .replace: ledger.replacements[line[0], default: []].insert(line[1])
    case .reset: observations.isDisturbed = true
    default: break
    }
    services.strike(line, for: seconds)
    // Requests that reach no service are not recorded there.
    if line.act == .disconnect {
      trouble(LifeServices.service(Names.platforms[line[0]]), until: world.seconds + seconds)
    } else if line.act == .withhold {
      for service in [SimulatedService.fcm, .wns] {
        trouble(service, until: world.seconds + seconds)
      }
    }
  }

  private func strike(_ act: Act, _ process: NodeProcess, for seconds: Double) -> Bool {
    guard !process.isDead, held[process.machine] == nil else { return false }
    count(act, at: process)
    note("\(act.rawValue)", at: process.place)
    let machine = process.machine
    held[machine] = (act, world.seconds + seconds)
    disturb(process, for: seconds)
    switch act {
    case .kill:
      process.kill()
      hangUp(process.place)
    case .stop: process.stop { [self] in hangUp(process.place) }
    case .pause: world.pause(process.place)
    default:
      clocks[machine].suspend()
      world.pause(process.place)
    }
    world.after(seconds, at: World.clients) { [unowned self] in release(machine, from: act) }
    return true
  }

  /// Ends what holds a machine.
  private func release(_ machine: Int, from act: Act, after tries: Int = 0) {
    guard held[machine]?.act == act else { return }
    let process = processes[machine]
    if act == .stop, !process.isDead {
      // It ends when it is done.
      guard tries < 100 else { return fail(.ends, "a process does not stop") }
      world.after(0.5, at: World.clients) { [unowned self] in
        release(machine, from: act, after: tries + 1)
      }
      return
    }
    held[machine] = nil
    switch act {
    case .kill, .stop, .restore: begin(machine)
    default:
      clocks[machine].wake()
      world.resume(process.place)
      process.sleptUntil = world.seconds
      note("goes on", at: process.place)
      process.disturbedAt = world.seconds
    }
    processes[machine].wokeAt = world.seconds
  }

  private func beginStep() {
    let knowing = processes.filter { !$0.isDead && $0.store.isSettled }.map(\.store.nodeID)
    observations.beginStep(database.state, knowing: Set(knowing))
  }

  private func disturb(_ process: NodeProcess, for seconds: Double) {
    observations.isDisturbed = true
    process.disturbedAt = max(process.disturbedAt, world.seconds + seconds)
    // It may be another node when it is back, and then asks the database for the time.
    if isDatabaseWrong, seconds > 5 {
      observations.hadWrongDatabase.insert(process.place)
    }
  }

  /// The database's time of day is not the true one, and who asks it for the time believes it.
  private var isDatabaseWrong: Bool {
    abs(databaseClock.date.timeIntervalSince(world.date)) >= 30
  }

  /// A standby that has not received the last commits takes over.
  private func lose(commits: Int) {
    let commits = min(commits, Int(database.state.commit - firstCommit))
    let commit = database.state.commit - Int64(commits)
    let moment = commitTimes.first { $0.commit >= commit }?.seconds ?? world.seconds
    let steps = database.state.clockSteps
    database.goBack(commits: commits)
    copies = copies.filter { $0.value.seconds < moment }
    note("the last \(commits) commits are lost")
    ledger.doubt(since: moment, at: world.seconds)
    observations.wentBackAt = world.seconds
    observations.doubt(database.state)
    // No node tells of a step again when the commit in which one did is lost.
    if database.state.clockSteps != steps { observations.hasUnseenStep = true }
    // A node that the database has forgotten is another one, and asks it for the time.
    guard isDatabaseWrong else { return }
    for process in processes where !database.state.isAlive(process.store.nodeID) {
      observations.hadWrongDatabase.insert(process.place)
    }
  }

  /// All processes end; once nothing of theirs is on its way any more the copy takes the place of the
  /// database, and others begin.
  private func restore(_ line: Plan.Line, for seconds: Double) -> Bool {
    guard let copy = copies[line.id], !held.values.contains(where: { $0.act == .restore }) else {
      return false
    }
    let lanes = (0..<plan[.hubs]).flatMap(lanes(of:))
    observations.beginChange(of: lanes)
    strikeAll(.restore, for: seconds)
    for process in processes {
      if held[process.machine]?.act == .suspend { clocks[process.machine].wake() }
      held[process.machine] = (.restore, world.seconds + seconds)
      process.kill()
      hangUp(process.place)
    }
    world.after(seconds, at: World.clients) { [unowned self] in
      note("the database is what it was at \(moment(copy.seconds))")
      database.restore(copy.state, isElsewhere: line[2] == 1)
      if line[2] == 1 { observations.movedAt = world.seconds }
      // Nobody has copies of what is lost.
      copies = copies.filter { $0.value.seconds <= copy.seconds }
      firstCommit = database.state.commit
      commitTimes = []
      ledger.doubt(since: copy.seconds, at: world.seconds)
      // The ids of lost registrations are given out again: their clients leave them alone.
      let ids = Set(database.state.registrations.map { $0.id(database.coding) })
      ledger.registrations = ledger.registrations.filter { ids.contains($0.value.id) }
      observations.restore(database.state, isSet: steppedAt >= copy.seconds)
      observations.endChange(of: lanes, at: world.seconds)
      for machine in clocks.indices { release(machine, from: .restore) }
    }
    return true
  }

  private func heal() {
    healedAt = world.seconds
    note("all is healed")
    network.heal()
    services.heal()
    // A machine that stands still has no time of day that could be set.
    for clock in clocks { clock.wake() }
    let isWrong = { [world] (clock: MachineClock) in
      abs(clock.date.timeIntervalSince(world.date)) >= 1
    }
    if isWrong(databaseClock) { beginStep() }
    // To set it right is a step forward.
    if world.date.timeIntervalSince(databaseClock.date) >= 86_000 {
      observations.hasSkippedDays = true
    }
    if (clocks + [databaseClock]).contains(where: isWrong) { steppedAt = world.seconds }
    for clock in clocks + [databaseClock] { clock.setRight() }
    for (machine, hold) in held.sorted(by: { $0.key < $1.key }) { release(machine, from: hold.act) }
    if observations.isDisturbed { for process in processes { disturb(process, for: 0) } }
    for hub in 0..<plan[.hubs] {
      // Credentials become right, whatever clients made of them.
      for platform in 0..<plan[.platforms] where spoiltCredentials.contains([hub, platform]) {
        begin(.init(id: -1, at: 0, .credential, [hub, platform, 0]))
      }
    }
  }

  /// Schedules that were cancelled would have been sent by then.
  private var cancelledUntil: Double {
    plan.lines.filter { ledger.sends[$0.id]?.cancelledAt != nil }.map { Self.due($0) + 7 }.max()
      ?? 0
  }

  /// When a line begins, in seconds of the world.
  static func time(of line: Plan.Line) -> Double { lead + Double(line.at) / 1_000 }

  /// When a schedule is due, by what its client takes for the time.
  static func due(_ line: Plan.Line) -> Double { lead + Double(line.end) / 1_000 }

  /// Nothing is left to be done or told.
  private var isDone: Bool {
    world.seconds >= cancelledUntil && clientsUnderWay == 0 && held.isEmpty
      && processes.allSatisfy(\.isRunning)
      && database.state.notifications.allSatisfy { $0.record.state.isFinal }
  }

  // MARK: Findings

  func fail(_ promise: Promise, _ text: String) {
    note("BROKEN: \(promise.sentence): \(text)")
    findings.append(Finding(promise: promise, text: text))
  }

  /// Tests a promise.
  func expect(_ promise: Promise, _ isKept: Bool, _ text: @autoclosure () -> String) {
    checks[promise, default: 0] += 1
    if !isKept { fail(promise, text()) }
  }
}
