public import Foundation

/// APNs broadcast channels. Belfry only.
///
/// ```swift
/// let match = try await client.createBroadcastChannel(storing: .latestMessage)
/// // The app: Activity.request(attributes:content:pushType: .channel(match.id))
/// let goal = try APNsPayload.broadcast(.update, contentState: ["home": 1, "away": 0])
/// try await client.send(goal, toChannel: match.id)
/// ```
/// Refusals by APNs are thrown as ``NotificationHubError`` with APNs' own reason in `detail`: of
/// kind `notFound` if the channel does not exist, `conflict` if the hub has no Apple credential,
/// the credential or the app is not permitted to broadcast, or the app already has 10 000 channels.
/// - SeeAlso:
///   <https://developer.apple.com/documentation/usernotifications/setting-up-broadcast-push-notifications>
extension NotificationHubClient {
  /// Creates a channel. Needs the Manage right.
  ///
  /// If the reply is lost, a channel may exist whose id you do not know; ``broadcastChannels()``
  /// lists it.
  /// - Parameter storage: The policy for updates to devices that cannot be reached at once.
  public func createBroadcastChannel(
    storing storage: BroadcastChannel.Storage
  ) async throws -> BroadcastChannel {
    let reply = try await perform(
      .createChannel, headers: [WireName.contentType: WireName.json],
      body: Data(BroadcastChannel.creation(storage)))
    return try reply.read { (body) throws(WireFormatError) in try BroadcastChannel(json: body) }
  }

  /// Returns the ids of all channels of the app in the environment of the hub's credential. Needs
  /// the Manage right.
  public func broadcastChannels() async throws -> [String] {
    let reply = try await perform(.listChannels)
    return try reply.read { (body) throws(WireFormatError) in
      try BroadcastChannel.ids(json: body)
    }
  }

  /// Reads a channel. Needs the Manage right.
  public func broadcastChannel(_ channelID: String) async throws -> BroadcastChannel {
    let reply = try await perform(.getChannel, channelID)
    return try reply.read { (body) throws(WireFormatError) in try BroadcastChannel(json: body) }
  }

  /// Deletes a channel; its subscribers receive no further updates. Needs the Manage right.
  public func delete(broadcastChannel channelID: String) async throws {
    _ = try await perform(.deleteChannel, channelID)
  }

  /// Sends an update or the end of a Live Activity to all subscribers of a channel, and waits for
  /// the response of APNs. Needs the Send right.
  ///
  /// A call that is retried because its reply was lost may send twice; the system ignores an update
  /// that is not newer than the current state.
  /// - Parameter payload: A payload for a Live Activity, such as
  ///   ``APNsPayload/broadcast(_:contentState:timestamp:alert:sound:staleDate:relevanceScore:custom:priority:expiration:)``.
  /// - Throws: ``NotificationHubError`` of kind `badRequest` for any other payload.
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

  /// Sends a payload as given; otherwise the same as ``send(_:toChannel:)``.
  ///
  /// - Parameters:
  ///   - payload: A JSON object of at most 5120 bytes.
  ///   - priority: The delivery priority for APNs.
  ///   - expiration: The time for which APNs retries; a channel that stores no message only takes
  ///     `once`.
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
      .broadcast, channelID, headers: headers, body: payload)
    return try reply.read { (body) throws(WireFormatError) in try BroadcastReceipt(json: body) }
  }
}

/// The credentials with which the hub authenticates to push services. Belfry only.
extension NotificationHubClient {
  /// Returns the hub's credentials without their secrets, with their expiry dates. Needs the Manage
  /// right.
  public func credentials() async throws -> [CredentialState] {
    let reply = try await perform(.listCredentials)
    return try reply.read { (body) throws(WireFormatError) in try CredentialState.read(json: body) }
  }

  /// Checks the hub's credential with its push service, without any effect on devices. Needs the
  /// Manage right.
  ///
  /// - Throws: ``NotificationHubError`` of kind `notFound` if the hub has no credential for the
  ///   platform.
  public func probeCredential(of platform: PushPlatform) async throws -> CredentialProbe {
    let reply = try await perform(.probeCredential, platform.rawValue)
    return try reply.read { (body) throws(WireFormatError) in try CredentialProbe(json: body) }
  }
}
