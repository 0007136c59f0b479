import Foundation
import HubCore

/// A hub's way to one service.
struct Lane: Hashable {
  let hub: Int
  let service: SimulatedService
}

extension Life {
  /// The push services that hubs have credentials for.
  var pushServices: [SimulatedService] {
    Names.platforms.prefix(plan[.platforms]).map(LifeServices.service)
  }

  /// The lanes that a call may be for: which hub's it is shows from the line that its message names.
  func lanes(of call: ServiceCall) -> [Lane] {
    let hub = Names.line(in: call.body).flatMap { lines[$0]?[0] }
    return (hub.map { [$0] } ?? Array(0..<plan[.hubs])).map {
      Lane(hub: $0, service: call.service.pushService)
    }
  }
}

/// Living handles of slandered services that are gone, or might be, by lane.
struct Slandered {
  fileprivate var gone: [Lane: Set<String>] = [:]
}

/// The answers that one process has received about the handles of a lane.
struct HandleWords {
  fileprivate var alive = 0
  fileprivate var dead = 0
  /// When the first push to a handle was taken, in seconds.
  fileprivate var trustedAt: Double?
  fileprivate var isOfWhole: Bool { Double(dead) > 0.3 * Double(alive + dead) }
}

/// A service that calls everything dead empties no hub (docs/protocol/push-services/README.md, section 3,
/// rule 4).
extension Life {
  /// So many handles of a lane go whatever share of it they are.
  private static let freeHandles = 10
  /// Number of seconds for which an answer counts.
  private static let guardSpan = 3_600.0

  func watchHandles(_ call: ServiceCall, _ place: ProcessID) {
    guard call.isAnswered, !call.service.isForTokens, call.isTaken || call.isDead,
      let line = Names.line(in: call.body), let send = lines[line],
      // Those of a direct send are no registrations.
      send.act == .send || send.act == .schedule
    else { return }
    let lane = Lane(hub: send[0], service: call.service)
    observations.handleWords[lane, default: [:]][place, default: HandleWords()].note(
      call.isDead, at: world.seconds)
  }

  /// Time in which an answer about a handle is written, in seconds.
  private static let writingTime = 5.0

  /// A registration whose handle is dead, or has been replaced, is sent nothing later. The answers that
  /// count are those that a guard must trust, at a node that nothing keeps from writing them.
  func watchCondemned(_ call: ServiceCall, _ place: ProcessID) {
    guard steppedAt < 0, call.isAnswered, !call.service.isForTokens,
      let line = Names.line(in: call.body), let send = lines[line],
      send.act == .send || send.act == .schedule, observations.numbers[line]?.count == 1,
      let seen = observations.numbers[line]?.first.flatMap({ observations.notifications[$0] })
    else { return }
    let handle = Names.handle(call.handle, of: call.service)
    let members = database.state.registrations.filter {
      $0.hub == seen.hub && $0.handle == handle && seen.audience[$0.number]?.etag == $0.etag
    }
    for row in members {
      guard let known = observations.condemned[row.number],
        known.member == .init(handle: handle, etag: row.etag), isWritten(known)
      else { continue }
      expect(
        .handlesGo, (seen.owedSince ?? 0) <= known.at + Self.writingTime,
        "\(line) goes to \(Names.short(handle)), which has been dead or replaced since "
          + moment(known.at))
    }
    // Of several with the handle, the one that the push was for goes.
    guard members.count == 1, isCondemned(handle, by: call, at: place, of: send[0]),
      observations.condemned[members[0].number]?.member.etag != members[0].etag
    else { return }
    observations.condemned[members[0].number] = (
      .init(handle: handle, etag: members[0].etag), world.seconds, place
    )
  }

