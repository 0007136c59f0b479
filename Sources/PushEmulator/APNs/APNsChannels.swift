import Cryptography
import HTTP2
import HTTPServer
import Wire

/// A broadcast channel: one push to it reaches every device that subscribed
/// (https://developer.apple.com/documentation/usernotifications/sending-channel-management-requests-to-apns).
struct APNsChannel: Sendable, Codable {
  /// The treatment of a broadcast for a subscriber that cannot be reached at once.
  enum StoragePolicy: Int, Sendable, Codable {
    case noMessageStored = 0
    case mostRecentMessageStored = 1
  }

  /// The scope of a channel: one app in one environment.
  struct Place: Hashable, Sendable {
    let app: UInt32
    let environment: APNsEnvironment
  }

  /// The value of `push-type`; Apple has no other yet.
  static let pushType = "LiveActivity"

  /// The id as APNs returns it: base 64 with padding.
  let id: String
  let app: UInt32
  let environment: APNsEnvironment
  let policy: StoragePolicy
  /// In ms since the Unix epoch.
  let createdAt: Int64
  /// Device indices.
  var subscribers: Set<Int> = []
  /// The number by which channels are listed in the order of their creation.
  fileprivate(set) var number = 0

  private enum CodingKeys: String, CodingKey {
    case id, app, environment, policy, createdAt, subscribers
  }

  init(id: String, at place: Place, policy: StoragePolicy, createdAt: Int64) {
    self.id = id
    (app, environment) = (place.app, place.environment)
    self.policy = policy
    self.createdAt = createdAt
  }

  var place: Place { Place(app: app, environment: environment) }

  /// Whether a text can be a channel's id: base 64 with padding, of 1 to 64 characters. Apple lists
  /// encoding and length as possible faults and gives no limit.
  static func isWellFormed(_ id: ArraySlice<UInt8>) -> Bool {
    guard (1...64).contains(id.count), id.count % 4 == 0 else { return false }
    let digits = id.prefix { $0 != UInt8(ascii: "=") }
    return id.count - digits.count <= 2
      && id[digits.endIndex...].allSatisfy { $0 == UInt8(ascii: "=") }
      && digits.allSatisfy { $0.isLetter || $0.isDigit || "+/".utf8.contains($0) }
  }
}

/// All broadcast channels.
struct APNsChannels: Sendable {
  private var places: [APNsChannel.Place: [String: APNsChannel]] = [:]
  private var lastNumber = 0

  func channel(_ id: String, at place: APNsChannel.Place) -> APNsChannel? { places[place]?[id] }

  func count(at place: APNsChannel.Place) -> Int { places[place]?.count ?? 0 }

  /// The channels of a place in the order of their creation.
  func all(at place: APNsChannel.Place) -> [APNsChannel] {
    (places[place] ?? [:]).values.sorted { $0.number < $1.number }
  }

  /// The channels of all apps, in the order of their creation.
  var all: [APNsChannel] {
    places.values.flatMap(\.values).sorted { $0.number < $1.number }
  }

  mutating func add(_ channel: APNsChannel) {
    lastNumber += 1
    var channel = channel
    channel.number = lastNumber
    places[channel.place, default: [:]][channel.id] = channel
  }

  mutating func remove(_ id: String, at place: APNsChannel.Place) { places[place]?[id] = nil }

  mutating func remove(app: UInt32) { places = places.filter { $0.key.app != app } }

  mutating func removeAll() { places = [:] }

  /// - Returns: Whether the channel exists.
  mutating func setSubscribed(
    _ device: Int, _ isSubscribed: Bool, to id: String, at place: APNsChannel.Place
  ) -> Bool {
    guard places[place]?[id] != nil else { return false }
    if isSubscribed {
      places[place]?[id]?.subscribers.insert(device)
    } else {
      places[place]?[id]?.subscribers.remove(device)
    }
    return true
  }
}

/// Requests about broadcast channels, from the first check to the devices. The checks come in this
/// order: form, credential (checked as for a push), request id, app, and the requirements of the
/// operation itself.
///
/// Apple documents the reasons and not their order
/// (https://developer.apple.com/documentation/usernotifications/handling-error-responses-from-apns);
/// this order is that of a push to a device.
extension APNsStandIn {
  /// The operation of a request whose path and method are valid.
  private enum Operation {
    case create, read, delete, list, broadcast
  }

  /// Bytes of a broadcast's payload; more is refused.
  private static let channelPayloadLimit = 5120

