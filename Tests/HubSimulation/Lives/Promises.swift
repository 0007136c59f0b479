import Foundation
import HubCore
import NotificationHubs

/// What must hold, at which moment: the sentences of ``Promise`` as code.
extension Life {
  /// A node's lease, and what a heartbeat and a look for work may take on top of it.
  private static let lease = 10.0
  private static let grace = 5.0

  // MARK: At every commit

  /// - Parameter isIdle: It has changed nothing.
  func committed(_ call: String, _ link: ProcessLink, isIdle: Bool) {
    if isIdle { return }
    database.read { committed(call, link, $0) }
  }

  private func committed(
    _ call: String, _ link: ProcessLink, _ state: SimulatedDatabase.State
  ) {
    commitTimes.append((state.commit, world.seconds))
    if commitTimes.count > 512 { commitTimes.removeFirst(256) }
    switch call {
    case "beat": processes.first { $0.place == link.place }?.heardAt = world.seconds
    case "accept", "releaseSchedules", "claimWork", "checkpoint", "abort", "cancelSchedule":
      observations.quietSince = nil
      for row in state.notifications.after(observations.lastNumber) { see(row) }
      look(at: state)
    default: break
    }
    if Self.deviceWrites.contains(call) || call == "checkpoint" { widenAudiences(state) }
  }

  private static let deviceWrites: Set = [
    "putInstallation", "updateInstallation", "createRegistration", "putRegistration",
    "restoreRemoved",
  ]

  private func see(_ row: NotificationRow) {
    let record = row.record
    let line = Names.line(in: record.request.body) ?? 0
    observations.lastNumber = row.number
    observations.accepted += 1
    observations.notifications[row.number] = .init(
      number: row.number, id: record.id, hub: record.hub, line: line, since: world.seconds,
      isNative: record.request.format != .template, isDirect: record.request.isDirect)
    observations.numbers[line, default: []].append(row.number)
    observations.open.append(row.number)
  }

  /// Looks at the notifications that are not finished.
  private func look(at state: SimulatedDatabase.State) {
    var open: [Int64] = []
    for number in observations.open {
      guard let version = state.notifications.version(of: number) else { continue }
      if observations.seenVersions[number] === version {
        open.append(number)
        continue
      }
      guard let row = state.notifications[number: number] else { continue }
      look(at: row, state)
      observations.seenVersions[number] = row.record.state.isFinal ? nil : version
      if !row.record.state.isFinal { open.append(number) }
    }
    observations.open = open
  }

