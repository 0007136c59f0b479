import Foundation
import HubCore
import NotificationHubs

/// The promises that are checked every second.
extension Life {
  /// A node's lease, in seconds.
  static let lease = 10.0
  /// Time that a heartbeat and a look for work may take on top of it.
  private static let grace = 5.0

  func watch() {
    world.after(1, at: World.clients) { [unowned self] in
      guard !world.isClosing else { return }
      let state = database.state
      for process in processes {
        if network.isCutOff(process.machine) {
          process.cutOffSince = process.cutOffSince ?? world.seconds
        } else if process.cutOffSince != nil {
          process.cutOffSince = nil
          process.disturbedAt = max(process.disturbedAt, world.seconds)
        }
        if !network.isOpen(to: process.machine) {
          process.disturbedAt = max(process.disturbedAt, world.seconds)
        }
        process.refusedSince = network.refusingSince.map {
          max($0, process.refusedSince ?? world.seconds)
        }
      }
      observations.watchStep(state)
      watchRequests()
      watchWork(state)
      watchProgress(state)
      if Int(world.seconds) % 2 == 0 {
        for process in processes {
          askHealth(process)
          askHeld(process)
        }
      }
      let isQuiet =
        clientsUnderWay == 0
        && state.notifications.active { $0.record.state != .scheduled }.isEmpty
      observations.quietSince = isQuiet ? observations.quietSince ?? world.seconds : nil
      watch()
    }
  }

  /// It has had all it needs for so long.
  func isAble(_ process: NodeProcess, for seconds: Double) -> Bool {
    process.isRunning && network.isOpen(to: process.machine)
      && world.seconds - process.disturbedAt >= seconds
  }

  private func watchRequests() {
    for request in requests.values {
      guard let process = processes.first(where: { $0.place == request.place }) else { continue }
      let waited = world.seconds - max(request.since, process.disturbedAt)
      expect(
        .answered, waited < 40 || !process.isRunning,
        "a request to node \(process.place) waits for \(Int(waited)) s")
    }
  }

  private func watchWork(_ state: SimulatedDatabase.State) {
    let limit = Self.lease + Self.grace
    let helpers = processes.filter {
      isAble($0, for: limit + Self.grace)
        && partCount(of: $0, state) < min($0.limits.claimedParts, $0.limits.waitingParts)
    }.map(\.store.nodeID)
    let working = Set(
      processes.filter { $0.isRunning && network.isOpen(to: $0.machine) }.map(\.store.nodeID))
    var idle: [String: Double] = [:]
    for number in observations.open {
      guard let row = state.notifications[number: number] else { continue }
      if row.record.state == .scheduled {
        watchSchedule(row)
        continue
      }
      for part in row.parts where !part.isDone && part.owner.map({ !working.contains($0) }) ?? true
      {
        let key = "\(number)/\(part.part)"
        // An owner that came back for a moment, between two looks, was alive.
        let heardAt = processes.first { $0.store.nodeID == part.owner }?.heardAt ?? 0
        let since = max(observations.idle[key] ?? world.seconds, heardAt)
        idle[key] = since
        // No more than four of a notification, so that others find some.
        let hasHelper = helpers.contains { helper in
          row.parts.count { $0.owner == helper && !$0.isDone } < 4
        }
        guard hasHelper else {
          idle[key] = world.seconds
          continue
        }
        let line = observations.notifications[number]?.line ?? 0
        expect(
          part.owner == nil ? .worked : .takenOver, world.seconds - since <= limit + 1,
          "part \(part.part) of \(line) has had no node for \(Int(world.seconds - since)) s, and "
            + "one was there: owner \(part.owner ?? 0), epoch \(part.epoch)")
      }
    }
    observations.idle = idle
  }

  /// Parts that a process owns and has not finished.
  private func partCount(of process: NodeProcess, _ state: SimulatedDatabase.State) -> Int {
    let node = process.store.nodeID
    return observations.open.compactMap { state.notifications[number: $0] }.reduce(0) { sum, row in
      sum + row.parts.count { $0.owner == node && !$0.isDone }
    }
  }

  /// Whether all nodes know of steps of the database's clock: they learn of one from two heartbeats.
  var areClocksKnown: Bool {
    steppedAt < 0
      || world.seconds - steppedAt > 40 && processes.allSatisfy({ isAble($0, for: 10) })
  }

  func released(_ line: Int, _ due: Date) {
    guard areClocksKnown else { return }
    let early = due.timeIntervalSince(databaseClock.date)
    expect(.schedulesOnTime, early <= 1, "\(line) is sent \(Int(early)) s before it is due")
  }

