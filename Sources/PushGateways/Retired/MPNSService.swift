import Foundation
import HTTPClient
import HubCore
import NotificationHubs

/// The Microsoft Push Notification Service of Windows Phone 7 and 8, which has been shut down
/// (docs/protocol/push-services/retired.md, section 2): only channels at hosts that the
/// configuration allows, such as a stand-in's, are called, and without a client certificate.
struct MPNSService: HTTPPushService {
  static let connections = 64

  struct Message: Sendable {
    let headers: [(name: String, value: String)]
    let body: [UInt8]
  }

  let hosts: ChannelHosts

  private static let targetName = "x-windowsphone-target"
  private static let className = "x-notificationclass"

  func message(_ body: PushBody, now: Int64) throws(PushRefusal) -> Message {
    try PushRefusal.check(body.bytes.count, for: .mpns)
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
  let supplies: GatewaySupplies

  /// Accepts anything: credentials of a retired service are kept as they are.
  static func check(_ credential: PushCredential, at now: Date) throws(CredentialError) {}

  func gateway(
    for credential: PushCredential
  ) throws(CredentialError) -> HTTPPushGateway<MPNSService> {
    supplies.gateway(MPNSService(hosts: supplies.channelHosts(vendor: [])))
  }
}

/// The complete table of MPNS replies (docs/protocol/push-services/retired.md, section 2).
enum MPNSReply {
  static let received = ReplyRule(
    "200", "X-NotificationStatus: Received", .none, .keep, .success)
  static let queueFull = ReplyRule(
    "200", "X-NotificationStatus: QueueFull", .backoff, .keep, .dropped)
  static let suppressed = ReplyRule(
    "200", "X-NotificationStatus: Suppressed", .never, .keep, .dropped)
  static let throttled = ReplyRule("406", "", .backoff, .keep, .throttled)
  static let inactive = ReplyRule(
    "412", "X-DeviceConnectionStatus: Inactive", .backoff, .keep, .channelDisconnected)

  private static let byStatus: [ReplyRule] = [
    ReplyRule("400", "", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("401", "", .fix, .keep, .invalidCredentials),
    ReplyRule("404", "X-SubscriptionStatus: Expired", .never, .remove, .badChannel),
    ReplyRule("405", "", .fix, .keep, .pnsInterfaceError),
    throttled, inactive,
    ReplyRule("413", "", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("500", "", .backoff, .keep, .pnsServerError),
    ReplyRule("503", "", .backoff, .keep, .pnsUnavailable),
  ]

  static let all: [ReplyRule] =
    [received, queueFull, suppressed] + byStatus + [.unreachable]

  /// The minimum pause that the service asks for with 406 and 412, in seconds.
  private static let hour: Int32 = 3600

  static func verdict(_ reply: HTTPReply, now: Int64) -> PushVerdict {
    let status = reply["X-NotificationStatus"]?.lowercased()
    let rule: ReplyRule =
      if reply.status == 200 {
        switch status {
        case "queuefull": queueFull
        case "suppressed", "dropped": suppressed
        default: received
        }
      } else {
        byStatus.first { $0.status == "\(reply.status)" } ?? .notUnderstood
      }
    var verdict = PushVerdict(rule, status: reply.status)
    verdict.retryAfter =
      reply["Retry-After"].flatMap { RetryAfter.seconds($0, now: now) }
      ?? (rule == throttled || rule == inactive ? hour : nil)
    if rule.outcome != .success {
      verdict.reason = status.flatMap { PushVerdict.shown($0) } ?? "status \(reply.status)"
    }
    return verdict
  }
}
