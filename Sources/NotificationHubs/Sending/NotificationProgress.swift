public import Foundation
import Wire

/// The events of `GET /{hub}/messages/{id}/events`; the data of each is a ``NotificationProgress``.
package enum NotificationEvent {
  package static let progress = "progress"
  /// The last event, with the final state.
  package static let end = "end"
}

/// The progress of a notification: Belfry's reply to `GET /{hub}/messages/{id}/progress`.
public struct NotificationProgress: Hashable, Sendable {
  /// The id of the notification.
  public var notificationID: String
  /// The state of the notification.
  public var state: NotificationTelemetry.State
  /// The number of devices that the notification goes to, as currently known; devices that the push
  /// service has since reported dead may be missing. `nil` if it is unknown.
  public var audience: Int?
  /// The number of devices with an outcome.
  public var done: Int
  /// The number of devices waiting for a retry.
  public var retrying: Int
  /// The number of devices by the wire name of their outcome, over all platforms.
  public var outcomes: [String: Int]
  /// The time at which the notification was accepted or, if it was scheduled, released.
  public var startTime: Date?
  /// The time at which the notification ended; `nil` until then.
  public var endTime: Date?
  /// The time at which a scheduled notification is due.
  public var dueTime: Date?

  /// Creates a progress report.
  public init(
    notificationID: String, state: NotificationTelemetry.State, audience: Int?, done: Int,
    retrying: Int, outcomes: [String: Int], startTime: Date?, endTime: Date?, dueTime: Date?
  ) {
    self.notificationID = notificationID
    self.state = state
    self.audience = audience
    self.done = done
    self.retrying = retrying
    self.outcomes = outcomes
    self.startTime = startTime
    self.endTime = endTime
    self.dueTime = dueTime
  }

  /// The number of devices for which the push services accepted the notification.
  public var succeeded: Int { outcomes[NotificationOutcome.success.name] ?? 0 }
  /// The number of devices for which it failed, not counting duplicates of another registration and
  /// devices left out by an abort.
  public var failed: Int { done - succeeded - NotificationOutcome.unsent(in: outcomes) }

  package var json: [UInt8] {
    JSONWriter.object { writer in
      writer.member("notificationId", notificationID)
      writer.member("state", state.rawValue)
      writer.member("audience", audience)
      writer.member("done", done)
      writer.member("succeeded", succeeded)
      writer.member("failed", failed)
      writer.member("retrying", retrying)
      writer.counts("outcomes", outcomes)
      writer.member("startTime", startTime)
      writer.member("endTime", endTime)
      writer.member("dueTime", dueTime)
    }
  }

  /// Decodes the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let id = root.text("notificationId"), let state = root.text("state"),
      let done = root.count("done")
    else { throw WireFormatError("The reply tells of no progress.") }
    self.init(
      notificationID: id, state: .init(rawValue: state), audience: root.count("audience"),
      done: done, retrying: root.count("retrying") ?? 0, outcomes: root.counts("outcomes"),
      startTime: root.date("startTime"), endTime: root.date("endTime"),
      dueTime: root.date("dueTime"))
  }
}

/// The result of aborting a notification: Belfry's reply to `DELETE /{hub}/messages/{id}`.
public struct NotificationAbort: Hashable, Sendable {
  /// The id of the notification.
  public var notificationID: String
  /// `Canceled`, unless all devices had already been sent to, or some have not been counted yet.
  public var state: NotificationTelemetry.State
  /// The number of devices left out, as far as they have been counted.
  public var aborted: Int

  /// Creates a result.
  public init(notificationID: String, state: NotificationTelemetry.State, aborted: Int) {
    self.notificationID = notificationID
    self.state = state
    self.aborted = aborted
  }

  package var json: [UInt8] {
    JSONWriter.object { writer in
      writer.member("notificationId", notificationID)
      writer.member("state", state.rawValue)
      writer.member("aborted", aborted)
    }
  }

  /// Decodes the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let id = root.text("notificationId"), let state = root.text("state"),
      let aborted = root.count("aborted")
    else { throw WireFormatError("The reply tells of no abort.") }
    self.init(notificationID: id, state: .init(rawValue: state), aborted: aborted)
  }
}
