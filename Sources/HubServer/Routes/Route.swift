import HTTPServer
import HubCore
import NotificationHubs

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
  /// Operations other than GET are changes and appear in the activity log, unless they only read.
  static let table: HTTPRouteTable<Route> = {
    var table = HTTPRouteTable<Route>()
    func on(
      _ operation: HubOperation, as verb: HTTPMethod? = nil, onlyLooks: Bool = false,
      isSecret: Bool = false, wantsConfirmation: Bool = false, hidesObject: Bool = false,
      _ action: @escaping @Sendable (HubAPI) -> (HubCall) async throws -> HTTPResponse
    ) {
      let (name, access) = (operation.name, operation.access)
      let method = verb ?? HTTPMethod(rawValue: operation.method)
      let isLook = method == .get || method == .head || onlyLooks
      let terms = RouteTerms(
        access: access, change: isLook ? nil : name,
        role: isSecret ? .manager : access.role(forLook: isLook),
        // Aborting a notification deletes nothing.
        wantsConfirmation: wantsConfirmation || method == .delete && access != .send,
        hidesObject: hidesObject)
      let route = Route(rights: access.rights) { api, request, parameters, replies, note in
        let call = try await api.enter(
          request, parameters, replies, by: terms, &note)
        note.operation = name
        note.hub = call.hub.name
        if !access.isContainer { try APIVersion.check(request.target) }
        return try await api.service.callsUnderWay.counting(call.admission) {
          try await Admission.$current.withValue(call.admission) {
            try await action(api)(call)
          }
        }
      }
      table.add(method, operation.pattern, route)
    }
    func manage(
      _ operation: HubOperation, _ access: ManagementAccess,
      _ action: @escaping @Sendable (HubAPI) -> (ManagementCall) async throws -> HTTPResponse
    ) {
      let route = Route(rights: [.manage]) { api, request, parameters, replies, note in
        let call = try await api.enter(request, parameters, replies, by: access, &note)
        note.operation = operation.name
        try APIVersion.check(request.target)
        return try await action(api)(call)
      }
      table.add(HTTPMethod(rawValue: operation.method), operation.pattern, route)
    }
    typealias API = HubAPI

    on(.putInstallation, API.putInstallation)
    on(.getInstallation, API.getInstallation)
    on(.patchInstallation, API.patchInstallation)
    on(.deleteInstallation, API.deleteInstallation)
    on(.listInstallations, API.listInstallations)
    on(.searchDevices, onlyLooks: true, API.searchDevices)

    on(.createRegistration, API.createRegistration)
    on(.createRegistrationID, API.createRegistrationID)
    on(.putRegistration, API.putRegistration)
    on(.getRegistration, API.getRegistration)
    on(.deleteRegistration, API.deleteRegistration)
    // Before the next one, which would match the path as that of a hub with a longer name.
    on(.listTaggedRegistrations, API.listTaggedRegistrations)
    on(.listRegistrations, API.listRegistrations)

    // Before `send`, for the same reason.
    on(.broadcast, API.broadcast)
    on(.send, API.send)
    on(.sendBatch, API.sendBatch)
    on(.schedule, API.schedule)
    on(.cancelScheduled, API.cancelScheduled)
    on(.getNotification, API.getNotification)
    on(.abortNotification, API.abortNotification)
    // The `Location` of a batch.
    on(.getBatchNotification, API.getNotification)
    on(.getNotificationErrors, API.getErrors)
    on(.listDeviceOutcomes, API.listDeviceOutcomes)
    // Shows stored data of a device.
    on(.explainNotification, API.explainNotification)
    on(.getProgress, API.getProgress)
    on(.streamEvents, API.streamEvents)
    // Only for hubs with a single segment: `/hub/channels/id/messages` is not a list.
    on(.listNotifications, API.listNotifications)
    on(.listScheduled, API.listScheduled)

    on(.getStatistics, API.getStatistics)
    on(.countAudience, API.countAudience)
    on(.eraseUser, hidesObject: true, API.eraseUser)
    on(.listRemovals, API.listRemovals)
    on(.restoreRemovals, API.restoreRemovals)

    // A job exports all handles, or changes and deletes devices by the thousand.
    on(.submitJob, wantsConfirmation: true, API.submitJob)
    // The URLs of jobs contain signatures.
    on(.getJob, isSecret: true, API.getJob)
    on(.listJobs, isSecret: true, API.listJobs)
    on(.feedbackContainer, isSecret: true, API.feedbackContainer)
    for method in [HTTPMethod.get, .head] {
      on(.listFeedback, as: method, isSecret: true, API.listFeedback)
      on(.readFeedback, as: method, isSecret: true, API.readFeedback)
    }

    on(.listCredentials, API.listCredentials)
    on(.probeCredential, onlyLooks: true, isSecret: true, API.probeCredential)

    on(.createChannel, API.createChannel)
    on(.listChannels, API.listChannels)
    on(.getChannel, API.getChannel)
    on(.deleteChannel, API.deleteChannel)

    on(.listActivity, API.listActivity)
    // Before the hubs, whose names cannot begin with a dollar sign.
    manage(.listAllActivity, .namespace, API.listAllActivity)

    // Hubs themselves (docs/protocol/rest.md, section 8, rows 25 to 29).
    manage(.putHub, .creation, API.putHub)
    manage(.getHub, .reading, API.getHub)
    manage(.deleteHub, .change, API.deleteHub)
    manage(.listServices, .namespace, API.listServices)
    manage(.listHubs, .namespace, API.listHubs)
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
  /// The operation's name in the activity log; `nil` if it changes nothing.
  let change: String?
  /// The role that an operator needs.
  let role: OperatorRole
  /// Whether an operator must have confirmed their identity recently.
  let wantsConfirmation: Bool
  /// Whether the log omits the object of the operation, even if it was refused.
  let hidesObject: Bool
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
struct HubCall {
  let admission: Admission
  /// The id or the tag in the path; `nil` if its encoding is invalid, or there is none.
  let id: String?
  let request: HTTPRequest
  let replies: Replies
  /// The entry for the activity log; `nil` if there is none.
  var activity: ActivityNote?
  /// The signed-in operator; `nil` for a key.
  var signedIn: OperatorSignIn.Operator?
  /// Whether the caller is still authorized, for replies of long duration.
  var isStillAllowed: @Sendable () async -> Bool = { true }

  var hub: Hub { admission.hub }

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

extension HubAPI {
  fileprivate func enter(
    _ request: HTTPRequest, _ parameters: HTTPPathParameters, _ replies: Replies,
    by terms: RouteTerms, _ note: inout RequestNote
  ) async throws(HubFailure) -> HubCall {
    let name = parameters["hub"] ?? ""
    let access = terms.access
    func activity(_ admission: Admission) -> ActivityNote? {
      terms.change.map {
        ActivityNote(
          $0, of: terms.hidesObject ? nil : parameters["id"], hub: admission.hub.id,
          named: admission.hub.name,
          by: admission.caller, from: request.remoteAddress, at: service.clock.now())
      }
    }
    if let owner {
      note.isKnown = true
      let admission = Admission(hub: try await service.hub(named: name), caller: owner.caller)
      // As with a key, what devices write is not logged.
      if access != .listen { note.activity = activity(admission) }
      // The owner of a disabled hub may look at it.
      if terms.change != nil { try admission.require(.manage) }
      return HubCall(
        admission: admission, id: parameters["id"], request: request, replies: replies,
        activity: note.activity)
    }
    if let signedIn = try await operatorOf(request) {
      note.isKnown = true
      let admission = try await admit(signedIn, to: name)
      note.activity = activity(admission)
      try signedIn.require(terms.role, in: name, confirmed: terms.wantsConfirmation)
      try admission.require(.manage)
      return HubCall(
        admission: admission, id: parameters["id"], request: request, replies: replies,
        activity: note.activity, signedIn: signedIn,
        isStillAllowed: { [signIn] in
          await signIn?.holds(signedIn, terms.role, in: name) ?? false
        })
    }
    var header = request.headers[WireName.authorization]
    let right: AccessRights
    switch access {
    case .listen: right = .listen
    case .send: right = .send
    case .sendByAddress:
      right = .send
      header = header ?? request.tokenInQuery
    case .manage: right = .manage
    case .manageOrOwn:
      right = request.target.queryItem(WireName.filter) == nil ? .manage : .listen
    case .container:
      right = .manage
      header = try containerToken(of: name, request)
    }
    let admission = try await service.admit(
      header: header, hub: name, host: request.headers["Host"], path: request.target.description,
      publicNames: configuration.publicHosts)
    note.isKnown = true
    // Device operations are not logged, whichever key they use: an app's backend registers
    // thousands. Refusals of a device's key are not logged either.
    if access != .listen, admission.caller.rights != .listen {
      note.activity = activity(admission)
    }
    try admission.require(right)
    return HubCall(
      admission: admission, id: parameters["id"], request: request, replies: replies,
      activity: note.activity,
      isStillAllowed: keeps(right, header, of: name, request))
  }

  /// Whether a token's key still exists and still has a right.
  private func keeps(
    _ right: AccessRights, _ header: String?, of name: String, _ request: HTTPRequest
  ) -> @Sendable () async -> Bool {
    let start = service.clock.now()
    let (host, path) = (request.headers["Host"], request.target.description)
    return { [service, names = configuration.publicHosts] in
      do throws(HubFailure) {
        try await service.admit(
          header: header, hub: name, host: host, path: path, publicNames: names, since: start
        ).require(right)
        return true
      } catch {
        // A failure of the store is not the caller's fault.
        return error.status >= 500
      }
    }
  }

  fileprivate func enter(
    _ request: HTTPRequest, _ parameters: HTTPPathParameters, _ replies: Replies,
    by access: ManagementAccess, _ note: inout RequestNote
  ) async throws(HubFailure) -> ManagementCall {
    // A URL layer that turns "DELETE /hub/installations/.." into "DELETE /hub/" must not delete the
    // hub.
    if access == .creation || access == .change, request.target.hasTrailingSlash {
      try await requireToken(of: request)
      throw HubFailure(
        status: 400, message: "A hub is changed or deleted without a slash at the path's end")
    }
    let name = parameters["hub"] ?? ""
    let isCreation = access == .creation && request.headers[WireName.ifMatch] == nil
    let change = access == .change ? "deleteHub" : isCreation ? "createHub" : "updateHub"
    func log(_ hub: Hub?, _ caller: Caller, _ note: inout RequestNote) {
      guard access == .creation || access == .change else { return }
      note.activity = ActivityNote(
        change, hub: hub?.id ?? 0, named: String(name.unicodeScalars.prefix(260)), by: caller,
        from: request.remoteAddress,
        at: service.clock.now())
    }
    if let owner {
      note.isKnown = true
      let hub = access == .namespace ? nil : try await hubIfThere(name)
      log(hub, owner.caller, &note)
      return ManagementCall(request: request, replies: replies, name: name, exists: hub != nil)
    }
    if let signedIn = try await operatorOf(request) {
      note.isKnown = true
      let hub = access == .namespace ? nil : try await hubIfThere(name)
      // Refusals of an operator without a role must not fill the logs of others' hubs.
      if signedIn.roles[name] != nil { log(hub, signedIn.caller, &note) }
      switch access {
      // Lists omit hubs in which the operator has no role.
      case .namespace: break
      case .reading: try signedIn.require(.viewer, in: name, confirmed: false)
      // The reply to an update contains keys, like the description that is written back.
      case .creation where !isCreation, .change:
        try signedIn.require(.manager, in: name, confirmed: true)
      case .creation:
        guard signedIn.roles.everywhere == .manager else { throw .noRole }
      }
      return ManagementCall(
        request: request, replies: replies, name: name, exists: hub != nil, signedIn: signedIn)
    }
    do {
      let (hub, caller) = try await service.authorizeManagement(
        header: request.headers[WireName.authorization], hub: access == .namespace ? nil : name,
        host: request.headers["Host"], path: request.target.description,
        publicNames: configuration.publicHosts, ofNamespace: isCreation || access == .namespace)
      note.isKnown = true
      log(hub, caller, &note)
      return ManagementCall(request: request, replies: replies, name: name, exists: hub != nil)
    } catch {
      // As recorded: reading a hub reports an invalid signature in these words
      // (docs/protocol/sas.md, section 6).
      guard access == .reading, error == .invalidSignature else { throw error }
      throw HubFailure(status: 401, message: HubFailure.manageClaim.message, hint: error.hint)
    }
  }

  private func hubIfThere(_ name: String) async throws(HubFailure) -> Hub? {
    do { return try await service.hub(named: name) } catch {
      if error.status == 404 { return nil }
      throw error
    }
  }

  /// Requires a token for this resource, with any rights: only its holders may learn that something
  /// does not exist (404) or is not permitted (405) (docs/protocol/sas.md, section 6).
  ///
  /// Such a path does not show where the hub's name ends, so every prefix of it is tried.
  func requireToken(of request: HTTPRequest) async throws(HubFailure) {
    if owner != nil { return }
    let header = request.headers[WireName.authorization]
    let host = request.headers["Host"]
    let path = request.target.description
    var name: String?
    var refusal: HubFailure?
    for segment in request.target.pathSegments.prefix(Self.maxNameSegments) {
      guard let decoded = segment.decoded, !decoded.isEmpty else { break }
      name = name.map { $0 + "/" + decoded } ?? decoded
      do {
        _ = try await service.authorize(
          header: header, hub: name ?? "", host: host, path: path,
          publicNames: configuration.publicHosts, requiring: [])
        return
      } catch HubFailure.noHub {
        return  // The token is one of the namespace.
      } catch {
        guard error == .invalidSignature else { throw error }
        refusal = error
      }
    }
    if let refusal { throw refusal }
    _ = try await service.authorizeManagement(
      header: header, hub: nil, host: host, path: path, publicNames: configuration.publicHosts,
      ofNamespace: true)
  }

  /// The maximum number of path segments that are tried as the name of a hub.
  private static let maxNameSegments = 8
}
