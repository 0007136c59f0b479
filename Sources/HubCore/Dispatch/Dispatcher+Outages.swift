import Foundation
import NotificationHubs

/// A push service that is down, as one lane has met it.
struct Outage: Sendable {
  /// What was said, or why nothing was.
  var reason: String?
  /// When the log was told; `nil` while the failure may still be a passing one.
  var reportedAt: Date?
}

extension Dispatcher {
  /// An outage that lasts is logged this often, in seconds.
  private static let outagePeriod = 600.0

  /// A lane rests because its push service is down.
  func noteOutage(_ lane: LaneKey, _ settlement: PartSettlement, at now: Date) {
    var outage = outages[lane] ?? Outage()
    outage.reason = settlement.fault?.reason
    defer { outages[lane] = outage }
    // The first failure may be a connection that had to be made again.
    guard let state = schedule.lanes[lane], state.failures > 1, let until = state.restsUntil,
      outage.reportedAt.map({ now.timeIntervalSince($0) >= Self.outagePeriod }) ?? true
    else { return }
    outage.reportedAt = now
    report(
      .serviceDown(
        hub: lane.hub, platform: lane.platform, until: wallTime(until), reason: outage.reason))
  }

  /// A lane's push service has taken something.
  func noteRecovery(_ lane: LaneKey) {
    guard let outage = outages.removeValue(forKey: lane), outage.reportedAt != nil else { return }
    report(.serviceBack(hub: lane.hub, platform: lane.platform))
  }
}

extension NotificationOutcome {
  /// Whether it speaks of the service or the way to it, not of the push.
  var isFaultOfService: Bool {
    switch self {
    case .pnsUnreachable, .pnsServerError, .pnsUnavailable, .tokenProviderUnreachable,
      .tokenProviderInterfaceError:
      true
    default: false
    }
  }
}