  private func watchSchedule(_ row: NotificationRow) {
    guard let due = row.record.scheduledFor else { return }
    // A node that sleeps until then looks at the clock every half minute; that it was set, nodes learn from two
    // heartbeats.
    let moment = max(
      due.timeIntervalSince(databaseClock.date.addingTimeInterval(-world.seconds)), steppedAt + 36,
      observations.notifications[row.number]?.since ?? world.seconds)
    let late = world.seconds - moment
    guard late > 0, processes.contains(where: { isAble($0, for: late + 10) }) else { return }
    let line = observations.notifications[row.number]?.line ?? 0
    expect(.schedulesOnTime, late <= Self.grace + 2, "\(line) is due for \(Int(late)) s")
  }

  private func askHealth(_ process: NodeProcess) {
    guard process.isRunning else { return }
    let isAble = isAble(process, for: 15)
    let isCutOff =
      process.cutOffSince.map {
        world.seconds - max($0, process.heardAt, process.wokeAt) >= 15
      } ?? false
    // It knows once a write of its own was refused.
    let isRefused =
      process.refusedSince.map {
        world.seconds - max($0, process.wokeAt) >= 15
          && network.hasRefused(process.place, since: $0)
      } ?? false
    guard isAble || isCutOff || isRefused else { return }
    world.after(0, at: process.place) { [self] in
      Task { [self] in
        let report = await process.hub.health.report()
        guard !process.isDead, !world.isClosing else { return }
        let isStill =
          isAble
          ? self.isAble(process, for: 15)
          : process.cutOffSince != nil || isRefused && process.refusedSince != nil
        guard isStill else { return }
        expect(
          .healthTells, report.isReady == isAble,
          isAble
            ? "node \(process.place) can work and is not ready: \(report.reasons.map(\.text))"
            : "node \(process.place) has no database \(isRefused ? "that takes writes " : "")for 15 s "
              + "and is ready")
      }
    }
  }

  /// A node's memory is bounded by its limits, and by what is accepted and unfinished.
  private func askHeld(_ process: NodeProcess) {
    let calm = 20.0
    guard isAble(process, for: calm) else { return }
    world.after(0, at: process.place) { [self] in
      Task { [self] in
        let held = await process.hub.dispatcher.status()
        guard !world.isClosing, isAble(process, for: calm) else { return }
        let parts = database.state.notifications.active.flatMap(\.parts).filter { !$0.isDone }
        let timers = world.sleeperCount(of: process.place)
        let calls = network.callCount(of: process.place)
        let sending = held.lanes.reduce(0) { $0 + $1.inFlight }
        let asked = requests.values.count { $0.place == process.place }
        let waiting = held.lanes.map(\.waiting).max() ?? 0
        let limits = process.limits
        let text =
          "node \(process.place) has \(timers) timers, \(calls) calls of its database, \(held.targets) "
          + "targets, \(sending) under way, \(waiting) behind them, \(held.notifications) parts and "
          + "\(held.retries) retries; there are \(parts.count) parts and \(asked) requests"
        process.told = text
        // Parts that it has lost since the last look are gone before their release is answered.
        let recent = max(held.notifications, process.lastHeld)
        process.lastHeld = held.notifications
        expect(
          .bounded,
          held.targets <= limits.targets && sending <= held.targets + limits.retryTargets
            && waiting <= 4 * limits.laneBacklog + limits.pageSize
            && timers <= Self.idleTimers + 2 + held.notifications + sending + asked
            && calls <= Self.idleCalls + 4 * (recent + asked), text)
        // A node learns with its next try that others have done a part, or deleted its hub or user.
        let learnt = world.seconds - Self.longestRest - calm
        guard !observations.deletions.mayBeDone(since: learnt),
          !observations.erasures.mayBeDone(since: learnt),
          observations.wentBackAt.map({ $0 < learnt }) ?? true,
          process.isUndisturbed || isAble(process, for: Self.longestRest + calm)
        else { return }
        let isQuiet = observations.quietSince.map { world.seconds - $0 >= calm } ?? false
        let isMore =
          isQuiet
          ? timers > Self.idleTimers || calls > Self.idleCalls || held.targets > 0
            || held.notifications > 0 || held.retries > 0
          : held.notifications > parts.count + 1
        // Answers of the database are under way for a moment.
        observations.heldMore[process.place] =
          isMore ? (observations.heldMore[process.place] ?? 0) + 1 : 0
        expect(
          .bounded, observations.heldMore[process.place] ?? 0 < 4,
          "\(isQuiet ? "nothing is to be done for \(Int(calm)) s" : "for 6 s"), and " + text)
      }
    }
  }

  /// A node that was disturbed has tried all again by then.
  private static let longestRest = 600.0

  /// For the heartbeat, health, upkeep and the dispatcher; and what these ask of the database.
  private static let idleTimers = 4
  private static let idleCalls = 6

  func hasUnseenStep(_ state: SimulatedDatabase.State) -> Bool {
    observations.watchStep(state)
    return observations.hasUnseenStep || observations.stepWatchers != nil
  }
}
