import Foundation
import NotificationHubs

/// What becomes of handles that push services have called dead or replaced.
extension Dispatcher {
  /// How many registrations are brought back in one transaction.
  private static let slice = 500

  /// Leaves handles alone when the push service's word about them is in doubt.
  func judge(
    _ outcome: inout PageOutcome, of lane: LaneKey, _ settlement: PartSettlement, at now: Date
  ) {
    // What a credential has brought that was replaced meanwhile says nothing about the lane.
    guard settlement.credential == credentials[lane] else { return outcome.spare(lane.platform) }
    let unknown = DeadHandleGuard(
      credential: settlement.credential, share: limits.deadHandleShare)
    let verdict = guards[lane, default: unknown].judge(
      settlement.judged, condemned: outcome.dead.count + outcome.replaced.count,
      hadSuccess: settlement.hadSuccess, credential: settlement.credential, at: now)
    if verdict == .remove { return }
    outcome.spare(lane.platform)
    guard verdict == .alarm, let found = guards[lane] else { return }
    report(
      .deadHandlesSuspicious(
        hub: lane.hub, platform: lane.platform, dead: found.condemned, of: found.judged))
    bringBack(lane, since: found.doubtsSince)
  }

  /// The alarm may have come after a page was judged and before it is recorded.
  func sparingDoubted(_ taken: Checkpoint) -> Checkpoint {
    guard !taken.deadHandles.isEmpty || !taken.replacedHandles.isEmpty else { return taken }
    var checkpoint = taken
    let hub = checkpoint.hub
    func isDoubted(_ handle: Checkpoint.Condemned) -> Bool {
      guards[LaneKey(hub: hub, platform: handle.platform)]?.isAlarmed ?? false
    }
    let spared = checkpoint.deadHandles.filter(isDoubted)
    checkpoint.spared.formUnion(spared.map(\.registration))
    checkpoint.deadHandles.removeAll(where: isDoubted)
    checkpoint.replacedHandles.removeAll(where: isDoubted)
    return checkpoint
  }

  /// Counts what has gone; when the alarm came while that was being written, it comes back.
  func noteRemovals(of checkpoint: Checkpoint) {
    var removed: [PushPlatform: Int] = [:]
    for handle in checkpoint.deadHandles + checkpoint.replacedHandles {
      removed[handle.platform, default: 0] += 1
    }
    for (platform, count) in removed {
      let lane = LaneKey(hub: checkpoint.hub, platform: platform)
      metrics.handles(removed: count, of: lane)
      if let found = guards[lane], found.isAlarmed { bringBack(lane, since: found.doubtsSince) }
    }
  }

  private func bringBack(_ lane: LaneKey, since: Date) {
    spawn { [self] in
      var count = 0
      let wave = RemovalWave(platform: lane.platform, since: since, isDoubted: true)
      while true {
        let answer = await ask { [store] in
          try await store.restoreRemoved(wave, hub: lane.hub, asOf: clock.now(), limit: Self.slice)
        }
        guard case .value(let part) = answer else { return .nothing }
        count += part.restored
        if !part.hasMore { return .broughtBack(lane, count) }
      }
    }
  }

  func takeBroughtBack(_ lane: LaneKey, _ count: Int) {
    guard count > 0 else { return }
    metrics.handles(restored: count, of: lane)
    report(.handlesRestored(hub: lane.hub, platform: lane.platform, count: count))
  }
}