  private func look(at row: NotificationRow, _ state: SimulatedDatabase.State) {
    guard var seen = observations.notifications[row.number] else { return }
    // One that was cancelled before its time has no parts.
    if seen.owedSince == nil, !row.parts.isEmpty {
      seen.owedSince = world.seconds
      if let due = row.record.scheduledFor { released(seen.line, due) }
      if seen.isDirect {
        for (index, target) in row.targets.enumerated() {
          seen.handles[target.handle, default: []].insert(RegistrationID(index + 1))
        }
      } else {
        for member in state.audience(of: row.record) {
          seen.audience[member.number] = .init(handle: member.handle, etag: member.etag)
          seen.handles[member.handle, default: []].insert(member.number)
        }
      }
    }
    var abandoned = 0
    for part in row.parts {
      let last = seen.epochs[part.part] ?? 0
      expect(
        .oneOwner, part.epoch >= last,
        "part \(part.part) of \(seen.line) goes from epoch \(last) to \(part.epoch)")
      // After a restore a part that was taken earlier is seen for the first time.
      if let known = seen.epochs[part.part], part.epoch > known, let owner = part.owner {
        expect(
          .oneOwner, state.isAlive(owner),
          "part \(part.part) of \(seen.line) is taken by node \(owner), which counts as dead")
      }
      seen.epochs[part.part] = part.epoch
      for (key, count) in part.counts where Self.passing.contains(key.outcome) {
        abandoned += count
      }
    }
    let (rows, meant) = (
      row.parts.reduce(0) { $0 + $1.retries.count + $1.counts.values.reduce(0, +) },
      seen.handles.values.reduce(0) { $0 + $1.count }
    )
    // After a move to another server a handle that came to be shared meanwhile counts as shared before:
    // its first device is in the part of those as well as in its own.
    expect(
      .bounded, rows <= meant || observations.hasGoneBack || observations.hasMoved,
      "\(seen.line) has \(Texts.count(rows, "outcome or retry", "outcomes and retries")) for "
        + Texts.count(meant, "device") + ": "
        + row.parts.map { part in
          "part \(part.part) counts \(part.counts.values.reduce(0, +)), retries "
            + "\(part.retries.keys.sorted())"
        }.joined(separator: "; ") + "; meant for \(seen.handles.values.map { $0.sorted() })")
    if abandoned > seen.abandoned {
      // A node whose clock stood still accepts with an old time until its next heartbeat.
      let wasLate = processes.contains { 0..<Self.lease ~= (seen.owedSince ?? 0) - $0.sleptUntil }
      if let since = seen.owedSince, !hasUnseenStep(state), !wasLate {
        let age = world.seconds - since
        // With less left than the least pause, of which a quarter is spread, there is no other try.
        expect(
          .fullWindow, age >= Double(plan[.window]) - (hasQuota ? 75 : 15),
          "\(seen.line) is given up \(Int(age)) s after its acceptance; its time is "
            + "\(plan[.window]) s")
      }
      seen.abandoned = abandoned
      seen.gaveUpAt = world.seconds
    }
    observations.notifications[row.number] = seen
  }

  /// Who comes into an audience later may be sent to as well.
  private func widenAudiences(_ state: SimulatedDatabase.State) {
    // After a failover commits are counted from an earlier one on.
    let last = min(observations.widenedAt, state.commit - 1)
    observations.widenedAt = state.commit
    let written = state.registrations.filter { $0.written > last }
    guard !written.isEmpty else { return }
    for number in observations.open {
      guard let row = state.notifications[number: number], row.record.state != .scheduled,
        !row.record.request.isDirect
      else { continue }
      for member in state.audience(of: row.record, among: written) {
        observations.notifications[number]?.handles[member.handle, default: []].insert(
          member.number)
      }
      // A retry goes to its registration, whatever handle and tags that has by then, but not with a
      // message of another push service.
      guard let handles = observations.notifications[number]?.handles else { continue }
      for now in written where handles.values.contains(where: { $0.contains(now.number) }) {
        if case .native(let platform) = row.record.audience.kind, now.draft.platform != platform {
          continue
        }
        observations.notifications[number]?.handles[now.handle, default: []].insert(now.number)
      }
    }
  }

  // MARK: At every push

