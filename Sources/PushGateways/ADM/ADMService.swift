import Cryptography
import Foundation
import HTTPClient
import HubCore
import NotificationHubs
import Wire

/// Amazon Device Messaging (docs/protocol/push-services/adm.md).
struct ADMService: HTTPPushService {
  static let connections = 50

  let credential: ADMCredential
  let isPublicOnly: Bool

  /// Amazon's, by region.
  static let vendorHosts = [
    "api.amazon.com", "api.amazon.co.uk", "api.amazon.co.jp", "api.amazon.cn",
  ]

  func message(_ body: PushBody, now: Int64) throws(PushRefusal) -> ADMBody {
    try ADMBody(body, now: now)
  }

  func call(
    _ message: ADMBody, to handle: String, id: PushID, token: String?, now: Int64
  ) throws(PushRefusal) -> HTTPPushCall {
    let url = credential.sendURL.joined(separator: handle.percentEncoded)
    guard (1...4096).contains(handle.utf8.count), let address = HTTPAddress(url) else {
      throw PushRefusal(.badChannel, "the registration id is empty or too long")
    }
    let type = "com.amazon.device.messaging.ADM"
    return HTTPPushCall(
      call: HTTPCall(
        url: url,
        headers: [
          ("Authorization", "Bearer " + (token ?? "")), ("Content-Type", "application/json"),
          ("Accept", "application/json"), ("X-Amzn-Type-Version", type + "Message@1.0"),
          ("X-Amzn-Accept-Type", type + "SendResult@1.0"),
        ], body: message.body),
      host: "\(address.host):\(address.port)", isPublicOnly: isPublicOnly)
  }

  func verdict(_ reply: HTTPReply, to handle: String, now: Int64) -> PushVerdict {
    ADMReply.verdict(reply, to: handle, now: now)
  }
}

/// Makes ADM gateways, which share their access token with others of the same client.
struct ADMGateways: PlatformGateways {
  let supplies: GatewaySupplies
  private let tokens = SharedObjects<ADMCredential, AccessTokenSource>()

  static func check(_ credential: PushCredential, at now: Date) throws(CredentialError) {
    _ = try ADMCredential(credential)
  }

  func gateway(
    for credential: PushCredential
  ) throws(CredentialError) -> HTTPPushGateway<ADMService> {
    let checked = try ADMCredential(credential)
    let isPublicOnly = try supplies.hosts.isPublicOnly(
      url: checked.sendURL.joined(separator: "x"), vendor: ADMService.vendorHosts,
      property: "SendUrlTemplate")
    let endpoint = try supplies.tokenEndpoint(
      checked.tokenURL, vendor: ADMService.vendorHosts, property: "AuthTokenUrl")
    let source = tokens.object(for: checked) {
      AccessTokenSource(clock: supplies.clock, margin: .seconds(60)) {
        await endpoint.token(checked.tokenForm)
      }
    }
    return supplies.gateway(
      ADMService(credential: checked, isPublicOnly: isPublicOnly), tokens: source)
  }
}

extension ADMService {
  /// The token service checks everything that the credential contains.
  var trial: ServiceTrial {
    .token(
      ProbeReading(
        service: "Amazon", proof: "it gave an access token", advice: [:],
        otherAdvice:
          "Client id and secret must be of one security profile with Device Messaging turned on: the "
          + "app's page of Amazon's developer console."))
  }
}

/// The credential for Amazon Device Messaging (docs/protocol/push-services/adm.md, sections 2 and
/// 5).
struct ADMCredential: Hashable, Sendable {
  let clientID: String
  /// Secret.
  let clientSecret: String
  let tokenURL: String
  /// The address of a push, before and after the registration id.
  let sendURL: [String]

  private static let standardTokenURL = "https://api.amazon.com/auth/O2/token"
  private static let standardSendURL = "https://api.amazon.com/messaging/registrations/{0}/messages"

  init(_ credential: PushCredential) throws(CredentialError) {
    let advice = ". It stands in the app's security profile."
    clientID = try credential.text("ClientId", orSay: advice)
    clientSecret = try credential.text("ClientSecret", orSay: advice)
    tokenURL = credential.text("AuthTokenUrl") ?? Self.standardTokenURL
    guard HTTPAddress(tokenURL)?.scheme == "https" else {
      throw CredentialError(
        "AuthTokenUrl is no https address. Leave it out for \(Self.standardTokenURL).")
    }
    let template = credential.text("SendUrlTemplate") ?? Self.standardSendURL
    let parts = template.components(separatedBy: "{0}")
    guard parts.count == 2, HTTPAddress(parts.joined(separator: "x"))?.scheme == "https" else {
      throw CredentialError(
        "SendUrlTemplate is no https address with {0} where the registration id goes. Leave it out "
          + "for \(Self.standardSendURL).")
    }
    sendURL = parts
  }

  /// The form of a request to the token service, in the order of the vendor's example.
  var tokenForm: [(name: String, value: String)] {
    [
      ("grant_type", "client_credentials"), ("scope", "messaging:push"), ("client_id", clientID),
      ("client_secret", clientSecret),
    ]
  }
}

/// A message in the form that ADM takes (docs/protocol/push-services/adm.md, section 3).
struct ADMBody: Sendable {
  let body: [UInt8]

  /// Allowed lifetimes: a minute to 31 days, in seconds.
  private static let lifetimes: ClosedRange<Int64> = 60...2_678_400

