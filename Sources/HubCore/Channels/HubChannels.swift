package import NotificationHubs
import Wire

/// Broadcast channels of APNs (`docs/extensions.md`). Each call is one request to APNs, and its
/// reply forwards APNs' reply: the hub stores nothing about channels.
package struct HubChannels: HubSubject {
  package let service: HubService

  /// - Parameter body: `{"storage":"none"}` or `{"storage":"latest"}`.
  /// - Throws: ``HubFailure``: 400 for any other body; the others as in ``failure(_:)``.
  package func create(
    hub: Hub, body: [UInt8]
  ) async throws(HubFailure) -> BroadcastChannel {
    guard let wish = try? JSONValue.parse(body),
      let storage = wish["storage"]?.scalarText.flatMap(BroadcastChannel.Storage.init)
    else {
      throw HubFailure(
        status: 400,
        message: #"A new channel says what it stores: {"storage":"none"} or {"storage":"latest"}"#)
    }
    return try await asking(hub) { gateway throws(BroadcastRefusal) in
      try await gateway.createChannel(storage)
    }
  }

  package func list(hub: Hub) async throws(HubFailure) -> [String] {
    try await asking(hub) { gateway throws(BroadcastRefusal) in try await gateway.channels() }
  }

  package func get(hub: Hub, id: String) async throws(HubFailure) -> BroadcastChannel {
    try Self.check(id)
    return try await asking(hub) { gateway throws(BroadcastRefusal) in
      try await gateway.channel(id)
    }
  }

  package func delete(hub: Hub, id: String) async throws(HubFailure) {
    try Self.check(id)
    try await asking(hub) { gateway throws(BroadcastRefusal) in
      try await gateway.deleteChannel(id)
    }
  }

  /// Sends a payload to all subscribers of a channel.
  ///
  /// - Parameter headers: All header fields of the request; `apns-expiration` (Unix seconds;
  ///   without it 0, try once) and `apns-priority` (1, 5 or 10; without it 10) are used.
  /// - Throws: ``HubFailure``: 400 or 413 for an invalid request; the others as in ``failure(_:)``.
  package func broadcast(
    hub: Hub, channel id: String, headers: some Sequence<(name: String, value: String)>,
    body: [UInt8]
  ) async throws(HubFailure) -> BroadcastReceipt {
    try Self.check(id)
    let message = try BroadcastMessage(SendHeaders(headers), body: body)
    return try await asking(hub) { gateway throws(BroadcastRefusal) in
      try await gateway.send(message, to: id)
    }
  }

  private static func check(_ id: String) throws(HubFailure) {
    guard BroadcastChannel.isID(id) else {
      throw HubFailure(
        status: 400,
        message: "The id in the path is no channel's: give the base 64 text that APNs made, "
          + "percent-encoded")
    }
  }

  private func asking<Value>(
    _ hub: Hub, _ work: (any BroadcastGateway) async throws(BroadcastRefusal) -> Value
  ) async throws(HubFailure) -> Value {
    let gateway = try await broadcasts(of: hub)
    do throws(BroadcastRefusal) {
      return try await work(gateway)
    } catch {
      throw Self.failure(error)
    }
  }

  private func broadcasts(of hub: Hub) async throws(HubFailure) -> any BroadcastGateway {
    try await answering {
      guard let credential = try await directory.snapshot().hub(hub.id)?.credentials[.apns] else {
        throw HubFailure(
          status: 409,
          message: "The hub has no apns credential, and channels are Apple's: set one first")
      }
      do {
        if let found = try await gateways?.broadcasts(with: credential, hub: hub.id) {
          return found
        }
      } catch let error as CredentialError {
        throw HubFailure(status: 409, message: error.description)
      }
      throw HubFailure(status: 409, message: "This server has no gateway for broadcast channels")
    }
  }

  /// The error for the client. A fault that only the hub's owner can fix is 409, which no client
  /// retries.
  static func failure(_ refusal: BroadcastRefusal) -> HubFailure {
    let reason = refusal.reason
    let wait = refusal.retryAfter.map { Int($0) } ?? 5
    switch refusal.kind {
    case .unknownChannel:
      return HubFailure(
        status: 404,
        message: "APNs knows no such channel of the app in the environment of the hub's "
          + "credential: \(reason)")
    case .badRequest:
      return HubFailure(status: 400, message: "APNs refused the request: \(reason)")
    case .tooLarge:
      return HubFailure(status: 413, message: "APNs refused the payload: \(reason)")
    case .limitReached:
      return HubFailure(
        status: 409,
        message: "The app has as many channels as APNs allows; delete some first: \(reason)")
    case .notAllowed:
      return HubFailure(
        status: 409,
        message: "APNs does not let the hub's credential do this; check the credential, and that "
          + "the app has the broadcast capability: \(reason)")
    case .throttled:
      return HubFailure(
        status: 429, message: "APNs asks to send less often: \(reason)", retryAfter: wait)
    case .unavailable:
      return HubFailure(
        status: 503, message: "APNs cannot be reached, or cannot answer now: \(reason)",
        retryAfter: wait)
    }
  }
}

extension HubService {
  package var channels: HubChannels { HubChannels(service: self) }
}

extension BroadcastMessage {
  fileprivate init(_ headers: SendHeaders, body: [UInt8]) throws(HubFailure) {
    guard body.count <= Self.payloadLimit else {
      throw HubFailure(
        status: 413,
        message: "A broadcast has at most \(Self.payloadLimit) bytes of payload, not \(body.count)")
    }
    guard case .object? = try? JSONValue.parse(body) else {
      throw HubFailure(status: 400, message: "The payload of a broadcast is a JSON object")
    }
    var expiration: Int64 = 0
    if let text = headers[SendHeaderName.apnsExpiration]?.trimmingBlanks {
      guard let seconds = Int64(text), seconds >= 0 else {
        throw HubFailure(
          status: 400, message: "The header 'apns-expiration' is in Unix seconds, or 0")
      }
      expiration = seconds
    }
    var priority = 10
    if let text = headers[SendHeaderName.apnsPriority]?.trimmingBlanks {
      guard let number = Int(text), [1, 5, 10].contains(number) else {
        throw HubFailure(status: 400, message: "The header 'apns-priority' is 10, 5 or 1")
      }
      priority = number
    }
    self.init(payload: body, expiration: expiration, priority: priority)
  }
}
