import Cryptography
import Foundation

/// State that a service keeps per connection.
struct ConnectionMemory: Sendable {
  /// Of APNs: the team of the first token that was taken; no other's are from then on.
  var team: String?
  /// Of APNs: the token in use, and since when.
  var token: String?
  var tokenSince = Date.distantPast
  /// Of APNs: until when every token is refused, because they changed too often.
  var refusedUntil = Date.distantPast
}

/// The claims that APNs has read in a provider token.
struct ProviderTokenFacts: Sendable {
  let kid: String
  let team: String
  /// In seconds since 1970.
  let issuedAt: Double
  /// The key of this id when the token was verified, and whether it had signed it.
  let verified: (key: P256PublicKey, isRight: Bool)?
}

/// APNs (docs/protocol/push-services/apns.md): one host for each environment, which take the same
/// handles here.
extension SimulatedServices.State {
  /// Shortest time between two tokens of one connection, in seconds.
  private static let updateInterval: TimeInterval = 20 * 60
  /// The greatest age of a token, and the most that it may be ahead of the true time, in seconds.
  private static let tokenLifetime = 3600.0
  private static let tokenSkew = 300.0

  mutating func apns(
    _ request: ServiceRequest, _ memory: inout ConnectionMemory, _ call: inout ServiceCall
  ) -> ServiceReply {
    call.id = request["apns-id"] ?? ""
    call.body = request.body
    let start = "/3/device/"
    guard request.path.hasPrefix(start) else { return Self.apns(404, "BadPath", &call) }
    call.handle = String(request.path.dropFirst(start.count))
    if let refusal = checkToken(request, &memory, &call) { return refusal }
    let topic = request["apns-topic"] ?? ""
    guard let key = apnsKeys[call.credential],
      key.topics.contains(where: { isTopic(topic, of: $0) })
    else { return Self.apns(400, "TopicDisallowed", &call) }
    if call.id.isEmpty == false, UUID(uuidString: call.id) == nil {
      return Self.apns(400, "BadMessageId", &call)
    }
    // A trial of the credential, which goes to no device.
    let isTrial = call.handle.utf8.allSatisfy { $0 == UInt8(ascii: "0") }
    switch isTrial ? .unknown : handle(call.handle, &call, at: request.now) {
    case .alive: break
    case .unknown:
      call.isDead = true
      return Self.apns(400, "BadDeviceToken", &call)
    case .dead(let since):
      call.isDead = true
      return Self.apns(410, "Unregistered", since: since, &call)
    }
    if request.body.isEmpty { return Self.apns(400, "PayloadEmpty", &call) }
    if request.body.count > 4096 { return Self.apns(413, "PayloadTooLarge", &call) }
    if let throttle = faults(.apns).throttle(at: request.now) {
      return Self.apns(429, "TooManyRequests", &call).retry(after: throttle.retryAfter)
    }
    call.isTaken = true
    return ServiceReply(200, headers: [("apns-id", call.id)])
  }

  /// A bundle id, or one with the suffix of a kind of push.
  private func isTopic(_ topic: String, of bundleID: String) -> Bool {
    topic == bundleID || topic.hasPrefix(bundleID + ".")
  }

  private static func apns(
    _ status: UInt16, _ reason: String, since: Date? = nil, _ call: inout ServiceCall
  ) -> ServiceReply {
    call.reason = reason
    let time = since.map { #","timestamp":\#(Int64($0.timeIntervalSince1970 * 1000))"# } ?? ""
    return ServiceReply(status, #"{"reason":"\#(reason)"\#(time)}"#)
  }

  // MARK: Provider tokens

  /// - Returns: `nil` when the token is taken.
  private mutating func checkToken(
    _ request: ServiceRequest, _ memory: inout ConnectionMemory, _ call: inout ServiceCall
  ) -> ServiceReply? {
    call.refusal = .wrong
    guard let text = request.authorization("bearer") else {
      return Self.apns(403, "MissingProviderToken", &call)
    }
    guard let token = facts(of: text) else {
      return Self.apns(403, "InvalidProviderToken", &call)
    }
    call.credential = token.kid
    let now = request.now.timeIntervalSince1970
    guard let key = apnsKeys[token.kid], token.team == key.team,
      memory.team == nil || memory.team == token.team, token.verified?.isRight == true
    else { return Self.apns(403, "InvalidProviderToken", &call) }
    call.refusal = .byFault
    if faults(.apns).refuses(call) { return Self.apns(403, "InvalidProviderToken", &call) }
    call.refusal = .untimely
    if token.issuedAt > now + Self.tokenSkew {
      return Self.apns(403, "InvalidProviderToken", &call)
    }
    if now - token.issuedAt > Self.tokenLifetime {
      return Self.apns(403, "ExpiredProviderToken", &call)
    }
    if let current = memory.token, current != text, request.now >= memory.refusedUntil {
      let next = memory.tokenSince + Self.updateInterval
      if request.now < next { memory.refusedUntil = next }
    }
    guard request.now >= memory.refusedUntil else {
      return Self.apns(429, "TooManyProviderTokenUpdates", &call)
    }
    if memory.token != text { (memory.token, memory.tokenSince) = (text, request.now) }
    memory.team = token.team
    call.refusal = nil
    return nil
  }

  /// Reads a token, and verifies it once for each key that its id has stood for.
  private mutating func facts(of text: String) -> ProviderTokenFacts? {
    if let known = providerTokens[text], known.verified?.key == apnsKeys[known.kid]?.key {
      return known
    }
    guard let token = try? CompactJWS(text), let kid = token.header.string("kid"),
      let team = token.claims.string("iss"), let issuedAt = token.claims.number("iat")
    else { return nil }
    let facts = ProviderTokenFacts(
      kid: kid, team: team, issuedAt: issuedAt,
      verified: apnsKeys[kid].map { ($0.key, token.verifies(with: $0.key)) })
    providerTokens[text] = facts
    return facts
  }
}
