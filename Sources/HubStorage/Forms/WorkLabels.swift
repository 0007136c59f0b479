import HubCore
import NotificationHubs
import SQLDatabase

extension JobLabel {
  /// Work on behalf of a request; outside of a request, work of the server itself.
  static func asked(_ share: Share = .others, rows: Int = 1, bytes: Int = 0) -> JobLabel {
    let admission = Admission.current
    return JobLabel(
      share, hub: admission?.hub.id ?? 0, caller: admission?.caller.name, rows: rows, bytes: bytes)
  }

  /// The assumed number of rows of a change to a device whose registrations have not been counted.
  static let unknownRows = 64

  /// Work of the dispatcher, whichever request has triggered it.
  static func delivery(of hub: Hub.ID = 0, rows: Int = 1) -> JobLabel {
    JobLabel(.sends, hub: hub, rows: rows)
  }
}

extension StoreError {
  init(_ refusal: JobRefusal) {
    self =
      switch refusal {
      case .full: .busy
      case .closed: .closed
      }
  }
}

extension Checkpoint {
  /// The label under which it queues.
  var label: JobLabel {
    let kept = failures.count + successes.count + retries.count + settledRetries.count
    let removed = deadHandles.count + replacedHandles.count
    return .delivery(of: hub, rows: 1 + counts.count + kept + environments.count + 8 * removed)
  }
}

extension Submission {
  /// The label under which it queues.
  var label: JobLabel {
    .asked(.sends, rows: 2 + targets.count, bytes: record.request.body.count + targets.count * 256)
  }
}

extension PreparedRegistration {
  /// Approximate number of rows that writing it touches: its own, and one for each tag.
  var rows: Int { 1 + tags.count }
  /// Approximate size in bytes.
  var bytes: Int {
    handle.utf8.count + (variables?.count ?? 0) + (template?.body.utf8.count ?? 0)
      + tags.reduce(0) { $0 + 32 + $1.name.utf8.count }
  }
}

extension [PreparedRegistration] {
  /// The label under which a device with these registrations queues.
  var label: JobLabel {
    .asked(
      .devices, rows: reduce(1) { $0 + $1.rows }, bytes: reduce(256) { $0 + $1.bytes })
  }
}

extension StoreStatistics {
  mutating func add(_ counts: JobCounts) {
    waiting = counts.waiting
    refused = counts.refused
    dropped = counts.dropped
  }
}
