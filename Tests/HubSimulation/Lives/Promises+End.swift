import Foundation
import HubCore
import NotificationHubs

/// The promises that are checked when all is healed and time has run on.
extension Life {
  func judge() {
    guard findings.isEmpty else { return }
    let state = database.state
    look(at: state)
    judgeSends(state)
    judgeDevices(state)
    judgeCondemned(state)
    judgeRest(state)
  }

  private func judgeSends(_ state: SimulatedDatabase.State) {
    for line in ledger.sends.keys.sorted() {
      guard let send = ledger.sends[line], !send.isDoubtful,
        !observations.deletions.mayBeDone(send.hub, since: send.since)
      else { continue }
      if send.cancelledAt != nil, observations.numbers[line]?.count ?? 0 < 2,
        let what = plan.lines.first(where: { $0.id == line }), Self.due(what) < world.seconds
      {
        expect(
          .cancelledIsSilent,
          !observations.pushes.keys.contains { $0.line == line } || observations.lost.contains(line)
            || observations.revived.contains(line),
          "\(line) was cancelled before it was due, and was sent")
      }
      if let abortedAt = send.abortedAt, observations.openAborts.contains(line) {
        expect(
          .abortedIsSilent,
          !observations.lateAborts.contains(line)
            || observations.wentBackAt.map { $0 >= abortedAt } ?? false,
          "\(line) is sent, and was aborted at \(moment(abortedAt))")
      }
      for id in send.ids {
        let row = state.notifications.last { $0.record.id == id }
        guard let row else {
          expect(.durable, mayBeErased(line, since: send.since), "\(line) was accepted and is gone")
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
        row.record.state.isFinal
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
        now.handle == member.handle, seen.since > observations.movedAt || now.sharedSince == nil
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
      !services.dead.contains(Names.handle(handle)), ledger.replacements[handle] == nil
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
      // A send to an erased user alone is counted, and not kept.
      let isKept = Int(hub.name.dropFirst(3)).map { !observations.erasures.mayBeDone($0) } ?? true
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
    if observations.erasures.mayBeDone() {
      expect(.erased, orphans.isEmpty, "there are registrations of devices that are gone")
    }
    guard observations.deletions.mayBeDone() else { return }
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
