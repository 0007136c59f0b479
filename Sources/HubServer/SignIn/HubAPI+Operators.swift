import HTTPServer
import HubCore
import NotificationHubs

/// API requests with an operator's cookie instead of a token.
extension HubAPI {
  /// Returns the signed-in operator, if the request has a session cookie and no token.
  /// - Throws: 401 for a session that has ended, 403 for a page of another origin.
  func operatorOf(_ request: HTTPRequest) async throws(HubFailure) -> OperatorSignIn.Operator? {
    guard let signIn, request.headers[WireName.authorization] == nil,
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

extension OperatorSignIn.Operator {
  /// A caller with all rights; the limits of the role are checked before.
  var caller: Caller { Caller(name: name, via: .portal, rights: .all) }

  /// - Throws: 403 if the role does not suffice, or if the operator must confirm their identity
  ///   again.
  func require(
    _ least: OperatorRole, in hub: String, confirmed: Bool
  ) throws(HubFailure) {
    guard let role = roles[hub], role >= least else { throw .noRole }
    if confirmed, !isConfirmed { throw .confirmationRequired }
  }
}

extension HubFailure {
  static let noRole = HubFailure(
    status: 403, message: "Your role in this hub does not allow this.")
}

extension HubOperation.Access {
  /// The role that an operation requires.
  func role(forLook isLook: Bool) -> OperatorRole {
    if isLook { return .viewer }
    return switch self {
    case .send, .sendByAddress: .sender
    case .listen, .manage, .manageOrOwn, .container: .manager
    }
  }
}

extension HubDescription {
  /// The description for readers who may not see keys.
  var withoutSecrets: HubDescription {
    var shown = self
    shown.credentials = [:]
    shown.authorizationRules = authorizationRules?.map { rule in
      var rule = rule
      rule.primaryKey = nil
      rule.secondaryKey = nil
      return rule
    }
    return shown
  }
}