  /// Processes a channel management request, or a broadcast.
  func answerChannels(
    _ request: APNsRequest, id: APNsMessageID, on connection: APNsConnection, now: Int64,
    credential: inout Journal.Credential, in state: inout EmulatorState
  ) throws(APNsRefusal) -> ServiceAnswer {
    let (operation, bundleID) = try operation(request, on: connection)
    let identity = try identify(request, on: connection, now: now, credential: &credential)
    if request.requestID == .malformed { throw .init(.badMessageID) }
    let app = try app(bundleID, identity)
    let place = APNsChannel.Place(app: app.number, environment: connection.environment)
    switch operation {
    case .create:
      let channel = try newChannel(request, at: place, now: now, in: &state)
      var answer = Self.success(201, id, ofChannels: true, channelID: channel)
      answer.handle = channel
      return answer
    case .list:
      let ids = channels.all(at: place).map { JSONValue.string($0.id) }
      return Self.success(200, id, ofChannels: true, body: ["channels": .array(ids)])
    case .read, .delete, .broadcast: break
    }
    let channelID = try channelID(request)
    if operation == .broadcast { try checkBroadcastFields(request) }
    guard let channel = channels.channel(channelID, at: place) else {
      throw .init(.channelNotRegistered)
    }
    switch operation {
    case .broadcast: return try broadcast(request, id: id, to: channel, app, now: now, in: &state)
    case .delete:
      channels.remove(channelID, at: place)
      state.revision += 1
      return Self.success(204, id, ofChannels: true)
    default:
      return Self.success(
        200, id, ofChannels: true,
        body: [
          "message-storage-policy": JSONValue(channel.policy.rawValue),
          "push-type": .string(APNsChannel.pushType),
        ])
    }
  }

  // MARK: Checks

  private func operation(
    _ request: APNsRequest, on connection: APNsConnection
  ) throws(APNsRefusal) -> (Operation, bundleID: ArraySlice<UInt8>) {
    if request.headIsOversized { throw .init(.payloadTooLarge) }
    let found: (operation: Operation?, bundleID: ArraySlice<UInt8>)
    switch (request.path, connection.managesChannels) {
    case (.broadcast(let bundleID), false):
      found = (request.method == .post ? .broadcast : nil, bundleID)
    case (.channels(let bundleID), true):
      switch request.method {
      case .post: found = (.create, bundleID)
      case .get: found = (.read, bundleID)
      case .delete: found = (.delete, bundleID)
      case .other: found = (nil, bundleID)
      }
    case (.allChannels(let bundleID), true):
      found = (request.method == .get ? .list : nil, bundleID)
    default: throw .init(.badPath)
    }
    guard let operation = found.operation else { throw .init(.methodNotAllowed) }
    if request.hasDuplicates { throw .init(.duplicateHeaders) }
    return (operation, found.bundleID)
  }

  /// The app in the path, if the credential is valid for it and the app has broadcasts.
  private func app(
    _ bundleID: ArraySlice<UInt8>, _ identity: Identity
  ) throws(APNsRefusal) -> APNsApp {
    guard APNsTopic.isWellFormed(bundleID) else { throw .init(.badTopic) }
    let name = String(decoding: bundleID, as: UTF8.self)
    if let permissions = identity.certificate?.permissions, permissions.bundleID != name {
      throw .init(.topicMismatch)
    }
    guard let app = accounts.app(team: identity.team, bundleID: name),
      identity.kid.flatMap({ accounts.keys[$0] })?.allows(topic: bundleID, bundleID: name) ?? true
    else { throw .init(.topicDisallowed) }
    guard app.hasBroadcasts ?? true else { throw .init(.featureNotEnabled) }
    return app
  }

  /// The channel's id; whether such a channel exists is checked elsewhere.
  private func channelID(_ request: APNsRequest) throws(APNsRefusal) -> String {
    guard let id = request.channelID, !id.isEmpty else { throw .init(.missingChannelID) }
    guard APNsChannel.isWellFormed(id) else { throw .init(.badChannelID) }
    return String(decoding: id, as: UTF8.self)
  }

  /// The storage policy in a request for a new channel.
  private func policy(_ request: APNsRequest) throws(APNsRefusal) -> APNsChannel.StoragePolicy {
    try checkSize(request, limit: Self.channelPayloadLimit)
    guard let body = try? JSONValue.read(request.body, uniqueNames: true), body.members != nil
    else {
      throw .init(.badRequest)
    }
    guard let type = body.member("push-type"), type != .null else { throw .init(.missingPushType) }
    guard type.text == APNsChannel.pushType else { throw .init(.invalidPushType) }
    guard let number = body.member("message-storage-policy")?.whole,
      let policy = Int(exactly: number).flatMap(APNsChannel.StoragePolicy.init)
    else { throw .init(.badRequest) }
    return policy
  }

  private func checkBroadcastFields(_ request: APNsRequest) throws(APNsRefusal) {
    switch request.pushType {
    case .absent: throw .init(.missingPushType)
    case .value(.liveactivity): break
    case .malformed, .value: throw .init(.invalidPushType)
    }
    // Unlike a push to a device, a broadcast must have an expiration.
    guard request.expiration.value != nil else { throw .init(.badExpirationDate) }
    if request.priority == .malformed { throw .init(.badPriority) }
  }

