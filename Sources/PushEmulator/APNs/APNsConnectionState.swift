/// What APNs remembers of one connection; judges the provider token of each request against it
/// (emulator.md, 4.2, checks 4 to 9).
struct APNsConnectionState: Sendable {
  let environment: APNsEnvironment
  let interface: APNsInterface
  /// What the client showed in the handshake; `nil` for a connection that uses provider tokens.
  let certificate: ClientCertificate?

  /// The team of the first accepted token; other teams are refused from then on.
  private(set) var team: String?
  private(set) var scope: APNsKeyScope?
  /// The token in use, as sent, with what it says.
  private(set) var current: ProviderToken?
  /// When `current` was accepted, in ms.
  private var changedAt: Int64 = 0
  /// Every request is refused until then, in ms: the token changed too often.
  private var refusingUntil: Int64 = 0
  /// Times of the latest BadDeviceToken answers, in ms.
  private var badTokens: [Int64] = []
  /// The last topic that was found allowed.
  var topic: TopicMemory?

  init(
    environment: APNsEnvironment, interface: APNsInterface, certificate: ClientCertificate?
  ) {
    self.environment = environment
    self.interface = interface
    self.certificate = certificate
  }

  /// The stream limit is 1 until a token has been accepted.
  var isOpen: Bool { certificate != nil || team != nil }

  /// The allowed answer to the last topic question, good while the accounts do not change.
  struct TopicMemory: Sendable {
    let topic: ArraySlice<UInt8>
    let pushType: APNsPushType?
    let kid: String?
    let epoch: Int
    let target: TopicTarget
  }

  /// Judges the `authorization` field.
  ///
  /// - Parameter now: In ms.
  /// - Returns: The token, or the reason to refuse. The connection's team, scope and current token
  ///   are set by a request that passes.
  ///
  /// The window of check 9 starts with every accepted token, the first one included: Apple asks for
  /// at most one new token in 20 minutes.
  mutating func judge(
    authorization: ArraySlice<UInt8>?, accounts: APNsAccounts, now: Int64, interval: Int64
  ) -> Result<ProviderToken, APNsRefusal> {
    guard let bytes = ProviderToken.bearer(authorization) else {
      return .failure(.init(.missingProviderToken))
    }
    let token: ProviderToken
    if let current, current.epoch == accounts.epoch, current.isWritten(bytes) {
      token = current
    } else {
      switch ProviderToken.verify(bytes, accounts: accounts, team: team, now: now) {
      case .success(let verified): token = verified
      case .failure(let refusal): return .failure(refusal)
      }
      guard token.environment.allows(environment) else {
        return .failure(.init(.badEnvironmentKeyID))
      }
      if let scope, scope != token.scope { return .failure(.init(.unrelatedKeyID)) }
    }
    if token.isExpired(at: now) { return .failure(.init(.expiredProviderToken)) }
    return settle(token, now: now, interval: interval)
  }

  private mutating func settle(
    _ token: ProviderToken, now: Int64, interval: Int64
  ) -> Result<ProviderToken, APNsRefusal> {
    if now < refusingUntil { return .failure(.init(.tooManyProviderTokenUpdates)) }
    if let current, current.bytes != token.bytes {
      guard now - changedAt >= interval * 1000 else {
        refusingUntil = changedAt + interval * 1000
        return .failure(.init(.tooManyProviderTokenUpdates))
      }
      changedAt = now
    } else if current == nil {
      changedAt = now
    }
    if current?.epoch != token.epoch || current?.bytes != token.bytes { current = token }
    if team == nil { (team, scope) = (token.teamID, token.scope) }
    return .success(token)
  }

  /// Counts a BadDeviceToken answer.
  /// - Returns: Whether there were more than 50 in the last 10 s.
  mutating func countBadToken(now: Int64) -> Bool {
    badTokens.append(now)
    badTokens.removeAll { now - $0 > 10_000 }
    return badTokens.count > 50
  }
}

/// A refused request's answer.
struct APNsRefusal: Error, Equatable {
  let reason: APNsReason
  /// For 410: since when, in ms since the Unix epoch.
  let timestamp: Int64?

  init(_ reason: APNsReason, timestamp: Int64? = nil) {
    self.reason = reason
    self.timestamp = timestamp
  }
}
