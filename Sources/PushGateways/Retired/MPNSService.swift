import HTTPClient
import HubCore
import NotificationHubs

/// The Microsoft Push Notification Service of Windows Phone 7 and 8, which has ended (spec
/// `pns/mpns-and-gcm-legacy.md` section 2): only channels at hosts that the configuration allows,
/// a stand-in's, are called, and without a client certificate.
struct MPNSService: HTTPPushService {
  struct Message: Sendable {
    let headers: [(name: String, value: String)]
    let body: [UInt8]
  }

  let hosts: ChannelHosts

  private static let limit = 3072
  private static let targetName = "x-windowsphone-target"
  private static let className = "x-notificationclass"

  func message(_ body: PushBody, now: Int64) throws(PushRefusal) -> Message {
    guard body.bytes.count <= Self.limit else {
      throw PushRefusal.tooLarge(body.bytes.count, limit: Self.limit)
    }
    var headers = body.headers.filter { $0.key.hasPrefix("x-") }
    let kind = XMLRoot(body.bytes)?.isToast(body.bytes)
    if headers[Self.targetName] == nil, headers[Self.className] == nil, let kind {
      headers[Self.targetName] = kind ? "toast" : "token"
      headers[Self.className] = kind ? "2" : "1"
    }
    return Message(
      headers: [("Content-Type", "text/xml")]
        + headers.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) },
      body: body.bytes)
  }

  func call(
    _ message: Message, to handle: String, id: PushID, token: String?, now: Int64
  ) throws(PushRefusal) -> HTTPPushCall {
    guard let (address, isPublicOnly) = hosts.check(handle) else { throw RetiredService.refusal }
    let headers = [("X-MessageID", id.uuidText)] + message.headers
    return HTTPPushCall(
      call: HTTPCall(url: handle, headers: headers, body: message.body),
      host: "\(address.host):\(address.port)", isPublicOnly: isPublicOnly)
  }

  var trial: ServiceTrial {
    .none("MPNS has ended: there is nobody to ask about its credential.")
  }

  func verdict(_ reply: HTTPReply, to handle: String, now: Int64) -> PushVerdict {
    MPNSReply.verdict(reply, now: now)
  }
}

extension XMLRoot {
  /// Whether a notification of Windows Phone is a toast; `nil` when it is neither toast nor tile.
  fileprivate func isToast(_ bytes: [UInt8]) -> Bool? {
    guard name == "Notification" else { return nil }
    let text = String(decoding: bytes, as: UTF8.self)
    if text.contains("Toast>") { return true }
    return text.contains("Tile>") ? false : nil
  }
}

/// Makes MPNS gateways.
struct MPNSGateways: PlatformGateways {
  let configuration: PushGatewaysConfiguration
  let sessions: GatewaySessions
  let clock: HubClock

  func gateway(for credential: PushCredential) -> HTTPPushGateway<MPNSService> {
    HTTPPushGateway(
      MPNSService(hosts: ChannelHosts(vendor: [], allowed: configuration.allowedHosts)),
      sessions: sessions, connections: configuration.wns.maxConnections, clock: clock)
  }
}
