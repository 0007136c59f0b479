import Cryptography

/// The checks of a request about broadcast channels, in their order: form, credential (which
/// `EmulatorState` judges as for a push), request id, app, and what the operation itself needs.
///
/// Apple documents the words and not their order
/// (https://developer.apple.com/documentation/usernotifications/handling-error-responses-from-apns);
/// this one is that of a push to a device.
struct APNsChannelChecks {
  /// What a request wants, once its path and method are good.
  enum Operation: Sendable, Equatable {
    case create, read, delete, list, broadcast
  }

  /// Bytes of a broadcast's payload; more is refused.
  static let payloadLimit = 5120

  /// - Parameter interface: What the listener is for.
  static func operation(
    _ request: APNsRequest, at interface: APNsInterface
  ) -> Result<(Operation, bundleID: ArraySlice<UInt8>), APNsRefusal> {
    if request.headIsOversized { return .failure(.init(.payloadTooLarge)) }
    let found: (operation: Operation?, bundleID: ArraySlice<UInt8>)
    switch (request.path, interface) {
    case (.broadcast(let bundleID), .pushes):
      found = (request.method == .post ? .broadcast : nil, bundleID)
    case (.channels(let bundleID), .channelManagement):
      switch request.method {
      case .post: found = (.create, bundleID)
      case .get: found = (.read, bundleID)
      case .delete: found = (.delete, bundleID)
      case .other: found = (nil, bundleID)
      }
    case (.allChannels(let bundleID), .channelManagement):
      found = (request.method == .get ? .list : nil, bundleID)
    default: return .failure(.init(.badPath))
    }
    guard let operation = found.operation else { return .failure(.init(.methodNotAllowed)) }
    if request.hasDuplicates { return .failure(.init(.duplicateHeaders)) }
    return .success((operation, found.bundleID))
  }

  /// The app of the path, if the credential may act for it and the app has broadcasts.
  static func app(
    _ bundleID: ArraySlice<UInt8>, team: String, key: APNsKey?, certificate: ClientCertificate?,
    accounts: APNsAccounts
  ) -> Result<APNsApp, APNsRefusal> {
    guard APNsTopic.isWellFormed(bundleID) else { return .failure(.init(.badTopic)) }
    let name = String(decoding: bundleID, as: UTF8.self)
    if let permissions = certificate?.permissions, permissions.bundleID != name {
      return .failure(.init(.topicMismatch))
    }
    guard let app = accounts.app(team: team, bundleID: name),
      key?.allows(topic: bundleID, bundleID: name) ?? true
    else { return .failure(.init(.topicDisallowed)) }
    return app.hasBroadcasts ? .success(app) : .failure(.init(.featureNotEnabled))
  }

  /// The channel's id; whether there is such a channel is another question.
  static func channelID(_ request: APNsRequest) -> Result<String, APNsRefusal> {
    guard let id = request.channelID, !id.isEmpty else {
      return .failure(.init(.missingChannelID))
    }
    guard APNsChannel.isWellFormed(id) else { return .failure(.init(.badChannelID)) }
    return .success(String(decoding: id, as: UTF8.self))
  }

  /// What a new channel is made from.
  static func policy(
    _ request: APNsRequest
  ) -> Result<APNsChannel.StoragePolicy, APNsRefusal> {
    if request.bodyIsOversized || request.body.count > payloadLimit {
      return .failure(.init(.payloadTooLarge))
    }
    if request.body.isEmpty { return .failure(.init(.payloadEmpty)) }
    guard let body = try? JSON.parse(request.body), body.members != nil else {
      return .failure(.init(.badRequest))
    }
    guard let type = body["push-type"], type != .null else {
      return .failure(.init(.missingPushType))
    }
    guard type.text == APNsChannel.pushType else { return .failure(.init(.invalidPushType)) }
    guard case .int(let number)? = body["message-storage-policy"],
      let policy = Int(exactly: number).flatMap(APNsChannel.StoragePolicy.init)
    else { return .failure(.init(.badRequest)) }
    return .success(policy)
  }

  /// The header fields of a broadcast.
  static func fields(_ request: APNsRequest) -> APNsReason? {
    switch request.pushType {
    case .absent: return .missingPushType
    case .value(.liveactivity): break
    case .malformed, .value: return .invalidPushType
    }
    // Unlike a push to a device, a broadcast must say how long it is good for.
    guard request.expiration.value != nil else { return .badExpirationDate }
    return request.priority == .malformed ? .badPriority : nil
  }

  /// The payload of a broadcast, as the options want it.
  static func payload(_ request: APNsRequest, isObject: Bool, options: APNsOptions) -> APNsReason? {
    if request.bodyIsOversized || request.body.count > payloadLimit { return .payloadTooLarge }
    if request.body.isEmpty { return .payloadEmpty }
    return !isObject && options.rejectBadJSON ? .payloadEmpty : nil
  }
}
