import HTTPClient
import HubCore
import NotificationHubs

/// Windows Push Notification Services (spec `pns/wns.md`).
struct WNSService: HTTPPushService {
  let kind: WNSCredential.Kind
  let hosts: ChannelHosts

  /// Where the vendor's channels lie.
  static let vendorHosts = [".notify.windows.com", ".wns.windows.com"]

  func message(_ body: PushBody, now: Int64) throws(PushRefusal) -> WNSMessage {
    try WNSMessage(body, isEntra: kind == .entra, now: now)
  }

  func call(
    _ message: WNSMessage, to handle: String, id: PushID, token: String?, now: Int64
  ) throws(PushRefusal) -> HTTPPushCall {
    guard let (address, isPublicOnly) = hosts.check(handle) else {
      // WNS did not say so, hence the handle stays.
      throw PushRefusal(.badChannel, "the channel is no address of WNS")
    }
    let headers = [("Authorization", "Bearer " + (token ?? ""))] + message.headers
    return HTTPPushCall(
      call: HTTPCall(url: handle, headers: headers, body: message.body),
      host: "\(address.host):\(address.port)", isPublicOnly: isPublicOnly)
  }

  func verdict(_ reply: HTTPReply, to handle: String, now: Int64) -> PushVerdict {
    WNSReply.verdict(reply, now: now)
  }
}
