import Cryptography
import Foundation
import HTTPClient
import HubCore
import NotificationHubs
import Wire

/// A message in the form that Baidu accepts (docs/protocol/push-services/baidu.md, section 3).
struct BaiduBody: Sendable {
  /// JSON.
  let text: String
  /// Whether it is shown by the system (1) or delivered to the app (0).
  let isNotification: Bool
  /// In seconds; `nil` means Baidu's default.
  let lifetime: Int64?

  private static let typeName = "x-baidu-message-type"
  private static let longest: Int64 = 7 * 86_400

  init(_ body: PushBody, now: Int64) throws(PushRefusal) {
    try PushRefusal.check(body.bytes.count, for: .baidu)
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

/// Baidu Cloud Push (docs/protocol/push-services/baidu.md).
struct BaiduService: HTTPPushService {
  static let connections = 32

  let credential: BaiduCredential
  let isPublicOnly: Bool

  static let vendorHosts = [
    "channel.api.duapp.com", "api.push.baidu.com", "api.tuisong.baidu.com", ".tuisong.baidu.com",
  ]

  private static let agent = "BCCS_SDK/3.0 (Linux) Swift/6 (Baidu Push Server SDK V3.0.0)"
  private static let android = "3"

  func message(_ body: PushBody, now: Int64) throws(PushRefusal) -> BaiduBody {
    try BaiduBody(body, now: now)
  }

  func call(
    _ message: BaiduBody, to handle: String, id: PushID, token: String?, now: Int64
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
        // The same on every repeat, so that a repeat replaces the earlier message.
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
  let supplies: GatewaySupplies

  static func check(_ credential: PushCredential, at now: Date) throws(CredentialError) {
    _ = try BaiduCredential(credential)
  }

  func gateway(
    for credential: PushCredential
  ) throws(CredentialError) -> HTTPPushGateway<BaiduService> {
    let checked = try BaiduCredential(credential)
    let isPublicOnly = try supplies.hosts.isPublicOnly(
      url: checked.url, vendor: BaiduService.vendorHosts, property: "BaiduEndPoint")
    return supplies.gateway(
      BaiduService(credential: checked, isPublicOnly: isPublicOnly))
  }
}

extension BaiduService {
  /// A push to a channel that no device has. Neither version of Baidu's interface has a call that
  /// merely checks an app's keys; this one is signed as usual, and reaches nobody.
  var trial: ServiceTrial {
    .push(
      handle: PushChannel.baidu(userID: "0", channelID: "0").handle,
      body: PushBody(
        bytes: Array(#"{"probe":"1"}"#.utf8), headers: ["x-baidu-message-type": "0"]),
      ProbeReading(
        service: "Baidu",
        proof: "it took the signature, and knows no device with the channel that was tried",
        advice: [
          "30603": "API key and secret key must be of the same app: its page of Baidu's console.",
          "30606": "Check this machine's clock: Baidu takes requests of the last ten minutes.",
          "30612": "The app is not on Baidu's list of those that may push: ask Baidu.",
          "30613": "Initialise the app in Baidu's console first.",
          "30616": "The app may not push to single devices: ask Baidu for the permission.",
          "30618": "Baidu has not approved the app yet.",
        ], otherAdvice: "Check API key and secret key on the app's page of Baidu's console."))
  }
}

/// The credential for Baidu Cloud Push (docs/protocol/push-services/baidu.md).
struct BaiduCredential: Hashable, Sendable {
  /// The two versions of the interface.
  enum Version: Hashable, Sendable {
    case rest2
    case rest3
  }

  let apiKey: String
  /// Secret.
  let secretKey: String
  /// The URL of pushes, without query.
  let url: String
  let version: Version

  private static let standardURL = "https://channel.api.duapp.com/rest/2.0/channel/channel"
  private static let rest3Path = "/rest/3.0"
  private static let singleDevice = "/push/single_device"

  init(_ credential: PushCredential) throws(CredentialError) {
    let advice = ". It stands in the app's page of Baidu's console."
    apiKey = try credential.text("BaiduApiKey", orSay: advice)
    secretKey = try credential.text("BaiduSecretKey", orSay: advice)
    var url = credential.text("BaiduEndPoint") ?? Self.standardURL
    while url.hasSuffix("/") { url.removeLast() }
    guard let address = HTTPAddress(url), address.scheme == "https", address.query == nil else {
      throw CredentialError(
        "BaiduEndPoint is no https address. Leave it out for \(Self.standardURL), or name "
          + "https://api.tuisong.baidu.com/rest/3.0.")
    }
    if address.path.hasPrefix(Self.rest3Path) {
      version = .rest3
      if !url.hasSuffix(Self.singleDevice) { url += Self.singleDevice }
    } else {
      version = .rest2
      if address.path == "/" || address.path.isEmpty { url += "/rest/2.0/channel/channel" }
    }
    self.url = url
  }
}

/// The signature of a request to Baidu Cloud Push (docs/protocol/push-services/baidu.md,
/// section 2).
enum BaiduSignature {
  /// - Parameters:
  ///   - url: Without query.
  ///   - fields: Raw values, without `sign`.
  static func sign(
    method: String, url: String, fields: [(name: String, value: String)], secret: String
  ) -> String {
    let sorted = fields.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    let base = method + url + sorted.map { "\($0.name)=\($0.value)" }.joined() + secret
    // As PHP's `urlencode`.
    var encoded: [UInt8] = []
    PercentEncoding.append(base.utf8, .php, to: &encoded)
    return Hex.encode(Digest.md5(encoded))
  }
}

/// The complete table of Baidu's replies (docs/protocol/push-services/baidu.md, section 4), and the
/// lookup of a row: by the code in the body, not by the status.
enum BaiduReply {
  static let success = ReplyRule("200", "", .none, .keep, .success)
  static let otherCode = ReplyRule("any", "(other code)", .never, .keep, .unknownError)
  static let serverError = ReplyRule("5xx", "(no code)", .backoff, .keep, .pnsServerError)

  private static let coded: [ReplyRule] = [
    ReplyRule("500", "30600", .backoff, .keep, .pnsServerError),
    ReplyRule("error", "30601", .fix, .keep, .pnsInterfaceError),
    ReplyRule("400", "30602", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("error", "30603", .pauseCredential, .keep, .invalidCredentials),
    ReplyRule("error", "30604", .backoff, .keep, .throttled),
    ReplyRule("error", "30605", .never, .keep, .unknownError),
    ReplyRule("error", "30606", .fix, .keep, .pnsInterfaceError),
    ReplyRule("error", "30607", .never, .remove, .expiredChannel),
    ReplyRule("error", "30608", .never, .remove, .badChannel),
    ReplyRule("error", "30609", .fix, .keep, .pnsInterfaceError),
    ReplyRule("error", "30610", .never, .keep, .unknownError),
    ReplyRule("error", "30611", .never, .keep, .unknownError),
    ReplyRule("error", "30612", .pauseCredential, .keep, .invalidCredentials),
    ReplyRule("error", "30613", .pauseCredential, .keep, .invalidCredentials),
    ReplyRule("error", "30614|30615", .fix, .keep, .pnsInterfaceError),
    ReplyRule("error", "30616|30617", .pauseCredential, .keep, .invalidCredentials),
    ReplyRule("error", "30618", .pauseCredential, .keep, .invalidCredentials),
    ReplyRule("error", "30699", .backoff, .keep, .throttled),
  ]

  static let all: [ReplyRule] = [success] + coded + [otherCode, serverError, .unreachable]

  private static let byCode = ReplyRule.byReason(coded)

  static func verdict(_ reply: HTTPReply, now: Int64) -> PushVerdict {
    let body = StrictJSON.object(reply.body)
    if let code = body?["error_code"]?.scalarText {
      let said = body?["error_msg"]?.scalarText.flatMap { PushVerdict.shown($0) }
      let number = PushVerdict.shown(code) ?? "unreadable code"
      return PushVerdict(
        byCode[code] ?? otherCode, status: reply.status,
        reason: said.map { "\(number): \($0)" } ?? number,
        retryAfter: reply["Retry-After"].flatMap { RetryAfter.seconds($0, now: now) })
    }
    let reason = "status \(reply.status)"
    switch reply.status {
    case 200 where body?["response_params"] != nil: return PushVerdict(success, status: 200)
    case 500...599: return PushVerdict(serverError, status: reply.status, reason: reason)
    default: return PushVerdict(.notUnderstood, status: reply.status, reason: reason)
    }
  }
}
