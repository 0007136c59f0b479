import Foundation
import HTTPClient
import HubCore
import NotificationHubs
import Wire

/// Xiaomi Push (spec `pns/xiaomi.md`): a secret in each request, no tokens.
struct XiaomiService: HTTPPushService {
  /// Secret.
  private let appSecret: String
  private let url: String
  private let host: String
  /// Until ``check(_:)`` has found the operator's word for another.
  private var isPublicOnly = true

  private static let vendorHosts = [".xmpush.xiaomi.com", ".xmpush.global.xiaomi.com"]

  private static let path = "/v3/message/regid"
  private static let standardHost = "https://api.xmpush.xiaomi.com"

  init(_ credential: PushCredential) throws(CredentialError) {
    let secret = credential["AppSecret"]?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
    guard !secret.isEmpty, secret.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw CredentialError(
        "AppSecret is missing or no secret. Copy it from the app's page of Xiaomi's console.")
    }
    appSecret = secret
    var text = credential["Endpoint"]?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
    if text.isEmpty { text = Self.standardHost }
    if !text.contains("://") { text = "https://" + text }
    while text.hasSuffix("/") { text.removeLast() }
    guard let address = HTTPAddress(text), address.scheme == "https", address.query == nil,
      ["", "/", Self.path, "/v2/message/regid"].contains(address.path)
    else {
      throw CredentialError(
        "Endpoint is no https address of Xiaomi Push. Use the region's host, such as "
          + "\(Self.standardHost) or https://fr-api.xmpush.global.xiaomi.com.")
    }
    url = address.path.count > 1 ? text : text + Self.path
    host = "\(address.host):\(address.port)"
  }

  /// Looks at the host.
  mutating func check(_ hosts: ServiceHosts) throws(CredentialError) {
    isPublicOnly = try hosts.isPublicOnly(
      url: url, vendor: Self.vendorHosts, property: "Endpoint")
  }

  func message(_ body: PushBody, now: Int64) throws(PushRefusal) -> XiaomiMessage {
    try XiaomiMessage(body, now: now)
  }

  func call(
    _ message: XiaomiMessage, to handle: String, id: PushID, token: String?, now: Int64
  ) throws(PushRefusal) -> HTTPPushCall {
    // A comma would make it a list of ids.
    guard (1...512).contains(handle.utf8.count), !handle.contains(",") else {
      throw PushRefusal(.badChannel, "the handle is no registration id")
    }
    return HTTPPushCall(
      call: HTTPCall(
        url: url,
        headers: [
          ("Authorization", "key=" + appSecret),
          ("Content-Type", PercentEncoding.formType + ";charset=UTF-8"),
        ], body: PercentEncoding.form([("registration_id", handle)] + message.fields)),
      host: host, isPublicOnly: isPublicOnly)
  }

  func verdict(_ reply: HTTPReply, to handle: String, now: Int64) -> PushVerdict {
    XiaomiReply.verdict(reply, to: handle, now: now)
  }
}

/// Makes Xiaomi gateways.
struct XiaomiGateways: PlatformGateways {
  let configuration: PushGatewaysConfiguration
  let sessions: GatewaySessions
  let clock: HubClock

  func gateway(
    for credential: PushCredential
  ) throws(CredentialError) -> HTTPPushGateway<XiaomiService> {
    var service = try XiaomiService(credential)
    try service.check(ServiceHosts(configuration))
    return HTTPPushGateway(
      service, sessions: sessions,
      connections: configuration.xiaomi.maxConnections, clock: clock)
  }
}
