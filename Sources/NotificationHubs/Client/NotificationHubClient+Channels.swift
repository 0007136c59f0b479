public import Foundation

/// Broadcast channels of APNs. Belfry only.
///
/// ```swift
/// let match = try await client.createBroadcastChannel(storing: .latestMessage)
/// // The app: Activity.request(attributes:content:pushType: .channel(match.id))
/// let goal = try APNsPayload.broadcast(.update, contentState: ["home": 1, "away": 0])
/// try await client.send(goal, toChannel: match.id)
/// ```
/// What APNs refuses is thrown as a ``NotificationHubError`` with APNs' own word in its `detail`:
/// of the kind `notFound` for a channel that does not exist, `conflict` when the hub has no Apple
/// credential, the credential or the app may not, or the app has 10 000 channels.
/// - SeeAlso:
///   <https://developer.apple.com/documentation/usernotifications/setting-up-broadcast-push-notifications>
extension NotificationHubClient {
  /// Makes a channel. Needs the Manage right.
  ///
  /// A call whose reply is lost may have made one that nobody knows; ``broadcastChannels()`` finds
  /// it.
  /// - Parameter storage: What becomes of an update for who cannot be reached at once.
  public func createBroadcastChannel(
    storing storage: BroadcastChannel.Storage
  ) async throws -> BroadcastChannel {
    let reply = try await perform(
      "POST", ["channels"], headers: [WireName.contentType: WireName.json],
      body: Data(BroadcastChannel.creation(storage)))
    return try reply.read { (body) throws(WireFormatError) in try BroadcastChannel(json: body) }
  }

  /// The ids of all channels of the app in the environment of the hub's credential. Needs the
  /// Manage right.
  public func broadcastChannels() async throws -> [String] {
    let reply = try await perform("GET", ["channels"])
    return try reply.read { (body) throws(WireFormatError) in
      try BroadcastChannel.ids(json: body)
    }
  }

  /// Reads a channel. Needs the Manage right.
  public func broadcastChannel(_ channelID: String) async throws -> BroadcastChannel {
    let reply = try await perform("GET", ["channels", channelID])
    return try reply.read { (body) throws(WireFormatError) in try BroadcastChannel(json: body) }
  }

  /// Deletes a channel; who follows it gets nothing more. Needs the Manage right.
  public func delete(broadcastChannel channelID: String) async throws {
    _ = try await perform("DELETE", ["channels", channelID])
  }

  /// Sends an update, or the end, of a Live Activity to all who follow a channel, and waits for
  /// what APNs says. Needs the Send right.
  ///
  /// A call that is repeated because its reply was lost may send twice; the system ignores what is
  /// not newer than what it has.
  /// - Parameter payload: Of a Live Activity:
  ///   ``APNsPayload/broadcast(_:contentState:timestamp:alert:sound:staleDate:relevanceScore:custom:priority:expiration:)``.
  /// - Throws: ``NotificationHubError`` of the kind `badRequest` for any other payload.
  @discardableResult
  public func send(
    _ payload: APNsPayload, toChannel channelID: String
  ) async throws -> BroadcastReceipt {
    guard payload.pushType == .liveactivity else {
      throw NotificationHubError(
        kind: .badRequest, detail: "a channel takes updates of Live Activities only")
    }
    return try await send(payload: payload.body, headers: payload.headers, toChannel: channelID)
  }

  /// Sends a payload as it is; as ``send(_:toChannel:)``.
  ///
  /// - Parameters:
  ///   - payload: A JSON object of at most 5120 bytes.
  ///   - priority: How much APNs hurries.
  ///   - expiration: How long it tries; a channel that stores no message takes `once` only.
  @discardableResult
  public func send(
    payload: Data, toChannel channelID: String, priority: APNsPayload.Priority = .immediate,
    expiration: APNsPayload.Expiration = .once
  ) async throws -> BroadcastReceipt {
    try await send(
      payload: payload,
      headers: [
        "apns-priority": String(priority.rawValue), "apns-expiration": expiration.text,
      ], toChannel: channelID)
  }

  private func send(
    payload: Data, headers: [String: String], toChannel channelID: String
  ) async throws -> BroadcastReceipt {
    var headers = headers
    headers[WireName.contentType] = WireName.json
    let reply = try await perform(
      "POST", ["channels", channelID, "messages"], headers: headers, body: payload)
    return try reply.read { (body) throws(WireFormatError) in try BroadcastReceipt(json: body) }
  }
}

/// What a hub shows push services to prove who it is. Belfry only.
extension NotificationHubClient {
  /// The hub's credentials without their secrets, with the times at which they end. Needs the
  /// Manage right.
  public func credentials() async throws -> [CredentialState] {
    let reply = try await perform("GET", ["credentials"])
    return try reply.read { (body) throws(WireFormatError) in try CredentialState.read(json: body) }
  }

  /// Tries the hub's credential at its push service, without any device noticing. Needs the Manage
  /// right.
  ///
  /// - Throws: ``NotificationHubError`` of the kind `notFound` when the hub has none.
  public func probeCredential(of platform: PushPlatform) async throws -> CredentialProbe {
    let reply = try await perform("POST", ["credentials", platform.rawValue, "probe"])
    return try reply.read { (body) throws(WireFormatError) in try CredentialProbe(json: body) }
  }
}
