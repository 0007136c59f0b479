import Cryptography
import Foundation
import Wire

/// The claims that a push service of browsers has read in a VAPID token.
struct VAPIDFacts: Sendable {
  /// In seconds since 1970.
  let expiresAt: Double
}

/// The key and secret of all subscriptions of a life.
enum SimulatedBrowser {
  private static let secret = [UInt8](repeating: 0x5A, count: 16)
  // Impossible: it is a key of the curve.
  private static let key = try! P256PrivateKey(scalar: [UInt8](repeating: 0x2F, count: 32))
  private static let keys: String = {
    let point = (try? key.publicKey().point) ?? []
    return "\n\(Base64URL.encode(point))\n\(Base64URL.encode(secret))"
  }()

  /// As it is stored.
  static func handle(_ endpoint: String) -> String { endpoint + keys }

  /// - Returns: Nothing when it is not for such a browser.
  static func open(_ body: [UInt8]) -> [UInt8] {
    (try? WebPushDecryption.open(body, key: key, secret: secret)) ?? []
  }
}

/// A push service of browsers (docs/protocol/push-services/web-push.md).
extension SimulatedServices.State {
  /// A token may end this late, in seconds.
  private static let longestVAPIDLife = 86_400.0

  mutating func webPush(_ request: ServiceRequest, _ call: inout ServiceCall) -> ServiceReply {
    call.handle = "https://\(request.host)\(request.path)"
    call.body = SimulatedBrowser.open(request.body)
    var parts: [Substring: Substring] = [:]
    for part in (request.authorization("vapid") ?? "").split(separator: ",") {
      let pair = part.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
      if pair.count == 2 { parts[pair[0]] = pair[1] }
    }
    guard let token = parts["t"], let key = parts["k"] else {
      return Self.webPush(401, "no VAPID token", &call)
    }
    call.credential = String(key)
    let now = request.now.timeIntervalSince1970
    let facts = facts(of: String(token), key: String(key))
    let isUnknown = !applicationKeys.isEmpty && !applicationKeys.contains(String(key))
    if facts == nil || isUnknown {
      call.refusal = .wrong
    } else if faults(.webPush).refuses(call) {
      call.refusal = .byFault
    } else if let end = facts?.expiresAt, end <= now || end > now + Self.longestVAPIDLife + 300 {
      call.refusal = .untimely
    }
    guard call.refusal == nil else {
      return Self.webPush(403, "the VAPID credentials are not valid", &call)
    }
    switch handle(call.handle, &call, at: request.now) {
    case .alive: break
    case .unknown:
      call.isDead = true
      return Self.webPush(404, "no such subscription", &call)
    case .dead:
      call.isDead = true
      return Self.webPush(410, "the subscription is gone", &call)
    }
    if request.body.count > 4096 { return Self.webPush(413, "too large", &call) }
    if let throttle = faults(.webPush).throttle(at: request.now) {
      return Self.webPush(429, "too many messages", &call).retry(after: throttle.retryAfter)
    }
    call.isTaken = true
    return ServiceReply(201)
  }

  private static func webPush(
    _ status: UInt16, _ reason: String, _ call: inout ServiceCall
  ) -> ServiceReply {
    call.reason = reason
    return ServiceReply(status)
  }

  /// Reads and verifies a token, once.
  private mutating func facts(of text: String, key: String) -> VAPIDFacts? {
    let name = text + " " + key
    if let known = vapidTokens[name] { return known }
    guard let token = try? CompactJWS(text), let publicKey = SimulatedApp.publicKey(key),
      token.verifies(with: publicKey),
      let end = token.claims.number("exp")
    else { return nil }
    let facts = VAPIDFacts(expiresAt: end)
    vapidTokens[name] = facts
    return facts
  }
}
