/// What APNs does with a request, from the first check to the store.
extension EmulatorState {
  /// APNs' answer and what it made of the message.
  struct APNsAnswer: Sendable {
    var refusal: APNsRefusal?
    /// Echoed or made.
    var id: APNsMessageID
    /// The id travels as `apns-request-id`.
    var isOfChannels = false
    /// Of success.
    var status = 200
    /// Of a new channel.
    var channelID: String?
    /// Of success.
    var body: JSON?
    /// In the sandbox: the key to Apple's delivery log.
    var uniqueID: APNsMessageID?
    var credential: Journal.Credential = .none
    /// What became of the message; of a broadcast, where it is the same for all.
    var storeAction: StoreAction?
    /// How many devices a broadcast was for.
    var recipients: Int?
    /// This request's token was the connection's first: the stream limit rises.
    var opensStreams = false
    /// The connection has had too many bad tokens.
    var isPenalized = false
  }

  /// Processes a push request.
  ///
  /// - Parameter slot: The connection's.
  mutating func handleAPNs(_ request: APNsRequest, slot: Int, now: Int64) -> APNsAnswer {
    if request.isOfChannels || connections[slot]?.apns?.interface == .channelManagement {
      return handleChannels(request, slot: slot, now: now)
    }
    var answer = APNsAnswer(id: request.id.value ?? generator.uuid())
    guard connections[slot] != nil else {
      answer.refusal = .init(.shutdown)
      return answer
    }
    let wasOpen = connections[slot]?.apns?.isOpen ?? false
    switch check(request, slot: slot, now: now, credential: &answer.credential) {
    case .failure(let refusal):
      answer.refusal = refusal
      if refusal.reason == .badDeviceToken, settings.apns.errorPenalty {
        answer.isPenalized = connections[slot]?.apns?.countBadToken(now: now) ?? false
      }
    case .success(let accepted):
      if connections[slot]?.apns?.environment == .sandbox { answer.uniqueID = generator.uuid() }
      answer.storeAction = take(
        notification(request, accepted, id: answer.id, now: now), for: accepted.device, now: now,
        isBadPayload: accepted.isBadPayload)
    }
    answer.opensStreams = !wasOpen && (connections[slot]?.apns?.isOpen ?? false)
    return answer
  }

  // MARK: Checks

  private mutating func check(
    _ request: APNsRequest, slot: Int, now: Int64, credential: inout Journal.Credential
  ) -> Result<APNsChecks.Accepted, APNsRefusal> {
    let checks = APNsChecks(options: settings.apns, now: now)
    if let reason = checks.form(request) { return .failure(.init(reason)) }
    let identity: Identity
    switch identify(request, slot: slot, now: now) {
    case .success(let found): identity = found
    case .failure(let refusal):
      if request.authorization != nil { credential = .refusedToken }
      return .failure(refusal)
    }
    credential = identity.credential
    let target: TopicTarget
    switch self.target(of: request, identity, checks, slot: slot) {
    case .success(let found): target = found
    case .failure(let refusal): return .failure(refusal)
    }
    if let reason = checks.fields(request) { return .failure(.init(reason)) }
    let environment = connections[slot]?.apns?.environment ?? .production
    let device: Int
    switch checks.token(
      request, target: target, environment: environment, accounts: apns, devices: devices)
    {
    case .success(let found): device = found
    case .failure(let refusal): return .failure(refusal)
    }
    if let reason = checks.size(request, kind: target.kind) { return .failure(.init(reason)) }
    if let rate = settings.apns.perTokenRate,
      !devices.withLog(
        of: device, { $0.rate.take(rate: rate, burst: max(1, rate), now: now) })
    {
      return .failure(.init(.tooManyRequests))
    }
    let isObject = request.body.withUnsafeBufferPointer { JSONScanner.isObject($0) }
    if !isObject, settings.apns.rejectBadJSON { return .failure(.init(.payloadEmpty)) }
    return .success(
      .init(device: device, kind: target.kind, credential: credential, isBadPayload: !isObject))
  }

  struct Identity {
    let team: String
    let kid: String?
    let certificate: ClientCertificate?
    let credential: Journal.Credential
  }

  /// Checks 4 to 9: who is asking.
  mutating func identify(
    _ request: APNsRequest, slot: Int, now: Int64
  ) -> Result<Identity, APNsRefusal> {
    guard let environment = connections[slot]?.apns?.environment else {
      return .failure(.init(.shutdown))
    }
    if let certificate = connections[slot]?.apns?.certificate {
      return certificate.judge(accounts: apns, environment: environment).map {
        Identity(
          team: $0.teamID, kid: nil, certificate: certificate,
          credential: .certificate(sha256: certificate.sha256))
      }
    }
    let judged = connections[slot]?.apns?.judge(
      authorization: request.authorization, accounts: apns, now: now,
      interval: settings.apns.tokenUpdateInterval)
    return (judged ?? .failure(.init(.shutdown))).map {
      Identity(team: $0.teamID, kid: $0.kid, certificate: nil, credential: .token($0))
    }
  }

  /// Checks 10 to 13, with the memory of the last topic: nearly every request has the same.
  private mutating func target(
    of request: APNsRequest, _ identity: Identity, _ checks: APNsChecks, slot: Int
  ) -> Result<TopicTarget, APNsRefusal> {
    if let memory = connections[slot]?.apns?.topic, memory.epoch == apns.epoch,
      memory.kid == identity.kid, memory.pushType == request.pushType.value,
      request.id != .malformed, memory.topic == request.topic
    {
      return .success(memory.target)
    }
    let result = checks.topic(
      request, team: identity.team, key: identity.kid.flatMap { apns.keys[$0] },
      certificate: identity.certificate, accounts: apns)
    if case .success(let target) = result, let topic = request.topic {
      connections[slot]?.apns?.topic = .init(
        topic: ArraySlice(Array(topic)), pushType: request.pushType.value, kid: identity.kid,
        epoch: apns.epoch, target: target)
    }
    return result
  }

  // MARK: Store and forward

  private func notification(
    _ request: APNsRequest, _ accepted: APNsChecks.Accepted, id: APNsMessageID, now: Int64
  ) -> Notification {
    let place = APNsKind.allCases.firstIndex(of: accepted.kind) ?? 0
    let expiration = request.expiration.value
    let storableUntil: Int64 =
      switch expiration {
      case nil: now + settings.apns.defaultStorage * 1000
      case .some(let seconds): min(seconds, EmulatorClock.latest / 1000) * 1000
      }
    let collapseID = request.collapseID.map { String(decoding: $0, as: UTF8.self) }
    let headers = APNsHeaders(
      topic: apns.apps[devices[accepted.device].app]?.topics[place] ?? "",
      pushType: request.pushType.value, priority: request.priority.value, expiration: expiration,
      collapseID: collapseID)
    return Notification(
      id: .apns(id), receivedAt: now, headers: .apns(headers), payload: request.body,
      urgency: headers.urgency, collapseKey: collapseID,
      storableUntil: storableUntil > now ? storableUntil : 0, shelf: apnsShelf,
      requestSeq: lastRequest)
  }

  /// All of an app's messages to a device wait in one place; where there is one only, a newer
  /// message replaces it.
  private var apnsShelf: Shelf {
    let limit = max(1, settings.apns.storedPerApp)
    return Shelf(number: 0, limit: limit, overflow: limit == 1 ? .replacesOldest : .dropsOldest)
  }
}