  func taken(_ push: Push) {
    guard let line = push.line else {
      return fail(.authorisedPush, "a push names no line: \(push.handle)")
    }
    note("\(line) to \(Names.short(push.handle)) \(push.id)", at: push.place)
    let known = (observations.numbers[line] ?? []).compactMap { observations.notifications[$0] }
    let send = ledger.sends[line]
    expect(
      .authorisedPush,
      known.contains { $0.handles[push.handle] != nil }
        || observations.lost.contains(line) || isBelated(push, of: known)
        || known.contains { isErased($0) },
      "\(line) goes to \(push.handle), which was never in its audience")
    // A repeat whose key is over is another schedule.
    if let at = send?.cancelledAt, !observations.hasSkippedDays {
      expect(
        .cancelledIsSilent, push.seconds < at, "\(line) is sent, and was cancelled at \(moment(at))"
      )
    }
    // What a gateway has already goes out. What was sent again under a key whose time was over is
    // another notification.
    let isSlow = observations.pace.slowUntil[push.place].map { push.seconds < $0 + 5 } ?? false
    if let at = send?.abortedAt, at + 5 < push.seconds, !isSlow, known.count == 1,
      isItself(push.place, since: at)
    {
      observations.lateAborts.insert(line)
    }
    let place = Observations.PushKey(line: line, handle: push.handle)
    observations.pushes[place, default: [:]][push.id, default: 0] += 1
    if !push.id.isEmpty {
      let other = observations.pushKeys.updateValue(place, forKey: push.id)
      expect(.onePushID, other == nil || other == place, "\(line) has the id of another push")
    }
    if known.count == 1, known[0].isNative, !observations.lost.contains(line) {
      expect(
        .onePushID, observations.pushes[place]?.count == 1,
        "\(line) goes to one handle under two ids")
    }
    // Templates of several registrations of one handle may say the same, and a second native one may
    // have come since.
    let holders = max(
      known.reduce(0) { $0 + ($1.handles[push.handle]?.count ?? 0) },
      database.state.registrations.count { $0.handle == push.handle })
    let claims = observations.isDisturbed ? Int(known.reduce(0) { $0 + $1.claims }) : 1
    let most = max(1, holders) * (max(1, claims) + observations.unheard[line, default: 0])
    expect(
      .noRepeats,
      observations.pushes[place]?[push.id] ?? 0 <= most || observations.lost.contains(line),
      "\(line) goes to \(push.handle) \(observations.pushes[place]?[push.id] ?? 0) times; it was claimed "
        + "\(claims) times, by \(holders) registrations, and \(observations.unheard[line] ?? 0) "
        + "answers were lost")
  }

  /// A node that works on a notification of an erased user learns of that from its next checkpoint.
  private func isErased(_ seen: Observations.Notification) -> Bool {
    !observations.erasedHubs.isEmpty && database.state.notifications[number: seen.number] == nil
  }

  /// A process that stood still learns from its next heartbeat or checkpoint that others have its parts:
  /// until then it may read a page of what they have ended, with the devices that have come since.
  private func isBelated(_ push: Push, of known: [Observations.Notification]) -> Bool {
    guard let process = processes.first(where: { $0.place == push.place }),
      world.seconds - process.sleptUntil < Self.lease
    else { return false }
    let state = database.state
    return known.contains { seen in
      guard let row = state.notifications[number: seen.number] else { return false }
      return state.audience(of: row.record).contains { $0.handle == push.handle }
    }
  }

  // MARK: Every second

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
        process.refusedSince =
          network.isRefusing ? process.refusedSince ?? world.seconds : nil
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
      isAble($0, for: limit + Self.grace) && partCount(of: $0, state) < $0.limits.waitingParts
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
        // Few parts are claimed at a time where the plan says so.
        guard plan[.parts] >= 64 else { continue }
        // Nor more than four of a notification, so that others find some.
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

  private func released(_ line: Int, _ due: Date) {
    // Nodes learn of a step from two heartbeats.
    guard
      steppedAt < 0
        || world.seconds - steppedAt > 40 && processes.allSatisfy({ isAble($0, for: 10) })
    else { return }
    let early = due.timeIntervalSince(databaseClock.date)
    expect(.schedulesOnTime, early <= 1, "\(line) is sent \(Int(early)) s before it is due")
  }