  private func isCondemned(
    _ handle: String, by call: ServiceCall, at place: ProcessID, of hub: Int
  ) -> Bool {
    let lane = Lane(hub: hub, service: call.service)
    let words = observations.handleWords[lane] ?? [:]
    guard call.isDead || call.isTaken, !observations.slandered.contains(call.service),
      !observations.hasChanged([lane], since: 0),
      let trustedAt = words[place]?.trustedAt, trustedAt + Self.writingTime < world.seconds,
      words.values.reduce(0, { $0 + $1.dead }) < Self.freeHandles
    else { return false }
    guard let index = Names.index(ofHandle: handle) else { return false }
    guard call.isDead else { return ledger.replacements[index] != nil }
    // It was not confirmed since.
    guard let died = plan.lines.first(where: { $0.act == .die && $0[1] == index }) else {
      return false
    }
    let last = World.start.addingTimeInterval(Self.time(of: died) - 2)
    return database.state.registrations.allSatisfy { $0.handle != handle || $0.confirmedAt < last }
  }

  /// Nothing has kept the node that heard it from writing it at once. A page whose other pushes wait is
  /// not written yet.
  private func isWritten(_ known: Observations.Condemned) -> Bool {
    let waits: Set<Act> = [
      .silence, .disconnect, .reset, .goAway, .throttle, .fail, .withhold, .forbid,
    ]
    return !observations.hasGoneBack && isItself(known.by, since: known.at)
      && !pushServices.contains { had(waits, $0, since: known.at) }
  }

  func judgeCondemned(_ state: SimulatedDatabase.State) {
    guard steppedAt < 0 else { return }
    for (registration, known) in observations.condemned.sorted(by: { $0.key < $1.key })
    where known.at + Self.writingTime < world.seconds && isWritten(known) {
      let row = state.registrations[number: registration]
      expect(
        .handlesGo, row?.handle != known.member.handle || row?.etag != known.member.etag,
        "registration \(registration) still has \(Names.short(known.member.handle)), which has been "
          + "dead or replaced since \(moment(known.at))")
    }
  }

  /// - Returns: Whether the service of a living handle was one that called it dead.
  func note(
    _ handle: String, of hub: Int, isThere: Bool, _ slandered: inout Slandered
  ) -> Bool {
    guard let index = Names.index(ofHandle: handle) else { return false }
    let service = LifeServices.service(Names.platform(ofHandle: index))
    guard observations.slandered.contains(service) else { return false }
    // An installation and registrations may have the same.
    if !isThere { slandered.gone[Lane(hub: hub, service: service), default: []].insert(handle) }
    return true
  }

  func judge(_ slandered: Slandered) {
    for (lane, gone) in slandered.gone.sorted(by: { $0.key.hub < $1.key.hub }) {
      let words = observations.handleWords[lane] ?? [:]
      let most = words.reduce(0) { $0 + mostGone($1.value, at: $1.key, lane) }
      expect(
        .handlesStay, gone.count <= most,
        "\(gone.count) living handles of hub \(lane.hub) at \(lane.service.rawValue) are gone, and the guard "
          + "lets \(most) go")
    }
  }

  /// Handles that a process's guard may have let go.
  private func mostGone(_ words: HandleWords, at place: ProcessID, _ lane: Lane) -> Int {
    // Pushes in progress when it is stopped have been counted here already.
    let isCalm = processes.contains { $0.place == place && $0.isUndisturbed }
    guard words.dead > Self.freeHandles + (isCalm ? 0 : plan[.page]), words.isOfWhole else {
      return words.dead
    }
    // It begins again with another credential, and forgets after a while.
    let changes = plan.lines.count {
      $0.act == .credential && $0[0] == lane.hub
        && LifeServices.service(Names.platforms[$0[1]]) == lane.service
    }
    let begins = 1 + changes + Int(world.seconds / Self.guardSpan)
    let free = Self.freeHandles * begins
    // A node that was disturbed may not have brought back what went before the alarm.
    return isCalm ? free : max(free, Int(0.3 * Double(words.alive + words.dead)))
  }
}

extension HandleWords {
  fileprivate mutating func note(_ isDead: Bool, at seconds: Double) {
    if !isDead { trustedAt = trustedAt ?? seconds }
    if isDead { dead += 1 } else { alive += 1 }
  }
}