  /// - Parameter body: A JSON object with `data` or `notification`; a missing checksum or expiry is
  ///   added.
  init(_ body: PushBody, now: Int64) throws(PushRefusal) {
    try PushRefusal.check(body.bytes.count, for: .adm)
    guard let object = StrictJSON.object(body.bytes) else {
      throw PushRefusal.badFormat("the payload is not a JSON object")
    }
    let data = try Self.data(of: object)
    guard data != nil || object["notification"] != nil else {
      throw PushRefusal.badFormat("the payload has neither data nor notification")
    }
    if let key = object["consolidationKey"] {
      guard case .string(let text) = key, text.count <= 64 else {
        throw PushRefusal.badFormat("consolidationKey is no text of at most 64 characters")
      }
    }
    if let life = object["expiresAfter"] {
      guard let seconds = life.scalarText.flatMap({ Int64($0) }), Self.lifetimes.contains(seconds)
      else { throw PushRefusal.badFormat("expiresAfter is not from 60 to 2678400 seconds") }
    }
    var added = ""
    if object["expiresAfter"] == nil, let expiry = body.expiry {
      let (life, isOver) = expiry.subtractingReportingOverflow(now)
      let seconds = isOver ? Self.lifetimes.lowerBound : life
      let bounded = min(max(seconds, Self.lifetimes.lowerBound), Self.lifetimes.upperBound)
      added += #","expiresAfter":\#(bounded)"#
    }
    if object["md5"] == nil, let data { added += #","md5":"\#(Self.checksum(data))""# }
    self.body = StrictJSON.adding(added, to: body.bytes)
  }

  private static func data(of object: JSONValue) throws(PushRefusal) -> [String: String]? {
    guard let data = object["data"] else { return nil }
    guard case .object(let members) = data else {
      throw PushRefusal.badFormat("data is not an object")
    }
    var texts: [String: String] = [:]
    for member in members {
      guard case .string(let text) = member.value else {
        throw PushRefusal.badFormat("a value in data is not a text")
      }
      texts[member.name] = text
    }
    return texts
  }

  /// The checksum: keys sorted by their UTF-8 bytes, `key:value` joined with commas, MD5, base64.
  static func checksum(_ data: [String: String]) -> String {
    let sorted = data.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    let joined = sorted.map { "\($0.key):\($0.value)" }.joined(separator: ",")
    return Data(Digest.md5(Array(joined.utf8))).base64EncodedString()
  }
}

/// The complete table of ADM replies (docs/protocol/push-services/adm.md, section 4), and the
/// lookup of a row.
enum ADMReply {
  static let success = ReplyRule("200", "", .none, .keep, .success)
  static let replaced = ReplyRule(
    "200", "registrationID differs", .none, .replace, .success)
  static let otherClientError = ReplyRule("4xx", "(other)", .never, .keep, .unknownError)
  static let otherServerError = ReplyRule("5xx", "(other)", .backoff, .keep, .pnsServerError)

  private static let worded: [ReplyRule] = [
    ReplyRule("400", "InvalidRegistrationId", .never, .remove, .badChannel),
    ReplyRule("400", "Unregistered", .never, .remove, .expiredChannel),
    ReplyRule("400", "InvalidData", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("400", "InvalidConsolidationKey", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("400", "InvalidExpiration", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("400", "InvalidChecksum", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("400", "InvalidType", .fix, .keep, .pnsInterfaceError),
    ReplyRule("401", "AccessTokenExpired", .refreshOnce, .keep, .invalidToken),
    ReplyRule("413", "MessageTooLarge", .fix, .keep, .invalidNotificationSize),
    ReplyRule("429", "MaxRateExceeded", .backoff, .keep, .throttled),
  ]
  private static let plain: [ReplyRule] = [
    ReplyRule("500", "", .backoff, .keep, .pnsServerError),
    ReplyRule("503", "", .backoff, .keep, .pnsUnavailable),
  ]

  /// All rows for replies to pushes; those of the token service are in ``AccessTokenFailure``.
  static let all: [ReplyRule] =
    [success, replaced] + worded + plain + [otherClientError, otherServerError, .unreachable]

  private static let byReason = ReplyRule.byReason(worded)

  static func verdict(_ reply: HTTPReply, to handle: String, now: Int64) -> PushVerdict {
    let body = try? JSONValue.parse(reply.body)
    if reply.status == 200 {
      guard case .string(let id)? = body?["registrationID"], id != handle, PushVerdict.isHandle(id)
      else { return PushVerdict(success, status: 200) }
      return PushVerdict(replaced, status: 200, newHandle: id)
    }
    let word = body?["reason"]?.scalarText
    let rule = rule(status: reply.status, word: word)
    return PushVerdict(
      rule, status: reply.status,
      reason: word.flatMap { PushVerdict.shown($0) } ?? "status \(reply.status)",
      retryAfter: reply["Retry-After"].flatMap { RetryAfter.seconds($0, now: now) })
  }

  /// Looks up the word under its own status; without a word the status decides, where it is
  /// specific enough.
  private static func rule(status: UInt16, word: String?) -> ReplyRule {
    if let word, let rule = byReason[word], rule.status == "\(status)" { return rule }
    return switch status {
    case 401, 413, 429: worded.first { $0.status == "\(status)" } ?? otherClientError
    case 400...499: otherClientError
    case 500...599: plain.first { $0.status == "\(status)" } ?? otherServerError
    default: .notUnderstood
    }
  }
}
