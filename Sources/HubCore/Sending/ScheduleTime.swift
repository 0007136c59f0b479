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
