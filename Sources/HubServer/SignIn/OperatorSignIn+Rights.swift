import HTTPServer
import HubCore
import NotificationHubs

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
