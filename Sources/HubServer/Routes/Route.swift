import HTTPServer
import HubCore
import NotificationHubs

/// The operations of one subject. A handler translates a request into one call of `HubService`, and
/// the result into a reply.
protocol RouteHandlers: Sendable {
  var api: HubAPI { get }
  init(api: HubAPI)
}

extension RouteHandlers {
  var service: HubService { api.service }
  /// The receiver of events for the operator.
  var observer: HubObserver? { api.observer }
}

/// An operation of the REST API (docs/protocol/rest.md, section 2): authorizes the caller, checks
/// the version, and replies.
struct Route: Sendable {
  /// The minimal sets of rights, of which one suffices; an empty set if the URL contains its own
  /// token.
  let rights: [AccessRights]
  let answer:
    @Sendable (HubAPI, HTTPRequest, HTTPPathParameters, Replies, inout RequestNote) async throws
      -> HTTPResponse

  /// The handler of every operation. If two paths match, the first one applies.
  ///
  /// Operations other than GET are changes and appear in the activity log, unless they only read. A
  /// handler that shows an operator the text of messages says so with `logText`.
  static let table: HTTPRouteTable<Route> = {
    var table = HTTPRouteTable<Route>()
    func on<Handlers: RouteHandlers>(
      _ operation: HubOperation, as verb: HTTPMethod? = nil, onlyLooks: Bool = false,
      isSecret: Bool = false, wantsConfirmation: Bool = false, hidesObject: Bool = false,
      _ action: @escaping @Sendable (Handlers) -> (HubCall) async throws -> HTTPResponse
    ) {
      let (name, access) = (operation.name, operation.access)
      let method = verb ?? HTTPMethod(rawValue: operation.method)
      let isLook = method == .get || method == .head || onlyLooks
      let terms = RouteTerms(
        access: access, change: isLook ? nil : ActivityAction(of: operation),
        role: isSecret ? .manager : access.role(forLook: isLook),
        // Aborting a notification deletes nothing.
        wantsConfirmation: wantsConfirmation || method == .delete && access != .send,
        hidesObject: hidesObject)
      let route = Route(rights: access.rights) { api, request, parameters, replies, note in
        let call: HubCall
        if let entered = try api.enterAtOnce(request, parameters, replies, by: terms, &note) {
          call = entered
        } else {
          call = try await api.enter(request, parameters, replies, by: terms, &note)
        }
        note.operation = name
        note.hub = call.hub.name
        if !access.isContainer { try APIVersion.check(request.target) }
        return try await api.service.callsUnderWay.counting(call.admission) {
          try await action(Handlers(api: api))(call)
        }
      }
      table.add(method, operation.pattern, route)
    }
    func manage<Handlers: RouteHandlers>(
      _ operation: HubOperation, _ access: ManagementAccess,
      _ action: @escaping @Sendable (Handlers) -> (ManagementCall) async throws -> HTTPResponse
    ) {
      let route = Route(rights: [.manage]) { api, request, parameters, replies, note in
        let call = try await api.enter(request, parameters, replies, by: access, &note)
        note.operation = operation.name
        try APIVersion.check(request.target)
        return try await action(Handlers(api: api))(call)
      }
      table.add(HTTPMethod(rawValue: operation.method), operation.pattern, route)
    }
    on(.putInstallation, InstallationHandlers.put)
    on(.getInstallation, InstallationHandlers.get)
    on(.patchInstallation, InstallationHandlers.patch)
    on(.deleteInstallation, InstallationHandlers.delete)
    on(.listInstallations, InstallationHandlers.list)
    on(.searchDevices, onlyLooks: true, DeviceHandlers.search)

    on(.createRegistration, RegistrationHandlers.create)
    on(.createRegistrationID, RegistrationHandlers.createID)
    on(.putRegistration, RegistrationHandlers.put)
    on(.getRegistration, RegistrationHandlers.get)
    on(.deleteRegistration, RegistrationHandlers.delete)
    // Before the next one, which would match the path as that of a hub with a longer name.
    on(.listTaggedRegistrations, RegistrationHandlers.listTagged)
    on(.listRegistrations, RegistrationHandlers.list)

    // Before `send`, for the same reason.
    on(.broadcast, ChannelHandlers.broadcast)
    on(.send, SendHandlers.send)
    on(.sendBatch, SendHandlers.batch)
    on(.schedule, SendHandlers.schedule)
    on(.cancelScheduled, SendHandlers.cancelScheduled)
    on(.getNotification, NotificationHandlers.get)
    on(.abortNotification, SendHandlers.abort)
    // The `Location` of a batch.
    on(.getBatchNotification, NotificationHandlers.get)
    on(.getNotificationErrors, NotificationHandlers.errors)
    on(.listDeviceOutcomes, NotificationHandlers.deviceOutcomes)
    // Shows stored data of a device.
    on(.explainNotification, NotificationHandlers.explain)
    on(.getProgress, ProgressHandlers.get)
    on(.streamEvents, ProgressHandlers.stream)
    // Only for hubs with a single segment: `/hub/channels/id/messages` is not a list.
    on(.listNotifications, NotificationHandlers.list)
    on(.listScheduled, NotificationHandlers.scheduled)

    on(.getStatistics, StatisticsHandlers.get)
    on(.countAudience, DeviceHandlers.countAudience)
    on(.eraseUser, hidesObject: true, DeviceHandlers.eraseUser)
    on(.listRemovals, DeviceHandlers.removals)
    on(.restoreRemovals, DeviceHandlers.restore)

    // A job exports all handles, or changes and deletes devices by the thousand.
    on(.submitJob, wantsConfirmation: true, JobHandlers.submit)
    // The URLs of jobs contain signatures.
    on(.getJob, isSecret: true, JobHandlers.get)
    on(.listJobs, isSecret: true, JobHandlers.list)
    on(.feedbackContainer, isSecret: true, FeedbackHandlers.container)
    for method in [HTTPMethod.get, .head] {
      on(.listFeedback, as: method, isSecret: true, FeedbackHandlers.list)
      on(.readFeedback, as: method, isSecret: true, FeedbackHandlers.read)
    }

    on(.listCredentials, CredentialHandlers.list)
    on(.probeCredential, onlyLooks: true, isSecret: true, CredentialHandlers.probe)

    on(.createChannel, ChannelHandlers.create)
    on(.listChannels, ChannelHandlers.list)
    on(.getChannel, ChannelHandlers.get)
    on(.deleteChannel, ChannelHandlers.delete)

    on(.listActivity, ActivityHandlers.list)
    // Before the hubs, whose names cannot begin with a dollar sign.
    manage(.listAllActivity, .namespace, ActivityHandlers.listAll)

    // Hubs themselves (docs/protocol/rest.md, section 8, rows 25 to 29).
    manage(.putHub, .creation, HubHandlers.put)
    manage(.getHub, .reading, HubHandlers.get)
    manage(.deleteHub, .change, HubHandlers.delete)
    manage(.listServices, .namespace, HubHandlers.services)
    manage(.listHubs, .namespace, HubHandlers.list)
    return table
  }()
}

