/// What APNs does with a request, from the first check to the store.
extension EmulatorState {
  /// APNs' answer and what it made of the message.
  struct APNsAnswer: Sendable {
    var refusal: APNsRefusal?
    /// Echoed or made.
    var id: MessageID
    /// In the sandbox: the key to Apple's delivery log.
    var uniqueID: MessageID?
    var credential: Journal.Credential = .none
    var storeAction: StoreAction?
    /// This request's token was the connection's first: the stream limit rises.
    var opensStreams = false
    /// The connection has had too many bad tokens.
    var isPenalized = false
  }

  /// Processes a push request.
  ///
  /// - Parameter slot: The connection's.
  mutating func handleAPNs(_ request: APNsRequest, slot: Int, now: Int64) -> APNsAnswer {
    var answer = APNsAnswer(id: request.id.value ?? generator.uuid())
    guard connections[slot] != nil else {
      answer.refusal = .init(.shutdown)
      return answer
    }
    let wasOpen = connections[slot]?.apns.isOpen ?? false
    switch check(request, slot: slot, now: now, credential: &answer.credential) {
    case .failure(let refusal):
      answer.refusal = refusal
      if refusal.reason == .badDeviceToken, settings.apns.errorPenalty {
        answer.isPenalized = connections[slot]?.apns.countBadToken(now: now) ?? false
      }
    case .success(let accepted):
      if connections[slot]?.apns.environment == .sandbox { answer.uniqueID = generator.uuid() }
      answer.storeAction = accept(request, accepted, id: answer.id, now: now)
    }
    answer.opensStreams = !wasOpen && (connections[slot]?.apns.isOpen ?? false)
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
    let environment = connections[slot]?.apns.environment ?? .production
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

  private struct Identity {
    let team: String
    let kid: String?
    let certificate: ClientCertificate?
    let credential: Journal.Credential
  }

  /// Checks 4 to 9: who is asking.
  private mutating func identify(
    _ request: APNsRequest, slot: Int, now: Int64
  ) -> Result<Identity, APNsRefusal> {
    guard let environment = connections[slot]?.apns.environment else {
      return .failure(.init(.shutdown))
    }
    if let certificate = connections[slot]?.apns.certificate {
      return certificate.judge(accounts: apns, environment: environment).map {
        Identity(
          team: $0.teamID, kid: nil, certificate: certificate,
          credential: .certificate(sha256: certificate.sha256))
      }
    }
    let judged = connections[slot]?.apns.judge(
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
    if let memory = connections[slot]?.apns.topic, memory.epoch == apns.epoch,
      memory.kid == identity.kid, memory.pushType == request.pushType.value,
      request.id != .malformed, memory.topic == request.topic
    {
      return .success(memory.target)
    }
    let result = checks.topic(
      request, team: identity.team, key: identity.kid.flatMap { apns.keys[$0] },
      certificate: identity.certificate, accounts: apns)
    if case .success(let target) = result, let topic = request.topic {
      connections[slot]?.apns.topic = .init(
        topic: ArraySlice(Array(topic)), pushType: request.pushType.value, kid: identity.kid,
        epoch: apns.epoch, target: target)
    }
    return result
  }

  // MARK: Store and forward

  /// Takes an accepted message: delivers, holds, stores or discards it (emulator.md, section 3).
  private mutating func accept(
    _ request: APNsRequest, _ accepted: APNsChecks.Accepted, id: MessageID, now: Int64
  ) -> StoreAction {
    let device = accepted.device
    devices.withLog(of: device) { $0.counters.accepted += 1 }
    let why: DiscardReason? =
      if devices[device].registration(at: now) != .registered {
        .unregisteredSilent
      } else if devices[device].flags.contains(.disabled) {
        .disabled
      } else if accepted.isBadPayload {
        .badPayload
      } else {
        nil
      }
    if let why {
      devices.discard(id, for: device, why: why)
      return .discarded
    }
    let notification = notification(request, accepted, id: id, now: now)
    guard devices.isOnline(device) else { return store(notification, for: device, now: now) }
    if devices[device].flags.contains(.powerSaving) {
      if Self.holds(notification) { return hold(notification, for: device, now: now) }
      releaseHeld(device, now: now)
    }
    devices.deliver(notification, to: device, from: .live, now: now)
    return .delivered
  }

  private func notification(
    _ request: APNsRequest, _ accepted: APNsChecks.Accepted, id: MessageID, now: Int64
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
      id: id, receivedAt: now, headers: .apns(headers), payload: request.body,
      collapseKey: collapseID, storableUntil: storableUntil > now ? storableUntil : 0,
      requestSeq: lastRequest)
  }

  /// Keeps a message for a device that is offline.
  private mutating func store(
    _ notification: Notification, for device: Int, now: Int64
  ) -> StoreAction {
    guard notification.storableUntil > now else {
      devices.discard(notification.id, for: device, why: .offlineNoStore)
      return .discarded
    }
    let replaced = replaceWaiting(notification, for: device, heldUntil: nil)
    if !replaced {
      devices.withLog(of: device) { $0.waiting.append(.init(notification: notification)) }
    }
    let capacity = max(1, settings.apns.storedPerApp)
    var fellOut: [MessageID] = []
    devices.withLog(of: device) { log in
      while log.waiting.count > capacity {
        fellOut.append(log.waiting.removeFirst().notification.id)
      }
    }
    for old in fellOut {
      if capacity == 1 {
        devices.withLog(of: device) { $0.counters.replaced += 1 }
        devices.record(.replaced(old, by: notification.id), for: device)
      } else {
        devices.discard(old, for: device, why: .storeFull)
      }
    }
    devices.schedule(device)
    return replaced || !fellOut.isEmpty ? .replaced : .stored
  }

  /// Most messages held back for one device that saves power.
  private static let heldLimit = 100

  /// Keeps a message for a device that saves power.
  private mutating func hold(
    _ notification: Notification, for device: Int, now: Int64
  ) -> StoreAction {
    guard notification.storableUntil > now else {
      devices.discard(notification.id, for: device, why: .offlineNoStore)
      return .discarded
    }
    let until = now + settings.apns.groupWindow * 1000
    if !replaceWaiting(notification, for: device, heldUntil: until) {
      let full = devices.withLog(of: device) { log -> MessageID? in
        let oldest = log.waiting.count >= Self.heldLimit ? log.waiting.removeFirst() : nil
        log.waiting.append(.init(notification: notification, heldUntil: until))
        return oldest?.notification.id
      }
      if let full { devices.discard(full, for: device, why: .storeFull) }
    }
    devices.schedule(device)
    return .held
  }

  /// Puts the message in the place of a waiting one with the same collapse id.
  private mutating func replaceWaiting(
    _ notification: Notification, for device: Int, heldUntil: Int64?
  ) -> Bool {
    guard let key = notification.collapseKey else { return false }
    let old = devices.withLog(of: device) { log -> MessageID? in
      guard let place = log.waiting.firstIndex(where: { $0.notification.collapseKey == key })
      else { return nil }
      let old = log.waiting[place]
      log.waiting[place] = .init(
        notification: notification, heldUntil: old.heldUntil ?? heldUntil)
      log.counters.replaced += 1
      return old.notification.id
    }
    guard let old else { return false }
    devices.record(.replaced(old, by: notification.id), for: device)
    return true
  }

  /// A message of priority 10 takes the held ones with it.
  private mutating func releaseHeld(_ device: Int, now: Int64) {
    let held = devices.withLog(of: device) { log in
      defer { log.waiting = [] }
      return log.waiting.map(\.notification)
    }
    for notification in held where notification.storableUntil > now {
      devices.deliver(notification, to: device, from: .store, now: now)
    }
  }
}
