package import Foundation
package import NotificationHubs

/// An event that an operator should know of; goes to the log. Without handles, payloads and secrets.
package enum DispatchEvent: Sendable, CustomStringConvertible {
  /// So large a share of the latest answers calls handles dead that the credential or the push
  /// service is more likely at fault than they: removal has stopped
  /// (docs/protocol/push-services/README.md, section 3, rule 4).
  case deadHandlesSuspicious(hub: Hub.ID, platform: PushPlatform, dead: Int, of: Int)
  /// Registrations that had been removed shortly before that are back.
  case handlesRestored(hub: Hub.ID, platform: PushPlatform, count: Int)
  /// The push service does not accept the credential; sending goes on with a probe later.
  case credentialPaused(hub: Hub.ID, platform: PushPlatform, until: Date, reason: String?)
  /// The push service does not answer, or only with faults, and not for the first time; sending
  /// goes on with a probe now and then. Told every ten minutes while it lasts.
  case serviceDown(hub: Hub.ID, platform: PushPlatform, until: Date, reason: String?)
  /// A push service that ``serviceDown`` was reported of accepts pushes again.
  case serviceBack(hub: Hub.ID, platform: PushPlatform)
  /// A stored registration that cannot be read: of a notification it has its outcome, and the
  /// others go on; a list leaves it out.
  case unreadableTarget(hub: Hub.ID, NotificationID?, registration: RegistrationID, reason: String)
  /// A stored notification that cannot be read; it stays as it is, and the others go on.
  case unreadableNotification(UnreadableNotification)
  /// A notification has its final state; the number of devices that this process has processed, by
  /// outcome, and the time that it took, in seconds.
  case finished(
    hub: Hub.ID, NotificationID, state: NotificationState, counts: [NotificationOutcome: Int],
    seconds: Double)
  /// Another node has taken over a part of a notification that this one had, because it did not
  /// hear from it in time.
  case leaseLost(hub: Hub.ID, NotificationID, part: Int)
  /// The store refused; the same step is tried again after so many seconds.
  case storeTrouble(String, retryIn: Double)

  package var description: String {
    switch self {
    case .deadHandlesSuspicious(let hub, let platform, let dead, let all):
      "hub \(hub), \(platform.rawValue): of the last \(all) answers \(dead) called a handle dead; "
        + "none is removed any more, and what was removed with them comes back. Check that the "
        + "credential fits the app and environment, and the push service's own status page"
    case .handlesRestored(let hub, let platform, let count):
      "hub \(hub), \(platform.rawValue): \(count) registrations are back whose handles were called "
        + "dead shortly before removal stopped"
    case .credentialPaused(let hub, let platform, let until, let reason):
      "hub \(hub), \(platform.rawValue): the push service refuses the credential"
        + (reason.map { " (\($0))" } ?? "")
        + "; paused until \(until.formatted(.iso8601)), or until the credential is replaced"
    case .serviceDown(let hub, let platform, let until, let reason):
      "hub \(hub), \(platform.rawValue): the push service cannot be reached or fails"
        + (reason.map { " (\($0))" } ?? "")
        + "; sends wait within their time, the next try is at \(until.formatted(.iso8601))"
    case .serviceBack(let hub, let platform):
      "hub \(hub), \(platform.rawValue): the push service answers again"
    case .unreadableTarget(let hub, let id, let registration, let reason):
      "hub \(hub)\(id.map { ", \($0.rawValue)" } ?? ""): registration \(registration) cannot be read "
        + "(\(reason)); it \(id == nil ? "is left out" : "counts as UnknownError"). Delete it, or have "
        + "its device register again"
    case .unreadableNotification(let lost):
      "hub \(lost.hub), \(lost.id.rawValue): the stored notification cannot be read (\(lost.reason)); "
        + "it is not delivered, and stays as it is to be repaired or restored from a backup"
    case .finished(_, let id, let state, let counts, _):
      "\(id.rawValue) \(state.rawValue), \(counts.values.reduce(0, +)) devices"
    case .leaseLost(let hub, let id, let part):
      "hub \(hub), \(id.rawValue): another node has taken part \(part) over, since this one was not heard "
        + "of in time; at most the pages under way are sent twice, with the same ids"
    case .storeTrouble(let what, let seconds):
      "the store refused: \(what). Trying again in \(Int(seconds.rounded(.up))) s"
    }
  }
}

/// The notifications, targets and lanes of the dispatcher at this moment.
package struct DispatchStatus: Sendable {
  /// The delivery queue from one hub to one push service.
  package struct Lane: Sendable {
    package let hub: Hub.ID
    package let platform: PushPlatform
    /// Targets in memory that are not under way.
    package let waiting: Int
    package let inFlight: Int
    /// `nil` while it does not rest.
    package let restsUntil: Date?
    /// It rests because the push service does not accept the credential.
    package let isRefused: Bool
    /// The push service does not answer, or only with faults.
    package let isDown: Bool
    /// The push service's answer to the credential, or the reason why it counts as down.
    package let reason: String?
    /// The removal of handles has stopped, because too many were reported dead.
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

extension DispatchStatus {
  init(_ jobs: DispatchJobs, _ schedule: DispatchSchedule, at now: DispatchMoment) {
    notifications = jobs.count
    targets = schedule.targetsHeld
    retries = jobs.all.values.reduce(0) { $0 + max(0, $1.retryRows) }
    lanes = schedule.lanes.known.compactMap { key in
      guard let lane = schedule.lanes[key] else { return nil }
      return Lane(
        hub: key.hub, platform: key.platform, waiting: lane.queue.waitingTargets,
        inFlight: lane.queue.targets,
        restsUntil: schedule.lanes.restsUntil(key, at: now.steady).map(now.wall),
        isRefused: lane.refusal != nil, isDown: lane.isServiceDown, reason: lane.reason,
        isAlarmed: lane.alarm != nil)
    }
  }
}
