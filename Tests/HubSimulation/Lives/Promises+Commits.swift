import Foundation
import HubCore
import NotificationHubs

/// The promises that are checked at every commit of the database.
extension Life {
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
  func look(at state: SimulatedDatabase.State) {
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
        for member in audience(of: row.record, in: state) {
          seen.audience[member.number] = .init(handle: member.handle, etag: member.etag)
          seen.handles[member.handle, default: []].insert(member.number)
        }
      }
    }
    let isDated =
      !row.parts.isEmpty && row.record.steadyRelease != NotificationRecord.unknownRelease
    seen.datedSince = isDated ? seen.datedSince ?? world.seconds : nil
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
      .bounded,
      rows <= meant || seen.since <= max(observations.wentBackAt ?? 0, observations.movedAt),
      "\(seen.line) has \(Texts.count(rows, "outcome or retry", "outcomes and retries")) for "
        + Texts.count(meant, "device") + ": "
        + row.parts.map { part in
          "part \(part.part) counts \(part.counts.values.reduce(0, +)), retries "
            + "\(part.retries.keys.sorted())"
        }.joined(separator: "; ") + "; meant for \(seen.handles.values.map { $0.sorted() })")
    if abandoned > seen.abandoned {
      // A node whose clock stood still accepts with an old time until its next heartbeat.
      let wasLate = processes.contains { 0..<Self.lease ~= (seen.owedSince ?? 0) - $0.sleptUntil }
      if let owed = seen.owedSince, !hasUnseenStep(state), !wasLate {
        // It counts from the request, which the database may have kept waiting.
        let asked = row.record.scheduledFor == nil ? ledger.sends[seen.line]?.since : nil
        let age = world.seconds - min(owed, asked ?? owed)
        // With less left than the least pause, of which a quarter is spread, there is no other try.
        expect(
          .fullWindow, age >= Double(plan[.window]) - (mayHaveQuota(row) ? 75 : 15),
          "\(seen.line) is given up \(Int(age)) s after it was asked for; its time is "
            + "\(plan[.window]) s")
      }
      seen.abandoned = abandoned
      seen.gaveUpAt = world.seconds
    }
    observations.notifications[row.number] = seen
  }

  /// A device that comes into an audience later may be sent to as well.
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
      for member in audience(of: row.record, among: written, in: state) {
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
}
