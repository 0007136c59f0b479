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
    let holders =
      known.count == 1 && isUnchanged(push.handle, since: known[0])
      ? 1
      : max(
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

  /// Whether a notification has one push for a handle, however many registrations have it: a native one
  /// of which none has changed since it was owed.
  private func isUnchanged(_ handle: String, since seen: Observations.Notification) -> Bool {
    // After a move to another server nobody knows who had shared a handle before.
    guard seen.isNative, observations.movedAt < 0 else { return false }
    if seen.isDirect { return true }
    let members = seen.audience.filter { $0.value.handle == handle }
    let state = database.state
    return seen.handles[handle] == Set(members.keys)
      && members.allSatisfy { registration, member in
        state.registrations[number: registration].map {
          $0.handle == handle && $0.etag == member.etag
        } ?? false
      }
  }

  /// Nothing goes out after a notification's time, but what a gateway has already.
  func watchWindow(_ call: ServiceCall, _ place: ProcessID) {
    guard let line = Names.line(in: call.body), let numbers = observations.numbers[line],
      numbers.count == 1, let seen = observations.notifications[numbers[0]],
      let since = seen.datedSince, !observations.lost.contains(line),
      !observations.revived.contains(line)
    else { return }
    let end = since + Double(plan[.window])
    // The time of a machine that slept, or of a clock that was set, is another.
    guard steppedAt < 0, isItself(place, since: end), !wasSuspended,
      observations.pace.slowUntil[place].map({ $0 < end - Self.reactionTime }) ?? true,
      !had([.silence, .disconnect, .reset, .goAway, .withhold], call.service, since: end)
    else { return }
    expect(
      .fullWindow, world.seconds <= end + Self.reactionTime,
      "\(line) is sent to \(Names.short(Names.handle(call.handle, of: call.service))) "
        + "\(Int(world.seconds - since)) s after its time began, which is \(plan[.window]) s")
  }

  /// A machine has slept, whose steady clock stood still.
  private var wasSuspended: Bool { plan.lines.contains { $0.act == .suspend } }

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
      return audience(of: row.record, in: state).contains { $0.handle == push.handle }
    }
  }
}
