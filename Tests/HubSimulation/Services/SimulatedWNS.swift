import Foundation

/// WNS and its token services (docs/protocol/push-services/wns.md).
extension SimulatedServices.State {
  mutating func wns(_ request: ServiceRequest, _ call: inout ServiceCall) -> ServiceReply {
    call.body = request.body
    call.handle = "https://\(request.host)\(request.path)"
    let token = request.authorization("bearer")
    guard let client = grants.client(of: token, by: .wnsTokens, at: request.now),
      !faults(.wns).refuses(call)
    else {
      call.refusal = faults(.wns).refuses(call) ? .byFault : grants.refusal(of: token)
      return Self.wns(401, "the access token is missing, unknown or expired", &call)
    }
    call.credential = client
    switch handle(call.handle, &call, at: request.now) {
    case .alive: break
    case .unknown:
      call.isDead = true
      return Self.wns(404, "the channel is unknown", &call)
    case .dead:
      call.isDead = true
      return Self.wns(410, "the channel has expired", &call)
    }
    if let throttle = faults(.wns).throttle(at: request.now) {
      return Self.wns(406, "the app sends too much", &call).retry(after: throttle.retryAfter)
    }
    call.isTaken = true
    return ServiceReply(200, headers: [("x-wns-status", "received")])
  }

  private static func wns(
    _ status: UInt16, _ reason: String, _ call: inout ServiceCall
  ) -> ServiceReply {
    call.reason = reason
    return ServiceReply(
      status, headers: [("x-wns-status", "dropped"), ("x-wns-error-description", reason)])
  }

  /// Lifetime of an access token, in seconds.
  private static let windowsTokenLifetime = 86_400

  mutating func windowsToken(
    _ request: ServiceRequest, _ call: inout ServiceCall
  ) -> ServiceReply {
    let form = request.form
    guard form["grant_type"] == "client_credentials", let client = form["client_id"]?.lowercased()
    else { return .tokenRefusal("invalid_request", &call) }
    call.credential = client
    guard let secret = form["client_secret"], windowsSecrets[client]?.contains(secret) == true,
      !faults(.wnsTokens).refuses(call)
    else {
      call.refusal = faults(.wnsTokens).refuses(call) ? .byFault : .wrong
      return .tokenRefusal("invalid_client", &call)
    }
    call.isTaken = true
    return grants.grant(
      to: client, by: .wnsTokens, lifetime: Self.windowsTokenLifetime, at: request.now)
  }
}
