public import Foundation
import Wire

/// A type with the words of a notification.
package protocol NotificationWords {
  var title: String? { get set }
  var text: String? { get set }
  var textState: NotificationSummary.TextState? { get set }
}

/// An entry in a list of notifications: their description and state, without payload and devices.
/// An element of Belfry's replies to `GET /{hub}/messages` and `GET /{hub}/schedulednotifications`.
public struct NotificationSummary: NotificationWords, Hashable, Sendable {
  /// The way in which a notification is addressed; values newer than this build are preserved.
  public struct Kind: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The value on the wire.
    public let rawValue: String
    /// Creates a kind from its wire value.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The value on the wire.
    public var description: String { rawValue }
    /// A notification to one installation, by its implicit tag.
    public static let single = Kind(rawValue: "single")
    /// A notification to a tag expression.
    public static let tag = Kind(rawValue: "tag")
    /// A notification to every device.
    public static let broadcast = Kind(rawValue: "broadcast")
    /// A notification to devices that the sender addressed by their handles.
    public static let direct = Kind(rawValue: "direct")
    /// A notification scheduled for later, to a tag expression or every device.
    public static let schedule = Kind(rawValue: "schedule")

    /// The kinds that a hub of this version knows.
    public static let all: [Kind] = [.single, .tag, .broadcast, .direct, .schedule]
  }

  /// The id of the notification.
  public var notificationID: String
  /// The state of the notification.
  public var state: NotificationTelemetry.State
  /// The way in which it is addressed.
  public var kind: Kind
  /// The send format, such as `template`, `apple` or `fcmv1`.
  public var format: String
  /// The tag expression; `nil` for a broadcast and a direct send.
  public var tags: String?
  /// The time at which the hub accepted the notification.
  public var enqueueTime: Date?
  /// The time at which delivery began or, if it was scheduled, at which it was released.
  public var startTime: Date?
  /// The time at which the notification ended; `nil` until then.
  public var endTime: Date?
  /// The time for which the notification was scheduled.
  public var dueTime: Date?
  /// The number of devices by the wire name of their outcome, over all platforms.
  public var outcomes: [String: Int]
  /// The title that devices show, at most 200 characters; `nil` if there is none to show.
  public var title: String?
  /// The text that devices show, at most 200 characters; `nil` if there is none to show.
  public var text: String?
  /// Whether ``title`` and ``text`` are what it says, or why they are missing; `nil` if that is not
  /// known, as of templates whose properties have other names.
  public var textState: TextState?

  /// Whether the words of a notification are shown; values newer than this build are preserved.
  public struct TextState: RawRepresentable, Hashable, Sendable {
    /// The value on the wire.
    public let rawValue: String
    /// Creates a state from its wire value.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The notification has words, and they are shown.
    public static let kept = TextState(rawValue: "kept")
    /// The server does not keep the words, or no longer does.
    public static let off = TextState(rawValue: "off")
    /// The words are for their device alone.
    public static let sealed = TextState(rawValue: "sealed")
    /// The notification has no words: it is for the app.
    public static let silent = TextState(rawValue: "silent")
  }

  /// Creates a summary.
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

  /// The number of devices for which the push services accepted the notification.
  public var succeeded: Int { outcomes[NotificationOutcome.success.name] ?? 0 }
  /// The number of devices for which it failed, not counting duplicates of another registration and
  /// devices left out by an abort.
  public var failed: Int {
    outcomes.values.reduce(0, +) - succeeded - NotificationOutcome.unsent(in: outcomes)
  }
}

/// The criteria for a list of notifications; `nil` or empty matches any value.
public struct NotificationQuery: Hashable, Sendable {
  /// The states, of which a notification must have one.
  public var states: [NotificationTelemetry.State]
  /// The way in which the notifications are addressed.
  public var kind: NotificationSummary.Kind?
  /// A tag that must occur anywhere in the tag expression, in any letter case.
  public var tag: Tag?
  /// A part of the title, the text, the tag expression or the id, in any letter case.
  public var search: String?
  /// The earliest time, inclusive; compared with the time of acceptance or, in a list of schedules,
  /// the due time.
  public var from: Date?
  /// The latest time, exclusive.
  public var until: Date?
  /// The maximum number of notifications per page, 1 to 100.
  public var pageSize: Int?

  /// Creates a query; without arguments it matches every notification.
  public init(
    states: [NotificationTelemetry.State] = [], kind: NotificationSummary.Kind? = nil,
    tag: Tag? = nil, search: String? = nil, from: Date? = nil, until: Date? = nil,
    pageSize: Int? = nil
  ) {
    self.search = search
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
      (Parameter.search, search),
      (Parameter.from, from.map(WireDate.milliseconds)),
      (Parameter.until, until.map(WireDate.milliseconds)),
      (WireName.top, pageSize.map(String.init)),
    ])
  }
}

/// The wire format of the lists. The continuation token is in the header `x-ms-continuationtoken`.
package enum NotificationList {
  /// The query parameters that filter a list.
  package enum Parameter {
    /// One or more states, separated by commas, in any letter case.
    package static let state = "state"
    package static let kind = "kind"
    package static let tag = "tag"
    /// A part of the title, the text, the tags or the id.
    package static let search = "q"
    /// Times in ISO 8601.
    package static let from = "from"
    package static let until = "until"
  }

  /// `{"notifications":[…]}`
  /// - Parameters:
  ///   - hasMore: The value of the member `hasMore`, which says that the list is truncated; `nil`
  ///     leaves it out.
  ///   - unsearched: Number of notifications that a search passed over without their text; 0 leaves
  ///     it out.
  package static func json(
    _ page: [NotificationSummary], hasMore: Bool? = nil, unsearched: Int = 0
  ) -> [UInt8] {
    JSONWriter.object(capacity: 256 * page.count) { writer in
      writer.objects("notifications", page) { $1.write(to: &$0) }
      writer.member("hasMore", hasMore)
      if unsearched > 0 { writer.member("unsearched", unsearched) }
    }
  }

  /// Decodes the reply.
  package static func decode(
    _ json: some Collection<UInt8>
  ) throws(WireFormatError) -> (notifications: [NotificationSummary], unsearched: Int) {
    let reply = try JSONValue.parse(json)
    guard let items = reply.array("notifications") else {
      throw WireFormatError("The reply is no list of notifications.")
    }
    return (items.compactMap(NotificationSummary.init), reply.count("unsearched") ?? 0)
  }
}

extension NotificationSummary {
  /// Writes the members, leaving out those that are unknown.
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
    writer.member("title", title)
    writer.member("text", text)
    writer.member("textState", textState?.rawValue)
  }

  /// - Returns: `nil` if the id, the state or the kind is missing.
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
    title = value.text("title")
    text = value.text("text")
    textState = value.text("textState").map(TextState.init(rawValue:))
  }
}
