public import Foundation
import Wire

/// The events of `GET /{hub}/messages/{id}/events`; the data of each is a ``NotificationProgress``.
package enum NotificationEvent {
  package static let progress = "progress"
  /// With the final state. Nothing comes after it.
  package static let end = "end"
}

/// How far a notification has come: Belfry's answer to `GET /{hub}/messages/{id}/progress`.
public struct NotificationProgress: Hashable, Sendable {
  public var notificationID: String
  public var state: NotificationTelemetry.State
  /// How many devices it goes to, as far as the hub knows now; devices that the push service has
  /// reported dead meanwhile may be missing. `nil` when nobody knows.
  public var audience: Int?
  /// Devices that have their outcome.
  public var done: Int
  /// Devices that wait to be tried again.
  public var retrying: Int
  /// How many devices had which outcome, by its wire name, on all platforms together.
  public var outcomes: [String: Int]
  /// When it was accepted or, if scheduled, released.
  public var startTime: Date?
  public var endTime: Date?
  /// When a scheduled notification is due.
  public var dueTime: Date?

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

  /// How many devices the push services have taken it for.
  public var succeeded: Int { outcomes[NotificationOutcome.success.name] ?? 0 }
  /// How many devices it failed for; those that another registration stood in for do not count, nor
  /// those that it was not sent to any more.
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

  /// Reads the reply.
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

/// What came of calling a notification off: Belfry's answer to `DELETE /{hub}/messages/{id}`.
public struct NotificationAbort: Hashable, Sendable {
  public var notificationID: String
  /// `Canceled`, unless all its devices had been sent to already, or some have not been counted
  /// yet.
  public var state: NotificationTelemetry.State
  /// How many devices were not sent to, as far as they have been counted.
  public var aborted: Int

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

  /// Reads the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let id = root.text("notificationId"), let state = root.text("state"),
      let aborted = root.count("aborted")
    else { throw WireFormatError("The reply tells of no abort.") }
    self.init(notificationID: id, state: .init(rawValue: state), aborted: aborted)
  }
}
