import Cryptography

/// The checks of a push request, in the order of emulator.md, section 4.2.
struct APNsChecks {
  let options: APNsOptions
  /// In ms.
  let now: Int64

  /// A request that passed all checks.
  struct Accepted: Sendable {
    let device: Int
    /// The device's, which is the topic's.
    let kind: APNsKind
    /// What the credential was, for the journal.
    let credential: Journal.Credential
    /// The payload is no JSON object: taken and thrown away.
    let isBadPayload: Bool
  }

  /// Checks 1 to 3, before the credential is looked at; and before all, that the header block was
  /// within the listener's limit (emulator.md, section 1).
  func form(_ request: APNsRequest) -> APNsReason? {
    if request.headIsOversized { return .payloadTooLarge }
    guard request.method == .post else { return .methodNotAllowed }
    switch request.path {
    case .bad, .broadcast, .channels, .allChannels: return .badPath
    case .missingToken: return .missingDeviceToken
    case .notAToken, .token: break
    }
    return request.hasDuplicates ? .duplicateHeaders : nil
  }

  /// Checks 10 to 13: the topic and what the credential may do with it.
  func topic(
    _ request: APNsRequest, team: String, key: APNsKey?, certificate: ClientCertificate?,
    accounts: APNsAccounts
  ) -> Result<TopicTarget, APNsRefusal> {
    if request.id == .malformed { return .failure(.init(.badMessageID)) }
    let pushType = request.pushType.value
    let topic: ArraySlice<UInt8>
    if let given = request.topic {
      topic = given
    } else if let permissions = certificate?.permissions, !permissions.requiresTopic {
      topic = ArraySlice(permissions.bundleID.utf8) + (pushType?.kind.topicSuffix ?? "").utf8
    } else {
      return .failure(.init(.missingTopic))
    }
    guard APNsTopic.isWellFormed(topic) else { return .failure(.init(.badTopic)) }
    if options.strictSuffix, let pushType,
      !APNsTopic.suffixFits(topic, pushType: pushType, team: team, accounts: accounts)
    {
      return .failure(.init(.badTopic))
    }
    guard
      let found = APNsTopic.target(
        of: topic, pushType: options.strictSuffix ? pushType : nil, team: team, accounts: accounts),
      key?.allows(topic: topic, bundleID: found.bundleID) ?? true,
      Self.allows(certificate, topic: topic, bundleID: found.bundleID)
    else { return .failure(.init(.topicDisallowed)) }
    // Apple: "location" works with token-based authentication only.
    if certificate != nil, found.target.kind == .location || pushType == .location {
      return .failure(.init(.topicDisallowed))
    }
    return .success(found.target)
  }

  private static func allows(
    _ certificate: ClientCertificate?, topic: ArraySlice<UInt8>, bundleID: String
  ) -> Bool {
    guard let permissions = certificate?.permissions else { return true }
    return permissions.bundleID == bundleID
      || permissions.topics.contains { $0 == bundleID || topic.elementsEqual($0.utf8) }
  }

  /// Checks 14 to 17: the other header fields.
  func fields(_ request: APNsRequest) -> APNsReason? {
    switch request.pushType {
    case .malformed: return .invalidPushType
    case .absent where options.requirePushType: return .invalidPushType
    case .absent, .value: break
    }
    if request.expiration == .malformed { return .badExpirationDate }
    if request.priority == .malformed { return .badPriority }
    if request.priority == .value(10), request.pushType == .value(.background) {
      return .badPriority
    }
    if let collapseID = request.collapseID, collapseID.count > 64 { return .badCollapseID }
    return nil
  }

  /// Checks 18 to 20: the device token.
  /// - Returns: The device's index.
  func token(
    _ request: APNsRequest, target: TopicTarget, environment: APNsEnvironment,
    accounts: APNsAccounts, devices: DeviceTable
  ) -> Result<Int, APNsRefusal> {
    guard case .token(let token) = request.path,
      let device = accounts.device(token, in: environment)
    else { return .failure(.init(.badDeviceToken)) }
    let handle: APNsHandle
    let registration: Device.Registration
    var silentUntil: Int64 = 0
    if case .apns(let current) = devices[device].handle, current.token == token,
      current.environment == environment
    {
      handle = current
      registration = devices[device].registration(at: now)
      silentUntil = devices[device].silentUntil
    } else if let former = formerHandle(token, environment, of: device, devices) {
      (handle, registration) = former
    } else {
      return .failure(.init(.badDeviceToken))
    }
    switch registration {
    case .unknown: return .failure(.init(.badDeviceToken))
    case .unregistered(let at) where now >= silentUntil:
      return .failure(.init(.unregistered, timestamp: at))
    case .expired(let at) where now >= silentUntil:
      return .failure(.init(.expiredToken, timestamp: at))
    case .registered, .unregistered, .expired: break
    }
    guard devices[device].app == target.app, handle.kind == target.kind else {
      return .failure(.init(.deviceTokenNotForTopic))
    }
    return .success(device)
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

  /// Checks 21 and 22: the payload's size.
  func size(_ request: APNsRequest, kind: APNsKind) -> APNsReason? {
    if request.bodyIsOversized { return .payloadTooLarge }
    if request.body.isEmpty { return .payloadEmpty }
    return request.body.count > kind.payloadLimit ? .payloadTooLarge : nil
  }
}
