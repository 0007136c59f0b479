public import Foundation
import Wire

/// One line of a list of notifications: what it is and where it stands, without payload and
/// devices. An element of Belfry's answers to `GET /{hub}/messages` and `GET
/// /{hub}/schedulednotifications`.
public struct NotificationSummary: Hashable, Sendable {
  /// How a notification is addressed; a word newer than this build survives.
  public struct Kind: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public var description: String { rawValue }
    /// To one installation, by its implicit tag.
    public static let single = Kind(rawValue: "single")
    /// To a tag expression.
    public static let tag = Kind(rawValue: "tag")
    /// To every device.
    public static let broadcast = Kind(rawValue: "broadcast")
    /// To the devices that the sender named by their handles.
    public static let direct = Kind(rawValue: "direct")
    /// For a time that was set, to a tag expression or every device.
    public static let schedule = Kind(rawValue: "schedule")

    /// Those that a hub of this version knows.
    public static let all: [Kind] = [.single, .tag, .broadcast, .direct, .schedule]
  }

  public var notificationID: String
  public var state: NotificationTelemetry.State
  public var kind: Kind
  /// The send format: `template`, `apple`, `fcmv1` …
  public var format: String
  /// The tag expression; `nil` for a broadcast and a direct send.
  public var tags: String?
  /// When the hub took it.
  public var enqueueTime: Date?
  /// When its delivery began; of a scheduled one, when it was released.
  public var startTime: Date?
  public var endTime: Date?
  /// The time that a scheduled notification was set for.
  public var dueTime: Date?
  /// How many devices had which outcome, by its wire name, on all platforms together.
  public var outcomes: [String: Int]

  public init(
    notificationID: String, state: NotificationTelemetry.State, kind: Kind, format: String,
    tags: String? = nil, enqueueTime: Date? = nil, startTime: Date? = nil, endTime: Date? = nil,
    dueTime: Date? = nil, outcomes: [String: Int] = [:]
  ) {
    self.notificationID = notificationID
    self.state = state
    self.kind = kind
    self.format = format
    self.tags = tags
    self.enqueueTime = enqueueTime
    self.startTime = startTime
    self.endTime = endTime
    self.dueTime = dueTime
    self.outcomes = outcomes
  }

  /// How many devices the push services have taken it for.
  public var succeeded: Int { outcomes[NotificationOutcome.success.name] ?? 0 }
  /// How many devices it failed for; those that another registration stood in for do not count, nor
  /// those that it was not sent to any more.
  public var failed: Int {
    outcomes.values.reduce(0, +) - succeeded - NotificationOutcome.unsent(in: outcomes)
  }
}

/// Which notifications a list has; what is `nil` or empty does not matter.
public struct NotificationQuery: Hashable, Sendable {
  /// Any of these.
  public var states: [NotificationTelemetry.State]
  public var kind: NotificationSummary.Kind?
  /// Named anywhere in the tag expression, letter case aside.
  public var tag: Tag?
  /// The earliest time: of acceptance or, in a list of schedules, of being due.
  public var from: Date?
  /// The time before which it must be.
  public var until: Date?
  /// The most notifications of one page, 1 to 100.
  public var pageSize: Int?

  public init(
    states: [NotificationTelemetry.State] = [], kind: NotificationSummary.Kind? = nil,
    tag: Tag? = nil, from: Date? = nil, until: Date? = nil, pageSize: Int? = nil
  ) {
    self.states = states
    self.kind = kind
    self.tag = tag
    self.from = from
    self.until = until
    self.pageSize = pageSize
  }

  var items: [URLQueryItem] {
    typealias Parameter = NotificationList.Parameter
    let states = states.isEmpty ? nil : states.map(\.rawValue).joined(separator: ",")
    return .given([
      (Parameter.state, states), (Parameter.kind, kind?.rawValue), (Parameter.tag, tag?.rawValue),
      (Parameter.from, from.map(WireDate.milliseconds)),
      (Parameter.until, until.map(WireDate.milliseconds)),
      (WireName.top, pageSize.map(String.init)),
    ])
  }
}

/// The lists' wire form. The token of the next page is in the header `x-ms-continuationtoken`.
package enum NotificationList {
  /// The query parameters that narrow a list.
  package enum Parameter {
    /// One state or several with commas between them, letter case aside.
    package static let state = "state"
    package static let kind = "kind"
    package static let tag = "tag"
    /// Times as ISO 8601 has them.
    package static let from = "from"
    package static let until = "until"
  }

  /// `{"notifications":[…]}`
  /// - Parameter hasMore: A member of that name, if not `nil`: the list was cut.
  package static func json(_ page: [NotificationSummary], hasMore: Bool? = nil) -> [UInt8] {
    JSONWriter.object(capacity: 256 * page.count) { writer in
      writer.objects("notifications", page) { $1.write(to: &$0) }
      writer.member("hasMore", hasMore)
    }
  }

  /// Reads the reply.
  package static func decode(
    _ json: some Collection<UInt8>
  ) throws(WireFormatError) -> [NotificationSummary] {
    guard let items = try JSONValue.parse(json).array("notifications") else {
      throw WireFormatError("The reply is no list of notifications.")
    }
    return items.compactMap(NotificationSummary.init)
  }
}

extension NotificationSummary {
  /// Its members; what is not known is left out.
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("notificationId", notificationID)
    writer.member("state", state.rawValue)
    writer.member("kind", kind.rawValue)
    writer.member("format", format)
    writer.member("tags", tags)
    writer.member("enqueueTime", enqueueTime)
    writer.member("startTime", startTime)
    writer.member("endTime", endTime)
    writer.member("dueTime", dueTime)
    writer.counts("outcomes", outcomes)
  }

  /// - Returns: `nil` without an id, a state and a kind.
  fileprivate init?(_ value: JSONValue) {
    guard let id = value.text("notificationId"), let state = value.text("state"),
      let kind = value.text("kind")
    else { return nil }
    self.init(
      notificationID: id, state: .init(rawValue: state), kind: Kind(rawValue: kind),
      format: value.text("format") ?? "", tags: value.text("tags"),
      enqueueTime: value.date("enqueueTime"), startTime: value.date("startTime"),
      endTime: value.date("endTime"), dueTime: value.date("dueTime"),
      outcomes: value.counts("outcomes"))
  }
}