  private func watchSchedule(_ row: NotificationRow) {
    guard let due = row.record.scheduledFor else { return }
    // Who sleeps until then looks at the clock every half minute; that it was set, nodes learn from two
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

  /// What a node holds is bounded by its limits, and by what is accepted and unfinished.
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
        guard observations.deletedHubs.isEmpty, !observations.hasGoneBack,
          observations.erasures.values.allSatisfy({ $0 < world.seconds - Self.longestRest - calm }),
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

  private func hasUnseenStep(_ state: SimulatedDatabase.State) -> Bool {
    observations.watchStep(state)
    return observations.hasUnseenStep || observations.stepWatchers != nil
  }

  // MARK: At the end

  func judge() {
    guard findings.isEmpty else { return }
    let state = database.state
    look(at: state)
    judgeSends(state)
    judgeDevices(state)
    judgeRest(state)
  }

  private func judgeSends(_ state: SimulatedDatabase.State) {
    for line in ledger.sends.keys.sorted() {
      guard let send = ledger.sends[line], !send.isDoubtful,
        !observations.deletedHubs.contains(send.hub)
      else { continue }
      if send.cancelledAt != nil, !observations.hasSkippedDays,
        let what = plan.lines.first(where: { $0.id == line }), Self.due(what) < world.seconds
      {
        expect(
          .cancelledIsSilent,
          !observations.pushes.keys.contains { $0.line == line } || observations.lost.contains(line)
            || observations.revived.contains(line),
          "\(line) was cancelled before it was due, and was sent")
      }
      if send.abortedAt != nil, observations.openAborts.contains(line) {
        expect(
          .abortedIsSilent, !observations.lateAborts.contains(line) || observations.hasGoneBack,
          "\(line) is sent, and was aborted at \(moment(send.abortedAt ?? 0))")
      }
      for id in send.ids {
        let row = state.notifications.last { $0.record.id == id }
        guard let row else {
          expect(.durable, mayBeErased(line), "\(line) was accepted and is gone")
          continue
        }
        expect(
          .ends, row.record.state.isFinal || hasUnseenStep(state),
          "\(line) was accepted and is still \(row.record.state.rawValue): "
            + row.parts.map { part in
              "part \(part.part) of \(part.owner.map { "\($0)" } ?? "nobody")"
                + (part.isDone ? " done" : "") + ", \(part.retries.count) retries"
            }.joined(separator: "; ")
            + processes.filter { !$0.told.isEmpty }.map { "; at last \($0.told)" }.joined())
      }
    }
    for number in observations.notifications.keys.sorted() {
      guard let seen = observations.notifications[number], seen.owedSince != nil,
        let row = state.notifications[number: number], row.record.id == seen.id,
        row.record.state.isFinal, seen.since > observations.wentBackAt ?? -1
      else { continue }
      judge(seen, row, state)
    }
  }

  private func judge(
    _ seen: Observations.Notification, _ row: NotificationRow, _ state: SimulatedDatabase.State
  ) {
    let counts = row.record().counts
    let total = counts.values.reduce(0, +)
    expect(
      .oneOutcome, row.failures.count <= total,
      "\(seen.line) keeps \(Texts.count(row.failures.count, "outcome")) and counts \(total)")
    expect(
      .bounded, row.parts.allSatisfy(\.retries.isEmpty), "\(seen.line) is done and has retries left"
    )
    let pushes = observations.pushes.filter { $0.key.line == seen.line }
    let sent = Set(pushes.keys.map(\.handle))
    let successes = counts.reduce(0) { $0 + ($1.key.outcome == .success ? $1.value : 0) }
    let taken = pushes.values.reduce(0) { $0 + $1.values.reduce(0, +) }
    expect(
      .oneOutcome, successes <= taken,
      "\(seen.line) counts \(Texts.count(successes, "success", "successes")), and "
        + "\(Texts.count(taken, "push was", "pushes were")) taken")
    guard row.record.abortedAt == nil else { return }
    judgeKept(seen, row, sent, state)
    // Longer than any pause of a retry: what is given up then has been waiting for nothing.
    expect(
      .reached,
      seen.abandoned == 0 || seen.gaveUpAt < (healedAt ?? .infinity) + 700 || hasUnseenStep(state),
      "\(seen.line) gives \(Texts.count(seen.abandoned, "device")) up, when all had been well for long"
    )
    if seen.isDirect {
      for (index, target) in row.targets.enumerated() where !target.isDuplicate {
        expect(
          .reached, sent.contains(target.handle) || row.failures[RegistrationID(index + 1)] != nil,
          "\(seen.line) has ended as \(row.record.state.rawValue), and \(Names.short(target.handle)) "
            + "was neither reached nor given an outcome")
      }
      return
    }
    var isUnchanged = true
    for (registration, member) in seen.audience.sorted(by: { $0.key < $1.key }) {
      // After a move to another server nobody knows whether a handle was shared before a send.
      guard let now = state.registrations[number: registration], now.etag == member.etag,
        now.handle == member.handle, !observations.hasMoved || now.sharedSince == nil
      else {
        isUnchanged = false
        continue
      }
      expect(
        .reached, sent.contains(member.handle) || row.failures[registration] != nil,
        "\(seen.line) has ended as \(row.record.state.rawValue), and registration \(registration) "
          + "(\(Names.short(member.handle))) was neither reached nor given an outcome; counts "
          + "\(counts.map { "\($0.key.outcome.rawValue) \($0.value)" }.sorted())")
    }
    let all = seen.handles.values.reduce(into: Set<RegistrationID>()) { $0.formUnion($1) }
    if isUnchanged, all.count == seen.audience.count {
      expect(
        .oneOutcome, total == seen.audience.count,
        "\(seen.line) counts \(Texts.count(total, "outcome")) for "
          + "\(Texts.count(seen.audience.count, "device")): "
          + "\(counts.map { "\($0.key.outcome.rawValue) \($0.value)" }.sorted()), kept of "
          + "\(row.failures.keys.sorted()), meant for \(seen.audience.keys.sorted())")
    }
  }

  private func judgeDevices(_ state: SimulatedDatabase.State) {
    var slandered = Slandered()
    var hubs: [Int: Hub.ID] = [:]
    for hub in state.hubs {
      if let index = Int(hub.name.dropFirst(3)) { hubs[index] = hub.id }
    }
    for index in ledger.hubs.keys.sorted() {
      expect(
        .durable, ledger.hubs[index]?.allows(hubs[index] != nil) ?? true,
        "hub \(index) is \(hubs[index] == nil ? "gone" : "there"), and its clients know otherwise: "
          + "\(ledger.hubs[index]?.possible ?? [])")
    }
    for place in ledger.devices.keys.sorted() {
      guard let told = ledger.devices[place], let hub = hubs[place.hub] else { continue }
      let row = state.installation(Names.device(place.device), hub: hub)
      judge(place, told, row, state, &slandered)
    }
    for line in ledger.registrations.keys.sorted() {
      guard let known = ledger.registrations[line], let hub = hubs[known.hub],
        let isThere = known.isThere.certain, ledger.hubs[known.hub]?.certain == true
      else { continue }
      let handle = Names.handle(known.handle)
      let mayGo =
        services.dead.contains(handle) || ledger.replacements[known.handle] != nil
      let found = state.registrations.contains {
        $0.hub == hub && $0.id(database.coding) == known.id
      }
      if isThere, !mayGo, note(handle, of: known.hub, isThere: found, &slandered) { continue }
      expect(
        isThere ? .handlesStay : .durable, found == isThere || (isThere && mayGo),
        "registration \(line) is \(found ? "there" : "gone"), and its client knows otherwise")
    }
    judge(slandered)
  }

  private func judge(
    _ place: Ledger.DeviceKey, _ told: Ledger.Device, _ row: InstallationRow?,
    _ state: SimulatedDatabase.State, _ slandered: inout Slandered
  ) {
    let what = "device \(place.device) of hub \(place.hub)"
    let found = row?.installation
    let handle = found.flatMap { Names.index(ofHandle: $0.pushChannel.handle) }
    let mayHave = told.handle.possible
    let isReplaced = ledger.replacements.contains { old, new in
      handle.map(new.contains) ?? false && mayHave.contains(old)
    }
    expect(
      .durable, told.handle.allows(handle) || isReplaced,
      "\(what) has handle \(handle.map { "\($0)" } ?? "none"), and may have \(Texts.list(mayHave))")
    let tags = found.map { Names.mask($0.tags.map(\.rawValue)) }
    expect(
      .durable, told.tags.allows(tags),
      "\(what) has tags \(tags.map { "\($0)" } ?? "none"), and may have \(Texts.list(told.tags.possible))"
    )
    let user = found.map { $0.userID.flatMap { Int($0.dropFirst(4)) } ?? 0 }
    expect(
      user.map { $0 > 0 } ?? false ? .erased : .durable, told.user.allows(user),
      "\(what) is of user \(user.map { "\($0)" } ?? "none"), and may be of \(Texts.list(told.user.possible))"
    )
    guard let row, let handle = mayHave.count == 1 ? mayHave.first ?? nil : nil,
      !services.dead.contains(Names.handle(handle)), ledger.replacements.isEmpty
    else { return }
    let isThere = state.registrations.contains { $0.installation == row.number && $0.isNative }
    if note(Names.handle(handle), of: place.hub, isThere: isThere, &slandered) { return }
    expect(
      .handlesStay, isThere,
      "\(what) has no registration any more, and nobody called its handle dead")
  }

  private func judgeRest(_ state: SimulatedDatabase.State) {
    let living = state.nodes.count { !$0.isDead }
    expect(
      // A process that was silent is another node when it comes back, and so is one of an older copy.
      .bounded, living <= 2 * machines.count,
      "there are \(living) nodes, and \(machines.count) have begun")
    expect(
      .bounded, state.keys.count <= observations.accepted,
      "there are \(state.keys.count) keys, and \(observations.accepted) notifications were accepted"
    )
    judgeErased(state)
    for hub in state.hubs {
      let rows = state.statistics[.init(hub: hub.id, id: .hour)] ?? Table()
      var noted: [NotificationOutcome: Int] = [:]
      for row in rows {
        for (key, count) in row.point.outcomes { noted[key.outcome, default: 0] += count }
      }
      var counted: [NotificationOutcome: Int] = [:]
      for row in state.notifications where row.record.hub == hub.id {
        for (key, count) in row.record().counts { counted[key.outcome, default: 0] += count }
      }
      // What was sent to an erased user alone is counted, and not kept.
      let isKept = Int(hub.name.dropFirst(3)).map { !observations.erasedHubs.contains($0) } ?? true
      for outcome in Set(noted.keys).union(counted.keys).sorted(by: { $0.rawValue < $1.rawValue }) {
        let (one, other) = (noted[outcome] ?? 0, counted[outcome] ?? 0)
        expect(
          .counted, one == other || !isKept && one > other,
          "statistics of \(hub.name) have \(one) of \(outcome), its notifications \(other)")
      }
    }
  }

  /// Of hubs that were deleted no row is left, and none of devices that are gone.
  private func judgeErased(_ state: SimulatedDatabase.State) {
    let devices = Set(state.installations.map(\.number))
    let orphans =
      state.registrations.map(\.installation).filter { $0 != 0 && !devices.contains($0) }
      + state.removed.map(\.row.installation).filter { $0 != 0 && !devices.contains($0) }
    if !observations.erasedHubs.isEmpty {
      expect(.erased, orphans.isEmpty, "there are registrations of devices that are gone")
    }
    guard !observations.deletedHubs.isEmpty else { return }
    let hubs = Set(state.hubs.map(\.id))
    let left = [
      "devices": state.installations.map(\.hub), "registrations": state.registrations.map(\.hub),
      "removed": state.removed.map(\.row.hub), "feedback": state.feedback.map(\.hub),
      "notifications": state.notifications.map(\.record.hub), "keys": state.keys.keys.map(\.hub),
      "statistics": state.statistics.keys.map(\.hub), "credentials": state.credentials.map(\.hub),
    ]
    for (what, owners) in left {
      expect(.erased, owners.allSatisfy(hubs.contains), "a deleted hub has left \(what)")
    }
  }
}
