import Cryptography
import Wire

/// The checks of a push request, in the order of docs/protocol/emulator.md, section 4.2.
extension APNsStandIn {
  /// Checks method, path and duplicate fields, before the credential; but first that the header
  /// block was within the listener's limit (docs/protocol/emulator.md, section 1).
  func checkForm(_ request: APNsRequest) throws(APNsRefusal) {
    if request.headIsOversized { throw .init(.payloadTooLarge) }
    guard request.method == .post else { throw .init(.methodNotAllowed) }
    switch request.path {
    case .bad, .broadcast, .channels, .allChannels: throw .init(.badPath)
    case .missingToken: throw .init(.missingDeviceToken)
    case .notAToken, .token: break
    }
    if request.hasDuplicates { throw .init(.duplicateHeaders) }
  }

  struct Identity {
    /// `nil` for any.
    let team: String?
    let kid: String?
    let certificate: ClientCertificate?
  }

  /// Authenticates the sender by the provider token.
  func identify(
    _ request: APNsRequest, on connection: APNsConnection, now: Int64,
    credential: inout Journal.Credential
  ) throws(APNsRefusal) -> Identity {
    if request.authorization != nil { credential = .refusedToken }
    if let certificate = connection.certificate {
      let app = try certificate.judge(accounts: accounts, environment: connection.environment)
      credential = .certificate(sha256: certificate.sha256)
      return Identity(team: app.teamID, kid: nil, certificate: certificate)
    }
    let token = try connection.judge(authorization: request.authorization, by: self, now: now)
    // The journal keeps tokens whole, to share them.
    credential = token.isAny ? .accepted(keyID: token.kid) : .token(token)
    return Identity(team: token.isAny ? nil : token.teamID, kid: token.kid, certificate: nil)
  }

  /// Checks `apns-id` and the topic. The last topic is cached, because nearly every request has the
  /// same.
  func target(
    of request: APNsRequest, _ identity: Identity, on connection: APNsConnection
  ) throws(APNsRefusal) -> TopicTarget {
    if let memory = connection.topic, memory.epoch == accounts.epoch, memory.kid == identity.kid,
      memory.pushType == request.pushType.value, request.id != .malformed,
      memory.topic == request.topic
    {
      return memory.target
    }
    let target = try checkTopic(of: request, identity)
    if let topic = request.topic {
      connection.topic = .init(
        topic: ArraySlice(Array(topic)), pushType: request.pushType.value, kid: identity.kid,
        epoch: accounts.epoch, target: target)
    }
    return target
  }

  private func checkTopic(
    of request: APNsRequest, _ identity: Identity
  ) throws(APNsRefusal) -> TopicTarget {
    if request.id == .malformed { throw .init(.badMessageID) }
    let pushType = request.pushType.value
    let permissions = identity.certificate?.permissions
    let topic: ArraySlice<UInt8>
    if let given = request.topic {
      topic = given
    } else if let permissions, !permissions.requiresTopic {
      topic = ArraySlice(permissions.bundleID.utf8) + (pushType?.kind.topicSuffix ?? "").utf8
    } else {
      throw .init(.missingTopic)
    }
    guard APNsTopic.isWellFormed(topic) else { throw .init(.badTopic) }
    if options.strictSuffix, let pushType,
      !APNsTopic.suffixFits(topic, pushType: pushType, team: identity.team, accounts: accounts)
    {
      throw .init(.badTopic)
    }
    guard
      let found = APNsTopic.target(
        of: topic, pushType: options.strictSuffix ? pushType : nil, team: identity.team,
        accounts: accounts),
      identity.kid.flatMap({ accounts.keys[$0] })?.allows(topic: topic, bundleID: found.bundleID)
        ?? true,
      permissions?.allows(topic: topic, bundleID: found.bundleID) ?? true
    else { throw .init(.topicDisallowed) }
    // Apple: "location" works with token-based authentication only.
    if identity.certificate != nil, found.target.kind == .location || pushType == .location {
      throw .init(.topicDisallowed)
    }
    return found.target
  }

  /// Checks push type, expiration, priority and collapse id.
  func checkFields(_ request: APNsRequest) throws(APNsRefusal) {
    switch request.pushType {
    case .malformed: throw .init(.invalidPushType)
    case .absent where options.requirePushType: throw .init(.invalidPushType)
    case .absent, .value: break
    }
    if request.expiration == .malformed { throw .init(.badExpirationDate) }
    if request.priority == .malformed { throw .init(.badPriority) }
    if request.priority == .value(10), request.pushType == .value(.background) {
      throw .init(.badPriority)
    }
    if let collapseID = request.collapseID, collapseID.count > 64 { throw .init(.badCollapseID) }
  }

