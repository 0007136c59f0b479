public import Foundation
import Wire

/// A line of the activity log: who has changed or sent what, from where, and what came of it.
public struct HubActivity: Hashable, Sendable {
  /// How somebody has shown who they are.
  public struct Way: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// By the key of an access policy.
    public static let key = Way(rawValue: "key")
    /// Signed in at the portal.
    public static let portal = Way(rawValue: "portal")
    /// On the data directory.
    public static let commandLine = Way(rawValue: "command-line")
  }

  public var time: Date
  /// The hub's name; `nil` for what concerns the namespace.
  public var hub: String?
  /// `policy/NAME`, `user/NAME` or `command-line/NAME`.
  public var actor: String
  public var via: Way
  /// One word, such as `send` or `deleteHub`.
  public var action: String
  /// The id or name of what was changed or sent; `nil` where the action says it.
  public var object: String?
  /// The client's address; empty on the command line.
  public var address: String
  /// The HTTP status that the action ended with; 200 for what the command line has done.
  public var status: Int

  public init(
    time: Date, hub: String?, actor: String, via: Way, action: String, object: String? = nil,
    address: String = "", status: Int = 200
  ) {
    self.time = time
    self.hub = hub
    self.actor = actor
    self.via = via
    self.action = action
    self.object = object
    self.address = address
    self.status = status
  }
}

/// Which lines of the activity log are wanted; what is `nil` does not matter.
public struct ActivityQuery: Hashable, Sendable {
  /// The earliest time.
  public var from: Date?
  /// The time before which it must be.
  public var until: Date?
  /// Exactly this one, such as `user/ann`.
  public var actor: String?
  /// Exactly this one, such as `send`.
  public var action: String?
  /// The most lines of one page, 1 to 100.
  public var pageSize: Int?

  public init(
    from: Date? = nil, until: Date? = nil, actor: String? = nil, action: String? = nil,
    pageSize: Int? = nil
  ) {
    self.from = from
    self.until = until
    self.actor = actor
    self.action = action
    self.pageSize = pageSize
  }

  var items: [URLQueryItem] {
    typealias Parameter = ActivityList.Parameter
    return .given([
      (Parameter.from, from.map(WireDate.milliseconds)),
      (Parameter.until, until.map(WireDate.milliseconds)), (Parameter.actor, actor),
      (Parameter.action, action), (WireName.top, pageSize.map(String.init)),
    ])
  }
}

/// The log's wire form. The token of the next page is in the header `x-ms-continuationtoken`.
package enum ActivityList {
  /// Of a hub, its last segment; of the namespace, with a dollar sign before it.
  package static let segment = "activity"
  package static let namespaceSegment = "$activity"

  /// The query parameters that narrow the list.
  package enum Parameter {
    package static let from = "from"
    package static let until = "until"
    package static let actor = "actor"
    package static let action = "action"
  }

  /// `{"activity":[…]}`
  package static func json(_ lines: [HubActivity]) -> [UInt8] {
    JSONWriter.object(capacity: 256 * lines.count) { writer in
      writer.objects("activity", lines) { writer, line in
        writer.member("time", line.time)
        writer.member("hub", line.hub)
        writer.member("actor", line.actor)
        writer.member("via", line.via.rawValue)
        writer.member("action", line.action)
        writer.member("object", line.object)
        writer.member("address", line.address)
        writer.member("status", line.status)
      }
    }
  }

  /// Reads the reply.
  package static func decode(
    _ json: some Collection<UInt8>
  ) throws(WireFormatError) -> [HubActivity] {
    guard let items = try JSONValue.parse(json).array("activity") else {
      throw WireFormatError("The reply is no activity log.")
    }
    return items.compactMap { item in
      guard let time = item.date("time"), let actor = item.text("actor"),
        let via = item.text("via"), let action = item.text("action"),
        let status = item.count("status")
      else { return nil }
      return HubActivity(
        time: time, hub: item.text("hub"), actor: actor, via: .init(rawValue: via), action: action,
        object: item.text("object"), address: item.text("address") ?? "", status: status)
    }
  }
}

extension NotificationHubClient {
  /// Who has changed or sent what in the hub, the newest first, read page by page. Belfry only;
  /// needs the Manage right.
  public func activity(_ query: ActivityQuery = ActivityQuery()) -> PagedList<HubActivity> {
    PagedList(items: query.items) { items in
      let reply = try await perform("GET", [ActivityList.segment], query: items)
      return try (
        reply.read { (body) throws(WireFormatError) in try ActivityList.decode(body) },
        reply.header(WireName.continuationToken)
      )
    }
  }
}
