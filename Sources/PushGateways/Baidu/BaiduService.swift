import HTTPClient
import HubCore
import NotificationHubs
import Wire

/// A message in the form that Baidu takes (spec `pns/baidu.md` section 3).
struct BaiduMessage: Sendable {
  /// JSON.
  let text: String
  /// Shown by the system (1) or handed to the app (0).
  let isNotification: Bool
  /// In seconds; `nil` leaves it to Baidu.
  let lifetime: Int64?

  static let limit = 4096
  private static let typeName = "x-baidu-message-type"
  private static let longest: Int64 = 7 * 86_400

  init(_ body: PushBody, now: Int64) throws(PushRefusal) {
    guard body.bytes.count <= Self.limit else {
      throw PushRefusal.tooLarge(body.bytes.count, limit: Self.limit)
    }
    guard let object = StrictJSON.object(body.bytes),
      let text = String(validating: body.bytes, as: UTF8.self)
    else { throw PushRefusal.badFormat("the payload is not a JSON object") }
    self.text = text
    switch body.headers[Self.typeName] {
    case nil: isNotification = object["description"] != nil
    case "0": isNotification = false
    case "1": isNotification = true
    default: throw PushRefusal.badFormat("X-Baidu-Message-Type is neither 0 nor 1")
    }
    guard !isNotification || object["description"] != nil else {
      throw PushRefusal.badFormat("a notification needs a description")
    }
    lifetime = body.expiry.map { expiry in
      let (life, isOver) = expiry.subtractingReportingOverflow(now)
      return isOver ? 1 : min(max(life, 1), Self.longest)
    }
  }
}

/// Baidu Cloud Push (spec `pns/baidu.md`).
struct BaiduService: HTTPPushService {
  let credential: BaiduCredential
  let isPublicOnly: Bool

  static let vendorHosts = [
    "channel.api.duapp.com", "api.push.baidu.com", "api.tuisong.baidu.com", ".tuisong.baidu.com",
  ]

  private static let agent = "BCCS_SDK/3.0 (Linux) Swift/6 (Baidu Push Server SDK V3.0.0)"
  private static let android = "3"

  func message(_ body: PushBody, now: Int64) throws(PushRefusal) -> BaiduMessage {
    try BaiduMessage(body, now: now)
  }

  func call(
    _ message: BaiduMessage, to handle: String, id: PushID, token: String?, now: Int64
  ) throws(PushRefusal) -> HTTPPushCall {
    guard handle.utf8.count <= 512, let ids = PushChannel.handle(handle).baiduIDs,
      !ids.channelID.isEmpty, let address = HTTPAddress(credential.url)
    else { throw PushRefusal(.badChannel, "the handle is not userId-channelId") }
    var fields: [(name: String, value: String)] = [
      ("apikey", credential.apiKey), ("timestamp", "\(now)"), ("device_type", Self.android),
      ("channel_id", ids.channelID),
    ]
    let type = message.isNotification ? "1" : "0"
    switch credential.version {
    case .rest3:
      fields += [("msg_type", type), ("msg", message.text)]
      if let lifetime = message.lifetime { fields.append(("msg_expires", "\(lifetime)")) }
    case .rest2:
      fields += [
        ("method", "push_msg"), ("push_type", "1"), ("user_id", ids.userID),
        ("message_type", type), ("messages", message.text),
        // The same on every repeat, so a repeat takes the place of what came before.
        ("msg_keys", id.uuidText),
      ]
      if let lifetime = message.lifetime { fields.append(("message_expires", "\(lifetime)")) }
    }
    let sign = BaiduSignature.sign(
      method: "POST", url: credential.url, fields: fields, secret: credential.secretKey)
    fields.append(("sign", sign))
    return HTTPPushCall(
      call: HTTPCall(
        url: credential.url,
        headers: [
          ("Content-Type", PercentEncoding.formType + ";charset=utf-8"), ("User-Agent", Self.agent),
        ], body: PercentEncoding.form(fields)),
      host: "\(address.host):\(address.port)", isPublicOnly: isPublicOnly)
  }

  func verdict(_ reply: HTTPReply, to handle: String, now: Int64) -> PushVerdict {
    BaiduReply.verdict(reply, now: now)
  }
}

/// Makes Baidu gateways.
struct BaiduGateways: PlatformGateways {
  let configuration: PushGatewaysConfiguration
  let sessions: GatewaySessions
  let clock: HubClock

  func gateway(
    for credential: PushCredential
  ) throws(CredentialError) -> HTTPPushGateway<BaiduService> {
    let checked = try BaiduCredential(credential)
    let isPublicOnly = try ServiceHosts(configuration).isPublicOnly(
      url: checked.url, vendor: BaiduService.vendorHosts, property: "BaiduEndPoint")
    return HTTPPushGateway(
      BaiduService(credential: checked, isPublicOnly: isPublicOnly), sessions: sessions,
      connections: configuration.baidu.maxConnections, clock: clock)
  }
}