  /// Checks the device token.
  /// - Returns: The device's index.
  func device(
    for request: APNsRequest, _ target: TopicTarget, in environment: APNsEnvironment, now: Int64,
    _ state: EmulatorState
  ) throws(APNsRefusal) -> Int {
    guard case .token(let token) = request.path,
      let device = state.handles.device(token, in: environment)
    else { throw .init(.badDeviceToken) }
    let handle: APNsHandle
    let registration: Device.Registration
    var silentUntil: Int64 = 0
    if case .apns(let current) = state.devices[device].handle, current.token == token,
      current.environment == environment
    {
      handle = current
      registration = state.devices[device].registration(at: now)
      silentUntil = state.devices[device].silentUntil
    } else if let former = formerHandle(token, environment, of: device, state.devices) {
      (handle, registration) = former
    } else {
      throw .init(.badDeviceToken)
    }
    switch registration {
    case .unknown: throw .init(.badDeviceToken)
    case .unregistered(let at) where now >= silentUntil: throw .init(.unregistered, timestamp: at)
    case .expired(let at) where now >= silentUntil: throw .init(.expiredToken, timestamp: at)
    case .registered, .unregistered, .expired: break
    }
    guard state.devices[device].app == target.app, handle.kind == target.kind else {
      throw .init(.deviceTokenNotForTopic)
    }
    return device
  }

  private func formerHandle(
    _ token: APNsToken, _ environment: APNsEnvironment, of device: Int, _ devices: DeviceTable
  ) -> (APNsHandle, Device.Registration)? {
    for former in devices.log(of: device)?.formerHandles ?? [] {
      if case .apns(let handle) = former.handle, handle.token == token,
        handle.environment == environment
      {
        return (handle, former.registration)
      }
    }
    return nil
  }

  /// Checks the payload's size, also that of a broadcast.
  func checkSize(_ request: APNsRequest, limit: Int) throws(APNsRefusal) {
    if request.bodyIsOversized { throw .init(.payloadTooLarge) }
    if request.body.isEmpty { throw .init(.payloadEmpty) }
    if request.body.count > limit { throw .init(.payloadTooLarge) }
  }

  /// Whether the payload is a JSON object; one that is not is accepted and discarded.
  func checkPayload(_ request: APNsRequest) throws(APNsRefusal) -> Bool {
    let isObject = JSONScanner.isObject(request.body)
    if !isObject, options.rejectBadJSON { throw .init(.payloadEmpty) }
    return isObject
  }
}

extension Certificate.APNsPermissions {
  fileprivate func allows(topic: ArraySlice<UInt8>, bundleID: String) -> Bool {
    self.bundleID == bundleID
      || topics.contains { $0 == bundleID || topic.elementsEqual($0.utf8) }
  }
}

/// The meaning of a topic: an app, and the kind of token it is for.
struct TopicTarget: Sendable, Equatable {
  let app: UInt32
  let kind: APNsKind
}

/// Parses `apns-topic` (docs/protocol/emulator.md, section 4.2).
enum APNsTopic {
  /// 1 to 255 letters, digits, `.`, `-` and `_`.
  static func isWellFormed(_ topic: ArraySlice<UInt8>) -> Bool {
    guard !topic.isEmpty, topic.count <= 255 else { return false }
    return topic.allSatisfy { $0.isBase64URL || $0 == UInt8(ascii: ".") }
  }

  /// Whether the topic has the suffix that the push type requires. A topic without a suffix must
  /// not have that of another type, unless the team has an app with exactly that name.
  static func suffixFits(
    _ topic: ArraySlice<UInt8>, pushType: APNsPushType, team: String?, accounts: APNsAccounts
  ) -> Bool {
    if pushType == .mdm { return true }
    let suffix = pushType.kind.topicSuffix.utf8
    if !suffix.isEmpty { return hasSuffix(topic, suffix) }
    return !APNsKind.allCases.contains { kind in
      kind != .alert && hasSuffix(topic, kind.topicSuffix.utf8)
    } || accounts.hasApp(team: team, bundleID: topic)
  }

  /// The app and kind of a topic within a team; `nil` when the team has no such app.
  ///
  /// - Parameter pushType: `nil` when the request has none: then the topic alone decides.
  static func target(
    of topic: ArraySlice<UInt8>, pushType: APNsPushType?, team: String?, accounts: APNsAccounts
  ) -> (target: TopicTarget, bundleID: String)? {
    let kinds = [APNsKind.alert] + APNsKind.allCases.filter { $0 != .alert }
    for kind in pushType.map({ [$0.kind] }) ?? kinds {
      let suffix = kind.topicSuffix.utf8
      guard suffix.isEmpty || hasSuffix(topic, suffix) else { continue }
      let bundleID = String(decoding: topic.dropLast(suffix.count), as: UTF8.self)
      if let app = accounts.app(team: team, bundleID: bundleID) {
        return (TopicTarget(app: app.number, kind: kind), bundleID)
      }
    }
    return nil
  }

  private static func hasSuffix(_ topic: ArraySlice<UInt8>, _ suffix: String.UTF8View) -> Bool {
    topic.count > suffix.count && topic.suffix(suffix.count).elementsEqual(suffix)
  }
}

/// The reply to a refused request.
struct APNsRefusal: Error, Equatable {
  let reason: APNsReason
  /// The time since which the token is unregistered, for 410; in ms since the Unix epoch.
  let timestamp: Int64?

  init(_ reason: APNsReason, timestamp: Int64? = nil) {
    self.reason = reason
    self.timestamp = timestamp
  }
}
