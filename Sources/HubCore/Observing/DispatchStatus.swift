package import Foundation
package import NotificationHubs

/// What the dispatcher holds at this moment.
package struct DispatchStatus: Sendable {
  /// One hub's way to one push service.
  package struct Lane: Sendable {
    package let hub: Hub.ID
    package let platform: PushPlatform
    /// Targets in memory whose turn has not come.
    package let waiting: Int
    package let inFlight: Int
    /// `nil` while it does not rest.
    package let restsUntil: Date?
    /// It rests because the push service does not accept the credential.
    package let isRefused: Bool
    /// The push service does not answer, or only with faults.
    package let isDown: Bool
    /// What the push service said to the credential, or why it counts as down.
    package let reason: String?
    /// So many handles were refused as dead that none is removed any more.
    package let isAlarmed: Bool
  }

  /// Notifications are delivered.
  package var isRunning = false
  package var isStopping = false
  /// Notifications that are not finished.
  package var notifications = 0
  /// Notifications that were left alone since the start because their rows cannot be read.
  package var unreadable = 0
  /// Targets in memory.
  package var targets = 0
  /// Targets that wait for another try, of all unfinished notifications.
  package var retries = 0
  package var lanes: [Lane] = []
}

extension Dispatcher {
  package func status() -> DispatchStatus {
    let now = clock.steady()
    var status = DispatchStatus()
    status.isRunning = phase == .running
    status.isStopping = phase == .stopping || phase == .stopped
    status.notifications = jobs.count
    status.unreadable = unreadable
    status.targets = schedule.targetsHeld
    status.retries = jobs.values.reduce(0) { $0 + max(0, $1.retryRows) }
    status.lanes = schedule.laneStates.map { key, lane in
      DispatchStatus.Lane(
        hub: key.hub, platform: key.platform, waiting: lane.waitingTargets,
        inFlight: lane.targets,
        restsUntil: schedule.restsUntil(key, at: now).map { wallTime($0) },
        isRefused: lane.refusal != nil, isDown: outages[key] != nil,
        reason: refusals[key]?.reason ?? outages[key]?.reason,
        isAlarmed: guards[key]?.isAlarmed ?? false)
    }
    // An alarm lasts although nothing is sent.
    let known = Set(status.lanes.map { LaneKey(hub: $0.hub, platform: $0.platform) })
    for (key, found) in guards where found.isAlarmed && !known.contains(key) {
      status.lanes.append(
        .init(
          hub: key.hub, platform: key.platform, waiting: 0, inFlight: 0, restsUntil: nil,
          isRefused: false, isDown: outages[key] != nil, reason: outages[key]?.reason,
          isAlarmed: true))
    }
    status.lanes.sort { ($0.hub, $0.platform.ordinal) < ($1.hub, $1.platform.ordinal) }
    return status
  }
}
