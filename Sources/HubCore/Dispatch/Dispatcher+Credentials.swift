import Foundation
package import NotificationHubs

extension Dispatcher {
  /// How soon a credential that another process has replaced is noticed, in seconds.
  private static let credentialPeriod = 1.0

  /// To be told when a push credential was replaced or removed: a resting lane tries at once.
  package func credentialChanged(_ platform: PushPlatform, hub: Hub.ID) {
    replaced(LaneKey(hub: hub, platform: platform))
    pump()
  }

  /// A lane has another credential: what waited because of the old one goes on at once, in its rows
  /// as well, which have been due all the while.
  func replaced(_ lane: LaneKey) {
    guards[lane] = nil
    recover(lane)
  }

  func recover(_ lane: LaneKey) {
    schedule.recover(lane)
    refusals[lane] = nil
  }

  /// Looks again and again, while notifications wait behind a refused credential, whether another
  /// process has replaced it.
  func watchCredentials(at now: Date) {
    let lanes = jobs.isEmpty ? [] : schedule.refusedLanes(at: now)
    guard !lanes.isEmpty else {
      credentialLook = nil
      return
    }
    let due = credentialLook ?? now.addingTimeInterval(Self.credentialPeriod)
    guard due <= now, !isLookingAtCredentials else {
      credentialLook = due
      return
    }
    credentialLook = now.addingTimeInterval(Self.credentialPeriod)
    isLookingAtCredentials = true
    spawn { [self] in
      let answer = await ask { [routes] in
        try await routes.refresh()
        var found: [LaneKey: Date?] = [:]
        for lane in lanes {
          let route = try await routes.route(lane)
          if case .open(_, let credential) = route {
            found[lane] = .some(credential)
          } else {
            found[lane] = .some(nil)
          }
        }
        return found
      }
      guard case .value(let found) = answer else { return .credentials([:]) }
      return .credentials(found)
    }
  }

  func takeCredentials(_ found: [LaneKey: Date?]) {
    isLookingAtCredentials = false
    for (lane, credential) in found where credentials[lane] != credential { replaced(lane) }
  }
}
