import Foundation
import HubCore
import NotificationHubs

/// The promises that are checked at every push.
extension Life {
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
    if let at = send?.cancelledAt, known.count < 2 {
      expect(
        .cancelledIsSilent, push.seconds < at, "\(line) is sent, and was cancelled at \(moment(at))"
      )
    }
    // A push that a gateway has already goes out. What was sent again under a key whose time was over is
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
      database.state.registrations.count { $0.handle == push.handle && $0.isNative })
    let claims = observations.isDisturbed ? Int(known.reduce(0) { $0 + $1.claims }) : 1
    let most = max(1, holders) * (max(1, claims) + observations.unheard[place, default: 0])
    expect(
      .noRepeats,
      observations.pushes[place]?[push.id] ?? 0 <= most || observations.lost.contains(line),
      "\(line) goes to \(push.handle) \(observations.pushes[place]?[push.id] ?? 0) times; it was claimed "
        + "\(claims) times, by \(holders) registrations, and \(observations.unheard[place] ?? 0) "
        + "answers were lost")
  }

  /// A node that works on a notification of an erased user learns of that from its next checkpoint.
  private func isErased(_ seen: Observations.Notification) -> Bool {
    mayBeErased(seen.line, since: seen.since)
      && database.state.notifications[number: seen.number] == nil
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
}