  // MARK: Operations

  private func newChannel(
    _ request: APNsRequest, at place: APNsChannel.Place, now: Int64, in state: inout EmulatorState
  ) throws(APNsRefusal) -> String {
    let policy = try policy(request)
    guard channels.count(at: place) < options.maxChannels else {
      throw .init(.cannotCreateChannelConfig)
    }
    // 16 random bytes, as the ids of the real service are.
    let random = state.generator.uuid()
    let bytes = [random.high, random.low].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) }
    }
    let id = Base64.encode(bytes)
    channels.add(APNsChannel(id: id, at: place, policy: policy, createdAt: now))
    state.revision += 1
    return id
  }

  /// The latest message of each channel is stored, apart from messages to the device's own token.
  private static let channelShelf = Shelf(number: 1, limit: 1000, overflow: .dropsOldest)

  /// Accepts a broadcast for every subscriber.
  private func broadcast(
    _ request: APNsRequest, id: APNsMessageID, to channel: APNsChannel, _ app: APNsApp, now: Int64,
    in state: inout EmulatorState
  ) throws(APNsRefusal) -> ServiceAnswer {
    let expiration = request.expiration.value ?? 0
    if channel.policy == .noMessageStored, expiration != 0 { throw .init(.badExpirationDate) }
    try checkSize(request, limit: Self.channelPayloadLimit)
    let isObject = try checkPayload(request)
    let uniqueID = channel.environment == .sandbox ? state.generator.uuid() : nil
    let place = APNsKind.allCases.firstIndex(of: .liveactivity) ?? 0
    let headers = APNsHeaders(
      topic: app.topics[place], pushType: .liveactivity, priority: request.priority.value,
      expiration: expiration, collapseID: nil, channelID: channel.id)
    let storableUntil = min(expiration, EmulatorClock.latest / 1000) * 1000
    let notification = Notification(
      id: .apns(id), receivedAt: now, headers: .apns(headers), payload: request.body,
      urgency: headers.urgency, collapseKey: nil, storeKey: .some("channel " + channel.id),
      storableUntil: storableUntil > now ? storableUntil : 0, shelf: Self.channelShelf,
      requestSeq: state.lastRequest)
    var answer = Self.success(200, id, ofChannels: true, uniqueID: uniqueID)
    var actions: Set<StoreAction> = []
    answer.recipients = 0
    // A device without the app no longer has a subscription.
    for device in channel.subscribers.sorted()
    where state.devices[device].registration(at: now) == .registered {
      actions.insert(state.take(notification, for: device, now: now, isBadPayload: !isObject))
      answer.recipients? += 1
    }
    answer.storeAction = actions.count == 1 ? actions.first : nil
    return answer
  }

  // MARK: Control

  /// Channels are created as at Apple, by a request to the channel management address; the control
  /// API lists them and subscribes devices.
  func addRoutes(to api: ControlAPI, _ on: ControlAPI.Adder) {
    on(.get, "/channels") { request throws(ControlError) in
      let app = request.query("appId")
      return ControlAPI.response(
        try api.core.withState { state throws(ControlError) in
          let number = try app.map { id throws(ControlError) in try state.appNumber(id) }
          let list = self.channels.all.filter { number == nil || $0.app == number }
          return ["channels": .array(list.map(\.json))]
        })
    }
    for (path, subscribes) in [("/subscribe", true), ("/unsubscribe", false)] {
      api.onDevice(on, .post, path) { state, index, request throws(ControlError) in
        let body = try JSONReader(try request.json(), known: ["channelId"])
        let id = try body.required("channelId")
        guard case .apns(let handle) = state.devices[index].handle else {
          throw .conflict("only devices of apns can subscribe to a channel")
        }
        let place = APNsChannel.Place(
          app: state.devices[index].app, environment: handle.environment)
        guard self.channels.setSubscribed(index, subscribes, to: id, at: place) else {
          throw .notFound(
            "channel '\(id)' of the device's app in the \(handle.environment.rawValue) environment")
        }
        state.revision += 1
        return state.details(of: index)
      }
    }
  }
}

extension APNsChannel {
  fileprivate var json: JSONValue {
    [
      "channelId": .string(id), "appId": .string(EmulatorState.appID(app)),
      "environment": .string(environment.rawValue),
      "messageStoragePolicy": JSONValue(policy.rawValue),
      "pushType": .string(Self.pushType), "createdAt": JSONValue(createdAt),
      "subscribers": .array(subscribers.sorted().map { .string(EmulatorState.deviceID($0)) }),
    ]
  }
}
