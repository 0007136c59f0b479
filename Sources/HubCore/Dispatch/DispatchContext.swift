import Foundation
import NotificationHubs
import Synchronization

/// What all pages of one notification share; made once, read from many tasks.
final class DispatchContext: Sendable {
  let id: NotificationID
  let hub: Hub.ID
  let lease: WorkLease
  /// The number under which this process has claimed it; see ``WorkStore/nodeID``.
  let node: Int64
  let request: NotificationRequest
  let seed: PushIDSeed
  let messages: MessageBook
  /// When the hub gives up (docs/protocol/push-services/README.md, section 3, rule 1), in the time
  /// of ``HubClock/steady``, as all moments that the dispatcher compares.
  let deadline: Date
  /// By the machine's clock.
  let releasedAt: Date
  let keeping: OutcomeKeeping
  let query: AudienceQuery
  /// How far ``HubClock/steady`` was ahead of the machine's clock when this was made, in seconds.
  private let offset: Double
  private let aborted: Atomic<Bool>

  init(_ record: NotificationRecord, limits: DispatchLimits, at now: DispatchMoment) {
    id = record.id
    node = now.node
    hub = record.hub
    lease = record.lease
    request = record.request
    seed = PushIDSeed(record.id)
    messages = MessageBook(record.request)
    offset = now.steady.timeIntervalSince(now.wall)
    // A clock that was set back since then must not make the window longer.
    let elapsed = max(
      0,
      record.steadyRelease.map { now.steady.timeIntervalSince($0) }
        ?? now.wall.timeIntervalSince(record.releasedAt))
    deadline = now.steady.addingTimeInterval(max(0, limits.window - elapsed))
    releasedAt = record.releasedAt
    keeping = limits.keeping
    var query = record.audience
    query.part = record.lease.part
    self.query = query
    aborted = Atomic(record.abortedAt != nil)
  }

  /// Its sender has called it off.
  var isAborted: Bool { aborted.load(ordering: .relaxed) }

  /// Ends it for every page, those that tasks have in hand included.
  func abort() { aborted.store(true, ordering: .relaxed) }

  /// Whether nothing of the notification is sent any more.
  func isOver(at now: Date) -> Bool { isAborted || now >= deadline }

  /// What becomes of a target that is not sent to because the notification, or its message, is
  /// over.
  func unsent(_ reason: String) -> (outcome: NotificationOutcome, reason: String) {
    isAborted
      ? (.aborted, "the notification was aborted") : (.abandonedNotificationMessages, reason)
  }

  var isTemplate: Bool { request.format == .template }

  /// The lane of a native send.
  var lane: LaneKey? {
    guard case .native(let platform) = request.format else { return nil }
    return LaneKey(hub: hub, platform: platform)
  }

  /// Until when a message may be tried again; `nil` for one that asks for a single try.
  func lastTry(_ body: PushBody) -> Date? {
    if isAborted { return .distantPast }
    guard let expiry = body.expiry else { return deadline }
    guard expiry > 0 else { return nil }
    return min(deadline, moment(ofExpiry: expiry))
  }

  /// Whether a message's own time ran out while it waited here. One that was over when it came has
  /// its single try.
  func isOver(_ body: PushBody, at now: Date) -> Bool {
    guard let expiry = body.expiry, Double(expiry) > releasedAt.timeIntervalSince1970 else {
      return false
    }
    return moment(ofExpiry: expiry) <= now
  }

  /// From here on nothing of the notification is sent: its window is over, or the time of a native
  /// message, or it was aborted.
  var end: Date {
    if isAborted { return .distantPast }
    guard case .native(let platform) = request.format,
      let expiry = messages.native(platform).expiry,
      Double(expiry) > releasedAt.timeIntervalSince1970
    else { return deadline }
    return min(deadline, moment(ofExpiry: expiry))
  }

  private func moment(ofExpiry seconds: Int64) -> Date {
    Date(timeIntervalSince1970: Double(seconds)).addingTimeInterval(offset)
  }
}

extension NotificationRecord {
  /// Which registrations it goes to; nobody for a direct send.
  package var audience: AudienceQuery {
    let kind: AudienceQuery.Kind =
      switch request.format {
      case .template: .template
      case .native(let platform): .native(platform)
      }
    return AudienceQuery(
      hub: hub, kind: kind, expression: request.expression, asOf: releasedAt, notification: id)
  }
}

/// How much the dispatcher holds and how long it waits. The numbers bound its memory: a target in
/// flight costs about 400 bytes with its handle, request and result.
package struct DispatchLimits: Sendable {
  /// Targets of one page, at most.
  package var pageSize = 1000
  /// Pages of one notification that are not recorded yet, and those of all notifications of a hub
  /// to one push service together; what a crash may repeat at most. Where connections carry more
  /// than ``laneTargets``, so many more.
  package var pagesPerNotification = 8
  /// Targets of all pages together. No hub gets more than half of it.
  package var targets = 64_000
  /// Targets under way to one push service of one hub, where its gateway does not say how many its
  /// connections carry.
  package var laneTargets = 4_000
  /// Targets that may wait in memory for a full lane before nothing more is read for it; four times
  /// as many where notifications come that have not been looked at.
  package var laneBacklog = 2_000
  /// Parts of notifications that one node works on at a time, where nodes share the work.
  package var claimedParts = 256
  /// Those on top of which nothing is left but retries.
  package var waitingParts = 16_384
  /// Retries under way, of all notifications. No lane gets more than half of it.
  package var retryTargets = 8_000
  /// How long a full lane may go without an answer before what waits for it in memory becomes
  /// retry rows, in seconds.
  package var stall = 15.0
  /// How long a notification lives in the hub, in seconds (docs/protocol/push-services/README.md,
  /// section 3, rule 1).
  package var window = 1_800.0

  /// Which outcomes are kept device by device.
  package var keeping = OutcomeKeeping.failures

  /// The share of condemned handles above which none is removed; see `DeadHandleGuard`. 1 never
  /// stops.
  package var deadHandleShare = 0.3

  package init() {}
}
