import Foundation
import NotificationHubs
import Wire

/// The header `ServiceBusNotification-ScheduleTime` (docs/protocol/rest.md, section 5.6).
enum ScheduleTime {
  /// - Throws: ``HubFailure`` with 400.
  static func read(_ header: String?, now: Date, limits: HubLimits) throws -> Date {
    guard let text = header?.trimmingBlanks, !text.isEmpty else {
      throw HubFailure(
        status: 400,
        message: "The header ServiceBusNotification-ScheduleTime is missing; it says when to "
          + "send, in UTC: 2030-01-05T10:00:00")
    }
    guard let due = WireDate.parse(text) else {
      throw HubFailure(
        status: 400,
        message: "The ServiceBusNotification-ScheduleTime is no date; write it in UTC as "
          + "2030-01-05T10:00:00")
    }
    guard due.timeIntervalSince(now) <= limits.scheduleHorizon else {
      throw HubFailure(
        status: 400,
        message: "The ServiceBusNotification-ScheduleTime is more than "
          + "\(Int(limits.scheduleHorizon / 86_400)) days ahead")
    }
    return due
  }
}

/// Reads what senders and templates say of how long a push may wait (docs/protocol/rest.md,
/// section 5.1 and docs/protocol/templates.md, section 7).
package enum ExpiryText {
  /// - Returns: Whole seconds since 1970 for a date that ``WireDate`` reads, 0 for `0`; `nil` for
  ///   any other text.
  package static func seconds(_ text: String) -> Int64? {
    let text = text.trimmingBlanks
    if text == "0" { return 0 }
    return WireDate.parse(text).map { Int64($0.timeIntervalSince1970.rounded(.down)) }
  }
}