extension HubOperation.Access {
  var isContainer: Bool { if case .container = self { true } else { false } }

  /// The minimal sets of rights, of which one suffices, depending on the request.
  fileprivate var rights: [AccessRights] {
    switch self {
    case .listen: [.listen]
    case .send, .sendByAddress: [.send]
    case .manage: [.manage]
    case .manageOrOwn: [.listen, .manage]
    case .container: []
    }
  }
}

/// The requirements of an operation for its caller, and its entry in the activity log.
struct RouteTerms: Sendable {
  let access: HubOperation.Access
  /// The action in the activity log; `nil` if the operation changes nothing.
  let change: ActivityAction?
  /// The role that an operator needs.
  let role: OperatorRole
  /// Whether an operator must have confirmed their identity recently.
  let wantsConfirmation: Bool
  /// Whether the log omits the object of the operation, even if it was refused.
  let hidesObject: Bool
}

extension ActivityAction {
  /// The action of an operation that changes something.
  fileprivate init(of operation: HubOperation) {
    guard let action = Self(rawValue: operation.name) else {
      preconditionFailure("\(operation.name) has no case in ActivityAction, for the activity log")
    }
    self = action
  }
}

/// The access to a hub itself: its own Manage key can read, update or delete it; everything else
/// takes the namespace's.
enum ManagementAccess: Sendable {
  /// Creating takes the namespace's key; updating also accepts the hub's own.
  case creation
  case reading
  case change
  case namespace
}

/// An authorized call of an operation in a hub.
final class HubCall: Sendable {
  let admission: Admission
  /// The id or the tag in the path; `nil` if its encoding is invalid, or there is none.
  let id: String?
  let request: HTTPRequest
  let replies: Replies
  /// The entry for the activity log; `nil` if there is none. That of an operator's look is only
  /// kept if the reply has the text of messages.
  let activity: ActivityNote?
  let authority: Authority

  init(
    admission: Admission, id: String?, request: HTTPRequest, replies: Replies,
    activity: ActivityNote?, authority: Authority
  ) {
    self.admission = admission
    self.id = id
    self.request = request
    self.replies = replies
    self.activity = activity
    self.authority = authority
  }

  /// The grounds on which the caller may make this call.
  enum Authority: Sendable {
    case owner
    case signedIn(OperatorSignIn.Operator, as: OperatorRole)
    case token(ArraySlice<UInt8>?, AccessRights)
  }

  var hub: Hub { admission.hub }
  /// The signed-in operator; `nil` for a key.
  var signedIn: OperatorSignIn.Operator? {
    if case .signedIn(let one, _) = authority { one } else { nil }
  }

  /// Returns the id, or throws if the path is not valid text.
  func requiredID() throws(HubFailure) -> String {
    guard let id else {
      throw HubFailure(status: 400, message: "The id in the path is not valid percent-encoded text")
    }
    return id
  }
}

/// A request for a hub itself, or for the list of hubs.
struct ManagementCall {
  let request: HTTPRequest
  let replies: Replies
  /// The name of the hub; empty for a list.
  let name: String
  let exists: Bool
  /// The signed-in operator; `nil` for a key.
  var signedIn: OperatorSignIn.Operator?

  /// Whether the caller may see this hub in a list.
  func shows(_ hub: Hub) -> Bool { signedIn.map { $0.roles[hub.name] != nil } ?? true }

  /// Whether keys and credentials of this hub may be shown.
  func showsSecrets(of hub: Hub) -> Bool {
    signedIn.map { $0.isConfirmed && $0.roles[hub.name] == .manager } ?? true
  }
}
