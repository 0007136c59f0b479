import Cryptography
import Wire

/// What APNs does with a request about broadcast channels, from the first check to the devices.
extension EmulatorState {
  /// Processes a channel management request, or a broadcast.
  ///
  /// - Parameter slot: The connection's.
  mutating func handleChannels(_ request: APNsRequest, slot: Int, now: Int64) -> APNsAnswer {
    var answer = APNsAnswer(id: request.requestID.value ?? generator.uuid())
    answer.isOfChannels = true
    let wasOpen = connections[slot]?.apns?.isOpen ?? false
    if case .failure(let refusal) = perform(request, slot: slot, now: now, answer: &answer) {
      answer.refusal = refusal
    }
    answer.opensStreams = !wasOpen && (connections[slot]?.apns?.isOpen ?? false)
    return answer
  }

  private mutating func perform(
    _ request: APNsRequest, slot: Int, now: Int64, answer: inout APNsAnswer
  ) -> Result<Void, APNsRefusal> {
    guard let connection = connections[slot]?.apns else { return .failure(.init(.shutdown)) }
    let operation: APNsChannelChecks.Operation
    let bundleID: ArraySlice<UInt8>
    switch APNsChannelChecks.operation(request, at: connection.interface) {
    case .success(let found): (operation, bundleID) = found
    case .failure(let refusal): return .failure(refusal)
    }
    let app: APNsApp
    switch identify(request, slot: slot, now: now) {
    case .failure(let refusal):
      if request.authorization != nil { answer.credential = .refusedToken }
      return .failure(refusal)
    case .success(let identity):
      answer.credential = identity.credential
      if request.requestID == .malformed { return .failure(.init(.badMessageID)) }
      switch APNsChannelChecks.app(
        bundleID, team: identity.team, key: identity.kid.flatMap { apns.keys[$0] },
        certificate: identity.certificate, accounts: apns)
      {
      case .success(let found): app = found
      case .failure(let refusal): return .failure(refusal)
      }
    }
    let place = APNsChannel.Place(app: app.number, environment: connection.environment)
    switch operation {
    case .create: return createChannel(request, at: place, now: now, answer: &answer)
    case .list:
      let ids = channels.all(at: place).map { JSON.string($0.id) }
      answer.body = ["channels": .array(ids)]
      return .success(())
    case .read, .delete, .broadcast:
      let id: String
      switch APNsChannelChecks.channelID(request) {
      case .success(let found): id = found
      case .failure(let refusal): return .failure(refusal)
      }
      if operation == .broadcast, let reason = APNsChannelChecks.fields(request) {
        return .failure(.init(reason))
      }
      guard let channel = channels.channel(id, at: place) else {
        return .failure(.init(.channelNotRegistered))
      }
      switch operation {
      case .broadcast:
        return broadcast(request, to: channel, app: app, now: now, answer: &answer)
      case .delete:
        channels.remove(id, at: place)
        revision += 1
        answer.status = 204
      default:
        answer.body = [
          "message-storage-policy": JSON(channel.policy.rawValue),
          "push-type": .string(APNsChannel.pushType),
        ]
      }
      return .success(())
    }
  }

  private mutating func createChannel(
    _ request: APNsRequest, at place: APNsChannel.Place, now: Int64, answer: inout APNsAnswer
  ) -> Result<Void, APNsRefusal> {
    let policy: APNsChannel.StoragePolicy
    switch APNsChannelChecks.policy(request) {
    case .success(let found): policy = found
    case .failure(let refusal): return .failure(refusal)
    }
    guard channels.count(at: place) < settings.apns.maxChannels else {
      return .failure(.init(.cannotCreateChannelConfig))
    }
    // 16 random bytes, as the ids of the real service are.
    let random = generator.uuid()
    let bytes = [random.high, random.low].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) }
    }
    let id = Base64.encode(bytes)
    channels.add(id: id, at: place, policy: policy, now: now)
    revision += 1
    answer.status = 201
    answer.channelID = id
    return .success(())
  }

  /// Takes a broadcast for every subscriber.
  private mutating func broadcast(
    _ request: APNsRequest, to channel: APNsChannel, app: APNsApp, now: Int64,
    answer: inout APNsAnswer
  ) -> Result<Void, APNsRefusal> {
    let expiration = request.expiration.value ?? 0
    if channel.policy == .noMessageStored, expiration != 0 {
      return .failure(.init(.badExpirationDate))
    }
    let isObject = request.body.withUnsafeBufferPointer { JSONScanner.isObject($0) }
    if let reason = APNsChannelChecks.payload(
      request, isObject: isObject, options: settings.apns)
    {
      return .failure(.init(reason))
    }
    if channel.place.environment == .sandbox { answer.uniqueID = generator.uuid() }
    let place = APNsKind.allCases.firstIndex(of: .liveactivity) ?? 0
    let headers = APNsHeaders(
      topic: app.topics[place], pushType: .liveactivity, priority: request.priority.value,
      expiration: expiration, collapseID: nil, channelID: channel.id)
    let storableUntil = min(expiration, EmulatorClock.latest / 1000) * 1000
    let notification = Notification(
      id: .apns(answer.id), receivedAt: now, headers: .apns(headers), payload: request.body,
      urgency: headers.urgency, collapseKey: nil, storeKey: .some("channel " + channel.id),
      storableUntil: storableUntil > now ? storableUntil : 0, shelf: Self.channelShelf,
      requestSeq: lastRequest)
    var actions: Set<StoreAction> = []
    var recipients = 0
    // A device without the app has no subscription any more.
    for device in channel.subscribers.sorted()
    where devices[device].registration(at: now) == .registered {
      actions.insert(take(notification, for: device, now: now, isBadPayload: !isObject))
      recipients += 1
    }
    answer.recipients = recipients
    answer.storeAction = actions.count == 1 ? actions.first : nil
    return .success(())
  }

  /// The latest message of each channel waits, apart from what comes to the device's own token.
  private static let channelShelf = Shelf(number: 1, limit: 1000, overflow: .dropsOldest)
}
