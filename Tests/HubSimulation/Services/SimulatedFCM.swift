import Cryptography
import Foundation
import NotificationHubs
import Wire

/// FCM v1 and Google's token endpoint (docs/protocol/push-services/fcm.md).
extension SimulatedServices.State {
  mutating func fcm(_ request: ServiceRequest, _ call: inout ServiceCall) -> ServiceReply {
    let (handle, body) = Self.message(request.body)
    call.handle = handle ?? ""
    call.body = body
    let token = request.authorization("bearer")
    guard let client = grants.client(of: token, by: .fcmTokens, at: request.now),
      !faults(.fcm).refuses(call)
    else {
      call.refusal = faults(.fcm).refuses(call) ? .byFault : grants.refusal(of: token)
      return refuse(401, "UNAUTHENTICATED", "invalid authentication credentials", &call)
    }
    call.credential = client
    guard let account = accounts[client],
      request.path == "/v1/projects/\(account.project)/messages:send"
    else {
      call.refusal = .wrong
      return refuse(403, "PERMISSION_DENIED", "permission denied on resource", &call)
    }
    guard let handle else {
      return refuse(
        400, "INVALID_ARGUMENT", "The registration token is missing", code: "INVALID_ARGUMENT",
        &call)
    }
    switch self.handle(handle, &call, at: request.now) {
    case .alive: break
    case .unknown, .dead:
      call.isDead = true
      return refuse(
        404, "NOT_FOUND", "Requested entity was not found.", code: "UNREGISTERED", &call)
    }
    // A trial of the credential, which goes to no device.
    if handle == "belfry-probe" {
      return refuse(
        400, "INVALID_ARGUMENT", "no registration token", code: "INVALID_ARGUMENT", &call)
    }
    if let throttle = faults(.fcm).throttle(at: request.now) {
      return refuse(
        429, "RESOURCE_EXHAUSTED", "Quota exceeded.", code: "QUOTA_EXCEEDED", &call
      ).retry(after: throttle.retryAfter)
    }
    call.isTaken = true
    return ServiceReply(200, #"{"name":"projects/\#(account.project)/messages/\#(calls.count)"}"#)
  }

  private func refuse(
    _ status: UInt16, _ word: String, _ message: String, code: String? = nil,
    _ call: inout ServiceCall
  ) -> ServiceReply {
    call.reason = code ?? word
    return Self.fcmError(status, word, message, code: code)
  }

  static func fcmError(
    _ status: UInt16, _ word: String, _ message: String, code: String?
  ) -> ServiceReply {
    let type = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
    let details =
      code.map { #","details":[{"@type":"\#(type)","errorCode":"\#($0)"}]"# } ?? ""
    return ServiceReply(
      status,
      #"{"error":{"code":\#(status),"message":"\#(message)","status":"\#(word)"\#(details)}}"#)
  }

  /// Finds the device that the gateway has written into a message, and the message without it.
  private static func message(_ body: [UInt8]) -> (handle: String?, body: [UInt8]) {
    guard let message = (try? JSONValue.parse(body))?["message"] else { return (nil, body) }
    for name in ["token", "fid"] {
      guard let handle = message[name]?.scalarText else { continue }
      let written = Array(#""\#(name)":"\#(handle)""#.utf8)
      guard let place = body.firstRange(of: written) else { continue }
      let end = place.upperBound
      let isFollowed = end < body.count && body[end] == UInt8(ascii: ",")
      return (handle, Array(body[..<place.lowerBound] + body[(isFollowed ? end + 1 : end)...]))
    }
    return (nil, body)
  }

  /// Lifetime of an access token, in seconds.
  private static let googleTokenLifetime = 3599

  mutating func googleToken(
    _ request: ServiceRequest, _ call: inout ServiceCall
  ) -> ServiceReply {
    guard let assertion = request.form["assertion"].flatMap({ try? CompactJWS($0) }),
      let client = assertion.claims.string("iss")
    else { return .tokenRefusal("invalid_request", &call) }
    call.credential = client
    let now = request.now.timeIntervalSince1970
    call.refusal = .wrong
    guard let account = accounts[client], assertion.verifies(with: account.key),
      let issuedAt = assertion.claims.number("iat"), let end = assertion.claims.number("exp")
    else { return .tokenRefusal("invalid_grant", &call) }
    call.refusal = .byFault
    if faults(.fcmTokens).refuses(call) { return .tokenRefusal("invalid_grant", &call) }
    call.refusal = .untimely
    guard issuedAt <= now + 300, end > now else { return .tokenRefusal("invalid_grant", &call) }
    call.refusal = nil
    call.isTaken = true
    return grants.grant(
      to: client, by: .fcmTokens, lifetime: Self.googleTokenLifetime, at: request.now)
  }
}
