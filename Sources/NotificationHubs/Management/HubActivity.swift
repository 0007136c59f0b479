public import Foundation
import Wire

/// An entry of the activity log: a change or a send, with its author, origin and result.
public struct HubActivity: Hashable, Sendable {
  /// The method by which an actor authenticated.
  public struct Way: RawRepresentable, Hashable, Sendable {
    /// The value on the wire.
    public let rawValue: String
    /// Creates a method from its wire value.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The key of an access policy.
    public static let key = Way(rawValue: "key")
    /// A sign-in at the portal.
    public static let portal = Way(rawValue: "portal")
    /// A command on the data directory.
    public static let commandLine = Way(rawValue: "command-line")
  }

  /// The time of the action.
  public var time: Date
  /// The hub's name; `nil` for actions on the namespace.
  public var hub: String?
  /// The actor: `policy/NAME`, `user/NAME` or `command-line/NAME`.
  public var actor: String
  /// The method by which the actor authenticated.
  public var via: Way
  /// The action in one word, such as `send` or `deleteHub`.
  public var action: String
  /// The id or name of the object that was changed or sent; `nil` if the action implies it.
  public var object: String?
  /// The client's address; empty for the command line.
  public var address: String
  /// The HTTP status of the action; 200 for a command that succeeded.
  public var status: Int

  /// Creates an entry.
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

/// The actions that have entries in the activity log; `docs/extensions.md` describes them.
package enum ActivityAction: String, CaseIterable, Sendable {
  case send, sendDirect, sendBatch, schedule, testSend, broadcast
  case abortNotification, cancelScheduled
  case createHub, updateHub, deleteHub
  case createPolicy, rotateKey, deletePolicy
  case setCredential, deleteCredential
  case createChannel, deleteChannel
  case submitJob, eraseUser, restoreRemovals
  case putInstallation, patchInstallation, deleteInstallation
  case createRegistration, createRegistrationID, putRegistration, deleteRegistration
  case rotateMasterKey, adoptDatabase
  case signIn, confirm, readText
}

/// The criteria for entries of the activity log; `nil` matches any value.
public struct ActivityQuery: Hashable, Sendable {
  /// The earliest time, inclusive.
  public var from: Date?
  /// The latest time, exclusive.
  public var until: Date?
  /// The exact actor, such as `user/ann`.
  public var actor: String?
  /// The exact action, such as `send`.
  public var action: String?
  /// The maximum number of entries per page, 1 to 100.
  public var pageSize: Int?

  /// Creates a query; without arguments it matches every entry.
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

/// The log's wire format. The continuation token is in the header `x-ms-continuationtoken`.
package enum ActivityList {
  /// The path segment of the namespace's log.
  package static let namespaceSegment = "$activity"

  /// The query parameters that filter the list.
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

  /// Decodes the reply.
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
  /// Changes and sends in the hub with their authors, newest first, loaded page by page. Belfry
  /// only; needs the Manage right.
  public func activity(_ query: ActivityQuery = ActivityQuery()) -> PagedList<HubActivity> {
    PagedList(items: query.items) { items in
      let reply = try await perform(.listActivity, query: items)
      return try (
        reply.read { (body) throws(WireFormatError) in try ActivityList.decode(body) },
        reply.header(WireName.continuationToken)
      )
    }
  }
}
