import Foundation
import HTTPServer
import HubCore
import NotificationHubs

/// The check of a request's caller before its handler is called: the owner of this process, a
/// signed-in operator, or a token.
extension HubAPI {
  /// Admits the caller of an operation in a hub.
  /// - Throws: The refusal: 401, 403 or 404.
  func enter(
    _ request: HTTPRequest, _ parameters: HTTPPathParameters, _ replies: Replies,
    by terms: RouteTerms, _ note: inout RequestNote
  ) async throws(HubFailure) -> HubCall {
    let name = parameters["hub"] ?? ""
    let access = terms.access
    if let owner {
      note.isKnown = true
      let admission = Admission(hub: try await service.hub(named: name), caller: owner.caller)
      // As with a key, what devices write is not logged.
      if access != .listen {
        note.activity = activity(terms.change, of: parameters["id"], admission, request, by: terms)
      }
      // The owner of a disabled hub may look at it.
      if terms.change != nil { try admission.require(.manage) }
      return HubCall(
        admission: admission, id: parameters["id"], request: request, replies: replies,
        activity: note.activity, authority: .owner)
    }
    if let signedIn = try await operatorOf(request) {
      note.isKnown = true
      let admission = try await admit(signedIn, to: name)
      note.activity = activity(
        terms.change ?? .readText, of: parameters["id"], admission, request, by: terms)
      try signedIn.require(terms.role, in: name, confirmed: terms.wantsConfirmation)
      try admission.require(.manage)
      return HubCall(
        admission: admission, id: parameters["id"], request: request, replies: replies,
        activity: note.activity, authority: .signedIn(signedIn, as: terms.role))
    }
    var token = request.headers.bytes(WireName.authorization)
    switch access {
    case .sendByAddress: token = token ?? request.tokenInQuery.map { Array($0.utf8)[...] }
    case .container:
      token = Array(try FeedbackHandlers(api: self).containerToken(of: name, request).utf8)[...]
    case .listen, .send, .manage, .manageOrOwn: break
    }
    return try makeCall(
      try await service.admit(tokenCall(request, token), hub: name), by: token, request, parameters,
      replies, terms, &note)
  }

  /// Does the same as ``enter(_:_:_:by:_:)`` for a token in the header that can be checked by what is
  /// in memory, as nearly all can. It is neither asynchronous nor part of an asynchronous function:
  /// the frame of each takes memory of the task.
  /// - Returns: `nil` if only the other one can determine the caller.
  @inline(never)
  func enterAtOnce(
    _ request: HTTPRequest, _ parameters: HTTPPathParameters, _ replies: Replies,
    by terms: RouteTerms, _ note: inout RequestNote
  ) throws(HubFailure) -> HubCall? {
    guard owner == nil, terms.access != .container,
      let token = request.headers.bytes(WireName.authorization),
      let admission = try service.admitAtOnce(
        tokenCall(request, token), hub: parameters["hub"] ?? "")
    else { return nil }
    return try makeCall(admission, by: token, request, parameters, replies, terms, &note)
  }

  private func makeCall(
    _ admission: Admission, by token: ArraySlice<UInt8>?, _ request: HTTPRequest,
    _ parameters: HTTPPathParameters, _ replies: Replies, _ terms: RouteTerms,
    _ note: inout RequestNote
  ) throws(HubFailure) -> HubCall {
    let right: AccessRights =
      switch terms.access {
      case .listen: .listen
      case .send, .sendByAddress: .send
      case .manage, .container: .manage
      case .manageOrOwn: request.target.queryItem(WireName.filter) == nil ? .manage : .listen
      }
    let id = parameters["id"]
    note.isKnown = true
    // Device operations are not logged, whichever key they use: an app's backend registers
    // thousands. Refusals of a device's key are not logged either.
    if terms.access != .listen, admission.caller.rights != .listen {
      note.activity = activity(terms.change, of: id, admission, request, by: terms)
    }
    try admission.require(right)
    return HubCall(
      admission: admission, id: id, request: request, replies: replies,
      activity: note.activity, authority: .token(token, right))
  }

  private func activity(
    _ action: ActivityAction?, of id: String?, _ admission: Admission, _ request: HTTPRequest,
    by terms: RouteTerms
  ) -> ActivityNote? {
    action.map {
      ActivityNote(
        $0, of: terms.hidesObject ? nil : id, hub: admission.hub.id, named: admission.hub.name,
        by: admission.caller, from: request.remoteAddress, at: service.clock.now(),
        isLook: terms.change == nil)
    }
  }

  private func tokenCall(_ request: HTTPRequest, _ token: ArraySlice<UInt8>?) -> TokenCall {
    TokenCall(
      header: token, host: request.headers.bytes("Host"), path: request.target.bytes,
      publicNames: configuration.publicHosts)
  }

  /// The call with the token of the header `Authorization`.
  func tokenCall(_ request: HTTPRequest) -> TokenCall {
    tokenCall(request, request.headers.bytes(WireName.authorization))
  }

  /// Whether the caller may still make a call that began earlier, for replies of long duration: the
  /// operator is signed in and has the role, or the token's key exists and has the right.
  func isStillAllowed(_ call: HubCall, since start: Date) async -> Bool {
    switch call.authority {
    case .owner: return true
    case .signedIn(let one, let role):
      return await signIn?.holds(one, role, in: call.hub.name) ?? false
    case .token(let token, let right):
      do throws(HubFailure) {
        try await service.admit(
          tokenCall(call.request, token), hub: call.hub.name, since: start
        ).require(right)
        return true
      } catch {
        // A failure of the store is not the caller's fault.
        return error.status >= 500
      }
    }
  }

  func enter(
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
    let change: ActivityAction =
      access == .change ? .deleteHub : isCreation ? .createHub : .updateHub
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
        tokenCall(request), hub: access == .namespace ? nil : name,
        ofNamespace: isCreation || access == .namespace)
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
    let call = tokenCall(request)
    var name: String?
    var refusal: HubFailure?
    for segment in request.target.pathSegments.prefix(Self.maxNameSegments) {
      guard let decoded = segment.decoded, !decoded.isEmpty else { break }
      name = name.map { $0 + "/" + decoded } ?? decoded
      do {
        _ = try await service.authorize(call, hub: name ?? "", requiring: [])
        return
      } catch HubFailure.noHub {
        return  // The token is one of the namespace.
      } catch {
        guard error == .invalidSignature else { throw error }
        refusal = error
      }
    }
    if let refusal { throw refusal }
    _ = try await service.authorizeManagement(call, hub: nil, ofNamespace: true)
  }

  /// The maximum number of path segments that are tried as the name of a hub.
  private static let maxNameSegments = 8

  // MARK: Operators

  /// Returns the signed-in operator, if the request has a session cookie and no token.
  /// - Throws: 401 for a session that has ended, 403 for a page of another origin.
  func operatorOf(_ request: HTTPRequest) async throws(HubFailure) -> OperatorSignIn.Operator? {
    guard let signIn, !request.headers.contains(WireName.authorization),
      let token = request.sessionToken
    else { return nil }
    guard request.isOfSameOrigin else { throw .fromElsewhere }
    guard let one = try await signIn.find(token) else { throw .signedOut }
    return one
  }

  /// - Returns: The hub, if the operator has any role in it.
  func admit(
    _ one: OperatorSignIn.Operator, to hub: String
  ) async throws(HubFailure) -> Admission {
    guard one.roles[hub] != nil else { throw .noRole }
    let found = try await service.hub(named: hub)
    return Admission(hub: found, caller: one.caller)
  }
}
