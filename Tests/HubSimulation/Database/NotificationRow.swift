package import Foundation
package import HubCore
package import NotificationHubs

/// A notification with all that is kept of it.
package struct NotificationRow: NumberedRow {
  package let number: Int64
  /// As it was accepted, in the state in which it is now. How far its work has come stands in
  /// ``parts``.
  package var record: NotificationRecord
  package var targets: [DirectTarget]
  /// In the order of their numbers; none before its time has come.
  package var parts: [WorkPart] = []
  /// By the registration.
  package var failures: [RegistrationID: KeptFailure] = [:]
  /// When the last of ``failures`` was kept.
  package var keptAt: Date?
  /// The last commit before it was accepted, or released.
  package var acceptance: Int64

  package var isActive: Bool { record.endedAt == nil }
  /// There is something to deliver.
  package var isOpen: Bool { record.endedAt == nil && record.state != .scheduled }

  /// As readers see it.
  /// - Parameter part: That whose cursor and counts it has; `nil` for all together.
  func record(of part: Int? = nil) -> NotificationRecord {
    let meant = parts.filter { part == nil || $0.part == part }
    var record = record
    record.cursor = meant.map(\.position).max() ?? 0
    record.isAudienceRead = !meant.isEmpty && meant.allSatisfy(\.isRead)
    record.keeping = OutcomeKeeping.allCases.last { one in meant.contains { $0.keeping == one } }
    if let part, part != 0 { record.counts = [:] }
    for part in meant { record.counts.merge(part.counts, uniquingKeysWith: +) }
    return record
  }

  func index(of part: Int) -> Int? { parts.firstIndex { $0.part == part } }

  /// The target of a direct send with a number, from 1; `nil` when it is of another send.
  func target(_ number: RegistrationID) -> (platform: PushPlatform, handle: String)? {
    guard record.request.isDirect, case .native(let platform) = record.request.format,
      (1...targets.count).contains(Int(number))
    else { return nil }
    return (platform, targets[Int(number) - 1].handle)
  }
}

/// A part of the work of a notification: 0 is all of it, of a direct send or a narrow audience. A
/// wide audience has a part for each slot, from 1, and behind them one for handles that several have.
package struct WorkPart: Sendable {
  package let part: Int
  /// The node that does it; `nil` when it waits for one.
  package var owner: Int64?
  /// Rises whenever it is claimed.
  package var epoch: Int64 = 0
  /// The claim that gave it to its owner.
  package var claim: Int64?
  /// The lease and number of its last checkpoint: one that is asked for again is not written again.
  var recorded: Checkpoint.Mark?
  package var position: RegistrationID
  package var isRead: Bool
  package var isDone = false
  package var keeping: OutcomeKeeping?
  package var counts: [OutcomeKey: Int] = [:]
  package var retries: [RegistrationID: Checkpoint.Retry] = [:]

  package var lease: WorkLease { WorkLease(part: part, epoch: epoch) }

  /// Whether it is left for a node to do.
  func isOpen(at node: Int64?) -> Bool { owner == node && !isDone }
}

extension Checkpoint {
  struct Mark: Hashable, Sendable {
    let lease: WorkLease
    let number: Int64
  }

  var mark: Mark? { number.map { Mark(lease: lease, number: $0) } }
}

/// An outcome that is kept for one device.
package struct KeptFailure: Sendable {
  package var failure: Checkpoint.Failure
  package var at: Date
  /// The device, once its registration has gone with the failure.
  package var device: KeptDevice?
}

package struct KeptDevice: Sendable {
  package var platform: PushPlatform
  package var handle: String
  package var registrationID: String
  package var installationID: String?
}

package struct IdempotencyRow: Sendable {
  package let claim: IdempotencyClaim
  package let notification: NotificationID
}
