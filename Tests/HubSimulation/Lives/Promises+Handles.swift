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
    observations.handleWords[lane, default: [:]][place, default: HandleWords()].note(call.isDead)
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
  fileprivate mutating func note(_ isDead: Bool) {
    if isDead { dead += 1 } else { alive += 1 }
  }
}
